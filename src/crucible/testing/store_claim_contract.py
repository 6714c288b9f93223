"""Claims: one holder at a time, and no writing for whoever lost it. A part of StoreContract."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from crucible.model.errors import StaleClaim
from crucible.model.job import JobReasonChanged
from crucible.ports.store import Claim, Store
from crucible.testing.specimens import NOW, step, submitted

TTL = timedelta(seconds=30)


class ClaimContract:
    async def test_one_worker_holds_a_claim(self, store: Store) -> None:
        claims = await asyncio.gather(*(store.claim("cycle", f"w{number}", TTL) for number in range(8)))
        assert len([claim for claim in claims if claim]) == 1
        assert await store.claim("another", "w9", TTL)

    async def test_a_claim_passes_on_when_it_expires_and_its_fence_grows(self, store: Store) -> None:
        first = await held(store, "cycle", "slow", timedelta(milliseconds=20))
        second = await until(lambda: store.claim("cycle", "quick", TTL))
        assert second.fence > first.fence
        assert not await store.renew(first, TTL)
        assert await store.renew(second, TTL)

    async def test_a_released_claim_is_free_at_once_and_its_fence_grows(self, store: Store) -> None:
        first = await held(store, "cycle", "w1", TTL)
        await store.release(first)
        second = await held(store, "cycle", "w2", TTL)
        assert second.fence > first.fence
        await store.release(first)  # late, and no longer its business
        assert await store.claim("cycle", "w3", TTL) is None

    async def test_a_renewed_claim_lasts(self, store: Store) -> None:
        claim = await held(store, "cycle", "w1", timedelta(milliseconds=20))
        assert await store.renew(claim, TTL)
        await asyncio.sleep(0.05)
        assert await store.claim("cycle", "w2", TTL) is None

    async def test_a_commit_under_a_lost_claim_writes_nothing(self, store: Store) -> None:
        job, _ = await submitted(store)
        _, change = step(job, JobReasonChanged(NOW, "late"))
        lost = await held(store, "task", "slow", timedelta(milliseconds=20))
        await until(lambda: store.claim("task", "quick", TTL))
        with pytest.raises(StaleClaim, match="task"):
            await store.commit([change], label="test", claim=lost)
        assert await store.job(job.id) == job

    async def test_a_commit_under_a_claim_that_nobody_took_is_written(self, store: Store) -> None:
        job, _ = await submitted(store)
        after, change = step(job, JobReasonChanged(NOW, "in time"))
        claim = await held(store, "task", "slow", timedelta(milliseconds=1))
        await asyncio.sleep(0.01)
        await store.commit([change], label="test", claim=claim)
        assert await store.job(job.id) == after
        await store.release(claim)
        with pytest.raises(StaleClaim):
            await store.commit([step(after, JobReasonChanged(NOW, "more"))[1]], label="test", claim=claim)


async def held(store: Store, name: str, owner: str, ttl: timedelta) -> Claim:
    claim = await store.claim(name, owner, ttl)
    assert claim is not None
    return claim


async def until(ask: Callable[[], Awaitable[Claim | None]]) -> Claim:
    async with asyncio.timeout(10):
        while True:
            claim = await ask()
            if claim is not None:
                return claim
            await asyncio.sleep(0.005)
