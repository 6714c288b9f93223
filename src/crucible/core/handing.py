"""What a step is given of the steps before it, and how its job finds it. Pure; trees are read elsewhere."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crucible.core.workflow import Part
from crucible.model.dataset_tree import Entry, Tree
from crucible.model.errors import InvalidRequest
from crucible.model.ids import JobId
from crucible.model.outputs import Output
from crucible.model.sweep import Params, Scalar
from crucible.model.task import TaskPhase

# A list of items becomes part of a spec, whose size is limited; who has more gives each task a part of them.
MOST_ITEMS = 1000
MAX_LIST_BYTES = 128 << 10


@dataclass(frozen=True, slots=True)
class Handed:
    """`seen` is what a result depends on; the rest is how it reaches the step's job."""

    inputs: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    trials: Sequence[Params] = ()
    seen: Mapping[str, Any] = field(default_factory=dict)

    def fields(self) -> Mapping[str, Any]:
        """Of the spec of the step's job."""
        sweep = {"method": "list", "trials": list(self.trials), "max_failures": 0} if self.trials else None
        told = {"inputs": self.inputs, "env": self.env, "sweep": sweep}
        return {name: value for name, value in told.items() if value}


def source_of(part: Part) -> JobId | None:
    """Whose results stand for a step that has succeeded."""
    if part.task.phase is not TaskPhase.SUCCEEDED:
        return None
    reused = (part.task.params or {}).get("job")
    if reused is not None:
        return JobId(str(reused))
    return None if part.child is None else part.child.id


def folder(name: str, one: Output, left: Sequence[Output]) -> str:
    """Below $CRUCIBLE_INPUTS; where a step had many tasks, one for each."""
    return name if len(left) == 1 else f"{name}.{one.task_index}"


def variable(name: str) -> str:
    """Says where the input is below $CRUCIBLE_INPUTS."""
    return f"INPUT_{name.upper().replace('-', '_')}"


def is_in(tree: Tree, path: str) -> bool:
    return any(is_at(entry, path) for entry in tree.entries)


def is_at(entry: Entry, path: str) -> bool:
    return entry.path == path or entry.path.startswith(f"{path}/")


def items_of(data: bytes, source: str) -> Sequence[Params]:
    """What each task is given: its item under this name, or all that an item says under names of its own."""
    try:
        text = data.decode()
        found = json.loads(text) if text.lstrip().startswith("[") else [line for line in text.splitlines() if line]
    except ValueError as error:
        raise InvalidRequest(f"{source} is neither a JSON list nor lines of text: {error}") from None
    if not isinstance(found, list) or not 1 <= len(found) <= MOST_ITEMS:
        raise InvalidRequest(f"{source} has {len(found)} items; a step takes 1 to {MOST_ITEMS}")
    return [given(item, number, source) for number, item in enumerate(found)]


def given(item: Any, number: int, source: str) -> Params:
    told = item if isinstance(item, dict) else {"item": item}
    if not told or not all(isinstance(value, Scalar) for value in told.values()):
        raise InvalidRequest(f"{source}: item {number} is neither text, a number, true or false, nor names of such")
    return told
