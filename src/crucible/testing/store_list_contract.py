"""Lists: pages of jobs, trees, tallies, and what somebody must look at. A part of StoreContract."""

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from crucible.model.account import Sight
from crucible.model.attempt import AttemptEnded, Outcome, RankExited
from crucible.model.change import born
from crucible.model.errors import InvalidRequest
from crucible.model.ids import AttemptId, NodeId, TaskId, UserId
from crucible.model.job import Desired, JobDesired, JobStatus, JobStatusChanged
from crucible.model.lease import LeaseClosed, LeaseClosing, OrderPlaced, OrderRefused
from crucible.model.offer import Market
from crucible.model.quota import Holding
from crucible.model.record import Beat, Progress
from crucible.model.spec import Mode
from crucible.model.task import TaskEnded, TaskExplained, TaskPhase, TaskPlaced, TaskRetried
from crucible.model.tree import NodeWork, Tally, TaskTree
from crucible.ports.store import JobQuery, Store
from crucible.testing.specimens import LATER, NOW, Family, a_lease, an_order, running, step, submitted

SECOND = timedelta(seconds=1)


class ListContract:
    # --- pages of jobs ------------------------------------------------------------------------------------------

    async def test_pages_hold_every_job_once_newest_first(self, store: Store) -> None:
        # Three at each moment: the cursor must tell apart jobs of the same microsecond.
        for number in range(12):
            await submitted(store, f"j{number:02}", created_at=NOW + (number // 3) * SECOND)
        found, cursor, pages = [], None, 0
        while pages == 0 or cursor:
            page = await store.jobs(JobQuery(limit=5, cursor=cursor))
            found += [item.id for item in page.items]
            cursor, pages = page.next_cursor, pages + 1
        assert found == [f"j{number:02}" for number in reversed(range(12))]
        assert pages == 3

    async def test_a_page_that_ends_exactly_with_the_list_has_no_next(self, store: Store) -> None:
        await submitted(store)
        page = await store.jobs(JobQuery(limit=1))
        assert (len(page.items), page.next_cursor) == (1, None)
        assert (await store.jobs(JobQuery(name="none such"))).items == ()

    async def test_jobs_are_found_by_status_user_and_name(self, store: Store) -> None:
        job, _ = await submitted(store, "j1", name="common")
        await submitted(store, "j2", name="common", user_id=UserId("bob"))
        await submitted(store, "j3")
        await store.commit([step(job, JobStatusChanged(NOW, JobStatus.FAILED, "no"))[1]], label="test")

        async def ids(query: JobQuery) -> list[str]:
            return [item.id for item in (await store.jobs(query)).items]

        assert await ids(JobQuery(status=frozenset({JobStatus.FAILED}))) == ["j1"]
        assert await ids(JobQuery(status=frozenset({JobStatus.FAILED, JobStatus.PENDING}))) == ["j3", "j2", "j1"]
        assert await ids(JobQuery(user_id=UserId("bob"))) == ["j2"]
        assert await ids(JobQuery(name="common")) == ["j2", "j1"]
        assert await ids(JobQuery(name="common", user_id=UserId("ann"), status=frozenset({JobStatus.PENDING}))) == []

    async def test_people_see_their_own_jobs_and_those_of_their_teams(self, store: Store) -> None:
        await submitted(store, "j1", user_id=UserId("ann"), team=None)
        await submitted(store, "j2", user_id=UserId("ann"), team="vision")
        await submitted(store, "j3", user_id=UserId("bob"), team="vision", project="cats")
        failed, _ = await submitted(store, "j4", user_id=UserId("bob"), team="speech")
        await submitted(store, "j5", user_id=UserId("cleo"), team=None)
        await store.commit([step(failed, JobStatusChanged(NOW, JobStatus.FAILED, "no"))[1]], label="test")

        async def ids(teams: Collection[str], **more: Any) -> list[str]:
            seen: list[str] = []
            query = JobQuery(seen_by=Sight(UserId("ann"), frozenset(teams)), limit=2, **more)
            while True:
                page = await store.jobs(query)
                seen += [item.id for item in page.items]
                if page.next_cursor is None:
                    return seen
                query = replace(query, cursor=page.next_cursor)

        any_two = frozenset({JobStatus.PENDING, JobStatus.FAILED})
        for teams in (["vision", "speech"], ["vision", "speech", *(f"t{n}" for n in range(200))]):
            assert await ids(teams) == ["j4", "j3", "j2", "j1"]
            assert await ids(teams, status=any_two) == ["j4", "j3", "j2", "j1"]
            assert await ids(teams, user_id=UserId("bob")) == ["j4", "j3"]
            assert await ids(teams, team="vision") == ["j3", "j2"]
            assert await ids(teams, project="cats", status=any_two) == ["j3"]
        assert await ids([]) == ["j2", "j1"]
        assert await ids([], team="vision") == ["j2"]
        assert await ids([], user_id=UserId("cleo")) == []
        assert await ids(["speech"], user_id=UserId("ann"), team="vision") == ["j2"]

    async def test_a_row_of_the_list_says_how_far_a_single_job_is(self, store: Store) -> None:
        family = await running(store)
        many, (task,) = await submitted(store, "j2", execution_mode=Mode.MULTI_TASK, created_at=LATER)
        await store.heard([], [advance(family.task.id, family, 0.5), advance(task.id, family, 0.7, job=many.id)])
        newest, oldest = (await store.jobs(JobQuery())).items
        assert (newest.id, newest.progress) == ("j2", None)
        assert (oldest.progress, oldest.gpus, oldest.created_at) == (0.5, 8, NOW)
        assert (oldest.job_type, oldest.framework, oldest.user_id) == ("training", "pytorch_ddp", "ann")

    @pytest.mark.parametrize(
        "cursor", ["", "x", "%%%", "MTIz", "MSA=", "bm90IGEgdGltZQ==", "☃", "OTk5OTk5OTk5OTk5OTk5OTk5OTkgag=="]
    )
    async def test_a_cursor_that_is_not_ours_is_refused(self, store: Store, cursor: str) -> None:
        with pytest.raises(InvalidRequest, match="cursor"):
            await store.jobs(JobQuery(cursor=cursor))

    @pytest.mark.parametrize("limit", [-1, 0, 1001])
    async def test_a_page_has_a_sensible_size(self, store: Store, limit: int) -> None:
        with pytest.raises(InvalidRequest, match="limit"):
            await store.jobs(JobQuery(limit=limit))

    # --- what belongs to a job, a provider, a node ------------------------------------------------------------------

    async def test_a_job_knows_its_own(self, store: Store) -> None:
        family = await running(store, nodes=3)
        await running(store, "j2")
        assert await store.job_tasks(family.job.id) == (family.task,)
        assert await store.job_attempts(family.job.id) == [family.attempt]
        assert await store.job_leases(family.job.id) == family.leases
        assert await store.job_orders(family.job.id) == (family.order,)
        assert await store.unfinished_tasks(family.job.id) == [family.task.id]
        await store.commit([step(family.task, TaskEnded(NOW, TaskPhase.SUCCEEDED, None))[1]], label="test")
        assert await store.unfinished_tasks(family.job.id) == []

    async def test_a_provider_has_open_leases_and_unsettled_orders(self, store: Store) -> None:
        family = await running(store)
        more = an_order(family.task, 7, price_per_hour=family.order.price_per_hour)
        await store.commit([born(more, OrderPlaced(NOW))], label="test")
        _, closed = step(family.leases[0], LeaseClosed(NOW, "gone"))
        await store.commit([closed], label="test")
        assert await store.open_leases("fake") == family.leases[1:]
        assert await store.open_orders("fake") == (more,)
        assert await store.open_leases("other") == () == await store.open_orders("other")
        assert await store.open_leases("fake", "nowhere-1") == family.leases[1:]
        assert await store.open_orders("fake", "nowhere-1") == (more,)
        assert await store.open_places() == [("fake", "nowhere-1")]
        assert await store.open_leases("fake", "elsewhere") == () == await store.open_orders("fake", "elsewhere")

    async def test_what_is_held_is_counted_by_kind(self, store: Store) -> None:
        first, second = await running(store), await running(store, "j2")
        kind = first.order.target.region, first.order.instance_type, Market.SPOT
        held = len(first.leases) + len(second.leases)
        assert await store.holdings("fake") == (Holding("fake", *kind, held),)
        await store.commit([step(first.leases[0], LeaseClosed(NOW, "gone"))[1]], label="test")
        assert await store.holdings("fake") == (Holding("fake", *kind, held - 1),)
        assert await store.holdings("other") == ()

    async def test_a_node_learns_what_to_do(self, store: Store) -> None:
        family = await running(store)
        work = await store.node_work(family.nodes[1].id)
        assert work == NodeWork(family.nodes[1], family.leases[1], family.job, ((family.task, family.attempt),))
        await store.commit([step(family.attempt, AttemptEnded(NOW, Outcome.FAILED, "no"))[1]], label="test")
        assert (await store.node_work(family.nodes[1].id)).at_work == ()

    async def test_at_a_glance_a_nodes_work_is_what_it_is_at_length(self, store: Store) -> None:
        family = await running(store, nodes=3)
        await running(store, "j2")
        for node in family.nodes:
            glance = await store.node_glance(node.id)
            assert glance == (await store.node_work(node.id)).glance
            assert len(glance.ranks) == 1
        attempt, gone = step(family.attempt, RankExited(NOW, 1, 0, None, None, NOW))
        await store.commit([gone], label="test")
        glances = [await store.node_glance(node.id) for node in family.nodes]
        assert glances == [(await store.node_work(node.id)).glance for node in family.nodes]
        assert [len(glance.ranks) for glance in glances] == [1, 0, 1]
        await store.commit([step(attempt, AttemptEnded(NOW, Outcome.FAILED, "no"))[1]], label="test")
        assert (await store.node_glance(family.nodes[0].id)).ranks == ()

    # --- trees and tallies --------------------------------------------------------------------------------------------

    async def test_a_tree_holds_all_that_hangs_on_a_task(self, store: Store) -> None:
        family = await running(store)
        await running(store, "j2")
        await store.heard([Beat(node_id=family.nodes[0].id, at=LATER)], [])
        assert await store.tree(family.task.id) == a_tree(family, heard={family.nodes[0].id: LATER})

    async def test_a_bare_task_has_a_bare_tree(self, store: Store) -> None:
        job, (task,) = await submitted(store)
        assert await store.tree(task.id) == TaskTree(job, task, None, (), (), (), {})

    async def test_a_tree_keeps_the_closed_leases_of_its_attempt(self, store: Store) -> None:
        family = await running(store)
        gone, closed = step(family.leases[0], LeaseClosed(NOW, "gone"))
        old_order = an_order(family.task, 9)
        old = a_lease(old_order)
        _, refused = step(old_order, OrderRefused(NOW, "no", "no_capacity"))
        _, old_closed = step(old, LeaseClosed(NOW, "refused"))
        history = [born(old_order, OrderPlaced(NOW)), born(old, OrderPlaced(NOW)), refused, old_closed]
        await store.commit([closed, *history], label="test")
        tree = await store.tree(family.task.id)
        assert tree.leases == (gone, family.leases[1])
        assert tree.nodes == family.nodes
        assert tree.orders == (family.order,)

    async def test_without_a_live_attempt_the_newest_is_in_the_tree(self, store: Store) -> None:
        family = await running(store)
        ended, over = step(family.attempt, AttemptEnded(NOW, Outcome.LOST, "gone"))
        _, retried = step(family.task, TaskRetried(NOW, "gone", NOW, False, True))
        await store.commit([over, retried], label="test")
        assert (await store.tree(family.task.id)).attempt == ended

    async def test_a_tally_counts_tasks_and_tells_the_first_reason(self, store: Store) -> None:
        job, tasks = await submitted(store, tasks=4)
        assert await store.tally(job.id) == Tally({TaskPhase.WAITING: 4}, None, False)
        waits = step(tasks[0], TaskExplained(NOW, "no GPU is free", None))[1]
        await store.commit([waits], label="test")
        assert (await store.tally(job.id)).reason == "no GPU is free"
        ends = [step(task, TaskEnded(NOW, TaskPhase.FAILED, f"bad {task.index}"))[1] for task in (tasks[3], tasks[2])]
        await store.commit([*ends, step(tasks[1], TaskEnded(NOW, TaskPhase.SUCCEEDED, None))[1]], label="test")
        counts = {TaskPhase.WAITING: 1, TaskPhase.SUCCEEDED: 1, TaskPhase.FAILED: 2}
        assert await store.tally(job.id) == Tally(counts, "bad 2", False)
        family = await running(store, "j2")
        assert (await store.tally(family.job.id)).ever_placed

    # --- what somebody must look at ---------------------------------------------------------------------------

    async def test_tasks_wait_in_the_order_of_priority_then_age(self, store: Store) -> None:
        await submitted(store, "young", created_at=NOW + 2 * SECOND)
        await submitted(store, "old", tasks=2, created_at=NOW + SECOND)
        await submitted(store, "urgent", created_at=NOW + 3 * SECOND, priority=5)
        held, _ = await submitted(store, "held")
        await store.commit([step(held, JobDesired(NOW, Desired.HOLD, held.user_id))[1]], label="test")
        later, (task,) = await submitted(store, "later")
        await store.commit([step(task, TaskExplained(NOW, "not yet", LATER))[1]], label="test")
        await running(store, "running")
        trees = await store.waiting(NOW, 10)
        assert [tree.task.id for tree in trees] == ["urgent-t0", "old-t0", "old-t1", "young-t0"]
        assert [tree.task.id for tree in await store.waiting(NOW, 2)] == ["urgent-t0", "old-t0"]
        others = await store.waiting(NOW, 2, without={TaskId("urgent-t0"), TaskId("old-t1"), TaskId("unknown")})
        assert [tree.task.id for tree in others] == ["old-t0", "young-t0"]
        assert later.id in [tree.job.id for tree in await store.waiting(LATER, 10)]

    async def test_a_waiting_task_brings_the_machines_it_still_has(self, store: Store) -> None:
        families = [await running(store, name) for name in ("j1", "j2")]
        for family in families:
            _, over = step(family.attempt, AttemptEnded(NOW, Outcome.FAILED, "exit 1"))
            _, retried = step(family.task, TaskRetried(NOW, "exit 1", NOW, True, False))
            _, closed = step(family.leases[0], LeaseClosed(NOW, "gone"))
            await store.commit([over, retried, closed], label="test")
        assert await store.waiting(NOW, 10) == [await store.tree(family.task.id) for family in families]

    async def test_late_tasks_and_attempts_are_due(self, store: Store) -> None:
        family = await running(store)
        assert (await store.due(LATER - SECOND, 10)).tasks == ()
        assert (await store.due(LATER, 10)).tasks == (family.task.id,)

    async def test_those_that_only_wait_are_due_after_those_at_work(self, store: Store) -> None:
        for name in ("w1", "w2"):
            _, (task,) = await submitted(store, name)
            await store.commit([step(task, TaskRetried(NOW, "again", NOW, True, False))[1]], label="test")
        at_work = await running(store)
        assert (await store.due(LATER, 10)).tasks == (at_work.task.id, "w1-t0", "w2-t0")
        assert (await store.due(LATER, 2)).tasks == (at_work.task.id, "w1-t0")

    async def test_a_waiting_task_that_nobody_wants_any_more_is_due(self, store: Store) -> None:
        job, (task,) = await submitted(store, "unwanted")
        assert (await store.due(NOW, 10)).tasks == ()
        await store.commit([step(job, JobDesired(NOW, Desired.CANCEL, job.user_id))[1]], label="test")
        assert (await store.due(NOW, 10)).tasks == (task.id,)

    async def test_orders_are_due_until_they_are_settled_and_while_leases_move(self, store: Store) -> None:
        family = await running(store)
        assert (await store.due(NOW, 10)).orders == ()
        more = an_order(family.task, 7)
        await store.commit([born(more, OrderPlaced(NOW))], label="test")
        assert (await store.due(NOW, 10)).orders == (more.id,)
        closing, change = step(family.leases[0], LeaseClosing(NOW, "done", LATER))
        await store.commit([change], label="test")
        assert (await store.due(LATER - SECOND, 10)).orders == (more.id,)
        assert set((await store.due(LATER - 4000 * SECOND, 10)).orders) == {more.id, family.order.id}, "set back"
        assert set((await store.due(LATER, 10)).orders) == {more.id, family.order.id}
        await store.commit([step(closing, LeaseClosed(LATER, "gone"))[1]], label="test")
        assert (await store.due(LATER, 10)).orders == (more.id,)

    async def test_a_task_at_work_whose_machines_are_all_gone_is_stranded(self, store: Store) -> None:
        family = await running(store)
        await submitted(store, "waiting")
        for lease in family.leases:
            assert await store.stranded(10) == ()
            await store.commit([step(lease, LeaseClosed(NOW, "gone"))[1]], label="test")
        assert await store.stranded(10) == (family.task.id,)
        await store.commit([step(family.task, TaskRetried(NOW, "lost", NOW, False, True))[1]], label="test")
        assert await store.stranded(10) == ()

    async def test_jobs_are_due_when_their_tasks_are_over_or_people_want_something(self, store: Store) -> None:
        done, (task,) = await submitted(store, "done")
        wanted, _ = await submitted(store, "wanted")
        await submitted(store, "quiet")
        assert (await store.due(NOW, 10)).jobs == ()
        over = step(task, TaskEnded(NOW, TaskPhase.SUCCEEDED, None))[1]
        await store.commit([over, step(wanted, JobDesired(NOW, Desired.CANCEL, wanted.user_id))[1]], label="test")
        assert set((await store.due(NOW, 10)).jobs) == {done.id, wanted.id}
        await store.commit([step(done, JobStatusChanged(NOW, JobStatus.FAILED))[1]], label="test")
        assert (await store.due(NOW, 10)).jobs == (wanted.id,)

    async def test_a_job_is_due_until_its_status_shows_a_phase_of_its_tasks(self, store: Store) -> None:
        job, (task,) = await submitted(store, "job")
        placed, change = step(task, TaskPlaced(NOW, AttemptId("a"), LATER))
        await store.commit([change], label="test")
        assert (await store.due(NOW, 10)).jobs == (job.id,)
        job, change = step(job, JobStatusChanged(NOW, JobStatus.SCHEDULED))
        await store.commit([change], label="test")
        assert (await store.due(NOW, 10)).jobs == ()
        await store.commit([step(placed, TaskRetried(NOW, "again", NOW, True, False))[1]], label="test")
        assert (await store.due(NOW, 10)).jobs == (), "a job that is to run again is scheduled"

    # --- beats and progress -----------------------------------------------------------------------------------

    async def test_the_newest_beat_and_progress_win(self, store: Store) -> None:
        family = await running(store)
        node, task = family.nodes[0].id, family.task.id
        new = Beat(node_id=node, at=LATER, usage={"cpu_percent": 99.5, "loss": float("inf")})
        ahead = advance(task, family, 0.9, at=LATER)
        await store.heard([new, Beat(node_id=NodeId("stranger"), at=NOW)], [ahead])
        await store.heard([Beat(node_id=node, at=NOW)], [advance(task, family, 0.1)])
        assert await store.usage(family.job.id) == (new,)
        assert await store.progress(family.job.id) == (ahead,)
        await store.heard([], [])


def a_tree(family: Family, **fields: object) -> TaskTree:
    return TaskTree(
        family.job,
        family.task,
        family.attempt,
        (family.order,),
        family.leases,
        family.nodes,
        fields.get("heard", {}),  # type: ignore[arg-type]
    )


def advance(task_id: TaskId, family: Family, fraction: float, **fields: object) -> Progress:
    return Progress(
        task_id=task_id,
        job_id=fields.get("job", family.job.id),  # type: ignore[arg-type]
        attempt_id=family.attempt.id,
        at=fields.get("at", NOW),  # type: ignore[arg-type]
        step=7,
        total_steps=2**40,
        fraction=fraction,
        metrics={"loss": 0.25},
    )
