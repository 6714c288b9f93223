"""What machines cost, case by case (R9, F11, F12). Random ones are in tests/property."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crucible.core.ledger import account, accrued, amount, gone, split
from crucible.model.ids import LeaseId, MachineId, OrderId
from crucible.model.lease import Machine, MachineState, Order
from crucible.model.ledger import ChargeKind, Entry, Posting, PriceSince, Rate, Terms, Usage
from crucible.model.units import MicroUsd
from crucible.testing.specimens import a_job, a_task
from crucible.testing.specimens import an_order as ordered

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
LEASE = LeaseId("l")
TERMS = Terms(minimum_s=60, free_if_taken_within_s=3600)
PRICE = 3_600_000  # a tenth of a cent per second
DISK = Rate(ChargeKind.STORAGE, MicroUsd(730 * 3600), 730 * 3600)  # a micro-dollar per second


def an_order(**changes: Any) -> Order:
    return ordered(a_task(a_job("j")), **{"price_per_hour": MicroUsd(PRICE), "is_spot": True, **changes})


def a_machine(**changes: Any) -> Machine:
    fields: dict[str, Any] = dict(
        id=MachineId("m"), order_id=OrderId("o"), index=0, state=MachineState.RUNNING, started_at=START
    )
    return Machine(**{**fields, **changes})


def ended(after: timedelta, **changes: Any) -> Machine:
    return a_machine(state=MachineState.GONE, ended_at=START + after, **changes)


def since(after: timedelta, price: int) -> PriceSince:
    return PriceSince(START + after, MicroUsd(price))


def told(
    machine: Machine, after: timedelta, known: Sequence[Usage | Posting] = (), terms: Terms = TERMS, **order: Any
) -> tuple[Usage | Posting, ...]:
    return account(usages(known), machine, an_order(**order), LEASE, terms, START + after)


def usages(records: Sequence[Usage | Posting]) -> list[Usage]:
    """As a store would hold them: what was closed takes the place of what was open."""
    found = {(one.rate.kind, one.from_at): one for one in records if isinstance(one, Usage)}
    return list(found.values())


def paid(*records: Usage | Posting) -> int:
    entries = (entry for one in records if isinstance(one, Posting) for entry in one.entries)
    return sum(entry.amount for entry in entries if entry.account.startswith("job:"))


# --- stretches ----------------------------------------------------------------------------------------------------


def test_a_machine_that_starts_opens_a_stretch_of_each_kind() -> None:
    opened = told(a_machine(extras=(DISK,)), 5 * SECOND)
    assert [(one.rate.kind, one.from_at, one.to_at) for one in usages(opened)] == [
        (ChargeKind.COMPUTE, START, None),
        (ChargeKind.STORAGE, START, None),
    ]
    assert told(a_machine(extras=(DISK,)), HOUR, opened) == ()


def test_its_end_closes_them_with_what_they_came_to() -> None:
    opened = told(a_machine(extras=(DISK,)), 5 * SECOND)
    closed = told(ended(100 * SECOND), HOUR, opened)
    assert [one.amount for one in usages(closed)] == [100_000, 100]
    assert paid(*closed) == 100_100
    compute = next(one for one in closed if isinstance(one, Posting))
    assert compute.entries == (Entry("job:j", MicroUsd(100_000)), Entry("provider:fake", MicroUsd(-100_000)))
    assert told(ended(100 * SECOND), 2 * HOUR, [*opened, *closed]) == ()


def test_a_machine_that_nobody_saw_alive_is_charged_all_the_same() -> None:
    assert paid(*told(ended(100 * SECOND), HOUR)) == 100_000


def test_a_posting_comes_before_the_stretch_that_it_is_for() -> None:
    kinds = [type(one) for one in told(ended(HOUR, prices=(since(0 * HOUR, 1800), since(HOUR / 2, 3600))), HOUR)]
    assert kinds == [Posting, Usage, Posting, Usage]


@pytest.mark.parametrize(
    ("machine", "price"),
    [(a_machine(started_at=None), PRICE), (a_machine(), 0)],
    ids=["has not started", "costs nothing"],
)
def test_what_is_not_charged_gives_nothing(machine: Machine, price: int) -> None:
    assert told(machine, HOUR, price_per_hour=MicroUsd(price)) == ()


def test_a_stretch_that_came_to_nothing_is_posted_nowhere() -> None:
    records = told(ended(HOUR, prices=(since(0 * HOUR, 0),)), HOUR)
    assert [type(one) for one in records] == [Usage] and usages(records)[0].amount == 0


def test_two_disks_are_one_meter() -> None:
    other = Rate(ChargeKind.STORAGE, MicroUsd(5 * 3600), 3600)
    (disks,) = [one for one in usages(told(a_machine(extras=(DISK, other)), HOUR)) if one.rate.kind == "storage"]
    assert amount(disks.rate, 3600) == 6 * 3600


def test_a_disk_that_is_no_longer_listed_costs_on_until_its_machine_ends() -> None:
    opened = told(a_machine(extras=(DISK,)), SECOND)
    assert told(a_machine(), HOUR, opened) == ()
    assert paid(*told(ended(100 * SECOND), HOUR, opened)) == 100_100


def test_a_disk_that_has_grown_costs_more_from_then_on() -> None:
    bigger = replace(DISK, amount=MicroUsd(2 * DISK.amount))
    opened = told(a_machine(extras=(DISK,)), SECOND)
    grown = told(a_machine(extras=(bigger,)), 50 * SECOND, opened)
    over = told(ended(100 * SECOND), HOUR, [*opened, *grown])
    assert paid(*grown, *over) == 100_000 + 50 + 2 * 50


# --- prices that move ---------------------------------------------------------------------------------------------


def test_a_new_price_closes_a_stretch_and_opens_the_next() -> None:
    opened = told(a_machine(prices=(since(-HOUR, 1800),)), SECOND)
    moved = told(a_machine(prices=(since(-HOUR, 1800), since(10 * SECOND, 3600))), 15 * SECOND, opened)
    assert [(one.from_at, one.to_at, one.rate.amount) for one in usages(moved)] == [
        (START, START + 10 * SECOND, 1800),
        (START + 10 * SECOND, None, 3600),
    ]


def test_the_same_price_told_again_is_no_change() -> None:
    prices = tuple(since(hours * HOUR, 1800) for hours in range(-1, 5))
    assert len(usages(told(a_machine(prices=prices), 6 * HOUR))) == 1


def test_a_price_of_the_moment_of_the_end_is_not_charged() -> None:
    records = told(ended(100 * SECOND, prices=(since(0 * HOUR, 3600), since(100 * SECOND, 10**9))), HOUR)
    assert paid(*records) == 100


def test_a_price_that_is_yet_to_come_is_not_believed() -> None:
    opened = told(a_machine(prices=(since(0 * HOUR, 3600), since(HOUR, 10**9))), SECOND)
    assert [one.rate.amount for one in usages(opened)] == [3600]


def test_prices_that_come_late_are_set_right_as_soon_as_they_are_told() -> None:
    opened = told(a_machine(), SECOND)  # at the price of the order
    real = (since(0 * HOUR, 7200),)
    cut = told(a_machine(prices=real), 50 * SECOND, opened)
    assert [one.id.partition("/")[0] for one in cut if isinstance(one, Posting)] == ["usage", "correction"]
    assert paid(*cut) == 100
    over = told(ended(100 * SECOND, prices=real), HOUR, [*opened, *cut])
    assert paid(*cut, *over) == 200
    assert sum(one.amount or 0 for one in usages([*opened, *cut, *over])) == 200


# --- how sellers round --------------------------------------------------------------------------------------------


def test_the_minimum_lengthens_the_last_stretch() -> None:
    records = told(ended(40 * SECOND, prices=(since(0 * HOUR, 3600), since(30 * SECOND, 7200))), HOUR)
    assert [one.amount for one in usages(records)] == [30, 60]
    assert usages(records)[-1].to_at == START + 60 * SECOND


@pytest.mark.parametrize(("lived", "charged"), [(0, 0), (1, 3600), (3600, 3600), (3601, 7200)])
def test_a_begun_unit_counts_whole(lived: int, charged: int) -> None:
    records = told(ended(lived * SECOND), 5 * HOUR, terms=Terms(unit_s=3600))
    assert paid(*records) == charged * 1000


@pytest.mark.parametrize(("numerator", "rounded"), [(1, 0), (2, 0), (3, 1), (6, 2), (10, 2), (7, 2)])
def test_half_goes_to_even(numerator: int, rounded: int) -> None:
    assert amount(Rate(ChargeKind.COMPUTE, MicroUsd(numerator), 4), 1) == rounded


def test_a_spot_machine_that_is_taken_early_is_free_but_its_disk_is_not() -> None:
    prices = (since(0 * HOUR, 3600), since(1000 * SECOND, 7200))
    opened = told(a_machine(prices=prices, extras=(DISK,)), 2000 * SECOND)
    assert paid(*opened) == 1000
    over = told(ended(3599 * SECOND, prices=prices, was_taken=True), HOUR, opened)
    assert paid(*opened, *over) == 3599
    reversal = next(one for one in over if isinstance(one, Posting) and one.kind is ChargeKind.COMPUTE)
    assert reversal.entries[0] == Entry("job:j", MicroUsd(-1000))


@pytest.mark.parametrize(
    ("lived", "is_spot", "was_taken"),
    [(HOUR, True, True), (HOUR - SECOND, True, False), (HOUR - SECOND, False, True)],
    ids=["an hour later", "by its owner", "not spot"],
)
def test_any_other_end_is_paid_for(lived: timedelta, is_spot: bool, was_taken: bool) -> None:
    records = told(ended(lived, was_taken=was_taken), HOUR, is_spot=is_spot)
    assert paid(*records) == lived // SECOND * 1000


# --- ends that nobody told ----------------------------------------------------------------------------------------


def test_a_machine_that_vanished_is_charged_until_it_was_last_seen() -> None:
    opened = told(a_machine(extras=(DISK,)), SECOND)
    lost = gone(usages(opened), START + 100 * SECOND, TERMS)
    assert [(one.amount, one.is_estimate) for one in usages(lost)] == [(100_000, True), (100, True)]
    assert gone(usages([*opened, *lost]), START + HOUR, TERMS) == ()


def test_a_machine_that_is_seen_again_is_charged_without_a_hole() -> None:
    opened = told(a_machine(), SECOND)
    lost = gone(usages(opened), START + 100 * SECOND, TERMS)
    again = told(a_machine(), HOUR, [*opened, *lost])
    assert [(one.from_at, one.to_at) for one in usages(again)] == [(START + 100 * SECOND, None)]
    over = told(ended(HOUR), HOUR, [*opened, *lost, *again])
    assert paid(*lost, *again, *over) == 3_600_000


def test_an_end_that_is_told_after_all_counts() -> None:
    opened = told(a_machine(), SECOND)
    lost = gone(usages(opened), START + 100 * SECOND, TERMS)
    over = told(ended(90 * SECOND), HOUR, [*opened, *lost])
    assert paid(*lost, *over) == 90_000
    assert told(ended(90 * SECOND), HOUR, [*opened, *lost, *over]) == ()


def test_a_listing_from_before_does_not_bring_a_machine_back() -> None:
    records = told(ended(100 * SECOND), HOUR)
    assert told(a_machine(), HOUR, records) == ()


def test_a_machine_of_which_only_the_end_is_known_is_charged_until_now() -> None:
    records = told(a_machine(state=MachineState.GONE), 100 * SECOND)
    assert paid(*records) == 100_000 and usages(records)[0].is_estimate


# --- clocks -------------------------------------------------------------------------------------------------------


def test_a_clock_of_ours_that_is_behind_charges_nothing_yet() -> None:
    (opened,) = usages(told(a_machine(), -HOUR))
    assert opened.from_at == START and accrued(opened, START - HOUR) == 0


def test_what_runs_grows_by_the_second_and_what_is_closed_does_not() -> None:
    (opened,) = usages(told(a_machine(), SECOND))
    assert accrued(opened, START + 90 * SECOND + timedelta(microseconds=999_999)) == 90_000
    (closed,) = usages(told(ended(100 * SECOND), HOUR, [opened]))
    assert accrued(closed, START + 9 * HOUR) == 100_000


# --- shares -------------------------------------------------------------------------------------------------------


def test_a_split_gives_the_rest_to_the_largest_remainders() -> None:
    assert split(MicroUsd(100), [1, 1, 1]) == (34, 33, 33)
    assert split(MicroUsd(-100), [2, 1]) == (-67, -33)
    assert split(MicroUsd(5), [0, 1, 0]) == (0, 5, 0)


@pytest.mark.parametrize("shares", [[], [0, 0], [2, -1]])
def test_a_split_by_nothing_is_refused(shares: list[int]) -> None:
    with pytest.raises(ValueError, match="split"):
        split(MicroUsd(1), shares)
