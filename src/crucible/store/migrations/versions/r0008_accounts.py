"""Teams, projects and four roles; tokens for certain uses; the log of who changed what; what people should hear of."""

from collections.abc import Iterator

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

Serial = sa.BigInteger().with_variant(sa.Integer, "sqlite")
ROLES = "role IN ('viewer', 'member', 'manager', 'admin')"
KINDS = "kind IN ('person', 'service')"


def upgrade() -> None:
    change_users()
    op.add_column("tokens", sa.Column("grants", sa.Text(), nullable=False, server_default="[]"))
    create_teams()
    create_logs()
    found_teams()
    for column in ("team", "project"):
        op.create_index(f"ix_jobs_of_{column}", "jobs", [column, "created_at", "id"])
    for owner, column in (("user", "user_id"), ("team", "team")):
        op.create_index(f"ix_jobs_of_{owner}_by_status", "jobs", [column, "status", "created_at", "id"])
    connection = op.get_bind()
    for statement in triggers(connection.dialect.name):
        connection.exec_driver_sql(statement)


def change_users() -> None:
    """SQLite cannot change a rule of a table: there the table is made anew, under its old name."""
    if op.get_bind().dialect.name != "sqlite":
        op.add_column("users", sa.Column("kind", sa.Text(), nullable=False, server_default="person"))
        op.add_column("users", sa.Column("disabled_at", sa.BigInteger(), nullable=True))
        op.drop_constraint("ck_users_role", "users")
        op.create_check_constraint("ck_users_role", "users", ROLES)
        op.create_check_constraint("ck_users_kind", "users", KINDS)
        return
    op.create_table(
        "users_anew",
        *words("id", "name", "role"),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False, server_default="person"),
        sa.Column("disabled_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(ROLES, name="ck_users_role"),
        sa.CheckConstraint(KINDS, name="ck_users_kind"),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sa.UniqueConstraint("name", name="uq_users_name"),
    )
    op.execute("INSERT INTO users_anew (id, name, role, created_at) SELECT id, name, role, created_at FROM users")
    op.drop_table("users")
    op.rename_table("users_anew", "users")


def create_teams() -> None:
    op.create_table(
        "teams",
        *words("name"),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        *words("created_by"),
        sa.PrimaryKeyConstraint("name", name="pk_teams"),
    )
    op.create_table(
        "memberships",
        *words("team", "user_id", "role"),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(ROLES, name="ck_memberships_role"),
        sa.ForeignKeyConstraint(["team"], ["teams.name"], name="fk_memberships_team"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_memberships_user_id"),
        sa.PrimaryKeyConstraint("team", "user_id", name="pk_memberships"),
    )
    op.create_index("ix_memberships_of_user", "memberships", ["user_id"])
    op.create_table(
        "projects",
        *words("name", "team"),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        *words("created_by"),
        sa.ForeignKeyConstraint(["team"], ["teams.name"], name="fk_projects_team"),
        sa.PrimaryKeyConstraint("name", name="pk_projects"),
    )
    op.create_index("ix_projects_of_team", "projects", ["team"])


def found_teams() -> None:
    """What jobs have been counted under so far is there, and whoever ran them works in it: they can run again."""
    op.execute(
        "INSERT INTO teams (name, created_at, created_by) SELECT team, MIN(created_at), MIN(user_id) FROM jobs"
        " WHERE team IS NOT NULL GROUP BY team"
    )
    op.execute(
        "INSERT INTO memberships (team, user_id, role, created_at) SELECT team, user_id, 'member', MIN(created_at)"
        " FROM jobs WHERE team IS NOT NULL AND user_id IN (SELECT id FROM users) GROUP BY team, user_id"
    )
    op.execute(
        "INSERT INTO projects (name, team, created_at, created_by)"
        " SELECT project, MIN(team), MIN(created_at), MIN(user_id) FROM jobs"
        " WHERE project IS NOT NULL AND team IS NOT NULL GROUP BY project"
    )


def create_logs() -> None:
    op.create_table(
        "audit",
        sa.Column("seq", Serial, nullable=False, autoincrement=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        *words("user_id", "token_id", "action", "subject"),
        *words("team", null=True),
        *words("details", "digest"),
        sa.PrimaryKeyConstraint("seq", name="pk_audit"),
    )
    op.create_index("ix_audit_of_team", "audit", ["team", "seq"])
    op.create_table(
        "notices",
        sa.Column("seq", Serial, nullable=False, autoincrement=True),
        *words("key"),
        sa.Column("at", sa.BigInteger(), nullable=False),
        *words("kind", "severity", "title", "text"),
        *words("team", "project", "user_id", "job_id", null=True),
        *words("details"),
        sa.CheckConstraint(
            "kind IN ('budget', 'failure', 'stall', 'deadline', 'price', 'provider', 'leak')", name="ck_notices_kind"
        ),
        sa.CheckConstraint("severity IN ('info', 'warning', 'critical')", name="ck_notices_severity"),
        sa.PrimaryKeyConstraint("seq", name="pk_notices"),
        sa.UniqueConstraint("key", name="uq_notices_key"),
    )
    op.create_index("ix_notices_at", "notices", ["at"])


def triggers(dialect: str) -> Iterator[str]:
    if dialect == "sqlite":
        for verb in ("UPDATE", "DELETE"):
            yield (
                f"CREATE TRIGGER audit_no_{verb.lower()} BEFORE {verb} ON audit"
                " BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END"
            )
    else:
        refused = "EXECUTE FUNCTION crucible_append_only()"
        yield f"CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE ON audit FOR EACH ROW {refused}"
        yield f"CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON audit {refused}"


def words(*names: str, null: bool = False) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=null) for name in names]
