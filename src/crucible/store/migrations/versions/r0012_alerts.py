"""Rules and channels of alerts, and who was told."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

SEVERITIES = "IN ('info', 'warning', 'critical')"


def upgrade() -> None:
    op.add_column("notices", sa.Column("fanned_at", sa.BigInteger(), nullable=True))
    fresh = sa.text("fanned_at IS NULL")
    op.create_index("ix_notices_fresh", "notices", ["seq"], sqlite_where=fresh, postgresql_where=fresh)
    create_rules()
    create_channels()
    create_deliveries()


def create_rules() -> None:
    op.create_table(
        "alert_rules",
        *words("id", "name", "user_id"),
        *words("team", null=True),
        *words("kinds", "least", "scope"),
        *words("price", null=True),
        *words("channels"),
        *words("quiet", null=True),
        sa.Column("window_s", sa.Integer(), nullable=False),
        sa.Column("is_enabled", sa.Boolean(), nullable=False),
        sa.Column("muted_until", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        *words("price_seen", null=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.CheckConstraint(f"least {SEVERITIES}", name="ck_alert_rules_least"),
        sa.PrimaryKeyConstraint("id", name="pk_alert_rules"),
    )


def create_channels() -> None:
    op.create_table(
        "alert_channels",
        *words("id", "name", "user_id"),
        *words("team", null=True),
        *words("kind", "shown", "key_id", "wrapped", "sealed"),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.CheckConstraint("kind IN ('email', 'slack', 'webhook', 'apprise')", name="ck_alert_channels_kind"),
        sa.PrimaryKeyConstraint("id", name="pk_alert_channels"),
    )


def create_deliveries() -> None:
    op.create_table(
        "deliveries",
        *words("id", "channel_id", "rule_id", "subject", "severity"),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("not_before", sa.BigInteger(), nullable=False),
        *words("state"),
        sa.Column("tries", sa.Integer(), nullable=False),
        *words("error", null=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(f"severity {SEVERITIES}", name="ck_deliveries_severity"),
        sa.CheckConstraint("state IN ('waiting', 'sent', 'dead')", name="ck_deliveries_state"),
        sa.PrimaryKeyConstraint("id", name="pk_deliveries"),
    )
    op.create_index("ix_deliveries_about", "deliveries", ["subject", "channel_id", "created_at"])
    waiting = sa.text("state = 'waiting'")
    op.create_index("ix_deliveries_due", "deliveries", ["not_before"], sqlite_where=waiting, postgresql_where=waiting)
    op.create_table(
        "delivery_notices",
        *words("delivery_id"),
        sa.Column("notice_seq", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.ForeignKeyConstraint(["delivery_id"], ["deliveries.id"], name="fk_delivery_notices_delivery_id"),
        sa.PrimaryKeyConstraint("delivery_id", "notice_seq", name="pk_delivery_notices"),
    )
    op.create_index("ix_delivery_notices_of_notice", "delivery_notices", ["notice_seq"])


def words(*names: str, null: bool = False) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=null) for name in names]
