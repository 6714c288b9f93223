"""Machines are charged for: usage, the ledger that follows from it, and offers that are left alone for a while."""

from collections.abc import Iterator

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

Serial = sa.BigInteger().with_variant(sa.Integer, "sqlite")
KINDS = "kind IN ('compute', 'storage', 'address', 'transfer')"
OPEN = "to_at IS NULL"
FIXED = ("provider", "region", "machine_id", "order_id", "job_id", "kind", "rate_microusd", "per_s", "from_at")


def upgrade() -> None:
    op.add_column("orders", sa.Column("zone", sa.Text(), nullable=False, server_default=""))
    op.add_column("tasks", sa.Column("boots_failed", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("ranks", sa.Column("is_evicted", sa.Boolean(), nullable=False, server_default=sa.false()))
    create_usage()
    create_ledger()
    create_cooldowns()
    connection = op.get_bind()
    for statement in triggers(connection.dialect.name):
        # Without parameters a % in a function's body is only a %.
        connection.exec_driver_sql(statement, execution_options={"no_parameters": True})


def create_usage() -> None:
    op.create_table(
        "usage",
        sa.Column("id", Serial, nullable=False, autoincrement=True),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("provider", "region", "machine_id", "order_id")),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("lease_id", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("rate_microusd", sa.BigInteger(), nullable=False),
        sa.Column("per_s", sa.Integer(), nullable=False),
        sa.Column("from_at", sa.BigInteger(), nullable=False),
        sa.Column("to_at", sa.BigInteger(), nullable=True),
        sa.Column("amount_microusd", sa.BigInteger(), nullable=True),
        dollars("amount_usd", "amount_microusd"),
        sa.Column("is_estimate", sa.Boolean(), nullable=False),
        sa.CheckConstraint(KINDS, name="ck_usage_kind"),
        sa.CheckConstraint("rate_microusd >= 0 AND per_s > 0", name="ck_usage_rate"),
        sa.CheckConstraint("to_at >= from_at", name="ck_usage_to_at"),
        sa.CheckConstraint("(to_at IS NULL) = (amount_microusd IS NULL)", name="ck_usage_amount"),
        sa.ForeignKeyConstraint(["order_id"], ["orders.id"], name="fk_usage_order_id"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_usage_job_id"),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name="fk_usage_lease_id"),
        sa.PrimaryKeyConstraint("id", name="pk_usage"),
        sa.UniqueConstraint(
            "provider", "machine_id", "kind", "from_at", name="uq_usage_provider_machine_id_kind_from_at"
        ),
    )
    op.create_index("ix_usage_of_job", "usage", ["job_id", "from_at"])
    index_open("ix_usage_open", ["provider", "machine_id", "kind"], unique=True)
    index_open("ix_usage_open_of_region", ["provider", "region"])
    index_open("ix_usage_open_of_job", ["job_id"])


def index_open(name: str, columns: list[str], *, unique: bool = False) -> None:
    where = sa.text(OPEN)
    op.create_index(name, "usage", columns, unique=unique, sqlite_where=where, postgresql_where=where)


def create_ledger() -> None:
    op.create_table(
        "postings",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("memo", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.CheckConstraint(KINDS, name="ck_postings_kind"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_postings_job_id"),
        sa.PrimaryKeyConstraint("id", name="pk_postings"),
    )
    op.create_index("ix_postings_of_job", "postings", ["job_id", "at"])
    op.create_table(
        "ledger",
        sa.Column("posting_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("amount_microusd", sa.BigInteger(), nullable=False),
        dollars("amount_usd", "amount_microusd"),
        sa.ForeignKeyConstraint(["posting_id"], ["postings.id"], name="fk_ledger_posting_id"),
        sa.PrimaryKeyConstraint("posting_id", "number", name="pk_ledger"),
    )
    op.create_index("ix_ledger_of_account", "ledger", ["account", "amount_microusd"])


def create_cooldowns() -> None:
    names = ("provider", "region", "zone", "instance_type", "market")
    op.create_table(
        "cooldowns",
        *(sa.Column(name, sa.Text(), nullable=False) for name in names),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint(*names, name="pk_cooldowns"),
    )
    op.create_index("ix_cooldowns_until", "cooldowns", ["until"])


def triggers(dialect: str) -> Iterator[str]:
    old, new = (", ".join(f"{row}.{name}" for name in FIXED) for row in ("OLD", "NEW"))
    is_wrong = f"OLD.to_at IS NOT NULL OR ({new}) <> ({old})"
    if dialect == "sqlite":
        yield (
            f"CREATE TRIGGER usage_closed BEFORE UPDATE ON usage WHEN {is_wrong}"
            " BEGIN SELECT RAISE(ABORT, 'usage: closed is for ever'); END"
        )
        yield (
            "CREATE TRIGGER usage_no_delete BEFORE DELETE ON usage"
            " BEGIN SELECT RAISE(ABORT, 'usage: closed is for ever'); END"
        )
        for table in ("postings", "ledger"):
            for verb in ("UPDATE", "DELETE"):
                yield (
                    f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table}"
                    f" BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
                )
        return
    yield """CREATE FUNCTION crucible_closed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION '%: closed is for ever', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$"""
    yield (
        "CREATE TRIGGER usage_closed BEFORE UPDATE ON usage FOR EACH ROW"
        f" WHEN ({is_wrong}) EXECUTE FUNCTION crucible_closed()"
    )
    yield "CREATE TRIGGER usage_no_delete BEFORE DELETE ON usage FOR EACH ROW EXECUTE FUNCTION crucible_closed()"
    yield "CREATE TRIGGER usage_no_truncate BEFORE TRUNCATE ON usage EXECUTE FUNCTION crucible_closed()"
    for table in ("postings", "ledger"):
        yield (
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW"
            " EXECUTE FUNCTION crucible_append_only()"
        )
        yield f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} EXECUTE FUNCTION crucible_append_only()"


def dollars(name: str, micro: str) -> sa.Column[object]:
    return sa.Column(name, sa.Numeric(20, 6), sa.Computed(f"{micro} / 1000000.0", persisted=True))
