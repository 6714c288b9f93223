"""Text to JobSpec: all problems at once, or a spec with warnings. Pure: no clock, no disk, no network."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from crucible.model.spec import JobSpec
from crucible.spec import rules, workflow
from crucible.spec.fields import SPEC, homes, samples
from crucible.spec.inherit import entry, spread
from crucible.spec.problems import Problem, Reading, Stop, invalid_spec
from crucible.spec.text import decode
from crucible.spec.yaml_nodes import Node, compose

_HOMES, _SAMPLES = homes(), samples()


@dataclass(frozen=True, slots=True)
class Loaded:
    spec: JobSpec
    warnings: tuple[Problem, ...]


def load(text: str | bytes, *, now: datetime | None = None) -> Loaded:
    """The spec that `text` describes, or InvalidSpec with every problem. With `now`, a deadline that has passed is a
    warning; without, the answer does not depend on when it is asked. What a job leaves to the template that it names is
    not missed."""
    reading = Reading(homes=_HOMES, samples=_SAMPLES)
    return _loaded(lambda: compose(decode(text, reading), reading), reading, now)


def load_tree(root: Node) -> Loaded:
    """The same, of a text that was read already."""
    return _loaded(lambda: root, Reading(homes=_HOMES, samples=_SAMPLES), None)


def _loaded(root: Callable[[], Node], reading: Reading, now: datetime | None) -> Loaded:
    try:
        spec = _read(root(), reading, now)
    except Stop:
        spec = None
    if not isinstance(spec, JobSpec) or reading.problems:
        raise invalid_spec(reading.problems)
    warnings = sorted(reading.warnings, key=lambda w: (w.line, w.column))
    return Loaded(spec, tuple(warnings))


def _read(root: Node, reading: Reading, now: datetime | None) -> JobSpec | None:
    reading.is_partial = entry(entry(root, "job"), "template") is not None
    spec = SPEC.read(spread(root, reading), "", reading)
    if not isinstance(spec, JobSpec):
        return None
    is_workflow = "job.steps" in reading.given
    return workflow.apply(spec, reading, now) if is_workflow else rules.apply(spec, reading, now)
