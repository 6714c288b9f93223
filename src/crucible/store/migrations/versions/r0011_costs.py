"""What costs are compared with: on-demand prices beside what was bought, the range of an estimate, sums by hour and
day. What was charged before is noted, and added up by the next server that runs."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

Serial = sa.BigInteger().with_variant(sa.Integer, "sqlite")
KEYS = ("team", "project", "user", "provider", "region", "instance_type", "gpu", "market", "kind")
SUM_TABLES = {
    "cost_hours": ("at", "key_id"),
    "cost_days": ("key_id", "at"),
    "cost_job_days": ("at", "job_id", "key_id"),
    "cost_day_totals": ("dimension", "at", "value"),
}
KINDS = {"at": sa.BigInteger(), "key_id": sa.BigInteger()}
SUMS = ("cost", "useful", "saved", "unpriced", "gpu_s", "jobs")


def upgrade() -> None:
    op.add_column("orders", sa.Column("gpu", sa.Text(), nullable=True))
    op.add_column("orders", sa.Column("on_demand_per_hour_microusd", sa.BigInteger(), nullable=True))
    op.create_index("ix_ranks_of_node", "ranks", ["node_id"])
    change_predictions()
    create_sums()
    create_waiting()


def change_predictions() -> None:
    op.add_column("predictions", sa.Column("estimated_hours_high", sa.Double(), nullable=True))
    op.add_column("predictions", sa.Column("estimated_cost_high_microusd", sa.BigInteger(), nullable=True))
    op.add_column("predictions", sa.Column("provider", sa.Text(), nullable=True))
    op.add_column("predictions", sa.Column("paid_hours", sa.Double(), nullable=True))


def create_sums() -> None:
    op.create_table(
        "cost_keys",
        sa.Column("id", Serial, nullable=False, autoincrement=True),
        *(sa.Column(name, sa.Text(), nullable=False) for name in KEYS),
        sa.PrimaryKeyConstraint("id", name="pk_cost_keys"),
        sa.UniqueConstraint(*KEYS, name="uq_cost_keys"),
    )
    for name, keys in SUM_TABLES.items():
        refers = [sa.ForeignKeyConstraint(["key_id"], ["cost_keys.id"], name=f"fk_{name}_key_id")]
        op.create_table(
            name,
            *(sa.Column(key, KINDS.get(key, sa.Text()), nullable=False, autoincrement=False) for key in keys),
            *(sa.Column(column, sa.BigInteger(), nullable=False) for column in SUMS),
            *(refers if "key_id" in keys else ()),
            sa.PrimaryKeyConstraint(*keys, name=f"pk_{name}"),
            sqlite_with_rowid=False,
        )


def create_waiting() -> None:
    op.create_table(
        "unsummed_usage",
        sa.Column("usage_id", Serial, nullable=False, autoincrement=False),
        sa.Column("to_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["usage_id"], ["usage.id"], name="fk_unsummed_usage_usage_id"),
        sa.PrimaryKeyConstraint("usage_id", name="pk_unsummed_usage"),
    )
    op.create_table(
        "unsummed_postings",
        sa.Column("posting_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["posting_id"], ["postings.id"], name="fk_unsummed_postings_posting_id"),
        sa.PrimaryKeyConstraint("posting_id", name="pk_unsummed_postings"),
    )
    op.execute("INSERT INTO unsummed_usage (usage_id, to_at) SELECT id, to_at FROM usage WHERE to_at IS NOT NULL")
    op.execute("INSERT INTO unsummed_postings (posting_id) SELECT id FROM postings WHERE id LIKE 'transfer/%'")
