"""The first schema. Its statements are frozen in the files beside this one, one per dialect, apart by empty lines."""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    connection = op.get_bind()
    statements = Path(__file__).with_name(f"r0001_{connection.dialect.name}.sql").read_text()
    for statement in statements.strip().split("\n\n"):
        # Without parameters a % in a function's body is only a %.
        connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
