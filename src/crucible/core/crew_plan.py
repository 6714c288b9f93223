"""More machines for a job whose tasks are under way, or fewer: what to buy for the tasks that are left, and which of
the machines it holds it may give back. Machines that are held are as good as any other, and need no setting up. The
same question is asked again whenever a task ends, a machine is lost, a price changes or a refusal has cooled down, so
nothing is planned ahead of it. Like a single job (`core.relaunch`), many tasks are not abandoned half-way."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crucible.core import fleets, plan, spread
from crucible.core.blocking import yielding_alone
from crucible.core.columns import Caps
from crucible.core.fleet_told import parts_of
from crucible.core.lots import UNLIMITED, Lots, finite, joined, likely, lots_of, until
from crucible.core.offers import UNKNOWN, OfferTable
from crucible.core.perf import SpeedBook
from crucible.core.plan import Question, Study
from crucible.core.program import Fleet
from crucible.core.proposal import Part
from crucible.core.quota import freed
from crucible.core.relaunch import CONCESSIONS, Limit, limits_of
from crucible.core.relaunch import without as conceding
from crucible.model.ids import OfferId
from crucible.model.quota import Holding, Quota
from crucible.model.spec import Strategy
from crucible.model.units import MicroUsd


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Machines of one offer that the job holds or has ordered, bought at one price and equally far."""

    offer: OfferId
    machines: int
    seats: int  # of one machine
    price: MicroUsd  # of one machine for an hour
    busy: int = 0  # machines of them that run a task now, or are not here yet: these stay
    # Where all are busy: hours for which their tasks have run, in the mean; below zero, hours until they are here.
    ahead_h: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    buy: tuple[Part, ...] = ()  # an order each; `tasks` and `waves` say what they are for
    keep: tuple[int, ...] = ()  # so many machines of each of `held`, in their order; the others may go
    why_not: str | None = None  # more seats would be of use, and cannot be had now
    given_up: tuple[Limit, ...] = ()  # limits that nothing keeps any more


def more(
    question: Question,
    left: int,
    held: Sequence[Held],
    table: OfferTable,
    book: SpeedBook,
    *,
    has_begun: bool = False,
    quotas: Sequence[Quota] = (),
) -> Scaling:
    """`left` tasks have not ended, those that run included; the budget of the question is what is left of it. A job
    that `has_begun` goes on even where nothing keeps its limits any more, and gives up no more of them than it
    must."""
    crew = crew_of(question, left, held, table, book, quotas)
    found = best(crew, ())
    if found is not None:
        return found
    for given_up in CONCESSIONS if has_begun else ():
        conceded = best(crew, given_up) if set(given_up) <= limits_of(question.spec) else None
        if conceded is not None:
            return conceded
    return Scaling(keep=tuple(one.busy for one in held), why_not=why_nothing(crew))


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """The question, with what is held."""

    question: Question
    left: int
    held: Sequence[Held]
    rows: Sequence[int]  # the offers of what is held; UNKNOWN where they are not for sale any more
    table: OfferTable
    book: SpeedBook
    quotas: Sequence[Quota]

    @property
    def has_seats(self) -> bool:
        """A task that has a seat needs no other machine."""
        return sum(one.machines * one.seats for one in self.held) >= self.left


def crew_of(
    question: Question, left: int, held: Sequence[Held], table: OfferTable, book: SpeedBook, quotas: Sequence[Quota]
) -> Crew:
    """Nothing is known of machines that are not for sale any more, but that each of their seats runs a task."""
    rows = [table.row_of(one.offer) for one in held]
    seated = sum(one.machines * one.seats for one, row in zip(held, rows, strict=True) if row == UNKNOWN)
    left -= seated
    free = freed((*table.quotas, *quotas), holdings(held, rows, table), table)
    return Crew(question=question, left=left, held=held, rows=rows, table=table, book=book, quotas=free)


def holdings(held: Sequence[Held], rows: Sequence[int], table: OfferTable) -> list[Holding]:
    """What the plan counts itself."""
    known = [(one, table.listing(row)) for one, row in zip(held, rows, strict=True) if row != UNKNOWN]
    return [
        Holding(listing.target.provider, listing.target.region, listing.instance_type, listing.market, one.machines)
        for one, listing in known
    ]


def best(crew: Crew, given_up: Sequence[Limit]) -> Scaling | None:
    if crew.left <= 0:
        return Scaling(keep=kept(crew, {}))
    found, caps = studied(crew, given_up)
    lots = lots_for(crew, found, caps, is_buying=not crew.has_seats)
    if not len(lots):
        return None
    if Limit.BUDGET in given_up:
        # Whatever it costs is too much: the cheapest way to the end.
        made = fleets.asked(found, fleets.in_waves(lots, crew.left), caps)
    else:
        made = fleets.best(found, lots, caps)
    return None if made is None else scaled(crew, found, caps, made, tuple(given_up))


def studied(crew: Crew, given_up: Sequence[Limit]) -> tuple[Study, Caps]:
    question = replace(crew.question, spec=conceding(crew.question.spec, given_up))
    if Limit.BUDGET in given_up:
        question = replace(question, strategy=Strategy.CHEAPEST)
    found = plan.study(spread.of_one_task(question, crew.left), crew.table, crew.book)
    return found, spread.caps_of(question, found, crew.left, crew.quotas)


def lots_for(crew: Crew, found: Study, caps: Caps, is_buying: bool) -> Lots:
    lots = held_lots(crew, found)
    if not is_buying:
        return lots
    bought = fleets.useful(found, caps, found.rough.row[plan.is_enabled(found, found.rough)])
    return joined([lots, bought.take(~np.isin(bought.ways.row, [*only_one(crew)]))])


def only_one(crew: Crew) -> Iterator[int]:
    """Rows of computers that nobody counts: each is one machine, and who holds it cannot have it again."""
    for row in crew.rows:
        offer = crew.table.live.get(row)
        if offer is not None and offer.free_machines is None and offer.stock is None:
            yield row


def held_lots(crew: Crew, found: Study) -> Lots:
    """Set up already, at the price they were bought for."""
    known = [i for i, row in enumerate(crew.rows) if row != UNKNOWN]
    held, nothing = [crew.held[i] for i in known], np.zeros(len(known))
    lots = lots_of(found, np.array([crew.rows[i] for i in known], dtype=np.int64))
    price = np.array([one.price for one in held], dtype=np.int64)
    ahead_h = np.array([one.ahead_h if one.busy == one.machines else 0.0 for one in held])
    lots = replace(
        lots,
        ways=replace(lots.ways, price=price),
        seats=np.array([one.seats for one in held], dtype=np.int64),
        setup=-price * ahead_h,
        data=nothing,
        setup_h=-ahead_h,
        paid_h=nothing,
        rounding=nothing,
        wave=price * finite(lots.ways.course.billed_h),
        source=-1 - np.array(known, dtype=np.int64),
        least=np.array([one.busy for one in held], dtype=np.int64),
        most=np.array([one.machines for one in held], dtype=np.int64),
    )
    time = fleets.left_h(found)
    return lots if time is None else likely(until(lots, time), time, found.question.least_odds)


def scaled(crew: Crew, found: Study, caps: Caps, made: Fleet, given_up: tuple[Limit, ...]) -> Scaling:
    seats = int((made.gangs * made.lots.seats).sum())
    is_short = fleets.left_h(found) is None and seats < min(crew.left, caps.at_once)
    return Scaling(
        buy=parts_of(found, made),
        keep=kept(crew, dict(zip(made.lots.source.tolist(), made.gangs.tolist(), strict=True))),
        why_not=why_nothing(crew) if is_short else None,
        given_up=given_up,
    )


def kept(crew: Crew, used: Mapping[int, int]) -> tuple[int, ...]:
    """`used` are machines by their source. What nothing is known of stays."""
    return tuple(
        one.machines if crew.rows[i] == UNKNOWN else max(one.busy, used.get(-1 - i, 0))
        for i, one in enumerate(crew.held)
    )


def why_nothing(crew: Crew) -> str:
    """What keeps more of them from running at a time."""
    found, caps = studied(crew, ())
    lots = lots_for(crew, found, caps, is_buying=True)
    at_once = replace(caps, tasks=min(caps.tasks, caps.at_once), at_once=UNLIMITED)
    if len(lots):
        for _, words in yielding_alone(found, fleets.in_waves(lots, 1), at_once, crew.book):
            return words
    refused = max(plan.refusals(found), key=lambda one: one.rule, default=None)
    return f"nothing is for sale for {crew.left} tasks" if refused is None else refused.reason
