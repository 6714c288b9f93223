"""How jobs and providers are. A part of StoreContract."""

from dataclasses import replace
from datetime import timedelta

import pytest

from crucible.core.health import notice_of
from crucible.model.errors import StaleClaim
from crucible.model.health import Finding, FindingCode, Health, JobHealth, Memory, PlaceHealth, TaskMemory
from crucible.model.ids import JobId
from crucible.model.notice import Severity
from crucible.model.record import Beat
from crucible.ports.store import JobQuery, Store
from crucible.testing.specimens import LATER, NOW, running

TTL = timedelta(seconds=30)
MEMORY = Memory(
    tasks={"t1": TaskMemory(attempt=1, at=NOW, step=3.0, moved_at=NOW, pace=(0.5, 1.5), starts=(NOW,), loss_best=-1.0)},
    idle={"n1/0": NOW},
    seen={"disk_full": 1},
    absent={"straggler": LATER},
)


def a_finding(job_id: str = "j1", code: FindingCode = FindingCode.NO_PROGRESS) -> Finding:
    return Finding(
        job_id=JobId(job_id),
        code=code,
        opened_at=NOW,
        severity=Severity.CRITICAL,
        words="no progress since ä",
        advice="look",
        details={"tasks": [0]},
    )


class HealthContract:
    async def test_what_was_seen_of_a_job_comes_back_whole_and_the_newest_counts(self, store: Store) -> None:
        family = await running(store)
        one = JobHealth(job_id=family.job.id, status=Health.OK, looked_at=NOW, memory=MEMORY)
        await store.commit((), [one], label="health")
        assert await store.job_healths([family.job.id, JobId("nobody")]) == {family.job.id: one}
        after = replace(one, status=Health.UNKNOWN, why="nothing runs", looked_at=LATER, memory=Memory())
        await store.commit((), [after], label="health")
        assert (await store.job_healths([family.job.id]))[family.job.id] == after

    async def test_a_list_of_jobs_says_how_each_is(self, store: Store) -> None:
        family = await running(store)
        assert (await store.jobs(JobQuery())).items[0].health is None
        await store.commit((), [JobHealth(job_id=family.job.id, status=Health.WARNING, looked_at=NOW)], label="health")
        assert (await store.jobs(JobQuery())).items[0].health == "warning"

    async def test_a_finding_is_open_until_it_is_closed_and_stays_in_the_history(self, store: Store) -> None:
        family = await running(store)
        one = a_finding(family.job.id)
        other = replace(one, code=FindingCode.DISK_FULL, severity=Severity.WARNING)
        await store.commit((), [one, other], label="health")
        assert await store.open_findings() == await store.open_findings([family.job.id]) == (other, one)
        assert await store.open_findings([JobId("nobody")]) == ()
        worse = replace(other, severity=Severity.CRITICAL, words="worse")
        await store.commit((), [worse, replace(one, closed_at=LATER)], label="health")
        assert await store.open_findings() == (worse,)
        again = replace(one, opened_at=LATER)
        await store.commit((), [again], label="health")
        assert [found.opened_at for found in await store.findings(family.job.id)] == [LATER, NOW, NOW]
        assert len(await store.findings(family.job.id, limit=2)) == 2

    async def test_a_finding_and_its_notice_are_one_and_need_the_claim(self, store: Store) -> None:
        family = await running(store)
        first = await store.claim("health", "a", timedelta(0))
        second = await store.claim("health", "b", TTL)
        assert first is not None and second is not None
        one = a_finding(family.job.id)
        notice = notice_of(one, family.job)
        assert notice is not None
        with pytest.raises(StaleClaim):
            await store.commit((), [one, notice], label="health", claim=first)
        assert await store.open_findings() == ()
        await store.commit((), [one, notice], label="health", claim=second)
        await store.commit((), [one, notice], label="health", claim=second)  # written twice, it is one
        assert await store.open_findings() == (one,)

    async def test_nodes_that_a_job_holds_are_told_with_their_newest_figures(self, store: Store) -> None:
        family = await running(store)
        assert all(node.heard_at is None and not node.usage for node in await store.held_nodes([family.job.id]))
        node_id = (await store.held_nodes([family.job.id]))[0].node_id
        await store.heard([Beat(node_id=node_id, at=NOW, usage={"cpu_percent": 7.5})], [])
        held = {node.node_id: node for node in await store.held_nodes([family.job.id])}
        assert held[node_id].usage == {"cpu_percent": 7.5} and held[node_id].heard_at == NOW
        assert held[node_id].job_id == family.job.id and held[node_id].rank is not None
        assert await store.held_nodes([JobId("nobody")]) == []
        assert len(await store.held_nodes([family.job.id], limit=1)) == 1

    async def test_how_a_provider_is_comes_back_and_the_newest_counts(self, store: Store) -> None:
        assert await store.place_healths() == ()
        one = PlaceHealth(provider="aws", region="us-east-1", looked_at=NOW, failing_since=NOW, error="away")
        await store.commit((), [one], label="place")
        after = replace(one, looked_at=LATER, last_good_at=LATER, failing_since=None, error=None, latency_ms=31)
        await store.commit((), [after], label="place")
        assert await store.place_healths() == (after,)

    async def test_the_whole_system_is_counted(self, store: Store) -> None:
        empty = await store.system_facts(NOW)
        assert (empty.waiting_tasks, empty.nodes, empty.balance_microusd) == (0, 0, 0)
        family = await running(store)
        node_id = (await store.held_nodes([family.job.id]))[0].node_id
        await store.heard([Beat(node_id=node_id, at=NOW, usage={})], [])
        assert (await store.system_facts(NOW)).silent_nodes == 0
        late = await store.system_facts(LATER)
        assert (late.nodes, late.silent_nodes) == (1, 1) and late.database_bytes > 0 and late.revision
