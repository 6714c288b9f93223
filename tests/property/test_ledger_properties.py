"""Whatever a seller tells, late, in pieces or not at all, and wherever a writer dies: stretches follow one another,
every posting adds up to nothing, and in the end the job has paid what the machine cost (R9, F11, F12, T18)."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.core import ledger
from crucible.model.ids import MachineId, OrderId
from crucible.model.lease import Machine, MachineState
from crucible.model.ledger import ChargeKind, PriceSince, Rate, Terms
from crucible.model.units import MicroUsd
from property.books import LEASE, Books, an_order, at

# A slice of it runs always; `CRUCIBLE_EXAMPLES=100000` is the whole of T18.
EXAMPLES = int(os.environ.get("CRUCIBLE_EXAMPLES", "150"))
START = 1_767_225_600
MACHINE = MachineId("m")
DISK = Rate(ChargeKind.STORAGE, MicroUsd(62_160_007), 730 * 3600)

PRICES = st.integers(0, 40_000_000) | st.sampled_from([0, 1, 1800, 5400])
LENGTHS = st.integers(0, 200) | st.integers(0, 10_000)


@dataclass(frozen=True)
class Truth:
    """How it was: seconds since the start, and what they cost."""

    order_price: int
    points: tuple[tuple[int, int], ...]  # (second, price per hour), in order, the first at 0; empty: the order's price
    end: int
    is_taken: bool
    terms: Terms

    def machine(self, *, is_over: bool, prices_until: int | None) -> Machine:
        """As it is listed. `prices_until`: how far the seller's list of prices reaches; None: there is none."""
        reach = -1 if prices_until is None else prices_until
        prices = [PriceSince(at(START + second), MicroUsd(price)) for second, price in self.points if second <= reach]
        return Machine(
            id=MACHINE,
            order_id=OrderId("o"),
            index=0,
            state=MachineState.GONE if is_over else MachineState.RUNNING,
            started_at=at(START),
            ended_at=at(START + self.end) if is_over else None,
            was_taken=is_over and self.is_taken,
            prices=tuple(prices),
            extras=() if is_over else (DISK,),
        )

    @property
    def charged(self) -> int:
        units = Fraction(self.end, self.terms.unit_s).__ceil__()
        return max(units * self.terms.unit_s, self.terms.minimum_s)

    @property
    def disk(self) -> int:
        return round(Fraction(DISK.amount * self.charged, DISK.per_s))

    @property
    def compute(self) -> int:
        """Second by second, with exact fractions."""
        if self.is_taken and self.end < self.terms.free_if_taken_within_s:
            return 0
        stretches: list[list[int]] = []  # price, seconds
        for second in range(self.charged):
            price = self.price_at(min(second, max(self.end - 1, 0)))
            if not stretches or stretches[-1][0] != price:
                stretches.append([price, 0])
            stretches[-1][1] += 1
        return sum(round(Fraction(price * seconds, 3600)) for price, seconds in stretches)

    def price_at(self, second: int) -> int:
        return next((price for since, price in reversed(self.points) if since <= second), self.order_price)


@st.composite
def truths(draw: st.DrawFn) -> Truth:
    times = sorted({0, *draw(st.lists(LENGTHS, max_size=6))})
    prices = draw(st.lists(PRICES, min_size=len(times), max_size=len(times)))
    return Truth(
        order_price=draw(PRICES.filter(bool)),
        points=tuple(zip(times, prices, strict=True)) if draw(st.booleans()) else (),
        end=draw(LENGTHS),
        is_taken=draw(st.booleans()),
        terms=Terms(
            unit_s=draw(st.sampled_from([1, 1, 60, 3600])),
            minimum_s=draw(st.sampled_from([0, 60, 600])),
            free_if_taken_within_s=draw(st.sampled_from([0, 3600])),
        ),
    )


# --- what is seen of it -------------------------------------------------------------------------------------------

# (seconds since the last look, how far the prices lag behind or None for no prices, what happens)
LOOKS = st.lists(
    st.tuples(LENGTHS, st.none() | st.integers(0, 300), st.sampled_from(["seen", "seen", "lost", "stale"])),
    max_size=10,
)


def look(books: Books, truth: Truth, second: int, lag: int | None, what: str) -> None:
    order, now = an_order(truth.order_price), at(START + second)
    is_over = second >= truth.end
    if what == "lost":  # it vanishes from the listing; the seller's clock is the only one that counts
        books.lose(MACHINE, at(START + min(second, truth.end)))
    elif what == "stale":  # a listing from before
        books.account(truth.machine(is_over=False, prices_until=min(second, truth.end)), order, now)
    else:
        reach = second if is_over else None if lag is None else second - lag
        books.account(truth.machine(is_over=is_over, prices_until=reach), order, now)


def run(truth: Truth, looks: Sequence[tuple[int, int | None, str]]) -> tuple[Books, int]:
    books, second = Books(truth.terms), 0
    for gap, lag, what in looks:
        second += gap
        look(books, truth, second, lag, what)
    second = max(second, truth.end) + 10
    books.account(truth.machine(is_over=True, prices_until=second), an_order(truth.order_price), at(START + second))
    return books, second


@settings(max_examples=EXAMPLES, deadline=None)
@given(truths(), LOOKS)
def test_in_the_end_the_job_has_paid_what_the_machine_cost(truth: Truth, looks: Sequence[tuple[int, int, str]]) -> None:
    books, second = run(truth, looks)
    assert books.balance == 0
    assert books.posted(ChargeKind.COMPUTE) == truth.compute
    was_listed_alive = any(usage.rate == DISK for usage in books.usages[MACHINE])
    assert books.posted(ChargeKind.STORAGE) == (truth.disk if was_listed_alive else 0)
    assert all(usage.to_at is not None for usage in books.usages[MACHINE])
    later = at(START + second + 1000)
    books.account(truth.machine(is_over=True, prices_until=second), an_order(truth.order_price), later)
    assert books.posted() == books.owed(later)


@settings(max_examples=EXAMPLES, deadline=None)
@given(truths(), st.lists(LENGTHS, max_size=8))
def test_what_a_living_machine_costs_only_grows(truth: Truth, gaps: Sequence[int]) -> None:
    books, second, before = Books(truth.terms), 0, 0
    for gap in gaps:
        second += gap
        machine = truth.machine(is_over=False, prices_until=second)
        books.account(machine, an_order(truth.order_price), at(START + second))
        cost = books.owed(at(START + second))
        assert cost >= before
        before = cost


@settings(max_examples=EXAMPLES, deadline=None)
@given(truths(), LOOKS, LENGTHS, st.integers(0, 12))
def test_any_part_that_was_written_leads_to_the_same_books(
    truth: Truth, looks: Sequence[tuple[int, int, str]], gap: int, written: int
) -> None:
    whole, broken = Books(truth.terms), Books(truth.terms)
    second = 0
    for step, lag, what in looks:
        second += step
        for books in (whole, broken):
            look(books, truth, second, lag, what)
    second += gap
    machine = truth.machine(is_over=second >= truth.end, prices_until=second)
    order, now = an_order(truth.order_price), at(START + second)
    whole.account(machine, order, now)
    broken.write(ledger.account(broken.usages[MACHINE], machine, order, LEASE, truth.terms, now)[:written])
    broken.account(machine, order, now)
    assert (broken.usages, broken.postings) == (whole.usages, whole.postings)


@given(st.integers(0, 10**15), st.lists(st.integers(0, 10**6), min_size=1).filter(any), st.sampled_from([1, -1]))
def test_a_split_loses_nothing_and_is_fair(size: int, shares: list[int], sign: int) -> None:
    parts = ledger.split(MicroUsd(sign * size), shares)
    assert sum(parts) == sign * size
    for part, share in zip(parts, shares, strict=True):
        assert abs(part - Fraction(sign * size * share, sum(shares))) < 1


@given(st.integers(0, 10**12), st.integers(1, 10**7), st.integers(0, 10**8))
def test_amounts_are_rounded_half_to_even(rate: int, per_s: int, seconds: int) -> None:
    charged = ledger.amount(Rate(ChargeKind.COMPUTE, MicroUsd(rate), per_s), seconds)
    assert charged == round(Fraction(rate * seconds, per_s))
