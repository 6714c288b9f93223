"""Keeping and forgetting. A part of StoreContract."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from crucible.core.retention import SETTLING
from crucible.model.account import Role, Token, User
from crucible.model.audit import AuditEntry
from crucible.model.change import born
from crucible.model.errors import Conflict, InvariantBroken, NotFound, StaleClaim
from crucible.model.ids import Digest, JobId, TaskId, TokenId, UserId
from crucible.model.job import Job, JobStatus, JobStatusChanged, JobSubmitted
from crucible.model.ledger import ChargeKind, Entry, Posting
from crucible.model.notice import Notice, NoticeKind, Severity
from crucible.model.record import StepResult
from crucible.model.retention import Erasure, Kept, KeptJob, Removal, Retained, Source
from crucible.model.task import TaskCreated
from crucible.model.units import MicroUsd
from crucible.ports.accounts import Seal
from crucible.ports.store import Claim, JobQuery, Segment, Store
from crucible.testing.specimens import NOW, a_job, a_task, step

OLD = NOW - timedelta(days=800)
YOUNG = NOW - timedelta(days=10)
CUTOFF = NOW - timedelta(days=730)
ANN = UserId("ann")
ADA = Erasure(user_id=ANN, pseudonym=UserId("deleted-user-1"), at=NOW, keeps_jobs=False)


def entry(action: str = "job.keep", at: datetime = NOW) -> AuditEntry:
    return AuditEntry(at=at, user_id=UserId("root"), token_id=TokenId("k"), action=action, subject="x")


async def ended(store: Store, id_: str, at: datetime = OLD, **fields: Any) -> Job:
    """A job that ended then."""
    job = a_job(id_, created_at=at, **fields)
    changes = [born(job, JobSubmitted(at)), born(a_task(job), TaskCreated(at))]
    await store.submit(changes, idempotency_key=None, user_id=job.user_id, plan="{}")
    _, change = step(job, JobStatusChanged(at, JobStatus.COMPLETED))
    await store.commit([change], label="test")
    return await store.job(job.id)


async def claimed(store: Store) -> Claim:
    claim = await store.claim("retention", "test", timedelta(minutes=1))
    assert claim is not None
    return claim


async def removed(store: Store, claim: Claim, what: Kept = Kept.JOBS) -> list[JobId]:
    """One pass of what the engine does with rows."""
    await store.open_horizon({Kept.EVENTS: CUTOFF}, claim=claim)
    while await store.mark_old(what, CUTOFF - SETTLING, NOW, 10, claim=claim):
        pass
    found = await store.removals(None, 1000)
    ids = [one.job_id for one in found]
    while not await store.remove_rows(what, ids, NOW, 2, claim=claim):
        pass
    assert await store.removals(None, 1000) == ()
    return ids


async def listed(store: Store) -> list[JobId]:
    return [item.id for item in (await store.jobs(JobQuery(limit=100, with_steps=True))).items]


def posting(job: Job, amount: int) -> Posting:
    entries = (Entry(f"job:{job.id}", MicroUsd(amount)), Entry("provider:fake", MicroUsd(-amount)))
    return Posting(id=f"p-{job.id}", at=OLD, memo="m", job_id=job.id, kind=ChargeKind.COMPUTE, entries=entries)


class RetentionContract:
    async def test_an_admins_word_about_ages_is_remembered_and_taken_back(self, store: Store) -> None:
        assert await store.retention() == ()
        await store.set_retention(Kept.LOGS, 30, entry("retention.set"))
        await store.set_retention(Kept.JOBS, 0, entry("retention.set"))
        await store.set_retention(Kept.LOGS, None, entry("retention.set"))
        assert await store.retention() == (Retained(what=Kept.JOBS, days=0), Retained(what=Kept.LOGS))

    async def test_old_jobs_go_and_young_ones_stay(self, store: Store) -> None:
        old, young = await ended(store, "old"), await ended(store, "young", YOUNG)
        claim = await claimed(store)
        assert await store.old(Kept.JOBS, CUTOFF, 10) == 1
        assert await removed(store, claim) == [old.id]
        assert await listed(store) == [young.id]
        with pytest.raises(NotFound, match="job old was removed on 2026-01-01; only what it cost is kept"):
            await store.job(old.id)
        assert await store.events(old.id) == [] and len(await store.events(young.id)) > 0
        assert await store.plan(old.id) is None and await store.plan(young.id) is not None
        assert await store.old(Kept.JOBS, CUTOFF, 10) == 0
        assert {one.what: one.removed for one in await store.retention()} == {Kept.EVENTS: 0, Kept.JOBS: 1}

    async def test_what_was_charged_stays_to_the_micro_dollar(self, store: Store) -> None:
        jobs = [await ended(store, f"j{n}") for n in range(3)]
        for number, job in enumerate(jobs):
            await store.commit([], [posting(job, 1000 + number)], label="test")
        ids = [job.id for job in jobs]
        before = await store.balances(), await store.job_costs(ids), await store.job_postings(ids[0])
        await removed(store, await claimed(store))
        assert (await store.balances(), await store.job_costs(ids), await store.job_postings(ids[0])) == before
        assert sum(before[1].values()) == 3003

    async def test_logs_and_history_may_go_before_the_job(self, store: Store) -> None:
        job = await ended(store, "old")
        await store.add_segment(Segment(f"{job.id}-t0/log", 0, 0, 9))
        claim = await claimed(store)
        assert await removed(store, claim, Kept.LOGS) == [job.id]
        await store.forget_streams([TaskId(f"{job.id}-t0")], claim=claim)
        assert await store.segments(f"{job.id}-t0/log") == ()
        assert len(await store.events(job.id)) == 3
        assert await removed(store, claim, Kept.EVENTS) == [job.id]
        assert await store.events(job.id) == [] and await store.job(job.id) == job
        assert await store.when_removed(job.id) == {Kept.LOGS: NOW, Kept.EVENTS: NOW}
        assert await store.old(Kept.LOGS, CUTOFF, 9) == await store.old(Kept.EVENTS, CUTOFF, 9) == 0

    async def test_what_somebody_keeps_stays_until_they_do_not(self, store: Store) -> None:
        job = await ended(store, "kept")
        kept = KeptJob(job_id=job.id, user_id=ANN, at=NOW)
        for _ in range(2):
            await store.keep_job(kept, entry())
        assert await store.kept_jobs(ANN, 9) == await store.kept_jobs(None, 9) == (kept,)
        assert await store.kept_jobs(UserId("bob"), 9) == ()
        claim = await claimed(store)
        for what in (Kept.LOGS, Kept.EVENTS, Kept.JOBS):
            assert await store.mark_old(what, CUTOFF, NOW, 10, claim=claim) == 0
        await store.unkeep_job(job.id, entry())
        assert await removed(store, claim) == [job.id]
        with pytest.raises(NotFound):
            await store.keep_job(kept, entry())

    @pytest.mark.parametrize("how", ["goes on from it", "is its workflow", "was given what it left", "took its result"])
    async def test_what_a_younger_job_needs_stays_as_long_as_that(self, store: Store, how: str) -> None:
        later = a_job("later", created_at=YOUNG)
        if how == "is its workflow":
            await ended(store, "old", parent=later.id, step=0)
        else:
            await ended(store, "old")
        origin = JobId("old") if how == "goes on from it" else None
        await ended(store, "later", YOUNG, origin=origin, lineage=origin or later.id)
        if how in ("was given what it left", "took its result"):
            await store.commit([], [Source(source=JobId("old"), job_id=later.id)], label="test")
        claim = await claimed(store)
        assert await store.mark_old(Kept.JOBS, CUTOFF, NOW, 10, claim=claim) == 0
        assert await store.mark_old(Kept.JOBS, NOW, NOW, 10, claim=claim) == 2  # both are old

    async def test_what_is_not_over_is_never_old(self, store: Store) -> None:
        job = a_job("waiting", created_at=OLD)
        changes = [born(job, JobSubmitted(OLD)), born(a_task(job), TaskCreated(OLD))]
        await store.submit(changes, idempotency_key=None, user_id=job.user_id)
        claim = await claimed(store)
        for what in (Kept.LOGS, Kept.EVENTS, Kept.JOBS):
            assert await store.mark_old(what, NOW, NOW, 10, claim=claim) == 0

    async def test_history_beyond_the_horizon_is_out_of_reach(self, store: Store) -> None:
        """Whatever was decided: the database itself refuses, and nothing of it is done."""
        job = await ended(store, "young", YOUNG)
        claim = await claimed(store)
        await store.open_horizon({Kept.EVENTS: CUTOFF}, claim=claim)
        await store.open_horizon({Kept.EVENTS: OLD}, claim=claim)  # it never moves back
        assert await store.mark_old(Kept.EVENTS, NOW, NOW, 10, claim=claim) == 1
        with pytest.raises(InvariantBroken, match="append-only"):
            await store.remove_rows(Kept.EVENTS, [job.id], NOW, 100, claim=claim)
        assert len(await store.events(job.id)) == 3
        assert await store.removals(None, 9) == (Removal(job_id=job.id, what=Kept.EVENTS, lineage=job.id),)

    async def test_who_has_lost_the_claim_removes_nothing(self, store: Store) -> None:
        await ended(store, "old")
        claim = await claimed(store)
        await store.release(claim)
        await claimed(store)
        with pytest.raises(StaleClaim):
            await store.mark_old(Kept.JOBS, CUTOFF, NOW, 10, claim=claim)
        assert await listed(store) == ["old"]

    async def test_the_audit_log_goes_from_its_beginning_and_stays_whole(self, store: Store) -> None:
        for days in (900, 800, 700, 1):
            await store.set_retention(Kept.LOGS, days, entry("retention.set", NOW - timedelta(days=days)))
        claim = await claimed(store)
        assert await store.old(Kept.AUDIT, CUTOFF, 10) == 2
        await store.open_horizon({Kept.AUDIT: CUTOFF}, claim=claim)
        assert [await store.prune(Kept.AUDIT, CUTOFF, NOW, 1, claim=claim) for _ in range(3)] == [1, 1, 0]
        await store.set_retention(Kept.LOGS, 5, entry("retention.set"))
        checked = await store.check_audit(Seal(), 100)
        assert (checked.seq, checked.broken) == (5, None)

    async def test_old_plans_and_notices_go_by_their_age(self, store: Store) -> None:
        await ended(store, "old")
        young = await ended(store, "young", YOUNG)
        for at in (OLD, YOUNG):
            notice = Notice(
                key=f"{at}", at=at, kind=NoticeKind.LEAK, severity=Severity.INFO, title="t", text="x", user_id=ANN
            )
            await store.commit([], [notice], label="test")
        claim = await claimed(store)
        for what in (Kept.PLANS, Kept.NOTICES):
            assert await store.old(what, CUTOFF, 9) == 1
            assert [await store.prune(what, CUTOFF, NOW, 9, claim=claim) for _ in range(2)] == [1, 0]
        assert await store.plan(JobId("old")) is None and await store.plan(young.id) is not None

    async def test_code_is_needed_as_long_as_a_job_has_it(self, store: Store) -> None:
        mine, other = Digest("a" * 64), Digest("b" * 64)
        await ended(store, "old", code_digest=mine)
        assert await store.needed_packages([mine, other]) == {mine}
        await removed(store, await claimed(store))
        assert await store.needed_packages([mine, other]) == frozenset()

    async def test_a_lineage_is_needed_by_its_last_job(self, store: Store) -> None:
        first = await ended(store, "first")
        assert await store.is_lineage_needed(first.id)
        await ended(store, "second", YOUNG, origin=first.id, lineage=first.id)
        claim = await claimed(store)
        await store.mark_old(Kept.JOBS, NOW, NOW, 1, claim=claim)
        assert await store.is_lineage_needed(first.id)
        await store.mark_old(Kept.JOBS, NOW, NOW, 1, claim=claim)
        assert not await store.is_lineage_needed(first.id)

    # --- people -------------------------------------------------------------------------------------------------

    async def test_somebody_is_forgotten_and_what_they_cost_is_not(self, store: Store) -> None:
        job = await self._person(store)
        await store.commit([], [posting(job, 77)], label="test")
        assert await store.begin_erasure(ADA, entry("user.delete")) == ADA
        claim = await claimed(store)
        while await store.erase_some(ADA, NOW, 2, claim=claim):
            pass
        assert not await store.end_erasure(ADA, claim=claim)  # their jobs are marked, and still there
        ids = [one.job_id for one in await store.removals(None, 10)]
        assert ids == [job.id]
        while not await store.remove_rows(Kept.JOBS, ids, NOW, 100, claim=claim):  # young as it is
            pass
        assert await store.end_erasure(ADA, claim=claim) and await store.erasures() == ()
        assert await store.events(job.id) == [] and await listed(store) == []
        assert {one.id for one in await store.users()} == {"deleted-user-1"}
        assert (await store.balances())[f"job:{job.id}"] == 77
        assert await self._told(store, ANN) == {}

    async def test_jobs_may_stay_under_a_pseudonym(self, store: Store) -> None:
        job = await self._person(store)
        kept = Erasure(user_id=ANN, pseudonym=UserId("deleted-user-2"), at=NOW, keeps_jobs=True)
        await store.begin_erasure(kept, entry("user.delete"))
        claim = await claimed(store)
        while await store.erase_some(kept, NOW, 2, claim=claim):
            pass
        ids = [one.job_id for one in await store.removals(None, 10)]
        assert await store.remove_rows(Kept.EVENTS, ids, NOW, 100, claim=claim)
        assert await store.end_erasure(kept, claim=claim)
        found = await store.job(job.id)
        assert (found.user_id, found.spec_yaml) == ("deleted-user-2", job.spec_yaml)
        assert await store.events(job.id) == []

    async def test_nobody_is_forgotten_while_their_jobs_run(self, store: Store) -> None:
        await self._person(store)
        job = a_job("waiting", user_id=ANN)
        changes = [born(job, JobSubmitted(NOW)), born(a_task(job), TaskCreated(NOW))]
        await store.submit(changes, idempotency_key=None, user_id=ANN)
        with pytest.raises(Conflict, match="cancel waiting first"):
            await store.begin_erasure(ADA, entry())
        assert await store.erasures() == () and len(await store.tokens(ANN)) == 1
        with pytest.raises(NotFound, match="no user nobody"):
            await store.begin_erasure(
                Erasure(user_id=UserId("nobody"), pseudonym=UserId("x"), at=NOW, keeps_jobs=False), entry()
            )

    async def test_the_door_is_shut_when_forgetting_begins_and_its_pseudonym_stays(self, store: Store) -> None:
        await self._person(store)
        await store.begin_erasure(ADA, entry())
        assert await store.principal(Digest("d"), NOW) is None
        again = Erasure(user_id=ANN, pseudonym=UserId("another"), at=NOW, keeps_jobs=True)
        assert await store.begin_erasure(again, entry()) == ADA
        assert await store.erasures() == (ADA,)

    async def test_all_that_is_known_of_a_person_is_told_and_no_secret(self, store: Store) -> None:
        await self._person(store)
        for number in range(45):
            await ended(store, f"more-{number:02}", YOUNG)
        await ended(store, "others", user_id=UserId("bob"))
        told = await self._told(store, ANN)
        assert len(told["jobs"]) == 46 and len(told["tasks"]) == 46 and len(told["events"]) == 46 * 3
        assert [one["name"] for one in told["users"]] == ["ann"]
        assert "digest" not in told["tokens"][0] and told["tokens"][0]["created_at"] == NOW.isoformat()
        assert not any(row.get("job_id") == "others" for rows in told.values() for row in rows)

    async def _person(self, store: Store) -> Job:
        await store.add_user(User(id=ANN, name="ann", role=Role.MEMBER, created_at=NOW))
        token = Token(id=TokenId("t"), user_id=ANN, name="laptop", digest=Digest("d"), created_at=NOW)
        await store.add_token(token)
        job = await ended(store, "mine", YOUNG)
        result = StepResult(cache_key=Digest("k"), user_id=ANN, job_id=job.id, outputs=None, created_at=NOW)
        await store.commit([], [result], label="test")
        return job

    async def _told(self, store: Store, user_id: UserId) -> dict[str, Sequence[Any]]:
        told: dict[str, list[Any]] = {}
        cursor: str | None = None
        while True:
            chapters, cursor = await store.about(user_id, cursor)
            for chapter in chapters:
                told.setdefault(chapter.name, []).extend(chapter.rows)
            if cursor is None:
                return dict(told)
