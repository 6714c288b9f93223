"""What tasks left behind, and jobs that are given it. A part of StoreContract."""

from dataclasses import replace
from typing import Any

import pytest

from crucible.model.account import Sight
from crucible.model.change import born
from crucible.model.dataset import Dataset
from crucible.model.errors import UnknownInput
from crucible.model.ids import Digest, JobId, UserId
from crucible.model.job import JobSubmitted
from crucible.model.outputs import Input, Output, OutputTotals
from crucible.model.task import TaskEnded, TaskPhase
from crucible.ports.store import Store
from crucible.testing.specimens import LATER, NOW, a_job, step, submitted
from crucible.testing.store_dataset_contract import IMAGES, claimed

WEIGHTS, OTHER = Digest("c" * 64), Digest("d" * 64)
URI = "s3://bucket/outputs/j1"


def an_output(task_index: int = 0, job_id: str = "j1", digest: Digest = WEIGHTS) -> Output:
    return Output(
        job_id=JobId(job_id),
        task_index=task_index,
        digest=digest,
        uri=URI,
        size_bytes=2**40,
        files=7,
        created_at=NOW,
    )


async def left(store: Store, *outputs: Output, id_: str = "j1", tasks: int = 3, user: str = "ann", **more: Any) -> None:
    """A job whose tasks have ended and named what they left."""
    _, made = await submitted(store, id_, tasks, user_id=UserId(user), **more)
    for one in outputs:
        ended = TaskEnded(LATER, TaskPhase.SUCCEEDED, None, outputs=one.digest)
        await store.commit([step(made[one.task_index], ended)[1]], [one], label="test")


class OutputContract:
    async def test_what_tasks_left_is_listed_in_their_order_page_by_page(self, store: Store) -> None:
        found = [an_output(0), an_output(2, digest=OTHER)]
        await left(store, *reversed(found))
        assert list(await store.outputs(JobId("j1"))) == found
        assert list(await store.outputs(JobId("j1"), limit=1)) == found[:1]
        assert list(await store.outputs(JobId("j1"), after=0)) == found[1:]
        assert await store.output(JobId("j1"), 2) == found[1] and await store.output(JobId("j1"), 1) is None
        assert await store.output_totals(JobId("j1")) == OutputTotals(tasks=2, files=14, size_bytes=2**41)

    async def test_what_a_task_does_not_name_in_the_end_does_not_count(self, store: Store) -> None:
        await submitted(store)
        await store.commit((), [an_output()], label="test")
        assert await store.outputs(JobId("j1")) == () and await store.output(JobId("j1"), 0) is None
        assert await store.output_of_tree(WEIGHTS, None) is None
        assert (await store.output_totals(JobId("j1"))).tasks == 0
        assert await store.kept_outputs(URI, [WEIGHTS, OTHER]) == {WEIGHTS}

    async def test_the_last_attempt_s_tree_takes_the_place_of_an_earlier_one(self, store: Store) -> None:
        _, (task,) = await submitted(store)
        await store.commit((), [an_output(digest=OTHER)], label="test")
        ended = TaskEnded(LATER, TaskPhase.SUCCEEDED, None, outputs=WEIGHTS)
        await store.commit([step(task, ended)[1]], [an_output()], label="test")
        assert await store.outputs(JobId("j1")) == (an_output(),)
        assert await store.kept_outputs(URI, [WEIGHTS, OTHER]) == {WEIGHTS}
        assert await store.kept_outputs("s3://elsewhere", [WEIGHTS]) == frozenset()

    async def test_a_tree_is_found_among_a_user_s_own_jobs(self, store: Store) -> None:
        await left(store, an_output())
        newer = replace(an_output(job_id="j2"), created_at=LATER)
        await left(store, newer, id_="j2", user="bob")
        assert await store.output_of_tree(WEIGHTS, Sight(UserId("ann"), frozenset())) == an_output()
        assert await store.output_of_tree(WEIGHTS, Sight(UserId("eve"), frozenset())) is None
        assert await store.output_of_tree(WEIGHTS, None) == newer

    async def test_a_tree_is_found_among_the_jobs_of_a_team(self, store: Store) -> None:
        await left(store, an_output(), team="vision")
        assert await store.output_of_tree(WEIGHTS, Sight(UserId("eve"), frozenset({"vision", "speech"}))) == an_output()
        assert await store.output_of_tree(WEIGHTS, Sight(UserId("eve"), frozenset({"speech"}))) is None

    async def test_a_job_keeps_what_it_was_given(self, store: Store) -> None:
        await left(store, an_output())
        given = Input(name="weights", digest=WEIGHTS, uri=URI, size_bytes=2**40, home="aws/us-east-1")
        job = a_job("j2", inputs=(given,))
        await store.submit([born(job, JobSubmitted(NOW))], idempotency_key=None, user_id=UserId("ann"))
        assert (await store.job(JobId("j2"))).inputs == (given,)

    async def test_no_job_is_given_a_tree_that_is_not_there(self, store: Store) -> None:
        given = Input(name="weights", digest=WEIGHTS, uri=URI, size_bytes=1, home="aws/")
        new = [born(a_job(inputs=(given,)), JobSubmitted(NOW))]
        with pytest.raises(UnknownInput, match="weights was removed"):
            await store.submit(new, idempotency_key=None, user_id=UserId("ann"))

    async def test_a_dataset_that_a_job_has_as_its_input_stays(self, store: Store) -> None:
        claim = await claimed(store)
        images: Dataset = IMAGES
        await store.save_dataset(images, claim=claim)
        given = Input(name="images", digest=images.digest, uri=images.uri, size_bytes=1, home="aws/")
        new = [born(a_job(inputs=(given,)), JobSubmitted(NOW))]
        await store.submit(new, idempotency_key=None, user_id=UserId("ann"))
        assert await store.dataset_jobs(images.digest) == ("j1",)
