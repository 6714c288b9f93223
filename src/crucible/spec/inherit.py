"""What a step does not say is as its workflow says. Works on the nodes of a text, before anybody reads them: so a
problem of a step has its place, and the text of a step's own job is made of the words that its author wrote."""

from collections.abc import Mapping
from typing import Any

from crucible.spec.problems import Position, Reading
from crucible.spec.workflow import OWN_NAMES
from crucible.spec.yaml_nodes import Entries, Listing, Node, Scalar, compose
from crucible.spec.yaml_text import text_of

# Of the workflow alone, or of one step alone.
APART = frozenset({"name", "type", "steps", "sweep", "evaluation", "shards", "inputs", "template", "with"})
# A step that says what it runs takes nothing of this from its workflow.
STARTED = ("entrypoint", "command", "model")
STARTS = frozenset({*STARTED, "args"})
# Two ways to say the same: whoever uses one of them does not take the other.
SAME = {
    "retry": "retry_count",
    "retry_count": "retry",
    "timeout": "timeout_minutes",
    "timeout_minutes": "timeout",
}
# What is copied is read once for each step: more would take long.
MOST_VALUES = 50_000

_MADE = Position(0, 0)  # of what nobody wrote


def spread(root: Node, reading: Reading) -> Node:
    """The tree with every step as a whole job. The steps come last, so that a slip which they take over is told where
    it was made."""
    job = entry(root, "job")
    steps = entry(job, "steps")
    if not isinstance(root, Entries) or not isinstance(job, Entries) or not isinstance(steps, Listing):
        return root
    shared = Entries(job.at, [entry for entry in job.entries if entry[0].text not in APART])
    shared.size = sum(1 + value.size for _, value in shared.entries)
    if steps.size + shared.size * len(steps.items) > MOST_VALUES:
        said = f"the steps have more than {MOST_VALUES} values together, with what they take from the workflow"
        reading.stop(steps.at, "job.steps", said, "write fewer steps, or less that they share")
    items: list[Node] = [inherited(one, shared) if isinstance(one, Entries) else one for one in steps.items]
    others = [entry for entry in job.entries if entry[0].text != "steps"]
    whole = Entries(
        job.at, [*others, *((key, Listing(steps.at, items)) for key, _ in job.entries if key.text == "steps")]
    )
    return Entries(root.at, [(key, whole if key.text == "job" else value) for key, value in root.entries])


def inherited(step: Entries, shared: Entries) -> Entries:
    said = {key.text for key, _ in step.entries}
    hidden = {SAME[name] for name in said if name in SAME}
    if not said.isdisjoint(STARTED):
        hidden |= STARTS
    taken = [entry for entry in shared.entries if entry[0].text not in hidden]
    return merged(step, Entries(shared.at, taken))


def merged(own: Entries, other: Entries) -> Entries:
    """Mappings are merged name by name; anything else that `own` says holds as it stands."""
    behind = {key.text: value for key, value in other.entries}
    said = {key.text for key, _ in own.entries}
    entries = [(key, _merged(value, behind.get(key.text))) for key, value in own.entries]
    return Entries(own.at, [*entries, *(entry for entry in other.entries if entry[0].text not in said)])


def _merged(own: Node, other: Node | None) -> Node:
    return merged(own, other) if isinstance(own, Entries) and isinstance(other, Entries) else own


def entry(node: Node | None, name: str) -> Node | None:
    if not isinstance(node, Entries):
        return None
    return next((value for key, value in node.entries if key.text == name), None)


# --- the text of a step's own job -------------------------------------------------------------------------------------


def step_text(text: str, index: int, given: Mapping[str, Any]) -> str:
    """The job of a step of the valid workflow `text`, as a spec by itself. `given` goes before whatever is written."""
    job = entry(spread(compose(text, Reading()), Reading()), "job")
    steps = entry(job, "steps")
    assert isinstance(steps, Listing)  # a valid workflow has them
    step = steps.items[index]
    assert isinstance(step, Entries)
    kept = Entries(step.at, [entry for entry in step.entries if entry[0].text not in OWN_NAMES])
    whole = merged(_entries(given), kept)
    return text_of(Entries(_MADE, [(_made("job"), whole)]))


def _entries(values: Mapping[str, Any]) -> Entries:
    return Entries(_MADE, [(_made(name), _node(value)) for name, value in values.items()])


def _node(value: Any) -> Node:
    match value:
        case Mapping():
            return _entries(value)
        case list() | tuple():
            return Listing(_MADE, [_node(item) for item in value])
        case bool():
            return Scalar(str(value).lower(), True, _MADE)
        case int() | float():
            return Scalar(repr(value), True, _MADE)
    return Scalar(str(value), False, _MADE)


def _made(name: str) -> Scalar:
    return Scalar(name, True, _MADE)
