"""Usage, the ledger and cooldowns. A part of StoreContract."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from crucible.model.change import born
from crucible.model.errors import InvariantBroken, StaleVersion
from crucible.model.ids import JobId, MachineId
from crucible.model.job import JobReasonChanged
from crucible.model.lease import LeaseClosed, LeaseRequested, LeaseStarted, OrderPlaced
from crucible.model.ledger import ChargeKind, Cooldown, Entry, Posting, Rate, Usage
from crucible.model.record import Record
from crucible.model.units import MicroUsd
from crucible.ports.store import JobQuery, Store
from crucible.testing.specimens import NOW, Family, a_lease, an_order, running, step

START = NOW.replace(microsecond=0)
HOUR = timedelta(hours=1)
COMPUTE = Rate(ChargeKind.COMPUTE, MicroUsd(4_500_000), 3600)
STORAGE = Rate(ChargeKind.STORAGE, MicroUsd(8_000_000), 730 * 3600)


def a_stretch(family: Family, index: int = 0, **fields: Any) -> Usage:
    lease = family.leases[index]
    given: dict[str, Any] = {
        "provider": family.order.target.provider,
        "region": family.order.target.region,
        "machine_id": lease.machine_id,
        "order_id": family.order.id,
        "job_id": family.job.id,
        "lease_id": lease.id,
        "rate": COMPUTE,
        "from_at": START,
    }
    return Usage(**{**given, **fields})


def closed(usage: Usage, to_at: datetime = START + HOUR, amount: int = 4_500_000, **fields: Any) -> Usage:
    return replace(usage, to_at=to_at, amount=MicroUsd(amount), **fields)


def a_posting(job_id: JobId, id_: str = "p1", amount: int = 4_500_000, **fields: Any) -> Posting:
    given: dict[str, Any] = {
        "id": id_,
        "at": START + HOUR,
        "memo": "h100x4, 1 h",
        "job_id": job_id,
        "kind": ChargeKind.COMPUTE,
        "entries": (Entry(f"job:{job_id}", MicroUsd(amount)), Entry("provider:fake", MicroUsd(-amount))),
    }
    return Posting(**{**given, **fields})


async def write(store: Store, *records: Record) -> None:
    await store.commit([], records, label="account")


async def refused(store: Store, error: type[Exception], *records: Record) -> None:
    with pytest.raises(error):
        await write(store, *records)


def a_cooldown(until: datetime, **fields: Any) -> Cooldown:
    return Cooldown(**{"provider": "fake", "until": until, "reason": "no capacity", **fields})


class MoneyContract:
    # --- usage --------------------------------------------------------------------------------------------------

    async def test_a_stretch_is_opened_and_closed(self, store: Store) -> None:
        family = await running(store)
        first = a_stretch(family)
        await write(store, first)
        assert await store.open_usages("fake", "nowhere-1") == (first,)
        assert await store.open_usages("fake", "elsewhere") == () == await store.open_usages("other", "nowhere-1")
        done = closed(first, is_estimate=True)
        following = a_stretch(family, from_at=START + HOUR, rate=replace(COMPUTE, amount=MicroUsd(5)), lease_id=None)
        await write(store, done, following)
        assert await store.job_usages(family.job.id) == (done, following)
        assert await store.open_usages("fake", "nowhere-1") == (following,)

    async def test_a_stretch_may_be_known_only_when_it_is_over(self, store: Store) -> None:
        family = await running(store)
        whole = closed(a_stretch(family))
        await write(store, whole)
        assert await store.job_usages(family.job.id) == (whole,)
        assert await store.open_usages("fake", "nowhere-1") == ()

    async def test_writing_a_stretch_again_is_writing_it_once(self, store: Store) -> None:
        family = await running(store)
        first = a_stretch(family)
        for record in (first, first, closed(first), closed(first)):
            await write(store, record, record)
        assert await store.job_usages(family.job.id) == (closed(first),)

    async def test_a_closed_stretch_never_changes(self, store: Store) -> None:
        family = await running(store)
        first = a_stretch(family)
        await write(store, closed(first))
        others = [
            first,  # opened again
            closed(first, to_at=START + 2 * HOUR),
            closed(first, amount=1),
            closed(first, is_estimate=True),
            replace(closed(first), rate=replace(COMPUTE, amount=MicroUsd(1))),
        ]
        for other in others:
            await refused(store, StaleVersion, other)
        assert await store.job_usages(family.job.id) == (closed(first),)

    async def test_an_open_stretch_is_closed_as_what_it_was_opened(self, store: Store) -> None:
        family = await running(store)
        first = a_stretch(family)
        await write(store, first)
        await refused(store, StaleVersion, closed(replace(first, rate=replace(COMPUTE, amount=MicroUsd(1)))))
        await refused(store, StaleVersion, closed(replace(first, lease_id=None)))
        assert await store.open_usages("fake", "nowhere-1") == (first,)

    async def test_stretches_of_a_machine_follow_one_another(self, store: Store) -> None:
        family = await running(store)
        first = a_stretch(family)
        await write(store, first)
        later = a_stretch(family, from_at=START + HOUR)
        await refused(store, StaleVersion, later)  # the first still runs
        await write(store, closed(first))
        await refused(store, StaleVersion, a_stretch(family, from_at=START + 2 * HOUR))  # a hole
        await refused(store, StaleVersion, a_stretch(family, from_at=START + HOUR / 2))  # charged twice
        await refused(store, StaleVersion, closed(a_stretch(family, from_at=START - HOUR), to_at=START))  # before
        await write(store, later)

    async def test_each_kind_and_each_machine_has_a_meter_of_its_own(self, store: Store) -> None:
        family = await running(store)
        meters = [a_stretch(family, index, rate=rate) for rate in (COMPUTE, STORAGE) for index in (0, 1)]
        await write(store, *meters)
        first, second = (lease.machine_id for lease in family.leases)
        assert first is not None and second is not None
        found = await store.usages("fake", [first, MachineId("unknown")])
        assert found == {first: (meters[0], meters[2])}
        assert set((await store.usages("fake", [first, second]))[second]) == {meters[1], meters[3]}
        assert await store.usages("other", [first]) == {}
        assert await store.usages("fake", []) == {}

    async def test_a_refused_stretch_takes_the_whole_commit_with_it(self, store: Store) -> None:
        family = await running(store)
        await write(store, closed(a_stretch(family)))
        _, change = step(family.job, JobReasonChanged(NOW, "paid"))
        posting = a_posting(family.job.id)
        with pytest.raises(StaleVersion):
            await store.commit([change], [posting, a_stretch(family)], label="test")
        assert await store.job(family.job.id) == family.job
        assert await store.job_postings(family.job.id) == ()

    async def test_a_stretch_that_ends_before_it_begins_is_refused(self, store: Store) -> None:
        family = await running(store)
        await refused(store, InvariantBroken, closed(a_stretch(family), to_at=START - HOUR))
        await refused(store, InvariantBroken, a_stretch(family, to_at=START + HOUR))  # without an amount

    async def test_open_stretches_are_found_by_job(self, store: Store) -> None:
        one, two, three = [await running(store, id_) for id_ in ("j1", "j2", "j3")]
        stretches = [a_stretch(family) for family in (one, two, three)]
        await write(store, *stretches, closed(stretches[1]))
        assert await store.open_usages_of([one.job.id, two.job.id]) == (stretches[0],)
        assert await store.open_usages_of([]) == ()

    # --- the ledger -----------------------------------------------------------------------------------------------

    async def test_postings_are_read_back_in_their_order(self, store: Store) -> None:
        family = await running(store)
        late, early = a_posting(family.job.id, "a", at=START + 2 * HOUR), a_posting(family.job.id, "b")
        await write(store, late, early)
        assert await store.job_postings(family.job.id) == (early, late)
        assert await store.job_postings(JobId("other")) == ()

    async def test_a_posting_that_is_written_twice_counts_once(self, store: Store) -> None:
        family = await running(store)
        posting = a_posting(family.job.id)
        for _ in range(3):
            await write(store, posting, posting)
        assert await store.job_costs([family.job.id]) == {family.job.id: 4_500_000}
        await refused(store, StaleVersion, a_posting(family.job.id, amount=7))

    async def test_a_posting_that_does_not_add_up_is_refused(self, store: Store) -> None:
        family = await running(store)
        lopsided: Sequence[tuple[Entry, ...]] = [
            (),
            (Entry("job:j1", MicroUsd(5)),),
            (Entry("job:j1", MicroUsd(5)), Entry("provider:fake", MicroUsd(-4))),
        ]
        for entries in lopsided:
            await refused(store, InvariantBroken, a_posting(family.job.id, entries=entries))
        assert await store.balances() == {}

    async def test_all_balances_together_are_nothing(self, store: Store) -> None:
        one, two = await running(store, "j1"), await running(store, "j2")
        await write(
            store,
            a_posting(one.job.id, "a", 2**60),
            a_posting(one.job.id, "b", 3),
            a_posting(two.job.id, "c", 10),
            a_posting(two.job.id, "d", -4),
        )
        balances = await store.balances()
        assert balances == {"job:j1": 2**60 + 3, "job:j2": 6, "provider:fake": -(2**60) - 9}
        assert sum(balances.values()) == 0
        assert await store.job_costs([one.job.id, JobId("none")]) == {"j1": 2**60 + 3, "none": 0}
        assert await store.job_costs([]) == {}

    async def test_a_row_of_the_list_says_what_was_posted(self, store: Store) -> None:
        one, two = await running(store, "j1"), await running(store, "j2")
        posting = a_posting(one.job.id, "a", 7)
        await write(store, posting, a_posting(one.job.id, "b", -2), a_posting(two.job.id, "c", 3))
        await write(store, posting)
        page = await store.jobs(JobQuery())
        assert {item.id: item.cost_running_microusd for item in page.items} == {"j1": 5, "j2": 3}
        assert await store.job(one.job.id) == one.job  # no version was spent on it

    # --- cooldowns --------------------------------------------------------------------------------------------------

    async def test_a_cooldown_holds_until_its_time(self, store: Store) -> None:
        await write(store, a_cooldown(NOW + HOUR), a_cooldown(NOW + 2 * HOUR, zone="nowhere-1a"))
        assert [one.zone for one in await store.cooldowns(NOW)] == ["", "nowhere-1a"]
        assert [one.zone for one in await store.cooldowns(NOW + HOUR)] == ["nowhere-1a"]
        assert await store.cooldowns(NOW + 2 * HOUR) == ()

    async def test_of_two_cooldowns_the_later_end_counts(self, store: Store) -> None:
        long, short = a_cooldown(NOW + 2 * HOUR, reason="long"), a_cooldown(NOW + HOUR, reason="short")
        await write(store, short)
        await write(store, long)
        await write(store, short)
        assert await store.cooldowns(NOW) == (long,)

    # --- lives ------------------------------------------------------------------------------------------------------

    async def test_hours_and_losses_of_spot_machines_are_added_up_by_kind(self, store: Store) -> None:
        spot = await running(store)
        steady = an_order(spot.task, 7, is_spot=False)
        kept = step(a_lease(steady), LeaseStarted(NOW, MachineId("m"), (), None))[1]
        bought = [born(steady, OrderPlaced(NOW)), born(a_lease(steady), LeaseRequested(NOW)), kept]
        taken, ended = step(spot.leases[0], LeaseClosed(NOW + HOUR, "taken back", was_taken=True))
        await store.commit([*bought, ended], label="lives")
        assert await store.lease(taken.id) == taken and taken.was_taken
        target = spot.order.target
        (lives,) = await store.spot_lives(NOW - HOUR, NOW + 3 * HOUR)
        assert (lives.provider, lives.region) == (target.provider, target.region)
        assert lives.instance_type == spot.order.instance_type
        assert (lives.hours, lives.taken) == (4.0, 1)  # one and three
        assert (await store.spot_lives(NOW - HOUR, NOW - HOUR))[0].hours == 1.0  # a clock that was set back
        assert await store.spot_lives(NOW, NOW + HOUR) == ()  # ordered too long ago
