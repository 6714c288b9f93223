"""Secrets of people, teams and projects, sealed; and which key seals."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "secrets",
        *words("owner_kind", "owner", "name"),
        sa.Column("version", sa.Integer(), nullable=False),
        *words("key_id", "wrapped", "sealed", "set_by"),
        sa.Column("set_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("owner_kind IN ('user', 'project', 'team')", name="ck_secrets_owner_kind"),
        sa.PrimaryKeyConstraint("owner_kind", "owner", "name", name="pk_secrets"),
    )
    op.create_index("ix_secrets_of_key", "secrets", ["key_id"])
    op.create_table(
        "secret_keys",
        *words("what", "key_id"),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("what", name="pk_secret_keys"),
    )


def words(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]
