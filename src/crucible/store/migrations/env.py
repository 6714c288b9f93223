"""Alembic's way in. The connection comes from `crucible.store.migrate`, in a transaction that the caller ends."""

from typing import Any

from alembic import context

connection = context.config.attributes["connection"]
failpoint = context.config.attributes["failpoint"]


def applied(ctx: Any, step: Any, heads: Any, run_args: Any) -> None:
    failpoint(f"migrate.{step.up_revision_id}")


context.configure(connection=connection, transactional_ddl=True, on_version_apply=applied)
with context.begin_transaction():
    context.run_migrations()
