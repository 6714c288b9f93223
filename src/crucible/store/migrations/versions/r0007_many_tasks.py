"""Jobs of many tasks: crews that hold machines for them, trials with what they were given and what came of it, shards
of items, workflows whose steps are jobs, trees that work leaves behind, and templates."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    change_jobs()
    change_tasks()
    op.add_column("progress", sa.Column("curve", sa.Text(), nullable=True))
    op.drop_index("ix_progress_of_job", "progress")
    op.create_index("ix_progress_of_job", "progress", ["job_id", "at"])
    op.add_column("ranks", sa.Column("outputs", sa.Text(), nullable=True))
    op.add_column("checkpoints", sa.Column("task_index", sa.Integer(), nullable=False, server_default="0"))
    at_work = sa.text("phase <> 'ended'")
    op.create_index("ix_attempts_at_work", "attempts", ["job_id"], sqlite_where=at_work, postgresql_where=at_work)
    create_shards()
    create_results()


def change_jobs() -> None:
    op.add_column("jobs", sa.Column("parent", sa.Text(), nullable=True))
    op.add_column("jobs", sa.Column("step", sa.Integer(), nullable=True))
    op.add_column("jobs", sa.Column("drained", sa.Text(), nullable=True))
    op.add_column("jobs", sa.Column("inputs", sa.Text(), nullable=False, server_default="[]"))
    is_child = sa.text("parent IS NOT NULL")
    op.create_index(
        "ix_jobs_of_step", "jobs", ["parent", "step"], unique=True, sqlite_where=is_child, postgresql_where=is_child
    )


def change_tasks() -> None:
    op.add_column("tasks", sa.Column("kind", sa.Text(), nullable=False, server_default="alone"))
    op.add_column("tasks", sa.Column("params", sa.Text(), nullable=True))
    op.add_column("tasks", sa.Column("verdict", sa.Text(), nullable=True))
    op.add_column("tasks", sa.Column("value", sa.Double(), nullable=True))
    op.add_column("tasks", sa.Column("metrics", sa.Text(), nullable=False, server_default="{}"))
    op.add_column("tasks", sa.Column("outputs", sa.Text(), nullable=True))
    op.drop_index("ix_tasks_of_job", "tasks")
    op.create_index("ix_tasks_counted", "tasks", ["job_id", "phase", "index", "attempts", "kind", "verdict"])
    open_step = sa.text("kind = 'step' AND phase NOT IN ('succeeded', 'failed', 'cancelled')")
    op.create_index(
        "ix_tasks_open_steps", "tasks", ["job_id", "index"], sqlite_where=open_step, postgresql_where=open_step
    )
    op.drop_index("ix_tasks_waiting", "tasks")
    is_waiting = sa.text("phase = 'waiting'")
    op.create_index(
        "ix_tasks_waiting",
        "tasks",
        ["kind", "job_id", "index"],
        sqlite_where=is_waiting,
        postgresql_where=is_waiting,
    )


def create_shards() -> None:
    op.create_table(
        "shards",
        *words("job_id"),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("items", sa.Integer(), nullable=False),
        sa.Column("start_byte", sa.BigInteger(), nullable=False),
        sa.Column("end_byte", sa.BigInteger(), nullable=False),
        *words("state"),
        sa.Column("fence", sa.Integer(), nullable=False),
        *words("attempt_id", "asked", null=True),
        sa.Column("leased_at", sa.BigInteger(), nullable=True),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("is_second", sa.Boolean(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        *words("output", null=True),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        *words("sha256", null=True),
        sa.Column("failed", sa.Integer(), nullable=False),
        *words("errors"),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("done_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("state IN ('waiting', 'leased', 'done')", name="ck_shards_state"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_shards_job_id"),
        sa.PrimaryKeyConstraint("job_id", "number", name="pk_shards"),
    )
    op.create_index("ix_shards_by_state", "shards", ["job_id", "state", "number"])


def create_results() -> None:
    op.create_table(
        "outputs",
        *words("job_id"),
        sa.Column("task_index", sa.Integer(), nullable=False),
        *words("digest", "uri"),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("files", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_outputs_job_id"),
        sa.PrimaryKeyConstraint("job_id", "task_index", name="pk_outputs"),
    )
    op.create_index("ix_outputs_of_digest", "outputs", ["digest"])
    op.create_table(
        "step_results",
        *words("cache_key", "user_id", "job_id"),
        *words("outputs", null=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("cache_key", name="pk_step_results"),
    )
    op.create_table(
        "templates",
        *words("name", "user_id", "body"),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_templates"),
    )


def words(*names: str, null: bool = False) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=null) for name in names]
