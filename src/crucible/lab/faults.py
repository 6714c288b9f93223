"""Decides what goes wrong: rules in, faults out, a log of what struck. Pure and seeded: time comes with each question,
the same seed and questions give the same faults, and each rule draws from its own stream, so that adding one never
changes what another does. It breaks nothing itself: the front ends and the runtime do what a `Fault` says."""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import takewhile
from random import Random
from typing import Any

from crucible.lab.fault_kinds import KINDS, FaultKind, Moment
from crucible.lab.fault_rules import BadRule, Rule, carries, read_rule

__all__ = ["KINDS", "BadRule", "Context", "Fault", "FaultKind", "Faults", "Moment", "Rule", "Standing", "read_rule"]

AT_BOOT = "boot"  # the operation of questions about machines
MOST_RULES = 1_000  # each is looked at for every request
MOST_REMEMBERED = 10_000  # strikes kept for people and tests


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a question is about. `machines` are those that the request names or lists, with their tags; `tags` are those
    that a request gives to machines not yet there."""

    now: float
    region: str = ""
    type: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    machines: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What must happen now, every chance drawn."""

    kind: FaultKind
    rule: str  # id of the rule
    operation: str
    at: float
    seconds: float = 0.0
    status: int = 0
    machines: tuple[str, ...] = ()  # those of the question that the rule is about
    draw: float = 0.0  # in [0, 1): for whoever must choose among them

    @property
    def chosen(self) -> str | None:
        """The one machine that is meant where one must be chosen."""
        return self.machines[int(self.draw * len(self.machines))] if self.machines else None

    def note(self) -> str:
        """For people."""
        figure = f" {self.seconds:g}s" if KINDS[self.kind].seconds else ""
        whom = f" {', '.join(self.machines[:3])}" if self.machines else ""
        return f"{self.kind}{figure} on {self.operation}{whom} (rule {self.rule})"

    def fields(self) -> dict[str, Any]:
        """As JSON."""
        said: dict[str, Any] = {"kind": str(self.kind), "rule": self.rule, "operation": self.operation, "at": self.at}
        if KINDS[self.kind].seconds:
            said["seconds"] = self.seconds
        if self.status:
            said["status"] = self.status
        if self.machines:
            said["machines"] = list(self.machines)
        return said


@dataclass(slots=True)
class Standing:
    """A rule and how it has fared."""

    id: str
    rule: Rule
    chance: Random
    asked: int = 0  # questions that it was about
    struck: int = 0

    def is_over(self, now: float) -> bool:
        is_late = self.rule.until is not None and now >= self.rule.until
        return is_late or (self.rule.count is not None and self.struck >= self.rule.count)

    def fields(self) -> dict[str, Any]:
        """As JSON."""
        return {"id": self.id, "asked": self.asked, "struck": self.struck, **self.rule.fields()}


class Faults:
    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._standing: dict[str, Standing] = {}
        self._by_moment: dict[Moment, list[Standing]] = {moment: [] for moment in Moment}
        self._alike: Counter[Rule] = Counter()  # ever added: the second of two equal rules draws otherwise
        self._added = 0
        self._log: deque[tuple[int, Fault]] = deque(maxlen=MOST_REMEMBERED)
        self._logged = 0

    def add(self, rule: Rule) -> str:
        """Its id."""
        if len(self._standing) >= MOST_RULES:
            raise BadRule("faults", f"there are {MOST_RULES} rules already", "clear some")
        self._added += 1
        name = f"f-{self._added}"
        # The stream depends on what the rule says, not on when it was said or on what was added before it.
        said = replace(rule, since=None, until=None)
        self._alike[said] += 1
        chance = Random(f"{self._seed}/{said!r}/{self._alike[said]}")  # noqa: S311 (a die, not a key)
        standing = Standing(name, rule, chance)
        self._standing[name] = standing
        self._by_moment[rule.moment].append(standing)
        return name

    def rules(self) -> tuple[Standing, ...]:
        return tuple(self._standing.values())

    def clear(self, rule: str | None = None) -> int:
        """Removes one rule, or all; tells how many. An unknown id is BadRule."""
        if rule is not None and rule not in self._standing:
            raise BadRule("rule", f"there is no rule {rule!r:.60}", "`crucible lab fail --list` shows them")
        gone = [rule] if rule is not None else list(self._standing)
        for name in gone:
            standing = self._standing.pop(name)
            self._by_moment[standing.rule.moment].remove(standing)
        return len(gone)

    def is_quiet(self, moment: Moment) -> bool:
        """True if no rule can strike: no question needs to be put together."""
        return not self._by_moment[moment]

    def decide(self, operation: str, moment: Moment, context: Context) -> Fault | None:
        """The first rule, in the order added, that strikes. All that were asked have drawn; only it is counted."""
        for standing, fault in self._drawn(operation, moment, context):
            self._remember(standing, fault)
            return fault
        return None

    def strikes(self, operation: str, moment: Moment, context: Context) -> tuple[Fault, ...]:
        """Every rule that strikes, at most one of a kind. For those who can carry out several at once."""
        first: dict[FaultKind, Fault] = {}
        for standing, fault in self._drawn(operation, moment, context):
            if fault.kind not in first:
                first[fault.kind] = fault
                self._remember(standing, fault)
        return tuple(first.values())

    def at_boot(self, context: Context) -> tuple[Fault, ...]:
        """What is wrong with the machine in `context` from its start."""
        return self.strikes(AT_BOOT, Moment.BOOT, context)

    def struck(self, after: int = 0) -> tuple[tuple[int, Fault], ...]:
        """What went wrong so far, numbered from 1, oldest first; the oldest of very many are forgotten."""
        newest = takewhile(lambda entry: entry[0] > after, reversed(self._log))
        return tuple(newest)[::-1]

    def _drawn(self, operation: str, moment: Moment, context: Context) -> list[tuple[Standing, Fault]]:
        drawn = [
            (standing, _draw(standing, operation, context))
            for standing in self._by_moment[moment]
            if _is_about(standing, operation, context)
        ]
        return [(standing, fault) for standing, fault in drawn if fault is not None]

    def _remember(self, standing: Standing, fault: Fault) -> None:
        standing.struck += 1
        self._logged += 1
        self._log.append((self._logged, fault))


def _is_about(standing: Standing, operation: str, context: Context) -> bool:
    rule = standing.rule
    if standing.is_over(context.now) or (rule.since is not None and context.now < rule.since):
        return False
    where = KINDS[rule.kind].operations
    return (
        any(fnmatchcase(operation, pattern) for pattern in where)
        and fnmatchcase(operation, rule.operation)
        and (rule.region == "*" or fnmatchcase(context.region, rule.region))
        and (rule.type == "*" or fnmatchcase(context.type, rule.type))
        and _has_target(rule, context)
    )


def _has_target(rule: Rule, context: Context) -> bool:
    if rule.machine is None and rule.tag is None:
        return True
    if rule.machine is None and not context.machines:
        return carries(context.tags, rule.tag)
    return bool(_targets(rule, context))


def _targets(rule: Rule, context: Context) -> tuple[str, ...]:
    return tuple(
        name
        for name, tags in context.machines.items()
        if (rule.machine is None or name == rule.machine) and carries(tags, rule.tag)
    )


def _draw(standing: Standing, operation: str, context: Context) -> Fault | None:
    """Three numbers each time, whether it strikes or not, so that a run can be repeated."""
    rule = standing.rule
    standing.asked += 1
    strikes, where, which = standing.chance.random(), standing.chance.random(), standing.chance.random()
    if strikes >= rule.probability:
        return None
    kind, (low, high) = KINDS[rule.kind], rule.span
    seconds = low + where * (high - low)
    return Fault(
        kind=rule.kind,
        rule=standing.id,
        operation=operation,
        at=context.now,
        seconds=float(round(seconds)) if kind.seconds and kind.seconds.is_whole else seconds,
        status=rule.status or (kind.statuses[0] if kind.statuses else 0),
        machines=_targets(rule, context),
        draw=which,
    )
