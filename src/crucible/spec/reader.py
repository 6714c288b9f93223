"""Text to JobSpec: all problems at once, or a spec with warnings. Pure: no clock, no disk, no network."""

from dataclasses import dataclass
from datetime import datetime

from crucible.model.spec import JobSpec
from crucible.spec import rules
from crucible.spec.fields import SPEC, homes, samples
from crucible.spec.problems import Problem, Reading, Stop, invalid_spec
from crucible.spec.text import decode
from crucible.spec.yaml_nodes import compose

_HOMES, _SAMPLES = homes(), samples()


@dataclass(frozen=True, slots=True)
class Loaded:
    spec: JobSpec
    warnings: tuple[Problem, ...]


def load(text: str | bytes, *, now: datetime | None = None) -> Loaded:
    """The spec that `text` describes, or InvalidSpec with every problem. With `now`, a deadline that has passed is a
    warning; without, the answer does not depend on when it is asked."""
    reading = Reading(homes=_HOMES, samples=_SAMPLES)
    try:
        spec = _read(text, reading, now)
    except Stop:
        spec = None
    if not isinstance(spec, JobSpec) or reading.problems:
        raise invalid_spec(reading.problems)
    warnings = sorted(reading.warnings, key=lambda w: (w.line, w.column))
    return Loaded(spec, tuple(warnings))


def _read(text: str | bytes, reading: Reading, now: datetime | None) -> JobSpec | None:
    spec = SPEC.read(compose(decode(text, reading), reading), "", reading)
    return rules.apply(spec, reading, now) if isinstance(spec, JobSpec) else None
