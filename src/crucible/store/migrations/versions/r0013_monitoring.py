"""How jobs and providers are: findings that open and close, what the next look must know, what sellers answered."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

CODES = (
    "no_progress",
    "loss_not_a_number",
    "loss_diverged",
    "gpus_idle",
    "gpu_memory_full",
    "straggler",
    "node_silent",
    "clock_skewed",
    "checkpoint_overdue",
    "disk_full",
    "restart_loop",
)


def upgrade() -> None:
    create_health()
    create_findings()
    op.create_table(
        "place_health",
        *words("provider", "region"),
        *moments("looked_at"),
        *moments("last_good_at", "failing_since", null=True),
        *words("error", null=True),
        *moments("latency_ms", null=True),
        sa.Column("machines", sa.Integer(), nullable=False),
        *moments("removed"),
        *moments("noticed_at", null=True),
        sa.PrimaryKeyConstraint("provider", "region", name="pk_place_health"),
    )


def create_health() -> None:
    op.create_table(
        "job_health",
        *words("job_id", "status"),
        *moments("looked_at"),
        *words("why", null=True),
        *words("memory"),
        sa.CheckConstraint("status IN ('ok', 'warning', 'critical', 'unknown')", name="ck_job_health_status"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_job_health_job_id"),
        sa.PrimaryKeyConstraint("job_id", name="pk_job_health"),
    )


def create_findings() -> None:
    codes = ", ".join(f"'{code}'" for code in CODES)
    op.create_table(
        "findings",
        *words("job_id", "code"),
        *moments("opened_at"),
        *words("severity", "words", "advice"),
        *moments("closed_at", null=True),
        *words("details"),
        sa.CheckConstraint(f"code IN ({codes})", name="ck_findings_code"),
        sa.CheckConstraint("severity IN ('info', 'warning', 'critical')", name="ck_findings_severity"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_findings_job_id"),
        sa.PrimaryKeyConstraint("job_id", "code", "opened_at", name="pk_findings"),
    )
    is_open = sa.text("closed_at IS NULL")
    op.create_index(
        "ix_findings_open", "findings", ["job_id", "code"], unique=True, sqlite_where=is_open, postgresql_where=is_open
    )
    op.create_index("ix_findings_opened", "findings", ["opened_at"])


def words(*names: str, null: bool = False) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=null) for name in names]


def moments(*names: str, null: bool = False) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger(), nullable=null) for name in names]
