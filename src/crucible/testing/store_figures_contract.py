"""Sums for graphs. A part of StoreContract."""

from dataclasses import replace
from datetime import timedelta

from crucible.model.account import Sight
from crucible.model.figures import Account, HeldAt, Overview, WaitingFor
from crucible.model.ids import UserId
from crucible.model.job import Desired, JobDesired, JobStatus, JobStatusChanged
from crucible.model.lease import LeaseClosed, LeaseClosing, LeasePhase
from crucible.model.record import Beat
from crucible.model.task import TaskAdvanced, TaskExplained, TaskPhase
from crucible.model.units import MicroUsd
from crucible.ports.store import JobQuery, Store
from crucible.testing.specimens import LATER, NOW, running, step, submitted
from crucible.testing.store_money_contract import HOUR, START, a_posting, a_stretch, closed, write

SPOT = Account("fake", True, "vision")


class FiguresContract:
    async def test_a_new_database_adds_up_to_nothing(self, store: Store) -> None:
        figures, totals = await store.figures(NOW), await store.totals(NOW)
        assert (figures.jobs, list(figures.waiting), figures.waiting_since, list(figures.held)) == ({}, [], None, [])
        assert (figures.rates, figures.gpu_percents) == ({}, {})
        assert (totals.jobs, totals.spent, totals.imbalance) == ({}, {}, 0)

    async def test_jobs_are_counted_by_state(self, store: Store) -> None:
        for id_ in ("j1", "j2", "j3"):
            await submitted(store, id_)
        job, _ = await submitted(store, "j4")
        await store.commit([step(job, JobStatusChanged(LATER, JobStatus.CANCELLED))[1]], label="end")
        assert (await store.figures(NOW)).jobs == {JobStatus.PENDING: 3}
        assert (await store.totals(NOW)).jobs == {JobStatus.CANCELLED: 1}

    async def test_what_waits_is_told_by_its_reason_and_age_and_held_jobs_do_not_wait(self, store: Store) -> None:
        _, (first, second) = await submitted(store, "j1", tasks=2)
        await store.commit([step(second, TaskExplained(NOW, "waits: full", LATER))[1]], label="explain")
        held, _ = await submitted(store, "j2")
        await store.commit([step(held, JobDesired(NOW, Desired.HOLD, held.user_id))[1]], label="hold")
        figures = await store.figures(LATER)
        said = sorted(figures.waiting, key=lambda one: one.reason or "")
        assert said == [WaitingFor(None, False, 1), WaitingFor("waits: full", False, 1)]
        assert figures.waiting_since == first.created_at

    async def test_machines_that_are_held_are_counted_and_gpus_are_busy_while_their_task_runs(
        self, store: Store
    ) -> None:
        family = await running(store)
        idle = HeldAt("fake", "nowhere-1", LeasePhase.ACTIVE, machines=2, gpus=8, busy_gpus=0)
        assert list((await store.figures(NOW)).held) == [idle]
        await store.commit([step(family.task, TaskAdvanced(NOW, TaskPhase.RUNNING, None))[1]], label="run")
        assert [one.busy_gpus for one in (await store.figures(NOW)).held] == [8]
        first, second = family.leases
        gone = step(first, LeaseClosing(NOW, "done", LATER), LeaseClosed(NOW, "done"))[1]
        going = step(second, LeaseClosing(NOW, "done", LATER))[1]
        await store.commit([gone, going], label="close")
        left = [(one.phase, one.machines) for one in (await store.figures(NOW)).held]
        assert left == [(LeasePhase.CLOSING, 1)]

    async def test_money_is_added_up_by_provider_market_and_team(self, store: Store) -> None:
        family = await running(store, team="vision")
        stretch = a_stretch(family)
        await write(store, a_posting(family.job.id), closed(stretch), a_stretch(family, 1))
        assert (await store.figures(NOW)).rates == {SPOT: 4_500_000}
        later = START + 2 * HOUR
        totals = await store.totals(later)
        assert totals.spent == {SPOT: MicroUsd(4_500_000 + 9_000_000)}
        assert totals.imbalance == 0

    async def test_gpus_are_told_by_name_while_they_are_heard(self, store: Store) -> None:
        family = await running(store)
        usage = {"gpu0_percent": 80.0, "gpu1_percent": 40.0, "gpu0_memory_mib": 7.0, "cpu_percent": 3.0}
        await store.heard([Beat(node_id=family.nodes[0].id, at=NOW, usage=usage)], [])
        assert (await store.figures(NOW)).gpu_percents == {"H100": [80.0], "h100x4": [40.0]}
        assert (await store.figures(NOW + timedelta(minutes=2))).gpu_percents == {}

    async def test_everybody_is_told_how_their_own_jobs_and_those_of_their_teams_stand(self, store: Store) -> None:
        family = await running(store, team="vision")
        await write(store, a_stretch(family))
        await store.commit([step(family.task, TaskAdvanced(NOW, TaskPhase.RUNNING, None))[1]], label="run")
        await submitted(store, "j2", user_id=UserId("bob"))
        held = Overview(jobs={JobStatus.PENDING: 1}, machines=2, gpus=8, busy_gpus=8, per_hour=MicroUsd(4_500_000))
        nothing = Overview(jobs={JobStatus.PENDING: 1}, machines=0, gpus=0, busy_gpus=0, per_hour=MicroUsd(0))
        nobody = replace(nothing, jobs={})
        mate, owner = (
            Sight(UserId("carol"), frozenset({"vision", "speech"})),
            Sight(family.job.user_id, frozenset({"vision"})),
        )
        bob, stranger = Sight(UserId("bob"), frozenset()), Sight(UserId("dave"), frozenset({"speech"}))
        assert await store.overview(JobQuery()) == replace(held, jobs={JobStatus.PENDING: 2})
        for seen_by, told in ((mate, held), (owner, held), (bob, nothing), (stranger, nobody)):
            assert await store.overview(JobQuery(seen_by=seen_by)) == told
        assert await store.overview(JobQuery(team="vision")) == held
        assert await store.overview(JobQuery(user_id=UserId("bob"))) == nothing

    async def test_jobs_that_ended_are_told_in_the_order_of_the_log(self, store: Store) -> None:
        assert await store.newest_status() == 0 and list(await store.ended_jobs(0, 10)) == []
        jobs = [(await submitted(store, id_))[0] for id_ in ("j1", "j2", "j3")]
        for job in reversed(jobs):
            await store.commit([step(job, JobStatusChanged(LATER, JobStatus.CANCELLED))[1]], label="end")
        ended = await store.ended_jobs(0, 10)
        assert [one.job_id for one in ended] == ["j3", "j2", "j1"] and {one.at for one in ended} == {LATER}
        assert list(await store.ended_jobs(ended[0].seq, 1)) == [ended[1]]
        assert await store.newest_status() == ended[-1].seq
