"""The tables of what is written beside the state: decisions and their price, artifacts, checkpoints, people, and the
claims and addresses of servers that share one database."""

from sqlalchemy import Column, ForeignKey, Index, Integer, Table, UniqueConstraint

from crucible.model.host import HostState, HostUse
from crucible.model.record import ArtifactType
from crucible.model.shards import ShardState
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
)

allocations = Table(
    "allocations",
    metadata,
    Column("id", Serial, primary_key=True, autoincrement=True),
    word("job_id", ForeignKey("jobs.id")),
    word("task_id", ForeignKey("tasks.id")),
    word("attempt_id", ForeignKey("attempts.id")),
    word("order_id", ForeignKey("orders.id")),
    word("provider"),
    word("region"),
    word("backend"),
    word("instance_type"),
    whole("count"),
    flag("spot"),
    money("price_per_hour_microusd"),
    dollars("price_per_hour", "price_per_hour_microusd"),
    number("estimated_hours", null=True),
    money("estimated_cost_microusd"),
    dollars("estimated_cost_usd", "estimated_cost_microusd"),
    moment("created_at"),
    UniqueConstraint("attempt_id", "order_id"),
)
Index("ix_allocations_of_job", allocations.c.job_id)
Index("ix_allocations_of_task", allocations.c.task_id)  # asked when a task is removed

job_artifacts = Table(
    "job_artifacts",
    metadata,
    Column("id", Serial, primary_key=True, autoincrement=True),
    word("job_id", ForeignKey("jobs.id")),
    word("type"),
    word("uri"),
    moment("created_at"),
    word("meta_json"),
    known("type", ArtifactType),
    UniqueConstraint("job_id", "type", "uri"),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("id", Serial, primary_key=True, autoincrement=True),
    word("lineage"),
    word("job_id", ForeignKey("jobs.id")),
    word("attempt_id"),
    big("step"),
    word("uri"),
    big("size_bytes"),
    word("manifest_sha256"),
    moment("created_at"),
    word("metadata"),
    Column("task_index", Integer, nullable=False, server_default="0"),
    UniqueConstraint("lineage", "step", "manifest_sha256"),
)

stream_segments = Table(
    "stream_segments",
    metadata,
    key("stream"),
    Column("number", Integer, primary_key=True, autoincrement=False),
    big("first_offset"),
    big("size_bytes"),
    word("cursors"),
)

# --- what was planned, and what came of it ------------------------------------------------------------

plans = Table("plans", metadata, key("job_id", ForeignKey("jobs.id")), word("body"), moment("created_at"))
Index("ix_plans_at", plans.c.created_at)

predictions = Table(
    "predictions",
    metadata,
    key("job_id", ForeignKey("jobs.id")),
    word("framework", null=True),
    word("model_class", null=True),
    word("team", null=True),
    word("planned_on", null=True),
    word("gpu", null=True),
    whole("gpus", null=True),
    whole("nodes", null=True),
    number("estimated_hours", null=True),
    money("estimated_cost_microusd", null=True),
    dollars("estimated_cost_usd", "estimated_cost_microusd"),
    word("origin", null=True),
    number("book_hours", null=True),
    word("status", null=True),
    word("ran_on", null=True),
    whole("attempts", null=True),
    number("actual_hours", null=True),
    money("actual_cost_microusd", null=True),
    dollars("actual_cost_usd", "actual_cost_microusd"),
    big("steps", null=True),
    number("rate", null=True),
    moment("ended_at", null=True),
    number("estimated_hours_high", null=True),
    money("estimated_cost_high_microusd", null=True),
    word("provider", null=True),
    number("paid_hours", null=True),
)
Index("ix_predictions_newest", predictions.c.ended_at)
partial_index("ix_predictions_teaching", predictions.c.ended_at, where="book_hours IS NOT NULL")

# --- own hosts, datasets ------------------------------------------------------------------------------

hosts = Table(
    "hosts",
    metadata,
    key("name"),
    word("address"),
    word("host_key"),
    whole("port", null=True),
    word("user", null=True),
    word("zone"),
    word("use"),
    word("jump", null=True),
    word("identity_file", null=True),
    word("internal_address", null=True),
    word("python", null=True),
    word("state"),
    word("reason", null=True),
    whole("failures"),
    word("facts"),
    word("added_by"),
    moment("added_at"),
    moment("checked_at", null=True),
    whole("version"),
    known("state", HostState),
    known("use", HostUse),
)

datasets = Table(
    "datasets",
    metadata,
    key("name"),
    word("digest"),
    word("uri"),
    word("region", null=True),
    big("size_bytes"),
    big("files"),
    word("user_id"),
    moment("created_at"),
)
Index("ix_datasets_of_digest", datasets.c.digest)

dataset_copies = Table(
    "dataset_copies",
    metadata,
    key("digest"),
    key("place"),
    word("uri"),
    big("size_bytes"),
    moment("created_at"),
)

# --- many tasks ---------------------------------------------------------------------------------------

shards = Table(
    "shards",
    metadata,
    key("job_id", ForeignKey("jobs.id")),
    Column("number", Integer, primary_key=True, autoincrement=False),
    big("first"),
    whole("items"),
    big("start_byte"),
    big("end_byte"),
    word("state"),
    whole("fence"),
    word("attempt_id", null=True),
    word("asked", null=True),
    moment("leased_at", null=True),
    moment("expires_at", null=True),
    flag("is_second"),
    whole("tries"),
    word("output", null=True),
    big("size_bytes"),
    word("sha256", null=True),
    whole("failed"),
    word("errors"),
    number("seconds"),
    moment("done_at", null=True),
    known("state", ShardState),
)
Index("ix_shards_by_state", shards.c.job_id, shards.c.state, shards.c.number)

# What tasks left behind: trees in storage, named by their content; each job's are kept apart.
outputs = Table(
    "outputs",
    metadata,
    key("job_id", ForeignKey("jobs.id")),
    Column("task_index", Integer, primary_key=True, autoincrement=False),
    word("digest"),
    word("uri"),
    big("size_bytes"),
    big("files"),
    moment("created_at"),
)
Index("ix_outputs_of_digest", outputs.c.digest)

# Results of steps, by everything that they depend on.
step_results = Table(
    "step_results",
    metadata,
    key("cache_key"),
    word("user_id"),
    word("job_id"),
    word("outputs", null=True),
    moment("created_at"),
)
Index("ix_step_results_of_job", step_results.c.job_id)

templates = Table(
    "templates",
    metadata,
    key("name"),
    word("user_id"),
    word("body"),
    moment("created_at"),
)

# Wishes of people to talk to a node, until its agent has come for them. No foreign key: they live for seconds.
channels = Table(
    "channels",
    metadata,
    key(),
    word("node_id"),
    word("url"),
    word("request"),
    moment("expires_at"),
)
Index("ix_channels_of_node", channels.c.node_id)

# --- servers that share the database: by its clock; an embedded server keeps these in its memory ----------

claims = Table("claims", metadata, key("name"), word("owner"), big("fence"), moment("expires_at"))

servers = Table("servers", metadata, key(), word("url"), moment("expires_at"))
