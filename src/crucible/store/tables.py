"""The tables of what moves: jobs, tasks, attempts, orders, leases, nodes, and the log of everything they did. What is
only written beside them is in `record_tables`.

A change here needs a new revision in `migrations/versions`; a test compares the two."""

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    false,
)

from crucible.model.attempt import AttemptPhase, Outcome, RankState
from crucible.model.job import Desired, JobStatus
from crucible.model.lease import LeasePhase, NodePhase, OrderPhase
from crucible.model.spec import JobType, Locality, Mode, Replication, WhenSpent
from crucible.model.task import TaskKind, TaskPhase
from crucible.store.columns import (
    Serial,
    big,
    dollars,
    flag,
    key,
    known,
    metadata,
    moment,
    money,
    number,
    partial_index,
    whole,
    word,
    words,
)

FINISHED_JOBS = tuple(status for status in JobStatus if status.is_terminal)
FINISHED_TASKS = tuple(phase for phase in TaskPhase if phase.is_terminal)
UNSETTLED_ORDERS = (OrderPhase.PENDING, OrderPhase.UNKNOWN)

# --- jobs -------------------------------------------------------------------------------------------

jobs = Table(
    "jobs",
    metadata,
    key(),
    word("user_id"),
    word("team", null=True),
    word("project", null=True),
    word("name"),
    word("job_type"),
    word("framework"),
    word("entrypoint_uri", null=True),
    word("dataset_uri", null=True),
    word("execution_mode"),
    whole("gpus"),
    whole("max_gpus_per_node", null=True),
    flag("requires_multi_node"),
    number("gpu_memory_gb"),
    number("cpu_memory_gb"),
    number("storage_gb"),
    number("estimated_hours", null=True),
    word("locality"),
    word("replication"),
    money("budget_microusd", null=True),
    dollars("budget_usd", "budget_microusd"),
    moment("deadline_at", null=True),
    flag("allow_spot"),
    number("min_reliability"),
    number("performance_weight"),
    word("spec_yaml"),
    word("code_digest", null=True),
    word("origin", null=True),
    word("lineage"),
    moment("created_at"),
    word("status"),
    word("desired"),
    word("reason", null=True),
    word("selected_provider", null=True),
    word("selected_region", null=True),
    word("selected_backend", null=True),
    word("selected_instance_type", null=True),
    whole("selected_count", null=True),
    flag("selected_spot", null=True),
    moment("started_at", null=True),
    moment("finished_at", null=True),
    money("cost_running_microusd"),
    dollars("cost_running_usd", "cost_running_microusd"),
    money("cost_estimated_microusd", null=True),
    dollars("cost_estimated_usd", "cost_estimated_microusd"),
    moment("updated_at", null=True),
    whole("version"),
    Column("priority", Integer, nullable=False, server_default="0"),
    word("parent", null=True),
    whole("step", null=True),
    word("drained", null=True),
    Column("inputs", Text, nullable=False, server_default="[]"),
    Column("when_spent", Text, nullable=False, server_default=WhenSpent.STOP),
    word("desired_by", null=True),
    moment("desired_at", null=True),
    moment("logs_removed_at", null=True),
    moment("events_removed_at", null=True),
    moment("removed_at", null=True),
    known("status", JobStatus),
    known("desired", Desired),
    known("job_type", JobType),
    known("execution_mode", Mode),
    known("locality", Locality),
    known("replication", Replication),
    CheckConstraint("gpus >= 0", name="gpus"),
)
# What is left of a job that was removed is there for what it cost: no list reads it.
_IS_THERE = "removed_at IS NULL"
partial_index("ix_jobs_newest", jobs.c.created_at, jobs.c.id, where=_IS_THERE)
partial_index("ix_jobs_of_user", jobs.c.user_id, jobs.c.created_at, jobs.c.id, where=_IS_THERE)
partial_index("ix_jobs_of_user_by_status", jobs.c.user_id, jobs.c.status, jobs.c.created_at, jobs.c.id, where=_IS_THERE)
partial_index("ix_jobs_of_team", jobs.c.team, jobs.c.created_at, jobs.c.id, where=_IS_THERE)
partial_index("ix_jobs_of_team_by_status", jobs.c.team, jobs.c.status, jobs.c.created_at, jobs.c.id, where=_IS_THERE)
partial_index("ix_jobs_of_project", jobs.c.project, jobs.c.created_at, jobs.c.id, where=_IS_THERE)
partial_index("ix_jobs_by_status", jobs.c.status, jobs.c.created_at, jobs.c.id, where=_IS_THERE)
partial_index("ix_jobs_by_name", jobs.c.name, jobs.c.created_at, jobs.c.id, where=_IS_THERE)
partial_index("ix_jobs_removed_of_user", jobs.c.user_id, where="removed_at IS NOT NULL")
Index("ix_jobs_ended", jobs.c.finished_at)
# What is old enough to go is found without a look at what is not.
_HAS_ENDED = "finished_at IS NOT NULL AND removed_at IS NULL"
partial_index("ix_jobs_to_go", jobs.c.finished_at, where=_HAS_ENDED)
partial_index("ix_jobs_with_logs", jobs.c.finished_at, where=f"{_HAS_ENDED} AND logs_removed_at IS NULL")
partial_index("ix_jobs_with_events", jobs.c.finished_at, where=f"{_HAS_ENDED} AND events_removed_at IS NULL")
_GOES_ON = "origin IS NOT NULL AND removed_at IS NULL"
partial_index("ix_jobs_of_origin", jobs.c.origin, where=_GOES_ON)
partial_index("ix_jobs_of_lineage", jobs.c.lineage, where=_GOES_ON)
partial_index("ix_jobs_of_code", jobs.c.code_digest, where="code_digest IS NOT NULL")
# A step of a workflow has one job, whoever submits it first.
partial_index("ix_jobs_of_step", jobs.c.parent, jobs.c.step, where="parent IS NOT NULL", unique=True)
partial_index("ix_jobs_paused", jobs.c.desired_by, where="desired = 'hold'")
partial_index(
    "ix_jobs_with_deadline",
    jobs.c.id,
    where=f"deadline_at IS NOT NULL AND status NOT IN ({words(FINISHED_JOBS)})",
)
partial_index("ix_jobs_unfinished", jobs.c.created_at, where=f"status NOT IN ({words(FINISHED_JOBS)})")

job_events = Table(
    "job_events",
    metadata,
    Column("id", Serial, primary_key=True, autoincrement=False),  # the `seq` of its line in `events`
    word("job_id", ForeignKey("jobs.id")),
    moment("at"),
    word("from_status", null=True),
    word("to_status"),
    word("reason", null=True),
    word("meta_json"),
    known("to_status", JobStatus),
)
Index("ix_job_events_of_job", job_events.c.job_id, job_events.c.at)

events = Table(
    "events",
    metadata,
    Column("seq", Serial, primary_key=True, autoincrement=True),
    word("job_id", ForeignKey("jobs.id")),
    word("kind"),
    word("entity_id"),
    whole("version"),
    moment("at"),
    word("type"),
    word("body"),
    UniqueConstraint("kind", "entity_id", "version"),
)
Index("ix_events_of_job", events.c.job_id, events.c.seq)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    key("user_id"),
    key("key"),
    word("job_id"),
)
Index("ix_idempotency_keys_of_job", idempotency_keys.c.job_id)

# --- tasks and attempts -----------------------------------------------------------------------------

tasks = Table(
    "tasks",
    metadata,
    key(),
    word("job_id", ForeignKey("jobs.id")),
    whole("index"),
    moment("created_at"),
    word("phase"),
    word("reason", null=True),
    whole("attempts"),
    whole("failures"),
    whole("losses"),
    word("attempt_id", null=True),
    moment("not_before", null=True),
    moment("deadline_at", null=True),
    whole("version"),
    Column("boots_failed", Integer, nullable=False, server_default="0"),
    Column("kind", Text, nullable=False, server_default=TaskKind.ALONE),
    word("params", null=True),
    word("verdict", null=True),
    number("value", null=True),
    Column("metrics", Text, nullable=False, server_default="{}"),
    word("outputs", null=True),
    known("phase", TaskPhase),
    UniqueConstraint("job_id", "index"),
)
# The last three are there for the tally, which then reads no row.
_COUNTED = (tasks.c.attempts, tasks.c.kind, tasks.c.verdict)
Index("ix_tasks_counted", tasks.c.job_id, tasks.c.phase, tasks.c.index, *_COUNTED)
partial_index("ix_tasks_waiting", tasks.c.kind, tasks.c.job_id, tasks.c.index, where="phase = 'waiting'")
partial_index(
    "ix_tasks_open_steps",
    tasks.c.job_id,
    tasks.c.index,
    where=f"kind = 'step' AND phase NOT IN ({words(FINISHED_TASKS)})",
)
partial_index("ix_tasks_unfinished", tasks.c.job_id, where=f"phase NOT IN ({words(FINISHED_TASKS)})")
partial_index("ix_tasks_due", tasks.c.deadline_at, where=f"phase NOT IN ({words(FINISHED_TASKS)})")

attempts = Table(
    "attempts",
    metadata,
    key(),
    word("task_id", ForeignKey("tasks.id")),
    word("job_id", ForeignKey("jobs.id")),
    whole("number"),
    word("leases"),
    moment("created_at"),
    moment("deadline_at"),
    word("phase"),
    flag("is_checkpointing"),
    whole("generation"),
    word("master_addr", null=True),
    whole("master_port", null=True),
    big("resume_step", null=True),
    word("stop_outcome", null=True),
    word("outcome", null=True),
    word("reason", null=True),
    moment("started_at", null=True),
    moment("ended_at", null=True),
    whole("version"),
    big("saved_step", null=True),
    number("mean_life_s", null=True),
    known("phase", AttemptPhase),
    known("stop_outcome", Outcome),
    known("outcome", Outcome),
    UniqueConstraint("task_id", "number"),
)
Index("ix_attempts_of_job", attempts.c.job_id)
# A lock that no crash can leave behind: a task has one live attempt.
partial_index("ix_attempts_live", attempts.c.task_id, where="phase <> 'ended'", unique=True)
partial_index("ix_attempts_due", attempts.c.deadline_at, where="phase <> 'ended'")
partial_index("ix_attempts_at_work", attempts.c.job_id, where="phase <> 'ended'")

ranks = Table(
    "ranks",
    metadata,
    key("attempt_id", ForeignKey("attempts.id")),
    Column("generation", Integer, primary_key=True, autoincrement=False),
    Column("rank", Integer, primary_key=True, autoincrement=False),
    word("node_id"),
    whole("node_rank"),
    whole("local_rank"),
    word("devices"),
    word("state"),
    big("exit_code", null=True),
    whole("signal", null=True),
    word("reason", null=True),
    moment("started_at", null=True),
    moment("ended_at", null=True),
    Column("is_evicted", Boolean, nullable=False, server_default=false()),
    Column("address", Text, nullable=False, server_default=""),
    Column("port", Integer, nullable=False, server_default="0"),
    word("outputs", null=True),
    known("state", RankState),
)
Index("ix_ranks_of_node", ranks.c.node_id)

# --- what is paid for -------------------------------------------------------------------------------

orders = Table(
    "orders",
    metadata,
    key(),
    word("job_id", ForeignKey("jobs.id")),
    word("task_id", ForeignKey("tasks.id")),
    word("provider"),
    word("region"),
    word("backend"),
    word("offer"),
    word("instance_type"),
    whole("count"),
    whole("gpus"),
    flag("is_spot"),
    money("price_per_hour_microusd"),
    word("body"),
    moment("created_at"),
    moment("deadline_at"),
    word("phase"),
    moment("called_at", null=True),
    word("reason", null=True),
    whole("version"),
    Column("zone", Text, nullable=False, server_default=""),
    number("hazard_per_hour", null=True),
    word("gpu", null=True),
    money("on_demand_per_hour_microusd", null=True),
    known("phase", OrderPhase),
)
Index("ix_orders_of_task", orders.c.task_id)
Index("ix_orders_of_job", orders.c.job_id)
partial_index("ix_orders_spot", orders.c.created_at, where="is_spot")
partial_index(
    "ix_orders_unsettled", orders.c.provider, orders.c.created_at, where=f"phase IN ({words(UNSETTLED_ORDERS)})"
)

leases = Table(
    "leases",
    metadata,
    key(),
    word("order_id", ForeignKey("orders.id")),
    word("job_id", ForeignKey("jobs.id")),
    word("task_id", ForeignKey("tasks.id")),
    word("provider"),
    word("region"),
    word("backend"),
    whole("index"),
    whole("gpus"),
    money("price_per_hour_microusd"),
    moment("created_at"),
    moment("deadline_at", null=True),
    word("phase"),
    word("machine_id", null=True),
    word("node_id", null=True),
    word("devices"),
    moment("started_at", null=True),
    moment("ended_at", null=True),
    moment("missing_since", null=True),
    whole("delete_tries"),
    word("reason", null=True),
    whole("version"),
    Column("was_taken", Boolean, nullable=False, server_default=false()),
    known("phase", LeasePhase),
    UniqueConstraint("order_id", "index"),
)
Index("ix_leases_of_job", leases.c.job_id)
Index("ix_leases_of_task", leases.c.task_id)  # asked when a task is removed
partial_index("ix_leases_open_of_task", leases.c.task_id, where="phase <> 'closed'")
partial_index("ix_leases_open_of_provider", leases.c.provider, where="phase <> 'closed'")
partial_index("ix_leases_moving", leases.c.phase, leases.c.deadline_at, where="phase IN ('requested', 'closing')")

nodes = Table(
    "nodes",
    metadata,
    key(),
    word("lease_id", ForeignKey("leases.id")),
    word("task_id", ForeignKey("tasks.id")),
    word("machine_id"),
    word("agent_id"),
    word("address"),
    whole("rendezvous_port"),
    word("facts"),
    moment("enrolled_at"),
    word("phase"),
    whole("version"),
    known("phase", NodePhase),
)
Index("ix_nodes_of_lease", nodes.c.lease_id)
Index("ix_nodes_of_task", nodes.c.task_id)

# No foreign keys: beats and progress come late, in bulk, and must never fail for one stranger among them.
heartbeats = Table("heartbeats", metadata, key("node_id"), moment("at"), word("usage"))

progress = Table(
    "progress",
    metadata,
    key("task_id"),
    word("job_id"),
    word("attempt_id"),
    moment("at"),
    big("step", null=True),
    big("total_steps", null=True),
    number("fraction", null=True),
    word("metrics"),
    word("curve", null=True),
)
Index("ix_progress_of_job", progress.c.job_id, progress.c.at)
