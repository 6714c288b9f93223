"""The log of everything, and what is written beside the state. A part of StoreContract."""

import asyncio

import pytest

from crucible.model.errors import StaleVersion
from crucible.model.ids import Digest
from crucible.model.job import JobReasonChanged, JobStatus, JobStatusChanged
from crucible.model.lease import NodeRetired
from crucible.model.record import Allocation, Artifact, ArtifactType, Checkpoint
from crucible.model.task import TaskEnded, TaskPhase
from crucible.model.units import MicroUsd
from crucible.ports.store import LoggedEvent, Store
from crucible.testing.specimens import LATER, NOW, Family, running, step, submitted


class LogContract:
    async def test_the_log_tells_everything_in_order(self, store: Store) -> None:
        job, (task,) = await submitted(store)
        job, scheduled = step(job, JobStatusChanged(NOW, JobStatus.SCHEDULED, "a place"), JobReasonChanged(NOW, "x"))
        await store.commit([scheduled], label="test")
        job, ended = step(
            job, JobStatusChanged(LATER, JobStatus.PROVISIONING), JobStatusChanged(LATER, JobStatus.FAILED, "no")
        )
        await store.commit([ended], label="test")
        log = await store.events(job.id)
        assert [(e.kind, e.entity_id, e.version, e.type) for e in log] == [
            ("job", job.id, 0, "JobSubmitted"),
            ("task", task.id, 0, "TaskCreated"),
            ("job", job.id, 1, "JobStatusChanged"),
            ("job", job.id, 2, "JobReasonChanged"),
            ("job", job.id, 3, "JobStatusChanged"),
            ("job", job.id, 4, "JobStatusChanged"),
        ]
        told = await store.statuses(job.id)
        assert told == [event for event in log if event.to_status]
        assert await store.statuses(job.id, after=told[0].seq, limit=2) == told[1:3]
        statuses = [(e.from_status, e.to_status, e.reason, e.at) for e in told]
        assert statuses == [
            (None, JobStatus.PENDING, None, NOW),
            (JobStatus.PENDING, JobStatus.SCHEDULED, "a place", NOW),
            (JobStatus.SCHEDULED, JobStatus.PROVISIONING, None, LATER),
            (JobStatus.PROVISIONING, JobStatus.FAILED, "no", LATER),
        ]

    async def test_the_log_is_read_on_from_where_one_was(self, store: Store) -> None:
        family = await running(store)
        await running(store, "j2")
        whole = await store.events(family.job.id)
        pieces: list[LoggedEvent] = []
        after = 0
        while batch := await store.events(family.job.id, after=after, limit=3):
            pieces += batch
            after = batch[-1].seq
        assert pieces == whole
        assert {event.job_id for event in whole} == {family.job.id}
        assert {event.kind for event in whole} == {"job", "task", "attempt", "order", "lease", "node"}

    async def test_events_of_a_node_belong_to_its_job(self, store: Store) -> None:
        family = await running(store)
        _, retired = step(family.nodes[0], NodeRetired(NOW, "done"))
        await store.commit([retired], label="test")
        last = (await store.events(family.job.id))[-1]
        assert (last.kind, last.type, last.body["reason"]) == ("node", "NodeRetired", "done")

    async def test_a_reader_of_the_log_misses_nothing_while_others_write(self, store: Store) -> None:
        """Lines become visible in the order of their numbers."""
        job, tasks = await submitted(store, tasks=24)
        ended = asyncio.Event()
        seen: list[int] = []

        async def follow() -> None:
            after = 0
            while True:
                is_last = ended.is_set()
                batch = await store.events(job.id, after=after)
                seen.extend(event.seq for event in batch)
                after = batch[-1].seq if batch else after
                if is_last and not batch:
                    return
                await asyncio.sleep(0)

        async def write() -> None:
            ends = [step(task, TaskEnded(NOW, TaskPhase.SUCCEEDED, None))[1] for task in tasks]
            await asyncio.gather(*(store.commit([end], label="test") for end in ends))
            ended.set()

        await asyncio.gather(follow(), write())
        assert seen == [event.seq for event in await store.events(job.id)]

    # --- records ----------------------------------------------------------------------------------------------------

    async def test_artifacts_and_checkpoints_are_written_once(self, store: Store) -> None:
        family = await running(store)
        artifact = an_artifact(family)
        early, late = (a_checkpoint(family, step=at) for at in (10, 20))
        await store.commit([], [artifact, late, early, artifact], label="test")
        await store.commit([], [early, artifact], label="test")
        assert await store.artifacts(family.job.id) == (artifact,)
        assert await store.checkpoints(family.job.lineage) == (early, late)

    async def test_an_attempt_is_allocated_once(self, store: Store) -> None:
        allocation = an_allocation(await running(store))
        await store.commit([], [allocation], label="test")
        with pytest.raises(StaleVersion, match="allocated"):
            await store.commit([], [allocation], label="test")


def an_artifact(family: Family) -> Artifact:
    return Artifact(job_id=family.job.id, type=ArtifactType.LOG, uri="file:///log", created_at=NOW, meta={"lines": 3})


def a_checkpoint(family: Family, step: int) -> Checkpoint:
    return Checkpoint(
        lineage=family.job.lineage,
        job_id=family.job.id,
        attempt_id=family.attempt.id,
        step=step,
        uri=f"file:///step-{step}",
        size_bytes=2**40,
        manifest_sha256=Digest("ab" * 32),
        created_at=NOW,
        metadata={"loss": 0.5, "tags": ["a"]},
    )


def an_allocation(family: Family) -> Allocation:
    return Allocation(
        job_id=family.job.id,
        task_id=family.task.id,
        attempt_id=family.attempt.id,
        order_id=family.order.id,
        target=family.order.target,
        instance_type="h100x4",
        count=2,
        is_spot=True,
        price_per_hour=MicroUsd(4_500_000),
        estimated_hours=1.5,
        estimated_cost=MicroUsd(13_500_000),
        created_at=NOW,
    )
