"""Plans and predictions. A part of StoreContract."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from crucible.model.change import born
from crucible.model.errors import InvariantBroken, StaleVersion
from crucible.model.ids import JobId
from crucible.model.job import JobStatus, JobStatusChanged, JobSubmitted
from crucible.model.record import Prediction
from crucible.model.units import MicroUsd
from crucible.ports.store import PredictionQuery, Store
from crucible.testing.specimens import LATER, NOW, a_job, step, submitted

BODY = {"chosen": {"price_usd": 3.5, "why": "cheapest – by far"}, "at": NOW, "rejections": [], "bound": None}


class PlanContract:
    async def test_a_plan_is_read_back_as_plain_values(self, store: Store) -> None:
        job, _ = await submitted(store)
        assert await store.plan(job.id) is None
        await store.save_plan(job.id, BODY, NOW)
        assert await store.plan(job.id) == BODY | {"at": "2026-01-01T12:00:00.123456+00:00"}

    async def test_the_last_plan_counts(self, store: Store) -> None:
        job, _ = await submitted(store)
        for number in range(3):
            await store.save_plan(job.id, {"number": number}, LATER)
        assert await store.plan(job.id) == {"number": 2}

    async def test_a_plan_of_no_job_is_refused(self, store: Store) -> None:
        with pytest.raises(InvariantBroken):
            await store.save_plan(JobId("nobody"), BODY, NOW)

    async def test_what_came_of_a_job_joins_what_was_expected(self, store: Store) -> None:
        job, _ = await submitted(store)
        assert await store.prediction(job.id) is None
        expected = Prediction(
            job_id=job.id,
            framework="pytorch",
            model_class="llm",
            gpu="H100",
            gpus=8,
            nodes=1,
            estimated_hours=2.5,
            estimated_cost=MicroUsd(70_000_000),
        )
        await store.save_prediction(expected)
        end = Prediction(job_id=job.id, actual_hours=2.75, actual_cost=MicroUsd(77_000_000), rate=1.5, ended_at=LATER)
        await store.save_prediction(end)
        both = replace(expected, actual_hours=2.75, actual_cost=MicroUsd(77_000_000), rate=1.5, ended_at=LATER)
        assert await store.prediction(job.id) == both
        assert list(await store.predictions(PredictionQuery())) == [both]

    async def test_only_jobs_that_ended_teach_the_newest_first(self, store: Store) -> None:
        ended = []
        for number, gpu in enumerate(("A100", "H100", "A100")):
            job, _ = await submitted(store, f"j{number}")
            at = NOW + timedelta(hours=number)
            ended.append(Prediction(job_id=job.id, framework="jax", team="ml", gpu=gpu, rate=2.0, ended_at=at))
            await store.save_prediction(ended[-1])
        open_job, _ = await submitted(store, "open")
        await store.save_prediction(Prediction(job_id=open_job.id, framework="jax", gpu="A100"))
        assert list(await store.predictions(PredictionQuery(framework="jax", gpu="A100"))) == [ended[2], ended[0]]
        assert list(await store.predictions(PredictionQuery(team="ml", limit=1))) == [ended[2]]
        assert list(await store.predictions(PredictionQuery(model_class="llm"))) == []

    async def test_what_is_expected_is_written_with_the_job(self, store: Store) -> None:
        job = a_job("expected")
        expected = Prediction(job_id=job.id, gpu="H100", estimated_hours=2.0, origin="reckoned", book_hours=1.5)
        change = [born(job, JobSubmitted(NOW))]
        await store.submit(change, idempotency_key=None, user_id=job.user_id, plan='{"tasks": 1}', records=[expected])
        assert await store.prediction(job.id) == expected
        assert await store.plan(job.id) == {"tasks": 1}

    async def test_what_came_is_written_with_the_end_or_not_at_all(self, store: Store) -> None:
        job, _ = await submitted(store)
        end = Prediction(job_id=job.id, status="cancelled", attempts=0, actual_cost=MicroUsd(0), ended_at=LATER)
        _, change = step(job, JobStatusChanged(LATER, JobStatus.CANCELLED))
        await store.commit([change], [end], label="end")
        assert await store.prediction(job.id) == end
        with pytest.raises(StaleVersion):
            await store.commit([change], [replace(end, attempts=7)], label="end")
        assert await store.prediction(job.id) == end

    async def test_jobs_that_completed_and_teach_are_found_among_the_others(self, store: Store) -> None:
        rows = [("completed", 1.0), ("completed", None), ("failed", 1.0)]
        for number, (status, hours) in enumerate(rows):
            job, _ = await submitted(store, f"j{number}")
            await store.save_prediction(
                Prediction(job_id=job.id, status=status, book_hours=hours, ended_at=NOW + timedelta(hours=number))
            )

        async def found(**query: Any) -> list[str]:
            return [one.job_id for one in await store.predictions(PredictionQuery(**query))]

        assert await found(status="completed") == ["j1", "j0"]
        assert await found(status="completed", teaches=True) == ["j0"]
        assert await found(teaches=True) == ["j2", "j0"]
