"""Budgets; who wants what of a job and since when; what becomes of it when its own budget is spent."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    create_budgets()
    op.add_column("jobs", sa.Column("when_spent", sa.Text(), nullable=False, server_default="stop"))
    op.add_column("jobs", sa.Column("desired_by", sa.Text(), nullable=True))
    op.add_column("jobs", sa.Column("desired_at", sa.BigInteger(), nullable=True))
    op.create_index("ix_jobs_ended", "jobs", ["finished_at"])
    held = sa.text("desired = 'hold'")
    op.create_index("ix_jobs_paused", "jobs", ["desired_by"], sqlite_where=held, postgresql_where=held)


def create_budgets() -> None:
    op.create_table(
        "budgets",
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("id", "scope", "name", "period")),
        sa.Column("limit_microusd", sa.BigInteger(), nullable=False),
        sa.Column("limit_usd", sa.Numeric(20, 6), sa.Computed("limit_microusd / 1000000.0", persisted=True)),
        sa.Column("when_spent", sa.Text(), nullable=False),
        sa.Column("thresholds", sa.Text(), nullable=False),
        sa.Column("starts_at", sa.BigInteger(), nullable=True),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.CheckConstraint("scope IN ('job', 'project', 'team', 'user', 'server')", name="ck_budgets_scope"),
        sa.CheckConstraint("period IN ('once', 'month')", name="ck_budgets_period"),
        sa.CheckConstraint("when_spent IN ('pause', 'stop')", name="ck_budgets_when_spent"),
        sa.CheckConstraint("limit_microusd >= 0", name="ck_budgets_limit"),
        sa.PrimaryKeyConstraint("id", name="pk_budgets"),
    )
