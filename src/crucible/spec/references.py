"""What steps say of each other: names, needs, inputs. Each must mean a step that is there and comes before."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from crucible.model.spec import Step
from crucible.model.steps import Needs, above, circle
from crucible.spec.kinds import nearest
from crucible.spec.problems import Position, Reading, below, shown
from crucible.spec.yaml_nodes import Entries, Listing, Node, Scalar

# What makes many tasks of a job; a step that has a task for each item has its many already.
MANY = ("sweep", "evaluation", "shards")
# Steps that a hint lists.
_SHOWN = 8

Place = tuple[Position, str]  # and the path of the field


@dataclass(frozen=True)
class Places:
    """Where the steps say what in the text."""

    items: Sequence[Node]
    path: str

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of all steps, of those too that could not be read; empty where there is none."""
        found = (self._value(number, "name") for number in range(len(self.items)))
        return tuple(node.text if isinstance(node, Scalar) else "" for node in found)

    def field(self, number: int, name: str) -> Place:
        node = self._value(number, name)
        return (self.items[number] if node is None else node).at, f"{self.path}[{number}].{name}"

    def item(self, number: int, name: str, text: str) -> Place:
        """Of several values the one that says `text`."""
        node, (at, path) = self._value(number, name), self.field(number, name)
        said: list[tuple[Node, str]] = []
        if isinstance(node, Listing):
            said = [(item, f"{path}[{i}]") for i, item in enumerate(node.items)]
        elif isinstance(node, Entries):
            said = [(value, below(path, key.text)) for key, value in node.entries]
        found = ((one.at, where) for one, where in said if isinstance(one, Scalar) and one.text == text)
        return next(found, (at, path))

    def _value(self, number: int, name: str) -> Node | None:
        step = self.items[number]
        entries = step.entries if isinstance(step, Entries) else []
        return next((value for key, value in entries if key.text == name), None)


def check(steps: Sequence[Step | None], places: Places, reading: Reading) -> None:
    """`steps` has None for those that could not be read."""
    _check_names(places, reading)
    needs = {step.name: step.needs for step in steps if step is not None}
    for number, step in enumerate(steps):
        if step is not None:
            _check_needs(step, number, places, reading)
            _check_sources(step, number, needs, places, reading)
    _check_circle(needs, places, reading)


def _check_names(places: Places, reading: Reading) -> None:
    first: dict[str, int] = {}
    for number, name in enumerate(places.names):
        known = first.setdefault(name, number)
        if name and known != number:
            line = places.field(known, "name")[0].line
            said = f"two steps are called {shown(name)}, the first in line {line}"
            reading.add(*places.field(number, "name"), said, "give each step a name of its own")


def _check_needs(step: Step, number: int, places: Places, reading: Reading) -> None:
    for need in step.needs:
        _check_known(need, places.item(number, "needs", need), places, reading)


def _check_sources(step: Step, number: int, needs: Needs, places: Places, reading: Reading) -> None:
    before = above(step.name, needs)
    sources = [("inputs", source) for source in step.inputs.values()]
    for field, source in [*sources, *([("for_each", step.for_each)] if step.for_each else [])]:
        name, place = source.partition("/")[0], places.item(number, field, source)
        if _check_known(name, place, places, reading) and name not in before:
            hint = f"add it: `needs: [{', '.join((*step.needs, name))}]`"
            reading.add(*place, f"the step {shown(name)} is none of those that {shown(step.name)} needs", hint)
    many = [name for name in MANY if getattr(step.job, name) is not None]
    if step.for_each and many:
        said = f"for_each and {many[0]} both make tasks of the step"
        reading.add(*places.field(number, "for_each"), said, "keep one of them")


def _check_known(name: str, place: Place, places: Places, reading: Reading) -> bool:
    names = tuple(one for one in places.names if one)
    if name in names:
        return True
    near = nearest(name, names)
    more = ", …" if len(names) > _SHOWN else ""
    hint = f"did you mean '{near}'?" if near else f"the steps are {', '.join(names[:_SHOWN])}{more}"
    reading.add(*place, f"there is no step {shown(name)}", hint)
    return False


def _check_circle(needs: Needs, places: Places, reading: Reading) -> None:
    found = circle(needs)
    if found:
        way = " → ".join((*found, found[0]))
        place = places.item(places.names.index(found[0]), "needs", found[1 % len(found)])
        reading.add(*place, f"these steps need each other in a circle: {way}", "remove one of these needs")
