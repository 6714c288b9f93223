"""The REST API as a test wants it: a table of routes and their answers, behind real HTTP."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from doubles.http_server import Double, Handler, Request, serving

Routes = Mapping[str, Any]  # "GET /v1/jobs" -> JSON, (status, JSON), bytes, or a function of the request


@contextmanager
def api(routes: Routes) -> Iterator[Double]:
    def answer(request: Request, reply: Handler) -> None:
        key = f"{request.method} {request.path}"
        if key not in routes:
            reply.json({"error": "not_found", "message": f"no route {key}", "details": {}}, 404)
            return
        value = routes[key]
        if isinstance(value, Callable):  # type: ignore[arg-type]
            value = value(request)
        status, body = value if isinstance(value, tuple) else (200, value)
        if isinstance(body, bytes):
            reply.begin_chunks()
            reply.chunk(body)
            reply.end_chunks()
        else:
            reply.json(body, status)

    with serving(answer) as server:
        yield server


def job(**changes: Any) -> dict[str, Any]:
    """A running job as GET /v1/jobs/{id} shows it."""
    view = {
        "id": "019a8c3f-2b41-7000-8000-000000000001",
        "name": "resnet50",
        "status": "running",
        "job_type": "training",
        "framework": "pytorch_ddp",
        "execution_mode": "single_cluster",
        "selected": {
            "provider": "local",
            "region": "here",
            "backend": "local",
            "instance_type": "this-machine",
            "spot": False,
            "count": 2,
        },
        "cost": {"running_usd": 12.3456, "estimated_usd": 72.0},
        "timestamps": {
            "created_at": "2026-01-17T10:00:00Z",
            "started_at": "2026-01-17T10:01:30Z",
            "finished_at": None,
            "updated_at": "2026-01-17T10:05:00Z",
        },
        "desired": "run",
        "reason": None,
        "gpus": 8,
        "priority": 10,
        "progress": {"step": 1200, "total_steps": 4800, "fraction": 0.25, "at": "2026-01-17T10:05:00Z", "metrics": {}},
        "attempts": {"started": 1, "failures": 0, "losses": 0},
        "origin": None,
        "lineage": "019a8c3f-2b41-7000-8000-000000000001",
        "deadline": None,
        "budget_usd": 100.0,
        "user_id": "ada",
        "team": "vision",
        "project": None,
        "code_digest": None,
    }
    return view | changes


def brief(**changes: Any) -> dict[str, Any]:
    """The same as a row of GET /v1/jobs."""
    view = {
        "id": "019a8c3f-2b41-7000-8000-000000000001",
        "name": "resnet50",
        "status": "running",
        "reason": None,
        "user_id": "ada",
        "job_type": "training",
        "framework": "pytorch_ddp",
        "gpus": 8,
        "provider": "local",
        "region": "here",
        "cost_usd": 12.3456,
        "progress": 0.25,
        "created_at": "2026-01-17T10:00:00Z",
        "started_at": "2026-01-17T10:01:30Z",
        "finished_at": None,
    }
    return view | changes


def attempt(**changes: Any) -> dict[str, Any]:
    view = {
        "id": "attempt-1",
        "task_id": "task-1",
        "number": 0,
        "phase": "running",
        "outcome": None,
        "reason": None,
        "resume_step": None,
        "created_at": "2026-01-17T10:00:10Z",
        "started_at": "2026-01-17T10:01:30Z",
        "ended_at": None,
        "machines": [attempt_machine("i-1"), attempt_machine("i-2")],
        "ranks": [rank(0), rank(1)],
    }
    return view | changes


def attempt_machine(machine_id: str, **changes: Any) -> dict[str, Any]:
    view = {
        "machine_id": machine_id,
        "provider": "aws",
        "region": "us-east-1",
        "zone": "use1-az4",
        "instance_type": "p4d.24xlarge",
        "is_spot": True,
    }
    return view | changes


def rank(number: int, **changes: Any) -> dict[str, Any]:
    view = {
        "rank": number,
        "node_id": f"node-{number}",
        "node_rank": number,
        "local_rank": 0,
        "devices": ["0"],
        "state": "started",
        "exit_code": None,
        "signal": None,
        "reason": None,
        "started_at": "2026-01-17T10:01:30Z",
        "ended_at": None,
    }
    return view | changes


def costs(**changes: Any) -> dict[str, Any]:
    """GET /v1/jobs/{id}/costs: a machine that was taken and one that runs."""
    taken, alive = "i-0a1b2c3d4e5f60718", "i-0ffeeddccbbaa9988"
    view = {
        "job_id": "019a8c3f-2b41-7000-8000-000000000001",
        "at": "2026-01-17T12:05:00Z",
        **money("so_far", 12_345_678),
        **money("per_hour", 8_192_000),
        **money("posted", 4_096_000),
        **money("budget", 100_000_000),
        "remaining": {
            "basis": "progress",
            "hours": 3.0,
            "hours_high": 3.5,
            **money("likely", 24_576_000),
            **money("high", 28_672_000),
        },
        **money("useful", 10_345_678),
        **money("idle", 2_000_000),
        "idle_by": [{"use": "setup", **money("amount", 800_000)}, {"use": "boot", **money("amount", 1_200_000)}],
        **money("saved", 21_000_000),
        **money("unpriced", 0),
        "per_step_usd": 0.00123457,
        "per_sample_usd": None,
        "per_token_usd": 3.01e-07,
        "by_kind": [
            {"kind": "compute", **money("so_far", 12_200_000), **money("per_hour", 8_192_000)},
            {"kind": "storage", **money("so_far", 145_678), **money("per_hour", 71_000)},
        ],
        "machines": [
            machine(taken, "2026-01-17T10:00:00Z", "2026-01-17T11:00:07Z", 4_096_000, 0, is_estimate=True),
            machine(alive, "2026-01-17T11:05:00Z", None, 8_249_678, 8_192_000),
        ],
        "intervals": [
            interval(taken, "compute", "2026-01-17T10:00:00Z", "2026-01-17T10:20:00Z", 8_192_000, 2_730_667),
            interval(
                taken, "compute", "2026-01-17T10:20:00Z", "2026-01-17T11:00:07Z", 8_000_001, -12, is_estimate=True
            ),
            interval(alive, "compute", "2026-01-17T11:05:00Z", None, 8_192_000, 8_192_000),
            interval(alive, "storage", "2026-01-17T11:05:00Z", None, 80_000_000, 109_589, per_s=730 * 3600),
        ],
        "postings": [
            {
                "id": f"usage/aws/{taken}/compute/1768644000",
                "at": "2026-01-17T10:20:00Z",
                "memo": f"compute of {taken}: 1200 s at 8.192000 $ per 3600 s",
                "kind": "compute",
                "entries": [
                    {"account": "job:019a8c3f-2b41-7000-8000-000000000001", **money("amount", 2_730_667)},
                    {"account": "provider:aws", **money("amount", -2_730_667)},
                ],
            }
        ],
    }
    return view | changes


def money(name: str, microusd: int) -> dict[str, Any]:
    return {f"{name}_microusd": microusd, f"{name}_usd": microusd / 1_000_000}


def machine(id_: str, start: str, end: str | None, cost: int, per_hour: int, **changes: Any) -> dict[str, Any]:
    view = {
        "machine_id": id_,
        "provider": "aws",
        "region": "us-east-1",
        "order_id": "order-1",
        "lease_id": "lease-1",
        "started_at": start,
        "ended_at": end,
        "is_estimate": False,
        **money("so_far", cost),
        **money("per_hour", per_hour),
    }
    return view | changes


def interval(id_: str, kind: str, start: str, end: str | None, rate: int, cost: int, **changes: Any) -> dict[str, Any]:
    view = {
        "machine_id": id_,
        "provider": "aws",
        "kind": kind,
        "lease_id": "lease-1",
        "from_at": start,
        "to_at": end,
        **money("rate", rate),
        "per_s": 3600,
        **money("amount", cost),
        "is_estimate": False,
    }
    return view | changes


def a_budget(
    scope: str, name: str, period: str, limit: float, *, spent: float, reserved: float, per_hour: float
) -> dict[str, Any]:
    """As the API tells of it, half way through a month."""
    is_month, left = period == "month", max(limit - spent - reserved, 0.0)
    expected = spent + per_hour * 300 if is_month else None
    money = {"limit": limit, "spent": spent, "reserved": reserved, "left": left, "per_hour": per_hour}
    return {
        "id": ":".join(word for word in (scope, name, period) if word and (scope, word) != ("job", period)),
        "scope": scope,
        "name": name,
        "period": period,
        "when_spent": "stop" if scope == "job" else "pause",
        "thresholds": [0.5, 0.8, 0.95],
        "created_by": "ada",
        "created_at": "2026-11-02T08:00:00Z",
        "version": 1,
        "counts_from": "2026-11-01T00:00:00Z" if is_month else None,
        "ends_at": "2026-12-01T00:00:00Z" if is_month else None,
        **{f"{word}_usd": amount for word, amount in money.items()},
        **{f"{word}_microusd": round(amount * 1e6) for word, amount in money.items()},
        "runs_out_at": "2026-11-18T15:14:00Z" if per_hour else None,
        "expected_usd": expected,
        "expected_microusd": None if expected is None else round(expected * 1e6),
        "jobs": ["0192f3a4-5b6c-7d8e-9f00-112233445566"] if per_hour else [],
    }
