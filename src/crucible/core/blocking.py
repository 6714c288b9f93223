"""Every offer that is left fits one task, and yet all of them cannot be placed: which limit is in the way, and by how
much it would have to give."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from crucible.core import plan
from crucible.core.columns import Caps, Family
from crucible.core.fleets import fastest, in_waves, left_h, useful
from crucible.core.goals import dollars
from crucible.core.lots import Lots
from crucible.core.perf import SpeedBook
from crucible.core.plan import Study
from crucible.core.program import Fleet, Given, fleet
from crucible.core.proposal import Rule
from crucible.model.spec import Strategy
from crucible.model.units import MICRO

RULES = {
    Family.BUDGET: Rule.BUDGET,
    Family.PRICE: Rule.PRICE_LIMIT,
    Family.QUOTA: Rule.QUOTA,
    Family.ROOM: Rule.SOLD_OUT,
}


def blocked(found: Study, lots: Lots, caps: Caps, book: SpeedBook) -> tuple[Rule, str]:
    """What is enough by itself, if it gives way; else what has to give way together."""
    alone = [*yielding_alone(found, lots, caps, book)]
    if alone:
        return alone[0][0], "; or ".join(words for _, words in alone)
    made = fleet(found.table, in_waves(lots, caps.tasks), caps, [dollars(lots)], yielding=frozenset(RULES))
    if made is None:
        return Rule.SOLD_OUT, f"there is no room for {caps.tasks} tasks"
    late = [too_late(found, caps, book, caps)] if left_h(found) is not None else []
    said = [*said_of(made, caps), *(words for words in late if words)]
    return RULES[made.given[-1].family] if made.given else Rule.DEADLINE, "; and ".join(said)


def yielding_alone(found: Study, lots: Lots, caps: Caps, book: SpeedBook) -> Iterator[tuple[Rule, str]]:
    is_timed = left_h(found) is not None
    some = lots if is_timed else in_waves(lots, caps.tasks)
    for family, rule in RULES.items():
        made = fleet(found.table, some, caps, [dollars(some)], yielding=frozenset({family}))
        if made is not None and made.given:
            yield rule, "; and ".join(said_of(made, caps))
    late = too_late(found, caps, book, caps) if is_timed else None
    if late is not None:
        yield Rule.DEADLINE, late


def too_late(found: Study, caps: Caps, book: SpeedBook, limits: Caps) -> str | None:
    """How long it takes at least; None if no time is enough."""
    question, spec = found.question, found.question.spec
    patient = replace(spec, constraints=replace(spec.constraints, deadline=None))
    other = plan.study(replace(question, spec=patient, strategy=Strategy.FASTEST), found.table, book)
    made = fastest(other, in_waves(useful(other, limits), caps.tasks), limits)
    time = left_h(found)
    if made is None or time is None:
        return None
    took = float((made.lots.setup_h + made.lots.wave_h * -(-made.waves // made.gangs)).max())
    return f"{caps.tasks} tasks take {took:.1f} h at least, {max(took - time, 0.0):.1f} h longer than there is"


def said_of(made: Fleet, caps: Caps) -> Sequence[str]:
    return [words(one, caps) for one in made.given]


def words(given: Given, caps: Caps) -> str:
    match given.family:
        case Family.BUDGET:
            total = (caps.budget + given.amount) / MICRO
            return f"all {caps.tasks} tasks together cost ${total:,.2f} at least, ${given.amount / MICRO:,.2f} too much"
        case Family.PRICE:
            hourly = (caps.price + given.amount) / MICRO
            return f"{caps.tasks} tasks cost ${hourly:,.2f} per hour at least, ${given.amount / MICRO:,.2f} too much"
        case Family.QUOTA:
            return f"the quota {given.name} is {given.amount:g} too low for {caps.tasks} tasks"
        case _:
            return f"{caps.tasks} tasks need {given.amount:g} more {given.name} than are free"
