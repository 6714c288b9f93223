"""What the CLI draws, as text, at the widths people have. To write the files anew after a change of words, run with
CRUCIBLE_REWRITE_GOLDEN=1 and review the diff."""

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from crucible.cli.views.accounts import (
    audit_table,
    member_table,
    project_table,
    seal_lines,
    team_table,
    token_table,
    user_table,
)
from crucible.cli.views.accuracy import accuracy_note, accuracy_table, trend_table
from crucible.cli.views.budgets import budget_line, budget_page, budget_table
from crucible.cli.views.costs import cost_page, interval_table
from crucible.cli.views.events import event_lines
from crucible.cli.views.hosts import host_table
from crucible.cli.views.jobs import job_page, job_table
from crucible.cli.views.outputs import output_table
from crucible.cli.views.plans import plan_lines
from crucible.cli.views.reasons import explain
from crucible.cli.views.records import checkpoint_table, metric_table, node_table, pool_table, verdict
from crucible.cli.views.retention import kept_table, ran_lines, retention_table
from crucible.cli.views.secrets import rotated, secret_table
from crucible.cli.views.shards import shard_page
from crucible.cli.views.templates import template_page, template_table
from crucible.spec.template import read_template
from doubles.api_server import a_budget, attempt, brief, costs, job, rank

HERE = Path(__file__).parent / "cli"
NOW = datetime(2026, 1, 17, 12, 5, tzinfo=UTC)

RETENTION: Any = [
    {"what": "logs", "days": 90, "set_by": "default", "removed": 18356, "ran_at": "2026-01-17T11:30:00Z"},
    {"what": "events", "days": 365, "set_by": "server", "removed": 0, "ran_at": None},
    {"what": "jobs", "days": 730, "set_by": "default", "removed": 6648, "ran_at": "2026-01-17T11:30:00Z"},
    {"what": "audit", "days": None, "set_by": "admin", "removed": 0, "ran_at": None},
]
DRY_RUN: Any = {
    "dry_run": True,
    "removed": {"logs": 10000, "events": 13315, "jobs": 0},
    "at_least": ["logs"],
    "freed_bytes": 12_972_032,
    "is_done": False,
}
KEPT: Any = [{"id": "019a8c3f-2b41-7000-8000-000000000001", "user_id": "ada", "at": "2026-01-14T12:00:00Z"}]

COUNTS: Any = {
    "shards": 400,
    "waiting": 229,
    "leased": 3,
    "done": 168,
    "items": 10_000,
    "items_done": 4_200,
    "items_failed": 12,
    "fraction": 0.42,
    "items_per_s": 35.117,
    "eta_s": 165.2,
    "usd_per_item": 0.000311,
    "output_bytes": 1_843_200,
    "first_error": "ValueError: cannot identify image file 'x\x1b[31m.jpg'",
}
_SHARD: Any = {
    "attempt_id": "a1",
    "leased_at": "2026-01-17T12:04:20Z",
    "size_bytes": 0,
    "seconds": 0.0,
    "done_at": None,
}
SHARDS: Any = [
    {**_SHARD, "number": 0, "first": 0, "items": 25, "state": "done", "tries": 0, "failed": 2}
    | {
        "size_bytes": 11_264,
        "seconds": 0.71,
        "errors": [{"index": 3, "reason": "ValueError: cannot identify image file"}],
    },
    {**_SHARD, "number": 1, "first": 25, "items": 25, "state": "leased", "tries": 1, "failed": 0, "errors": []},
    {**_SHARD, "number": 2, "first": 50, "items": 1, "state": "waiting", "tries": 0, "failed": 0, "errors": []},
]
JOBS: Any = [
    brief(),
    brief(
        id="019a8c3f-2b42-7000-8000-000000000002",
        name="a-very-long-name-that-somebody-gave-to-an-ablation-over-seeds-and-rates",
        status="pending",
        reason="waits for 8 GPUs: 2 of 8 are free on local/here; another job holds 6",
        gpus=8,
        provider=None,
        region=None,
        cost_usd=0.0,
        progress=None,
        started_at=None,
    ),
    brief(
        id="019a8c3f-2b43-7000-8000-000000000003",
        name="Größe-学習",
        status="failed",
        reason="rank 1 exited with 1\x1b[31m",
        cost_usd=0.0421,
        progress=0.999,
        created_at="2026-01-14T12:05:00Z",
        started_at="2026-01-14T12:05:10Z",
        finished_at="2026-01-15T13:05:10Z",
    ),
]

FAILED: Any = job(
    status="failed",
    reason="rank 1 exited with 1 after 3 retries",
    origin="019a8c3f-0000-7000-8000-000000000009",
    timestamps=job()["timestamps"] | {"finished_at": "2026-01-17T11:02:03Z"},
)
COMPLETED: Any = job(
    status="completed",
    timestamps=job()["timestamps"] | {"finished_at": "2026-01-17T11:14:00Z"},
    prediction={
        "estimated_hours": 1.0,
        "actual_hours": 1.2,
        "estimated_cost_usd": 10.0,
        "actual_cost_usd": 12.3456,
    },
)
TEMPLATES: Any = [
    {
        "name": "fine-tune",
        "description": "Fine-tune a model on a text, on however many GPUs there are, and go on from checkpoints",
        "user": None,
        "created_at": None,
        "parameters": [{}] * 12,
        "problem": None,
    },
    {
        "name": "mine",
        "description": "Says it\x1b[31m",
        "user": "ann",
        "created_at": "2026-01-14T12:05:00Z",
        "parameters": [],
        "problem": None,
    },
    {
        "name": "old",
        "description": "",
        "user": "ann",
        "created_at": "2026-01-14T12:05:00Z",
        "parameters": [],
        "problem": "the template is not valid: template.name: is missing",
    },
]
TEMPLATE = read_template((Path(__file__).parent / "templates" / "jobs" / "template.yaml").read_text())
BUDGETS: Any = [
    a_budget("team", "vision", "month", 500.0, spent=401.5, reserved=12.345678, per_hour=30.5),
    a_budget("job", "0192f3a4-5b6c-7d8e-9f00-112233445566", "once", 20.0, spent=3.25, reserved=0.0, per_hour=0.0),
    a_budget("server", "", "month", 20_000.0, spent=20_000.25, reserved=0.0, per_hour=0.0),
]
COSTS: Any = costs()
COSTS_OVER: Any = costs(remaining=None, budget_usd=None, per_hour_usd=0.0, machines=costs()["machines"][:1])
FAILED_ATTEMPTS: Any = [
    attempt(phase="ended", outcome="lost", reason="node-1 is gone", ended_at="2026-01-17T10:20:00Z"),
    attempt(
        number=1,
        phase="ended",
        outcome="failed",
        started_at="2026-01-17T10:21:00Z",
        ended_at="2026-01-17T11:02:03Z",
        ranks=[rank(0, state="exited", signal=15), rank(1, state="exited", exit_code=1)],
        reason="rank 1 exited with 1",
    ),
]
OFFER = {
    "provider": "aws",
    "region": "us-east-1",
    "zone": "use1-az4",
    "backend": "vm",
    "instance_type": "p4d.24xlarge",
    "gpu": "A100-40GB",
    "gpus": 8,
    "market": "spot",
    "is_spot": True,
    "price_per_hour_usd": 9.5,
    "free_gpus": None,
}
CHOSEN = OFFER | {
    "count": 2,
    "parts": [OFFER | {"count": 2}],
    "is_enabled": True,
    "total_per_hour_usd": 19.0,
    "start_s": 180,
    "staging_hours": 0.5,
    "estimated_hours": 6.5,
    "estimated_cost_usd": 131.25,
    "cost_p50_usd": 123.5,
    "cost_p90_usd": 152.0,
    "egress_usd": 4.2,
    "on_demand_cost_usd": 390.0,
    "saving": 0.66,
    "interruptions": 0.31,
    "checkpoint_interval_s": 1530,
    "reliability": 0.97,
    "why": "best balance of cost, time and risk of 312 that fit",
}
FIRM = OFFER | {"market": "on-demand", "is_spot": False, "price_per_hour_usd": 22.0}
MIXED = CHOSEN | {
    "parts": [OFFER | {"count": 1}, FIRM | {"count": 1}],
    "total_per_hour_usd": 31.5,
    "cost_p50_usd": 205.0,
    "cost_p90_usd": 220.0,
    "reliability": 0.995,
    "why": "+58% cost, 2% more likely within the limits",
}
OTHER = CHOSEN | {
    "provider": "gcp",
    "region": "us-central1",
    "zone": "us-central1-a",
    "instance_type": "a2-highgpu-8g",
    "is_enabled": False,
    "parts": [FIRM | {"count": 2}],
    "cost_p50_usd": 286.0,
    "cost_p90_usd": 286.0,
    "estimated_cost_usd": 286.0,
    "reliability": 1.0,
    "why": "+118% cost",
}
REJECTED = OFFER | {"rule": "gpu_memory", "field": "resources.gpu_memory", "offers": 12_553}
PLAN: Any = {
    "chosen": CHOSEN,
    "alternatives": [MIXED],
    "others": [OTHER],
    "runnable": CHOSEN,
    "rejections": [
        REJECTED | {"instance_type": f"small-{i}", "reason": "needs 40 GB per GPU, it has 16"} for i in range(7)
    ],
    "reason": None,
    "strategy": "balanced",
    "considered": 17_966,
    "feasible": 312,
    "bound": 0.0,
    "price_age_s": 7_430_400,
    "is_price_stale": True,
    "catalog_rows": 17_966,
    "plan_cpu_ms": 4.2,
    "why_not": [
        OFFER | {"instance_type": "p5.48xlarge", "rule": "budget", "reason": "would cost more than the budget"}
    ],
    "notes": ["6 h on 8 × A100-80GB, by the speed of GPUs for all kinds of models"],
    "warnings": ["constraints.deadline has passed"],
}
NOT_ENABLED: Any = PLAN | {
    "chosen": OTHER,
    "alternatives": [],
    "others": [],
    "runnable": None,
    "rejections": [REJECTED | {"offers": 1, "reason": "needs 40 GB per GPU, it has 16"}],
    "why_not": [],
    "warnings": [],
}
NO_PLACE: Any = {
    "chosen": None,
    "alternatives": [],
    "rejections": [OFFER | {"reason": "2 of 4 GPUs are free", "offers": 1}],
    "reason": "every machine that fits is taken",
    "warnings": [],
}
EVENTS: Any = [
    {"seq": 1, "at": "2026-01-17T10:00:00Z", "from": None, "to": "pending"},
    {"seq": 2, "at": "2026-01-17T10:00:01Z", "from": "pending", "to": "scheduled", "reason": "the cheapest that fits"},
    {"seq": 3, "at": "2026-01-17T10:00:02Z", "kind": "lease", "id": "lease-1", "type": "LeaseStarted", "body": {}},
]
POINTS: Any = [
    {"attempt": 0, "rank": r, "n": i, "t": 1000 * i, "step": 100 * i, "values": {"loss": 2.5 / (i + 1), "lr": 1e-4}}
    for i in range(3)
    for r in range(2)
]
POINTS.append({"attempt": 0, "rank": 0, "n": 3, "t": 3000, "step": None, "values": {"accuracy": None}})
CHECKPOINTS: Any = [
    {
        "step": 100,
        "uri": "file:///c/step-000000100",
        "size_bytes": 1536,
        "created_at": "2026-01-17T12:04:00Z",
        "attempt": 0,
        "shards": 1,
        "kept_in": "folder",
        "is_latest": False,
    },
    {
        "step": 2000,
        "uri": "s3://bucket/3f0c6a3e-7f1e-4d2b-9a55-0d6a5a2f7a10/0/manifests/00001-00000-0123456789abcdef.json",
        "size_bytes": 5 << 30,
        "created_at": "2026-01-17T12:05:00Z",
        "attempt": 1,
        "shards": 16,
        "kept_in": "storage",
        "is_latest": True,
    },
]
OUTPUTS: Any = [
    {"task": 0, "digest": "ab" * 32, "size_bytes": 6, "files": 1, "created_at": "2026-01-17T12:00:00Z"},
    {"task": 4711, "digest": "cd" * 32, "size_bytes": 7 << 40, "files": 400000, "created_at": "2026-01-10T12:00:00Z"},
]
VERIFIED: Any = [
    {"step": 100, "size_bytes": 1536, "checked_bytes": 1536, "is_valid": True, "problems": []},
    {
        "step": 2000,
        "size_bytes": 5 << 30,
        "checked_bytes": 5 << 30,
        "is_valid": False,
        "problems": ["there is no parts/00001-00000-0123456789abcdef/00003, which holds model.bin"],
    },
]
TOKENS: Any = [
    {"id": "token-1", "name": "laptop", "user_id": "ada", "created_at": "2026-01-01T00:00:00Z"},
    {
        "id": "token-2",
        "name": "ci",
        "user_id": "ada",
        "created_at": NOW.isoformat(),
        "expires_at": "2026-02-01T00:00:00Z",
        "grants": ["jobs", "read"],
    },
    {"id": "token-3", "name": "old", "user_id": "bob", "created_at": NOW.isoformat(), "revoked_at": NOW.isoformat()},
]
USERS: Any = [
    {"id": "ada", "name": "ada", "role": "admin", "kind": "person", "created_at": "2025-11-01T00:00:00Z"}
    | {"disabled_at": None, "teams": {}},
    {"id": "bob", "name": "bob", "role": "member", "kind": "person", "created_at": "2026-01-01T00:00:00Z"}
    | {"disabled_at": NOW.isoformat(), "teams": {"vision": "manager", "speech": "member"}},
    {"id": "vision-ci", "name": "vision-ci", "role": "member", "kind": "service", "created_at": NOW.isoformat()}
    | {"disabled_at": None, "teams": {"vision": "member"}},
]
TEAMS: Any = [
    {"name": "vision", "role": "manager", "members": 12, "projects": ["cats", "imagenet"]},
    {"name": "speech", "role": "viewer", "members": 1, "projects": []},
]
MEMBERS: Any = [
    {"user_id": "ada", "role": "manager", "created_at": "2025-11-01T00:00:00Z"},
    {"user_id": "vision-ci", "role": "member", "created_at": NOW.isoformat()},
]
PROJECTS: Any = [{"name": "cats", "team": "vision", "created_by": "ada", "created_at": "2026-01-10T00:00:00Z"}]
AUDIT: Any = [
    {"seq": 4711, "at": "2026-01-17T12:04:59Z", "user_id": "ada", "action": "team.member.set"}
    | {"subject": "team:vision", "details": {"user": "bob", "role": "manager"}},
    {"seq": 4710, "at": "2026-01-16T08:00:00Z", "user_id": "vision-ci", "action": "job.submit"}
    | {"subject": "job:0198c2f7-aaaa-7bbb-8ccc-0123456789ab", "details": {"name": "train \x1b[31mred"}},
    {"seq": 9, "at": "2026-01-01T08:00:00Z", "user_id": "ada", "action": "token.create"}
    | {"subject": "token:token-2", "details": {"user": "bob", "grants": ["jobs"], "disabled": False}},
]
NODES: Any = [
    {"id": "node-1", "provider": "local", "region": "here", "state": "active", "devices": ["0", "1"], "job_id": "j"}
]
POOLS: Any = [
    {"provider": "local", "region": "local", "zone": "", "gpu": "H100", "gpus": 8, "free": 8},
    {"provider": "onprem", "region": "onprem", "zone": "rack-1", "gpu": "A100", "gpus": 16, "free": 14},
]
SECRETS: Any = [
    {"name": name, "owner_kind": kind, "owner": owner, "version": version, "set_by": by, "set_at": at, "used_at": used}
    for name, kind, owner, version, by, at, used in (
        (
            "GCP_SERVICE_ACCOUNT_KEY_OF_THE_IMAGENET_PROJECT",
            "project",
            "imagenet",
            12,
            "ada",
            "2025-12-01T10:00:00Z",
            None,
        ),
        ("WANDB_API_KEY", "team", "vision", 1, "ada", "2026-01-17T11:00:00Z", "2026-01-17T11:59:00Z"),
        ("HF_TOKEN", "user", "grace", 3, "grace", "2026-01-17T11:59:50Z", None),
    )
]
ROTATED: Any = {"key_id": "1feb2e6eb5525938", "secrets": 2, "forgotten": ["b41de28878439950"], "damaged": ["user:a/B"]}
HOURS = {"count": 12, "median_error": 0.081, "p90_error": 0.274, "bias": -0.031, "within": 0.75, "goal": 0.15}
ACCURACY: Any = {
    "jobs": 14,
    "since": "2025-12-01T10:00:00Z",
    "overall": {"key": {}, "hours": HOURS, "cost": HOURS | {"count": 3, "bias": 0.2}, "within_range": 0.9},
    "groups": [
        {"key": {"gpu": "H100-SXM", "model_class": "llm"}, "hours": HOURS | {"count": 9}, "cost": None},
        {
            "key": {"gpu": "L4", "model_class": "vision/inference"},
            "hours": HOURS | {"count": 3, "within": 0.0},
            "cost": None,
        },
    ],
    "trend": [
        {"key": {"week": "2025-12-01"}, "hours": HOURS | {"count": 5, "within": 0.4}, "cost": None},
        {"key": {"week": "2025-12-08"}, "hours": HOURS | {"count": 7, "within": 1.0}, "cost": None},
    ],
}
NOTHING_TO_COMPARE: Any = {
    "jobs": 2,
    "since": "2025-12-01T10:00:00Z",
    "overall": {"key": {}, "hours": None, "cost": None},
    "groups": [],
    "trend": [],
}

A100 = {"name": "NVIDIA A100-SXM4-80GB", "uuid": "GPU-1", "mig": []}
CUT = {**A100, "mig": [{"profile": "3g.40gb", "uuid": "MIG-1"}, {"profile": "3g.40gb", "uuid": "MIG-2"}]}
HOSTS = [
    {
        "name": name,
        "address": "10.0.0.7",
        "user": user,
        "port": port,
        "zone": "rack-1",
        "use": use,
        "state": state,
        "reachable": problem is None,
        "reason": problem or reason,
        "machines": machines,
        "facts": facts,
    }
    for name, user, port, use, state, problem, reason, machines, facts in (
        ("gpu1", "ann", None, "exclusive", "ready", None, None, 1, {"gpus": [A100] * 8}),
        ("gpu2", None, 2222, "shared", "draining", None, "new fans", 2, {"gpus": [CUT, A100]}),
        ("gpu3", None, None, "exclusive", "ready", "no answer within 5 s", None, 0, {"gpus": [A100]}),
        ("gpu4", None, None, "exclusive", "ready", None, None, 0, {"gpus": [], "gpus_reason": "nvidia-smi hangs"}),
        ("cpu1", None, None, "shared", "ready", None, None, 0, {"gpus_reason": "nvidia-smi is not installed"}),
    )
]

TEXTS = {
    "ps-80": lambda: job_table(JOBS, NOW, width=80),
    "ps-140": lambda: job_table(JOBS, NOW, width=140),
    "ps-piped": lambda: job_table(JOBS, NOW, width=None),
    "ps-wide": lambda: job_table(JOBS, NOW, width=None, is_wide=True),
    "describe-running": lambda: job_page(job(), [attempt()], NOW),  # type: ignore[arg-type, list-item]
    "describe-completed": lambda: job_page(COMPLETED, [], NOW),
    "describe-failed": lambda: job_page(FAILED, FAILED_ATTEMPTS, NOW),
    "why-failed": lambda: explain(FAILED, FAILED_ATTEMPTS, {}).lines(),
    "why-held": lambda: explain(job(desired="hold", status="pending", reason="held by ada"), [], {}).lines(),  # type: ignore[arg-type]
    "why-waiting": lambda: explain(
        job(status="pending"),  # type: ignore[arg-type]
        [],
        {"tasks": [{"reason": "attempt 0 failed; the next one waits", "not_before": "2026-01-17T12:06:00Z"}]},
    ).lines(),
    "plan-80": lambda: plan_lines(PLAN, width=80),
    "plan-140": lambda: plan_lines(PLAN, width=140),
    "plan-submit-100": lambda: plan_lines(NOT_ENABLED, width=100, is_for_submit=True),
    "plan-no-place": lambda: plan_lines(NO_PLACE, width=80),
    "events": lambda: event_lines(EVENTS),
    "metrics-80": lambda: metric_table(POINTS, 63_000, width=80),
    "checkpoints-80": lambda: checkpoint_table(CHECKPOINTS, NOW, width=80),
    "checkpoints-140": lambda: checkpoint_table(CHECKPOINTS, NOW, width=140),
    "checkpoints-verified": lambda: [line for one in VERIFIED for line in verdict(one)],
    "outputs-80": lambda: output_table(OUTPUTS, NOW, width=80),
    "outputs-140": lambda: output_table(OUTPUTS, NOW, width=140),
    "templates-80": lambda: template_table(TEMPLATES, width=80),
    "templates-140": lambda: template_table(TEMPLATES, width=140),
    "template-80": lambda: a_template(80),
    "template-140": lambda: a_template(140),
    "template-piped": lambda: a_template(None),
    "secrets-80": lambda: secret_table(SECRETS, NOW, width=80),
    "secrets-140": lambda: secret_table(SECRETS, NOW, width=140),
    "secrets-rotated": lambda: rotated(ROTATED),
    "tokens": lambda: token_table(TOKENS, NOW, width=80),
    "users-80": lambda: user_table(USERS, NOW, width=80),
    "teams": lambda: team_table(TEAMS, width=80),
    "members": lambda: member_table(MEMBERS, NOW, width=80),
    "projects": lambda: project_table(PROJECTS, NOW, width=80),
    "audit-80": lambda: audit_table(AUDIT, width=80),
    "audit-140": lambda: audit_table(AUDIT, width=140),
    "audit-verified": lambda: [
        *seal_lines({"lines": 4711, "digest": "5e" * 32, "broken": None}),
        *seal_lines({"lines": 17, "digest": "5e" * 32, "broken": 18}),
        *seal_lines({"lines": 0, "digest": "", "broken": None}),
    ],
    "retention-80": lambda: retention_table(RETENTION, NOW, width=80),
    "retention-140": lambda: retention_table(RETENTION, NOW, width=140),
    "retention-dry-run": lambda: ran_lines(DRY_RUN),
    "retention-run": lambda: ran_lines({**DRY_RUN, "dry_run": False, "at_least": []}),
    "kept": lambda: kept_table(KEPT, NOW, width=80),
    "nodes": lambda: node_table(NODES, width=80),
    "nodes-free": lambda: pool_table(POOLS, width=80),
    "hosts-80": lambda: host_table(HOSTS, width=80),  # type: ignore[arg-type]
    "hosts-wide": lambda: host_table(HOSTS, width=None),  # type: ignore[arg-type]
    "budgets-80": lambda: budget_table(BUDGETS, width=80),
    "budgets-140": lambda: budget_table(BUDGETS, width=140),
    "budget-month": lambda: [*budget_page(BUDGETS[0]), "", budget_line(BUDGETS[0])],
    "budget-job": lambda: [*budget_page(BUDGETS[1]), "", budget_line(BUDGETS[1])],
    "costs-80": lambda: cost_page(COSTS, width=80),
    "costs-140": lambda: cost_page(COSTS, width=140),
    "costs-over": lambda: cost_page(COSTS_OVER, width=80),
    "costs-intervals-80": lambda: interval_table(COSTS, width=80),
    "costs-intervals-140": lambda: interval_table(COSTS, width=140),
    "shards-80": lambda: shard_page(COUNTS, SHARDS, NOW, width=80),
    "shards-140": lambda: shard_page(COUNTS, SHARDS, NOW, width=140),
    "shards-over": lambda: shard_page(
        COUNTS
        | {"items_done": 10_000, "fraction": 1.0, "done": 400, "waiting": 0, "leased": 0, "eta_s": None}
        | {"items_failed": 0, "usd_per_item": 0.0, "items_per_s": 1234.5, "first_error": None},
        [],
        NOW,
        width=80,
    ),
    "describe-items": lambda: job_page(job(shards=COUNTS), [], NOW),  # type: ignore[arg-type]
    "accuracy-100": lambda: [
        *accuracy_table(ACCURACY, width=100),
        *trend_table(ACCURACY, width=100),
        accuracy_note(ACCURACY),
    ],
    "accuracy-nothing": lambda: [*accuracy_table(NOTHING_TO_COMPARE, width=80), accuracy_note(NOTHING_TO_COMPARE)],
}


@pytest.fixture(autouse=True)
def utc() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize("name", TEXTS)
def test_the_text_is_as_reviewed(name: str) -> None:
    text = "\n".join(TEXTS[name]()) + "\n"
    golden = HERE / f"{name}.txt"
    if os.environ.get("CRUCIBLE_REWRITE_GOLDEN") == "1":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_every_file_belongs_to_a_text() -> None:
    assert {path.stem for path in HERE.glob("*.txt")} == set(TEXTS)


@pytest.mark.parametrize("width", [80, 140])
def test_a_table_fits_the_terminal(width: int) -> None:
    assert all(len(line) <= width for line in job_table(JOBS, NOW, width=width))
    assert all(len(line) <= width for line in [*cost_page(COSTS, width=width), *interval_table(COSTS, width=width)])


def a_template(width: int | None) -> list[str]:
    parameters = [parameter.view() for parameter in TEMPLATE.parameters]
    return template_page(TEMPLATE.name, TEMPLATE.description, parameters, width)
