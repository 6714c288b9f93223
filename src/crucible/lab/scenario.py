"""What is to happen in the Lab and when: faults, prices, capacity, machines taken away. It is read before the Lab is up
and played by the Lab's clock; it draws nothing and looks at no clock itself."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import assert_never

from crucible.lab.fault_rules import BadRule, Rule, carries
from crucible.lab.faults import Faults
from crucible.world.facts import Facts, Market, PricePoint, Sale
from crucible.world.machine import Machine, State
from crucible.world.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """From now on this may go wrong. The times of its rule are the world's once the scenario has started."""

    rule: Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Preempt:
    """The seller takes spot machines away, the oldest first."""

    machines: tuple[str, ...] = ()  # none: any
    tag: tuple[str, str | None] | None = None
    region: str = "*"
    type: str = "*"
    count: int | None = None  # None: all that fit
    notice_s: float | None = None  # None: as is usual there

    def chosen(self, machines: Sequence[Machine]) -> tuple[Machine, ...]:
        """Which of `machines` it takes."""
        fit = sorted(filter(self._fits, machines), key=lambda machine: (machine.launched_at, machine.id))
        return tuple(fit if self.count is None else fit[: self.count])

    def _fits(self, machine: Machine) -> bool:
        return (
            machine.market is Market.SPOT
            and machine.state in (State.PENDING, State.RUNNING)
            and machine.notice_at is None
            and (not self.machines or machine.id in self.machines)
            and carries(machine.tags, self.tag)
            and fnmatchcase(machine.region, self.region)
            and fnmatchcase(machine.type, self.type)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCapacity:
    """So many machines can be had, running ones included; None: as many as before the scenario."""

    zone: str = "*"
    type: str = "*"
    market: Market | None = None  # None: both
    machines: int | None

    @property
    def markets(self) -> tuple[Market, ...]:
        return (self.market,) if self.market else tuple(Market)

    def is_about(self, sale: Sale) -> bool:
        return fnmatchcase(sale.zone, self.zone) and fnmatchcase(sale.type, self.type)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceSpike:
    """Spot prices are different for a while. Known from the start, as a price history is: see `Scenario.shaped`."""

    at: float
    lasts_s: float | None  # None: to the end
    zone: str = "*"
    type: str = "*"
    times: float | None = None  # of what it would have been …
    microusd_per_hour: int | None = None  # … or this

    def bent(self, sale: Sale, start: float) -> Sale:
        """The sale with this in its price line. Whole seconds, as prices are."""
        is_meant = fnmatchcase(sale.zone, self.zone) and fnmatchcase(sale.type, self.type)
        if not sale.spot or not is_meant:
            return sale
        since = int(start + self.at)
        until = None if self.lasts_s is None else since + int(self.lasts_s)
        return replace(sale, spot=_bent(sale.spot, since, until, self._price))

    def _price(self, usual: int) -> int:
        if self.microusd_per_hour is not None:
            return self.microusd_per_hour
        return round(usual * (self.times or 1.0))


Action = Strike | Preempt | SetCapacity


@dataclass(frozen=True, slots=True)
class Timed:
    at: float  # seconds after the start
    action: Action


class Scenario:
    """Say `shaped` before the world is made, `start` when its clock starts, then ask `due` now and then."""

    def __init__(self, name: str, timed: Sequence[Timed] = (), spikes: Sequence[PriceSpike] = ()) -> None:
        self.name = name
        self.timed = tuple(sorted(timed, key=lambda each: each.at))  # stable: at one moment, as written
        self.spikes = tuple(spikes)
        self._start: float | None = None
        self._done = 0

    def shaped(self, facts: Facts, start: float) -> Facts:
        """The facts with the scenario's prices: history, bills and what is taken away all follow from them."""
        sales = facts.sales
        for spike in self.spikes:
            sales = tuple(spike.bent(sale, start) for sale in sales)
        return replace(facts, sales=sales)

    def start(self, now: float) -> None:
        self._start, self._done = now, 0

    def next_at(self) -> float | None:
        """When `due` has something. None: never again, or not started."""
        if self._start is None or self._done >= len(self.timed):
            return None
        return self._start + self.timed[self._done].at

    def due(self, now: float) -> tuple[Action, ...]:
        """What is to be done by now and was not told yet."""
        found: list[Action] = []
        while (at := self.next_at()) is not None and at <= now:
            found.append(_dated(self.timed[self._done].action, self._start or 0.0))
            self._done += 1
        return tuple(found)


def carry_out(action: Action, world: World, faults: Faults, now: float) -> str:
    """Does it. What was done, for people."""
    match action:
        case Strike(rule=rule):
            try:
                return f"{rule.kind} may strike (rule {faults.add(rule)})"
            except BadRule as bad:  # there are too many: the Lab goes on without it and says so
                return f"{rule.kind} cannot strike: {bad}"
        case Preempt():
            accounts = [account.id for account in world.facts.accounts]
            every = [machine for id in accounts for machine in world.machines(id, None, now, is_omniscient=True)]
            taken = action.chosen(every)
            for machine in taken:
                world.preempt(machine.id, now, action.notice_s)
            return f"{len(taken)} {'machine is' if len(taken) == 1 else 'machines are'} to be taken"
        case SetCapacity():
            meant = [sale for sale in world.facts.sales if action.is_about(sale)]
            for sale in meant:
                for market in action.markets:
                    world.set_capacity(sale.zone, sale.type, market, action.machines)
            amount = "as many as usual" if action.machines is None else str(action.machines)
            return f"capacity of {action.type} in {action.zone}: {amount} in {len(meant)} places"
    assert_never(action)


def _dated(action: Action, start: float) -> Action:
    """Times of a rule count from the start of the scenario."""
    if not isinstance(action, Strike):
        return action
    since, until = action.rule.since, action.rule.until
    return Strike(
        rule=replace(
            action.rule,
            since=None if since is None else start + since,
            until=None if until is None else start + until,
        )
    )


def _bent(
    points: Sequence[PricePoint], since: int, until: int | None, changed: Callable[[int], int]
) -> tuple[PricePoint, ...]:
    before = [point for point in points if point.at <= since]
    within = [point for point in points if since < point.at and (until is None or point.at < until)]
    if before:  # what is in force when it starts
        within.insert(0, replace(before[-1], at=since))
    bent = [replace(point, microusd_per_hour=changed(point.microusd_per_hour)) for point in within]
    if until is None:
        return (*(point for point in before if point.at < since), *bent)
    back = [replace(point, at=max(point.at, until)) for point in points if point.at <= until][-1:]
    later = [point for point in points if point.at > until]
    return (*(point for point in before if point.at < since), *bent, *back, *later)
