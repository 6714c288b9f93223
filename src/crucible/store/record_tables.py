"""The tables of what is written beside the state: decisions and their price, artifacts, checkpoints, people, and the
claims and addresses of servers that share one database."""

from sqlalchemy import Column, ForeignKey, Index, Integer, Table, UniqueConstraint

from crucible.model.record import ArtifactType, Role
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
)
Index("ix_predictions_newest", predictions.c.ended_at)
partial_index("ix_predictions_teaching", predictions.c.ended_at, where="book_hours IS NOT NULL")

# --- people -------------------------------------------------------------------------------------------

users = Table(
    "users",
    metadata,
    key(),
    word("name"),
    word("role"),
    moment("created_at"),
    known("role", Role),
    UniqueConstraint("name"),
)

tokens = Table(
    "tokens",
    metadata,
    key(),
    word("user_id", ForeignKey("users.id")),
    word("name"),
    word("digest"),
    moment("created_at"),
    moment("expires_at", null=True),
    moment("revoked_at", null=True),
    UniqueConstraint("digest"),
)
Index("ix_tokens_of_user", tokens.c.user_id)

# --- servers that share the database: by its clock; an embedded server keeps these in its memory ----------

claims = Table("claims", metadata, key("name"), word("owner"), big("fence"), moment("expires_at"))

servers = Table("servers", metadata, key(), word("url"), moment("expires_at"))
