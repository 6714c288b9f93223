"""What somebody wants to go wrong, how often and for whom. A rule that cannot strike as written is refused with what is
wrong, where, and how to write it."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from crucible.lab.fault_kinds import KINDS, FaultKind, Kind, Moment

_DURATION = re.compile(r"(?P<sign>[-+]?)(?=[0-9.])(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s?)?")
_UNITS = (86_400, 3_600, 60, 1)
_LONGEST_TEXT = 256  # of a pattern, an id or a tag


class BadRule(ValueError):
    """`field` is where, `message` what, `hint` how to fix it."""

    def __init__(self, field: str, message: str, hint: str = "") -> None:
        super().__init__(f"{field}: {message}" + (f" ({hint})" if hint else ""))
        self.field, self.message, self.hint = field, message, hint


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    kind: FaultKind
    operation: str = "*"  # a pattern as of file names; of requests only
    probability: float = 1.0  # of each time it is asked
    count: int | None = None  # strikes so often; None: as long as it stands
    since: float | None = None  # world time
    until: float | None = None
    seconds: tuple[float, float] | None = None  # None: as is usual for the kind
    status: int | None = None
    machine: str | None = None  # only this one
    tag: tuple[str, str | None] | None = None  # only machines that carry it
    region: str = "*"
    type: str = "*"

    def __post_init__(self) -> None:
        for check in _CHECKS:
            check(self, KINDS[self.kind])

    @property
    def moment(self) -> Moment:
        return KINDS[self.kind].moment

    @property
    def span(self) -> tuple[float, float]:
        """Between which seconds it draws."""
        usual = KINDS[self.kind].seconds
        return self.seconds or (usual.default if usual else (0.0, 0.0))

    def fields(self) -> dict[str, Any]:
        """As JSON. Leaves out what was not said."""
        said: dict[str, Any] = {"kind": str(self.kind)}
        for name in ("operation", "region", "type"):
            if getattr(self, name) != "*":
                said[name] = getattr(self, name)
        said["probability"] = self.probability
        for name in ("count", "since", "until", "status", "machine"):
            if getattr(self, name) is not None:
                said[name] = getattr(self, name)
        if KINDS[self.kind].seconds:
            said["seconds"] = list(self.span)
        if self.tag:
            said["tag"] = "=".join(part for part in self.tag if part is not None)
        return said


def read_rule(fields: Mapping[str, Any], now: float) -> Rule:
    """The rule that JSON or a command line describes: `for` is how long from `now` (or from `at` after it) it stands;
    durations are numbers of seconds or text such as 90s, 5m, 1h30m; `seconds` is one of them or a pair."""
    unknown = [name for name in fields if name not in _READERS]
    if unknown:
        near = get_close_matches(str(unknown[0]), _READERS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"fields of a rule: {', '.join(_READERS)}"
        raise BadRule(str(unknown[0])[:_LONGEST_TEXT], "there is no such field", hint)
    if fields.get("kind") is None:
        raise BadRule("kind", "is missing", f"one of {', '.join(FaultKind)}")
    said = {name: _READERS[name](name, value) for name, value in fields.items() if value is not None}
    since = now + said.pop("at") if "at" in said else None
    until = (now if since is None else since) + said.pop("for") if "for" in said else None
    return Rule(**{"since": since, "until": until, **said})


def carries(tags: Mapping[str, str], wanted: tuple[str, str | None] | None) -> bool:
    """True if `tags` have the one that is wanted, with its value if one is said. Nothing wanted is always there."""
    if wanted is None:
        return True
    name, value = wanted
    return name in tags and (value is None or tags[name] == value)


def read_duration(field: str, value: Any) -> float:
    """Seconds. Text may be 90s, 5m, 1h30m, or a bare number; a sign may precede it."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if math.isfinite(value):
            return float(value)
    elif isinstance(value, str) and len(value) <= _LONGEST_TEXT:
        found = _DURATION.fullmatch(value.replace(" ", ""))
        if found:
            parts = zip(found.groups()[1:], _UNITS, strict=True)
            total = sum(float(part or 0) * unit for part, unit in parts)
            return -total if found["sign"] == "-" else total
    raise BadRule(field, f"{value!r:.60} is no duration", "write seconds, or 90s, 5m, 1h30m")


# --- from JSON ---------------------------------------------------------------------------------------------


def _kind(field: str, value: Any) -> FaultKind:
    try:
        return FaultKind(value)
    except ValueError:
        near = get_close_matches(str(value)[:_LONGEST_TEXT], list(FaultKind), n=1)
        hint = f"did you mean {near[0]}?" if near else f"one of {', '.join(FaultKind)}"
        raise BadRule(field, f"{value!r:.60} is no kind of fault", hint) from None


def _text(field: str, value: Any) -> str:
    if isinstance(value, str) and 0 < len(value) <= _LONGEST_TEXT and value.isprintable():
        return value
    raise BadRule(field, f"{value!r:.60} is no short text", "write one line")


def _number(field: str, value: Any) -> float:
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if math.isfinite(number):
        return number
    raise BadRule(field, f"{value!r:.60} is no number", "write it in decimal")


def _whole(field: str, value: Any) -> int:
    number = _number(field, value)
    if number == int(number):
        return int(number)
    raise BadRule(field, f"{value!r:.60} is no whole number")


def _offset(field: str, value: Any) -> float:
    seconds = read_duration(field, value)
    if seconds < 0:
        raise BadRule(field, f"{value!r:.60} lies in the past", "give a duration from now on")
    return seconds


def _length(field: str, value: Any) -> float:
    seconds = read_duration(field, value)
    if seconds <= 0:
        raise BadRule(field, f"{value!r:.60} is no time at all", "give a duration above 0")
    return seconds


def _span(field: str, value: Any) -> tuple[float, float]:
    if isinstance(value, str) and ".." in value:
        value = value.split("..", 1)
    if isinstance(value, list | tuple):
        if len(value) != 2:
            raise BadRule(field, f"has {len(value)} figures", "write one, or the least and the most: [0, 60] or 0..60")
        return read_duration(field, value[0]), read_duration(field, value[1])
    fixed = read_duration(field, value)
    return fixed, fixed


def _tag(field: str, value: Any) -> tuple[str, str | None]:
    name, has_value, wanted = _text(field, value).partition("=")
    if not name:
        raise BadRule(field, f"{value!r:.60} has no name", "write name=value, or the name alone")
    return name, wanted if has_value else None


_READERS: dict[str, Callable[[str, Any], Any]] = {
    "kind": _kind,
    "operation": _text,
    "probability": _number,
    "count": _whole,
    "at": _offset,
    "for": _length,
    "seconds": _span,
    "status": _whole,
    "machine": _text,
    "tag": _tag,
    "region": _text,
    "type": _text,
}


# --- what a rule must satisfy, however it was made ---------------------------------------------------------


def _check_chance(rule: Rule, kind: Kind) -> None:
    if not 0.0 < rule.probability <= 1.0:
        raise BadRule("probability", f"{rule.probability:g} is not above 0 and up to 1", "0.1 is every tenth time")
    if rule.count is not None and rule.count < 1:
        raise BadRule("count", f"{rule.count} is not above 0", "leave it out to strike without end")


def _check_times(rule: Rule, kind: Kind) -> None:
    if rule.since is not None and rule.until is not None and rule.until <= rule.since:
        raise BadRule("for", "the rule would end before it starts", "give a duration above 0")


def _check_operation(rule: Rule, kind: Kind) -> None:
    if kind.moment is Moment.BOOT and rule.operation != "*":
        hint = "leave it out; choose machines by tag, machine, type or region"
        raise BadRule("operation", f"{rule.kind} strikes machines, not requests", hint)
    known = kind.operations
    if "*" not in known and not any(fnmatchcase(name, rule.operation) for name in known):
        raise BadRule("operation", f"{rule.kind} means nothing to {rule.operation}", f"it strikes {', '.join(known)}")


def _check_seconds(rule: Rule, kind: Kind) -> None:
    if rule.seconds is None:
        return
    if kind.seconds is None:
        raise BadRule("seconds", f"{rule.kind} takes none", "leave it out")
    low, high = rule.seconds
    if low > high:
        raise BadRule("seconds", f"{low:g} is more than {high:g}", "write the least first")
    if low < kind.seconds.least or high > kind.seconds.most:
        bounds = f"between {kind.seconds.least:g} and {kind.seconds.most:g}"
        raise BadRule("seconds", f"{rule.kind} takes what is {bounds}", "a bare number is seconds")


def _check_status(rule: Rule, kind: Kind) -> None:
    if rule.status is not None and rule.status not in kind.statuses:
        usual = " or ".join(str(status) for status in kind.statuses)
        hint = f"write {usual}" if usual else "leave it out"
        raise BadRule("status", f"{rule.kind} does not answer {rule.status}", hint)


_CHECKS = (_check_chance, _check_times, _check_operation, _check_seconds, _check_status)
