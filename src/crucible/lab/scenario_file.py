"""Scenarios as people write them: YAML, small, with every problem at its line. Reads and checks; `scenario` plays."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from crucible.lab.fault_rules import BadRule, read_rule
from crucible.lab.scenario import Preempt, PriceSpike, Scenario, SetCapacity, Strike, Timed
from crucible.spec.kinds import INVALID, Bad, Choice, Number, Text, Whole, free_scalar
from crucible.spec.problems import Problem, Reading, Stop, below, format_problems, shown
from crucible.spec.quantities import Duration, Money
from crucible.spec.suggest import meant
from crucible.spec.table import Field, Group
from crucible.spec.text import MAX_BYTES, START, TOP, decode
from crucible.spec.yaml_nodes import Entries, Listing, Node, compose, describe
from crucible.world.facts import Market

_TOP = "scenario"  # the field that problems of the whole file are told of
_ANY = timedelta(0)
_LONGEST = timedelta(days=366)


class BadScenario(ValueError):
    """`problems` are all of them; as text, one line each: file:line:column: field: message (hint)."""

    def __init__(self, problems: tuple[Problem, ...], filename: str) -> None:
        super().__init__(format_problems(problems, filename))
        self.problems = problems


def load(path: Path) -> Scenario:
    """The scenario in a file. OSError if it cannot be read, BadScenario if it says what cannot be played."""
    with path.open("rb") as file:
        text = file.read(MAX_BYTES + 1)  # one more than is taken: the reader tells that it is too long
    return read(text, str(path))


def read(text: str | bytes, filename: str = "scenario") -> Scenario:
    reading = Reading()
    found: Scenario | None = None
    try:
        found = _scenario(_tree(text, reading), reading, Path(filename).stem)
    except Stop:
        pass
    if found is None or reading.problems:
        ordered = sorted(reading.problems, key=lambda problem: (problem.line, problem.column))
        raise BadScenario(tuple(map(_ours, ordered)), filename)
    return found


def _ours(problem: Problem) -> Problem:
    """Whoever reads YAML takes the whole file for a job."""
    return replace(problem, field=_TOP) if problem.field == TOP else problem


def _tree(text: str | bytes, reading: Reading) -> Entries:
    decoded = decode(text, reading)
    if not any(line.strip() and not line.lstrip().startswith("#") for line in decoded.splitlines()):
        reading.stop(START, _TOP, "the scenario is empty", "write faults: or events:, see docs/lab.md")
    tree = compose(decoded, reading)
    if not isinstance(tree, Entries):
        reading.stop(tree.at, _TOP, f"expected a mapping, found {describe(tree)}", "start with faults: or events:")
    return tree


def _scenario(tree: Entries, reading: Reading, name: str) -> Scenario:
    timed: list[Timed] = []
    spikes: list[PriceSpike] = []
    for key, value in tree.entries:
        if key.text == "name":
            name = Text("a name", max_length=200).read(value, "name", reading)
        elif key.text == "faults":
            for item, path in _items(value, "faults", reading):
                _fault(item, path, reading, timed)
        elif key.text == "events":
            for item, path in _items(value, "events", reading):
                _event(item, path, reading, timed, spikes)
        else:
            hint = meant(key.text, "", ("name", "faults", "events"), {})
            reading.add(key.at, key.text[:40], f"unknown field {shown(key.text)}", hint)
    if not timed and not spikes and not reading.problems:
        reading.add(tree.at, _TOP, "nothing happens", "write faults: or events:, see docs/lab.md")
    return Scenario(name, timed, spikes)


def _items(node: Node, path: str, reading: Reading) -> list[tuple[Entries, str]]:
    if not isinstance(node, Listing):
        reading.add(node.at, path, f"expected a list, found {describe(node)}", "write each item after '- '")
        return []
    found = []
    for number, item in enumerate(node.items):
        here = f"{path}[{number}]"
        if isinstance(item, Entries):
            found.append((item, here))
        else:
            reading.add(item.at, here, f"expected a mapping, found {describe(item)}", "write `name: value` lines")
    return found


# --- faults: the fields of a rule, as on the command line ----------------------------------------------------


def _fault(item: Entries, path: str, reading: Reading, timed: list[Timed]) -> None:
    """Adds a rule whose times count from the start to `timed`, or its problems to `reading`."""
    places = {key.text: value.at for key, value in item.entries}
    values = {key.text: _plain(value, below(path, key.text), reading) for key, value in item.entries}
    said = {name: value for name, value in values.items() if value is not INVALID}
    try:
        rule = read_rule(said, 0.0)
    except BadRule as bad:
        at = places.get(bad.field, item.at)
        reading.add(at, below(path, bad.field), bad.message, bad.hint)
    else:
        timed.append(Timed(rule.since or 0.0, Strike(rule=rule)))


def _plain(node: Node, path: str, reading: Reading) -> Any:
    if isinstance(node, Listing):
        return [_plain(item, f"{path}[{number}]", reading) for number, item in enumerate(node.items)]
    try:
        if isinstance(node, Entries):
            raise Bad("expected a value, found a mapping")
        if node.is_null:
            raise Bad("has no value", "give a value or remove the field")
        return free_scalar(node)
    except Bad as bad:
        reading.add(node.at, path, bad.message, bad.hint)
        return INVALID


# --- events ---------------------------------------------------------------------------------------------------


_PATTERN = Text("a name, or a pattern such as g5.*", pattern=r"[A-Za-z0-9.*?\[\]-]+", max_length=100)
_WORD = Text("one line of text", pattern=r"[^\x00-\x1f\x7f]+", max_length=256)


def _seconds(duration: timedelta) -> float:
    return duration.total_seconds()


def _tag(text: str) -> tuple[str, str | None]:
    name, has_value, value = text.partition("=")
    return name, value if has_value else None


def _field(name: str, kind: Any, doc: str, to: str = "", make: Callable[[Any], Any] | None = None) -> Field:
    return Field(name=name, kind=kind, doc=doc, to=to, make=make, is_required=name in ("at", "do"))


_AT = (
    _field("do", Choice(("preempt", "price", "capacity")), "what happens"),
    _field("at", Duration(_ANY, _LONGEST), "how long after the start of the Lab", make=_seconds),
)
_FOR = _field("for", Duration(timedelta(seconds=1), _LONGEST), "until it is as before again", "lasts_s", _seconds)
_WHERE = (
    _field("zone", _PATTERN, "in which zones"),
    _field("type", _PATTERN, "of which machine types"),
)

_GROUPS: dict[str, Group] = {
    "preempt": Group(
        make=dict,
        fields=(
            *_AT,
            _field("machine", _WORD, "the id of one machine"),
            _field("tag", _WORD, "machines with this tag: name=value, or the name alone", make=_tag),
            _field("region", _PATTERN, "in which regions"),
            _field("type", _PATTERN, "of which machine types"),
            _field("count", Whole(1, 100_000), "how many, the oldest first"),
            _field("notice", Duration(_ANY, timedelta(hours=1)), "told so long before", "notice_s", _seconds),
        ),
    ),
    "price": Group(
        make=dict,
        one_of=("times", "usd_per_hour"),
        fields=(
            *_AT,
            _FOR,
            *_WHERE,
            _field("times", Number(0, 1000, is_above_least=True), "so many times what it would be"),
            _field("usd_per_hour", Money(100_000), "this price", "microusd_per_hour"),
        ),
    ),
    "capacity": Group(
        make=dict,
        one_of=("machines",),
        fields=(
            *_AT,
            _FOR,
            *_WHERE,
            _field("market", Choice(tuple(Market), make=Market), "of which market; else of both"),
            _field("machines", Whole(0, 1_000_000), "how many there are, those in use included"),
        ),
    ),
}


def _event(item: Entries, path: str, reading: Reading, timed: list[Timed], spikes: list[PriceSpike]) -> None:
    """Adds what the event brings to `timed` or `spikes`, or its problems to `reading`."""
    what, problems = _what(item, path, reading), len(reading.problems)
    said: Any = _GROUPS[what].read(item, path, reading) if what else INVALID
    if said is INVALID or len(reading.problems) > problems:
        return
    at = said.pop("at")
    del said["do"]
    if what == "price":
        if "times" in said and "microusd_per_hour" in said:
            reading.add(item.at, path, "times and usd_per_hour exclude each other", "keep one of them")
        spikes.append(PriceSpike(at=at, lasts_s=said.pop("lasts_s", None), **said))
    elif what == "preempt":
        named = (said.pop("machine"),) if "machine" in said else ()
        timed.append(Timed(at, Preempt(machines=named, **said)))
    else:
        timed += _capacity(at, said)


def _what(item: Entries, path: str, reading: Reading) -> str | None:
    """What an event does. Without it no other field can be judged."""
    here = below(path, "do")
    node = next((value for key, value in item.entries if key.text == "do"), None)
    if node is None:
        reading.add(item.at, here, "is missing", f"one of {', '.join(_GROUPS)}")
        return None
    what = Choice(tuple(_GROUPS)).read(node, here, reading)
    return None if what is INVALID else str(what)


def _capacity(at: float, said: dict[str, Any]) -> list[Timed]:
    lasts_s = said.pop("lasts_s", None)
    change = SetCapacity(**said)
    if lasts_s is None:
        return [Timed(at, change)]
    return [Timed(at, change), Timed(at + lasts_s, SetCapacity(**{**said, "machines": None}))]
