"""Prices live in the database with their history; a job keeps the plan it was submitted with, and what came of it."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

Serial = sa.BigInteger().with_variant(sa.Integer, "sqlite")
MARKETS = "market IN ('on_demand', 'spot', 'reserved')"


def upgrade() -> None:
    create_gpu_pricing()
    create_price_feeds()
    create_price_history()
    create_plans()
    create_predictions()


def create_gpu_pricing() -> None:
    op.create_table(
        "gpu_pricing",
        sa.Column("id", Serial, nullable=False, autoincrement=True),
        *key_columns(),
        sa.Column("gpu_type", sa.Text(), nullable=True),
        sa.Column("gpus_per_instance", sa.Integer(), nullable=True),
        sa.Column("memory_per_gpu_gb", sa.Double(), nullable=True),
        sa.Column("interconnect", sa.Text(), nullable=True),
        sa.Column("price_per_hour_microusd", sa.BigInteger(), nullable=True),
        dollars("price_per_hour", "price_per_hour_microusd"),
        price_of("on_demand"),
        price_of("spot"),
        sa.Column("spot_availability", sa.Double(), nullable=True),
        sa.Column("interruption_rate", sa.Double(), nullable=True),
        sa.Column("as_of", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("feed", sa.Text(), nullable=False),
        sa.Column("last_updated", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(MARKETS, name="ck_gpu_pricing_market"),
        sa.CheckConstraint("price_per_hour_microusd >= 0", name="ck_gpu_pricing_price"),
        sa.PrimaryKeyConstraint("id", name="pk_gpu_pricing"),
        sa.UniqueConstraint(
            "provider",
            "region",
            "zone",
            "instance_type",
            "market",
            name="uq_gpu_pricing_provider_region_zone_instance_type_market",
        ),
    )
    op.create_index("ix_gpu_pricing_updated", "gpu_pricing", ["last_updated"])
    op.create_index("ix_gpu_pricing_of_feed", "gpu_pricing", ["feed"])


def create_price_feeds() -> None:
    op.create_table(
        "price_feeds",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("refreshed_at", sa.BigInteger(), nullable=True),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("changed", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("failed_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("name", name="pk_price_feeds"),
    )


def create_price_history() -> None:
    op.create_table(
        "price_history",
        sa.Column("id", Serial, nullable=False, autoincrement=True),
        *key_columns(),
        sa.Column("price_per_hour_microusd", sa.BigInteger(), nullable=True),
        dollars("price_per_hour", "price_per_hour_microusd"),
        sa.Column("as_of", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.CheckConstraint(MARKETS, name="ck_price_history_market"),
        sa.PrimaryKeyConstraint("id", name="pk_price_history"),
    )
    op.create_index("ix_price_history_of_type", "price_history", ["provider", "instance_type", "as_of"])
    op.create_index("ix_price_history_oldest", "price_history", ["as_of"])


def create_plans() -> None:
    op.create_table(
        "plans",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_plans_job_id"),
        sa.PrimaryKeyConstraint("job_id", name="pk_plans"),
    )


def create_predictions() -> None:
    op.create_table(
        "predictions",
        sa.Column("job_id", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=True) for name in ("framework", "model_class", "team")),
        sa.Column("planned_on", sa.Text(), nullable=True),
        sa.Column("gpu", sa.Text(), nullable=True),
        sa.Column("gpus", sa.Integer(), nullable=True),
        sa.Column("nodes", sa.Integer(), nullable=True),
        sa.Column("estimated_hours", sa.Double(), nullable=True),
        sa.Column("estimated_cost_microusd", sa.BigInteger(), nullable=True),
        dollars("estimated_cost_usd", "estimated_cost_microusd"),
        sa.Column("origin", sa.Text(), nullable=True),
        sa.Column("book_hours", sa.Double(), nullable=True),
        sa.Column("status", sa.Text(), nullable=True),
        sa.Column("ran_on", sa.Text(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=True),
        sa.Column("actual_hours", sa.Double(), nullable=True),
        sa.Column("actual_cost_microusd", sa.BigInteger(), nullable=True),
        dollars("actual_cost_usd", "actual_cost_microusd"),
        sa.Column("steps", sa.BigInteger(), nullable=True),
        sa.Column("rate", sa.Double(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_predictions_job_id"),
        sa.PrimaryKeyConstraint("job_id", name="pk_predictions"),
    )
    op.create_index("ix_predictions_newest", "predictions", ["ended_at"])
    teaching = sa.text("book_hours IS NOT NULL")
    op.create_index(
        "ix_predictions_teaching", "predictions", ["ended_at"], sqlite_where=teaching, postgresql_where=teaching
    )


def key_columns() -> list[sa.Column[str]]:
    names = ("provider", "region", "zone", "instance_type", "market")
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def dollars(name: str, micro: str) -> sa.Column[object]:
    return sa.Column(name, sa.Numeric(20, 6), sa.Computed(f"{micro} / 1000000.0", persisted=True))


def price_of(market: str) -> sa.Column[object]:
    rule = f"CASE WHEN market = '{market}' THEN price_per_hour_microusd / 1000000.0 END"
    return sa.Column(f"{market}_price_per_hour", sa.Numeric(20, 6), sa.Computed(rule, persisted=True))
