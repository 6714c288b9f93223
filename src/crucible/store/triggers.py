"""Rules that the database itself enforces, whatever a program with a bug may try: terminal is for ever, and the log is
only ever added to. A change here needs a new revision in `migrations/versions`."""

from collections.abc import Iterator

from crucible.model.attempt import AttemptPhase
from crucible.store.columns import words
from crucible.store.tables import FINISHED_JOBS, FINISHED_TASKS

# table -> its column, and the words that it may never leave again
_TERMINAL = {
    "jobs": ("status", words(FINISHED_JOBS)),
    "tasks": ("phase", words(FINISHED_TASKS)),
    "attempts": ("phase", words((AttemptPhase.ENDED,))),
}
_APPEND_ONLY = ("events", "job_events", "allocations")

_POSTGRES_FUNCTIONS = (
    """CREATE FUNCTION crucible_terminal() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION '%: terminal is for ever', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$""",
    """CREATE FUNCTION crucible_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$""",
)


def statements(dialect: str) -> Iterator[str]:
    return _sqlite() if dialect == "sqlite" else _postgres()


def _sqlite() -> Iterator[str]:
    for table, (column, last) in _TERMINAL.items():
        yield (
            f"CREATE TRIGGER {table}_terminal BEFORE UPDATE OF {column} ON {table}"
            f" WHEN OLD.{column} IN ({last}) AND NEW.{column} <> OLD.{column}"
            f" BEGIN SELECT RAISE(ABORT, '{table}: terminal is for ever'); END"
        )
    for table in _APPEND_ONLY:
        for verb in ("UPDATE", "DELETE"):
            yield (
                f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table}"
                f" BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
            )


def _postgres() -> Iterator[str]:
    yield from _POSTGRES_FUNCTIONS
    for table, (column, last) in _TERMINAL.items():
        yield (
            f"CREATE TRIGGER {table}_terminal BEFORE UPDATE OF {column} ON {table} FOR EACH ROW"
            f" WHEN (OLD.{column} IN ({last}) AND NEW.{column} <> OLD.{column})"
            " EXECUTE FUNCTION crucible_terminal()"
        )
    for table in _APPEND_ONLY:
        yield (
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW"
            " EXECUTE FUNCTION crucible_append_only()"
        )
        yield (f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} EXECUTE FUNCTION crucible_append_only()")
