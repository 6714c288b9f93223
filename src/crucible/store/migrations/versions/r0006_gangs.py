"""Every rank knows where the others are; own hosts and datasets are registered; people talk to nodes."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("ranks", sa.Column("address", sa.Text(), nullable=False, server_default=""))
    op.add_column("ranks", sa.Column("port", sa.Integer(), nullable=False, server_default="0"))
    create_hosts()
    create_datasets()
    op.create_table(
        "channels",
        *words("id", "node_id", "url", "request"),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_channels"),
    )
    op.create_index("ix_channels_of_node", "channels", ["node_id"])


def create_hosts() -> None:
    op.create_table(
        "hosts",
        *words("name", "address", "host_key"),
        sa.Column("port", sa.Integer(), nullable=True),
        *words("user", null=True),
        *words("zone", "use"),
        *words("jump", "identity_file", "internal_address", "python", null=True),
        *words("state"),
        *words("reason", null=True),
        sa.Column("failures", sa.Integer(), nullable=False),
        *words("facts", "added_by"),
        sa.Column("added_at", sa.BigInteger(), nullable=False),
        sa.Column("checked_at", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.CheckConstraint("state IN ('ready', 'draining', 'quarantined')", name="ck_hosts_state"),
        sa.CheckConstraint("use IN ('exclusive', 'shared')", name="ck_hosts_use"),
        sa.PrimaryKeyConstraint("name", name="pk_hosts"),
    )


def create_datasets() -> None:
    op.create_table(
        "datasets",
        *words("name", "digest", "uri"),
        *words("region", null=True),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("files", sa.BigInteger(), nullable=False),
        *words("user_id"),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_datasets"),
    )
    op.create_index("ix_datasets_of_digest", "datasets", ["digest"])
    op.create_table(
        "dataset_copies",
        *words("digest", "place", "uri"),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest", "place", name="pk_dataset_copies"),
    )


def words(*names: str, null: bool = False) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=null) for name in names]
