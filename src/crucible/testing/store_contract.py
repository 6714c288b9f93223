"""What every store must do, whatever database is below. A test file subclasses StoreContract and gives a `url` fixture
of an empty database; it adds tests only for what its own database can suffer."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from crucible.core.job import evolve
from crucible.model.attempt import AttemptEnded, Outcome, RankExited, RanksAssigned
from crucible.model.change import Change, born, changed
from crucible.model.errors import Conflict, InvariantBroken, NotFound, StaleVersion
from crucible.model.ids import UserId
from crucible.model.job import Desired, JobDesired, JobReasonChanged, JobStatus, JobStatusChanged, JobSubmitted
from crucible.model.lease import LeaseRequested, OrderPlaced
from crucible.model.spec import Framework, Mode
from crucible.model.task import TaskCreated, TaskEnded, TaskPhase
from crucible.model.units import MicroUsd
from crucible.ports.store import JobQuery, Store
from crucible.store import open_store
from crucible.testing.specimens import (
    LATER,
    NOW,
    a_job,
    a_lease,
    a_task,
    an_attempt,
    an_order,
    one_rank_each,
    running,
    step,
    submitted,
)
from crucible.testing.store_account_contract import AccountContract
from crucible.testing.store_alert_contract import AlertContract
from crucible.testing.store_budget_contract import BudgetContract
from crucible.testing.store_channel_contract import ChannelContract
from crucible.testing.store_claim_contract import ClaimContract
from crucible.testing.store_cost_contract import CostContract
from crucible.testing.store_dataset_contract import DatasetContract
from crucible.testing.store_figures_contract import FiguresContract
from crucible.testing.store_health_contract import HealthContract
from crucible.testing.store_host_contract import HostContract
from crucible.testing.store_identity_contract import IdentityContract
from crucible.testing.store_list_contract import ListContract
from crucible.testing.store_log_contract import LogContract, an_artifact
from crucible.testing.store_money_contract import MoneyContract
from crucible.testing.store_output_contract import OutputContract
from crucible.testing.store_people_contract import PeopleContract
from crucible.testing.store_plan_contract import PlanContract
from crucible.testing.store_price_contract import PriceContract
from crucible.testing.store_retention_contract import RetentionContract
from crucible.testing.store_secret_contract import SecretContract
from crucible.testing.store_shard_contract import ShardContract
from crucible.testing.store_template_contract import TemplateContract
from crucible.testing.store_trial_contract import TrialContract
from crucible.testing.store_workflow_contract import WorkflowContract


class StoreContract(
    AccountContract,
    AlertContract,
    ClaimContract,
    CostContract,
    DatasetContract,
    HealthContract,
    HostContract,
    IdentityContract,
    ListContract,
    LogContract,
    BudgetContract,
    MoneyContract,
    OutputContract,
    PeopleContract,
    ChannelContract,
    PlanContract,
    PriceContract,
    FiguresContract,
    RetentionContract,
    TemplateContract,
    TrialContract,
    SecretContract,
    ShardContract,
    WorkflowContract,
):
    pytestmark = pytest.mark.anyio

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @pytest.fixture
    def url(self) -> str:
        raise NotImplementedError

    @pytest.fixture
    def passed(self) -> list[str]:
        """The failpoints that were passed."""
        return []

    @pytest.fixture
    async def store(self, url: str, passed: list[str]) -> AsyncIterator[Store]:
        store = await open_store(url, failpoint=passed.append)
        yield store
        await store.close()

    # --- rows -----------------------------------------------------------------------------------------------

    async def test_what_was_committed_is_read_back(self, store: Store) -> None:
        family = await running(store, nodes=3)
        assert await store.job(family.job.id) == family.job
        assert await store.task(family.task.id) == family.task
        assert await store.attempt(family.attempt.id) == family.attempt
        assert await store.order(family.order.id) == (family.order, family.leases)
        for lease, node in zip(family.leases, family.nodes, strict=True):
            assert await store.lease(lease.id) == lease
            assert await store.node(node.id) == node

    async def test_what_is_not_there_is_not_found(self, store: Store) -> None:
        missing: list[Callable[[Any], Awaitable[Any]]] = [
            store.job,
            store.task,
            store.attempt,
            store.order,
            store.lease,
            store.node,
            store.tree,
            store.tally,
            store.node_work,
            store.node_glance,
        ]
        for load in missing:
            with pytest.raises(NotFound, match="nowhere"):
                await load("nowhere")

    async def test_a_job_of_extremes_survives(self, store: Store) -> None:
        job, _ = await submitted(
            store,
            name="naïve ☃ '; drop table jobs; -- %s :x {y}",
            spec_yaml="job: {name: 名前}\n" * 10_000,
            budget_microusd=MicroUsd(2**62),
            gpu_memory_gb=1e-9,
            framework=Framework.PLAIN,
            execution_mode=Mode.MULTI_TASK,
            max_gpus_per_node=None,
            deadline_at=None,
            team=None,
        )
        assert await store.job(job.id) == job

    async def test_text_that_a_database_cannot_hold_is_kept_as_well_as_it_can(self, store: Store) -> None:
        job, _ = await submitted(store)
        words = "exit \0 of \udcff a \\u0000 program ☃"
        _, change = step(job, JobStatusChanged(NOW, JobStatus.FAILED, words))
        await store.commit([change], label="test")
        kept = "exit ␀ of ? a \\u0000 program ☃"
        assert (await store.job(job.id)).reason == kept
        event = (await store.events(job.id))[-1]
        assert (event.body["reason"], event.reason) == (kept, kept)

    # --- guards -----------------------------------------------------------------------------------------------

    async def test_a_stale_change_takes_the_whole_commit_with_it(self, store: Store) -> None:
        family = await running(store)
        _, first = step(family.job, JobReasonChanged(NOW, "first"))
        await store.commit([first], label="test")
        _, task_change = step(family.task, TaskEnded(NOW, TaskPhase.FAILED, "no"))
        log = await store.events(family.job.id)
        with pytest.raises(StaleVersion, match="job j1"):
            await store.commit([task_change, first], [an_artifact(family)], label="test")
        assert await store.task(family.task.id) == family.task
        assert await store.events(family.job.id) == log
        assert await store.artifacts(family.job.id) == ()

    async def test_a_new_row_that_exists_already_is_stale(self, store: Store) -> None:
        job, (task,) = await submitted(store)
        with pytest.raises(StaleVersion):
            await store.commit([born(task, TaskCreated(NOW))], label="test")
        with pytest.raises(StaleVersion):
            await store.submit([born(job, JobSubmitted(NOW))], idempotency_key=None, user_id=job.user_id)
        assert len(await store.events(job.id)) == 2

    async def test_a_task_has_one_live_attempt(self, store: Store) -> None:
        family = await running(store)
        second = an_attempt(family.task)
        with pytest.raises(StaleVersion):
            await store.commit([born(second, JobSubmitted(NOW))], label="test")
        _, over = step(family.attempt, AttemptEnded(NOW, Outcome.LOST, "gone"))
        await store.commit([born(second, JobSubmitted(NOW)), over], label="test")
        assert (await store.tree(family.task.id)).attempt == second

    async def test_terminal_is_for_ever(self, store: Store) -> None:
        family = await running(store)
        ends: list[tuple[Any, Any, dict[str, Any]]] = [
            (family.job, JobStatusChanged(NOW, JobStatus.FAILED), {"status": JobStatus.RUNNING}),
            (family.task, TaskEnded(NOW, TaskPhase.CANCELLED, None), {"phase": TaskPhase.WAITING}),
            (family.attempt, AttemptEnded(NOW, Outcome.LOST, None), {"phase": family.attempt.phase}),
        ]
        for entity, event, undone in ends:
            ended, change = step(entity, event)
            await store.commit([change], label="test")
            risen = replace(ended, version=ended.version + 1, **undone)
            with pytest.raises(InvariantBroken, match="terminal"):
                await store.commit([Change(ended, risen, (event,))], label="test")

    async def test_state_is_the_fold_of_its_log_or_it_is_refused(self, store: Store) -> None:
        job, _ = await submitted(store)
        after, change = step(job, JobReasonChanged(NOW, "why"))
        for wrong in (replace(change, events=()), replace(change, after=replace(after, version=5))):
            with pytest.raises(InvariantBroken, match="version"):
                await store.commit([wrong], label="test")

    async def test_a_row_without_its_parent_is_refused(self, store: Store) -> None:
        await submitted(store)
        stray = a_task(a_job("nobody's"))
        with pytest.raises(InvariantBroken):
            await store.commit([born(stray, TaskCreated(NOW))], label="test")

    async def test_children_may_be_named_before_their_parents(self, store: Store) -> None:
        _, (task,) = await submitted(store)
        order = an_order(task)
        lease = a_lease(order)
        moved, change = step(lease, LeaseRequested(NOW))
        await store.commit([change, born(lease, LeaseRequested(NOW)), born(order, OrderPlaced(NOW))], label="test")
        assert await store.order(order.id) == (order, (moved,))

    async def test_racing_writers_lose_no_update(self, store: Store) -> None:
        job, _ = await submitted(store)

        async def write(worker: int) -> None:
            for turn in range(8):
                while True:
                    seen = await store.job(job.id)
                    _, changes = changed(seen, [JobReasonChanged(NOW, f"{worker}.{turn}")], evolve)
                    try:
                        await store.commit(changes, label="race")
                        break
                    except StaleVersion:
                        continue

        await asyncio.gather(*(write(worker) for worker in range(8)))
        assert (await store.job(job.id)).version == 64
        reasons = [e.body["reason"] for e in await store.events(job.id) if e.type == "JobReasonChanged"]
        assert sorted(reasons) == sorted(f"{worker}.{turn}" for worker in range(8) for turn in range(8))

    # --- ranks --------------------------------------------------------------------------------------------------

    async def test_one_rank_changes_and_the_others_stay(self, store: Store) -> None:
        family = await running(store, nodes=4)
        after, change = step(family.attempt, RankExited(NOW, 2, None, 9, "killed", LATER))
        await store.commit([change], label="test")
        assert await store.attempt(after.id) == after
        assert [rank.signal for rank in after.ranks] == [None, None, 9, None]

    async def test_only_the_present_generation_counts(self, store: Store) -> None:
        family = await running(store, nodes=3)
        fewer = RanksAssigned(NOW, 2, one_rank_each(family.nodes[:2]), "10.0.0.1", 29500, LATER)
        after, change = step(family.attempt, fewer)
        await store.commit([change], label="test")
        assert len((await store.attempt(after.id)).ranks) == 2
        assert await store.job_attempts(family.job.id) == [after]

    # --- submitting ---------------------------------------------------------------------------------------------------

    async def test_a_key_submits_one_job_however_often_it_comes(self, store: Store) -> None:
        async def submit(name: str) -> str:
            job = a_job(name, name="same")
            return await store.submit([born(job, JobSubmitted(NOW))], idempotency_key="k", user_id=job.user_id)

        ids = set(await asyncio.gather(*(submit(f"j{number}") for number in range(8))))
        assert len(ids) == 1
        assert [summary.id for summary in (await store.jobs(JobQuery())).items] == list(ids)

    async def test_a_key_of_another_spec_or_user_is_no_repetition(self, store: Store) -> None:
        first, other = a_job("j1"), a_job("j2", name="train j1", spec_yaml="other")
        await store.submit([born(first, JobSubmitted(NOW))], idempotency_key="k", user_id=first.user_id)
        with pytest.raises(Conflict, match="j1"):
            await store.submit([born(other, JobSubmitted(NOW))], idempotency_key="k", user_id=first.user_id)
        assert await store.submit([born(other, JobSubmitted(NOW))], idempotency_key="k", user_id=UserId("bob")) == "j2"

    # --- failpoints -------------------------------------------------------------------------------------------

    async def test_failpoints_stand_around_every_commit(self, store: Store, passed: list[str]) -> None:
        job, _ = await submitted(store)
        _, change = step(job, JobDesired(NOW, Desired.CANCEL, job.user_id))
        passed.clear()
        await store.commit([change], label="desired")
        assert passed == ["commit.desired.before", "commit.desired.after"]
