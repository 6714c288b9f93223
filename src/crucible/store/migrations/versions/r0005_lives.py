"""How long machines live is remembered: what was expected of them, and which were taken back."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("attempts", sa.Column("saved_step", sa.BigInteger(), nullable=True))
    op.add_column("attempts", sa.Column("mean_life_s", sa.Double(), nullable=True))
    op.add_column("orders", sa.Column("hazard_per_hour", sa.Double(), nullable=True))
    op.add_column("leases", sa.Column("was_taken", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_index("ix_orders_of_job", "orders", ["job_id"])
    spot = sa.text("is_spot")
    op.create_index("ix_orders_spot", "orders", ["created_at"], sqlite_where=spot, postgresql_where=spot)
