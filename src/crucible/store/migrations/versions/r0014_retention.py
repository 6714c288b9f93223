"""How long things are kept, what is being removed, and who is being forgotten; lists that do not read what is left of
jobs that were removed."""

import json
from collections.abc import Iterator

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

IS_THERE = "removed_at IS NULL"
HAS_ENDED = "finished_at IS NOT NULL AND removed_at IS NULL"
GOES_ON = "origin IS NOT NULL AND removed_at IS NULL"
KINDS = "what IN ('logs', 'samples', 'events', 'plans', 'jobs', 'packages', 'notices', 'audit')"
MAY_GO = {
    "events": (
        "EXISTS (SELECT 1 FROM retention WHERE what = 'events' AND OLD.at < horizon) OR EXISTS"
        " (SELECT 1 FROM jobs JOIN erasures ON erasures.pseudonym = jobs.user_id WHERE jobs.id = OLD.job_id)"
    ),
    "audit": "EXISTS (SELECT 1 FROM retention WHERE what = 'audit' AND OLD.at < horizon)",
}
AGEING = {"events": "events", "job_events": "events", "audit": "audit"}


def upgrade() -> None:
    change_jobs()
    op.create_index("ix_idempotency_keys_of_job", "idempotency_keys", ["job_id"])
    op.create_index("ix_leases_of_task", "leases", ["task_id"])
    op.create_index("ix_allocations_of_task", "allocations", ["task_id"])
    op.create_index("ix_plans_at", "plans", ["created_at"])
    op.create_index("ix_audit_of_user", "audit", ["user_id", "seq"])
    op.create_index("ix_deliveries_at", "deliveries", ["created_at"])
    op.create_index("ix_notices_of_user", "notices", ["user_id"])
    op.create_index("ix_step_results_of_job", "step_results", ["job_id"])
    create_tables()
    connection = op.get_bind()
    for statement in triggers(connection.dialect.name):
        connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
    note_sources(connection)


def change_jobs() -> None:
    for name in ("logs_removed_at", "events_removed_at", "removed_at"):
        op.add_column("jobs", sa.Column(name, sa.BigInteger(), nullable=True))
    for name, columns in (
        ("ix_jobs_newest", ["created_at", "id"]),
        ("ix_jobs_of_user", ["user_id", "created_at", "id"]),
        ("ix_jobs_of_user_by_status", ["user_id", "status", "created_at", "id"]),
        ("ix_jobs_of_team", ["team", "created_at", "id"]),
        ("ix_jobs_of_team_by_status", ["team", "status", "created_at", "id"]),
        ("ix_jobs_of_project", ["project", "created_at", "id"]),
        ("ix_jobs_by_status", ["status", "created_at", "id"]),
        ("ix_jobs_by_name", ["name", "created_at", "id"]),
    ):
        op.drop_index(name, "jobs")
        index(name, columns, IS_THERE)
    index("ix_jobs_removed_of_user", ["user_id"], "removed_at IS NOT NULL")
    index("ix_jobs_to_go", ["finished_at"], HAS_ENDED)
    index("ix_jobs_with_logs", ["finished_at"], f"{HAS_ENDED} AND logs_removed_at IS NULL")
    index("ix_jobs_with_events", ["finished_at"], f"{HAS_ENDED} AND events_removed_at IS NULL")
    index("ix_jobs_of_origin", ["origin"], GOES_ON)
    index("ix_jobs_of_lineage", ["lineage"], GOES_ON)
    live = "status NOT IN ('completed', 'failed', 'cancelled')"
    index("ix_jobs_with_deadline", ["id"], f"deadline_at IS NOT NULL AND {live}")
    index("ix_jobs_of_code", ["code_digest"], "code_digest IS NOT NULL")


def index(name: str, columns: list[str], where: str) -> None:
    op.create_index(name, "jobs", columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


def create_tables() -> None:
    op.create_table(
        "retention",
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("days", sa.Integer(), nullable=True),
        sa.Column("horizon", sa.BigInteger(), nullable=True),
        sa.Column("ran_at", sa.BigInteger(), nullable=True),
        sa.Column("removed", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("anchor", sa.Text(), nullable=True),
        sa.CheckConstraint(KINDS, name="ck_retention_what"),
        sa.CheckConstraint("days >= 0", name="ck_retention_days"),
        sa.PrimaryKeyConstraint("what", name="pk_retention"),
    )
    op.create_table(
        "removals",
        *words("job_id", "what"),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(KINDS, name="ck_removals_what"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_removals_job_id"),
        sa.PrimaryKeyConstraint("job_id", "what", name="pk_removals"),
    )
    op.create_table(
        "kept_jobs",
        *words("job_id", "user_id"),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_kept_jobs_job_id"),
        sa.PrimaryKeyConstraint("job_id", name="pk_kept_jobs"),
    )
    op.create_index("ix_kept_jobs_of_user", "kept_jobs", ["user_id"])
    op.create_table(
        "job_sources",
        *words("source", "job_id"),
        sa.ForeignKeyConstraint(["source"], ["jobs.id"], name="fk_job_sources_source"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_job_sources_job_id"),
        sa.PrimaryKeyConstraint("source", "job_id", name="pk_job_sources"),
    )
    op.create_index("ix_job_sources_of_job", "job_sources", ["job_id"])
    op.create_table(
        "erasures",
        *words("user_id", "pseudonym"),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("keeps_jobs", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", name="pk_erasures"),
    )
    op.create_index("ix_erasures_pseudonym", "erasures", ["pseudonym"])


def triggers(dialect: str) -> Iterator[str]:
    if dialect == "sqlite":
        for table, what in AGEING.items():
            yield f"DROP TRIGGER {table}_no_delete"
            yield (
                f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} WHEN NOT ({MAY_GO[what]})"
                f" BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
            )
        return
    yield """CREATE FUNCTION crucible_ageing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'DELETE' THEN
        IF EXISTS (SELECT 1 FROM retention WHERE what = TG_ARGV[0] AND OLD.at < horizon) THEN RETURN OLD; END IF;
        IF TG_ARGV[0] = 'events' THEN
            IF EXISTS (
                SELECT 1 FROM jobs JOIN erasures ON erasures.pseudonym = jobs.user_id WHERE jobs.id = OLD.job_id
            ) THEN RETURN OLD; END IF;
        END IF;
    END IF;
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$"""
    for table, what in AGEING.items():
        yield f"DROP TRIGGER {table}_append_only ON {table}"
        yield (
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW"
            f" EXECUTE FUNCTION crucible_ageing('{what}')"
        )


def note_sources(connection: sa.Connection) -> None:
    """Whose trees the jobs that are there were given: a tree lies below the id of the job that left it."""
    given = connection.exec_driver_sql("SELECT id, inputs FROM jobs WHERE inputs <> '[]'").fetchall()
    pairs = {(str(one["uri"]).rpartition("/")[2], job_id) for job_id, inputs in given for one in json.loads(inputs)}
    insert = sa.text(
        "INSERT INTO job_sources (source, job_id) SELECT :source, :job_id WHERE EXISTS"
        " (SELECT 1 FROM jobs WHERE id = :source)"
    )
    for source, job_id in sorted(pairs):
        connection.execute(insert, {"source": source, "job_id": job_id})


def words(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]
