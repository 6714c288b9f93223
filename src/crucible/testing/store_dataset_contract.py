"""Datasets by name and copies of their trees. A part of StoreContract."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from crucible.core.job import evolve
from crucible.model.change import born, changed
from crucible.model.dataset import Dataset, DatasetCopy, Pin
from crucible.model.errors import Conflict, StaleClaim, StaleVersion, UnknownDataset
from crucible.model.ids import Digest, JobId, UserId
from crucible.model.job import JobStatus, JobStatusChanged, JobSubmitted
from crucible.model.ledger import ChargeKind, Entry, Posting
from crucible.model.units import MicroUsd
from crucible.ports.store import Claim, JobQuery, Store
from crucible.testing.specimens import LATER, NOW, a_job

OLD, NEW = Digest("a" * 64), Digest("b" * 64)
IMAGES = Dataset(
    name="images",
    digest=OLD,
    uri="s3://bucket/datasets",
    region="aws/us-east-1",
    size_bytes=2**41,
    files=12,
    user_id=UserId("ann"),
    created_at=NOW,
)
COPY = DatasetCopy(digest=OLD, place="aws/eu-west-1", uri="s3://europe/datasets", size_bytes=2**41, created_at=NOW)


async def claimed(store: Store) -> Claim:
    claim = await store.claim("datasets", "me", timedelta(seconds=60))
    assert claim is not None
    return claim


def a_posting(job_id: JobId) -> Posting:
    entries = (Entry(f"job:{job_id}", MicroUsd(7)), Entry("provider:aws", MicroUsd(-7)))
    return Posting(id="transfer/x", at=NOW, memo="moved", job_id=job_id, kind=ChargeKind.TRANSFER, entries=entries)


class DatasetContract:
    async def test_a_dataset_is_found_by_its_name_and_by_its_tree(self, store: Store) -> None:
        await store.save_dataset(IMAGES, claim=await claimed(store))
        assert await store.dataset("images") == IMAGES == await store.dataset(f"images@{OLD}")
        assert await store.dataset(f"images@{NEW}") is None and await store.dataset("other") is None
        assert await store.datasets() == (IMAGES,)

    async def test_the_same_again_changes_nothing(self, store: Store) -> None:
        claim = await claimed(store)
        for one in (IMAGES, replace(IMAGES, created_at=LATER)):
            await store.save_dataset(one, claim=claim)
        assert await store.datasets() == (IMAGES,)

    async def test_a_name_that_is_given_away_keeps_what_it_meant(self, store: Store) -> None:
        claim = await claimed(store)
        newer = replace(IMAGES, digest=NEW, created_at=LATER)
        for one in (IMAGES, newer):
            await store.save_dataset(one, claim=claim)
        former = replace(IMAGES, name=f"images@{OLD}")
        assert await store.datasets() == (newer, former)
        assert await store.dataset(f"images@{OLD}") == former
        await store.save_dataset(replace(IMAGES, created_at=LATER), claim=claim)
        assert [one.digest for one in await store.datasets()] == [OLD, NEW]

    async def test_nothing_is_removed_that_a_job_needs(self, store: Store) -> None:
        claim = await claimed(store)
        await store.save_dataset(IMAGES, claim=claim)
        await store.save_dataset(replace(IMAGES, name="unused", digest=NEW), claim=claim)
        pin = Pin(name="images", digest=OLD, size_bytes=2**41, home="aws/us-east-1")
        job = a_job(dataset_uri=pin.uri)
        await store.commit([born(job, JobSubmitted(NOW))], label="test")
        assert await store.dataset_jobs(OLD) == ("j1",) and await store.dataset_jobs(NEW) == ()
        with pytest.raises(Conflict, match="images is needed by j1"):
            await store.remove_datasets(["unused", "images"], claim=claim)
        assert len(await store.datasets()) == 2
        ended = changed(job, (JobStatusChanged(LATER, JobStatus.CANCELLED),), evolve)[1]
        await store.commit(ended, label="test")
        assert await store.dataset_jobs(OLD) == ()
        await store.remove_datasets(["unused", "images", "never there"], claim=claim)
        assert await store.datasets() == ()

    async def test_a_tree_that_has_another_name_too_may_lose_one(self, store: Store) -> None:
        claim = await claimed(store)
        for name in ("images", "pictures"):
            await store.save_dataset(replace(IMAGES, name=name), claim=claim)
        pin = Pin(name="images", digest=OLD, size_bytes=1, home="aws/")
        await store.commit([born(a_job(dataset_uri=pin.uri), JobSubmitted(NOW))], label="test")
        await store.remove_datasets(["images"], claim=claim)
        with pytest.raises(Conflict, match="pictures"):
            await store.remove_datasets(["pictures"], claim=claim)

    async def test_no_job_is_given_what_was_removed_meanwhile(self, store: Store) -> None:
        pin = Pin(name="images", digest=OLD, size_bytes=1, home="aws/")
        new = [born(a_job(dataset_uri=pin.uri), JobSubmitted(NOW))]
        with pytest.raises(UnknownDataset, match="images was removed"):
            await store.submit(new, idempotency_key="k", user_id=UserId("ann"))
        assert (await store.jobs(JobQuery())).items == ()
        await store.save_dataset(IMAGES, claim=await claimed(store))
        assert await store.submit(new, idempotency_key="k", user_id=UserId("ann")) == "j1"

    async def test_of_a_job_and_a_removal_at_the_same_time_one_gives_way(self, store: Store) -> None:
        claim = await claimed(store)
        for number in range(20):
            await store.save_dataset(IMAGES, claim=claim)
            pin = Pin(name="images", digest=OLD, size_bytes=1, home="aws/")
            job = a_job(f"j{number}", dataset_uri=pin.uri)
            submitting = store.submit([born(job, JobSubmitted(NOW))], idempotency_key=None, user_id=UserId("ann"))
            removing = store.remove_datasets(["images"], claim=claim)
            both = await asyncio.gather(submitting, removing, return_exceptions=True)
            assert sum(isinstance(one, (UnknownDataset, Conflict)) for one in both) == 1, both
            is_needed = bool(await store.dataset_jobs(OLD))
            assert is_needed == bool(await store.datasets())
            if is_needed:
                ended = changed(job, (JobStatusChanged(LATER, JobStatus.CANCELLED),), evolve)[1]
                await store.commit(ended, label="test")

    async def test_a_copy_and_what_it_cost_are_written_together_and_once(self, store: Store) -> None:
        await store.commit([born(a_job(), JobSubmitted(NOW))], label="test")
        posting = a_posting(JobId("j1"))
        await store.commit((), (COPY, posting), label="test")
        again = replace(posting, id="transfer/y")
        with pytest.raises(StaleVersion):
            await store.commit((), (again, COPY), label="test")
        assert await store.job_postings(JobId("j1")) == (posting,)
        assert await store.dataset_copies() == (COPY,) == await store.dataset_copies(OLD)
        assert await store.dataset_copies(NEW) == ()
        await store.remove_dataset_copies(OLD, claim=await claimed(store))
        assert await store.dataset_copies() == ()

    async def test_who_has_lost_the_claim_changes_nothing(self, store: Store) -> None:
        lost = await claimed(store)
        await store.release(lost)
        await claimed(store)
        with pytest.raises(StaleClaim):
            await store.save_dataset(IMAGES, claim=lost)
        with pytest.raises(StaleClaim):
            await store.remove_datasets(["images"], claim=lost)
        assert await store.datasets() == ()
