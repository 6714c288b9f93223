"""Rules that the database itself enforces, whatever a program with a bug may try: terminal is for ever, a stretch that
was charged for stays as it is, and the log and the ledger are only ever added to. Of the log, what is older than the
moment in `retention` may be removed, and the history of jobs of somebody who is being forgotten; of money, nothing. A
change here needs a new revision in `migrations/versions`."""

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
_APPEND_ONLY = ("allocations", "postings", "ledger")
# table -> the kind of `retention` that says what of it may go
_AGEING = {"events": "events", "job_events": "events", "audit": "audit"}
_MAY_GO = {
    "events": (
        "EXISTS (SELECT 1 FROM retention WHERE what = 'events' AND OLD.at < horizon) OR EXISTS"
        " (SELECT 1 FROM jobs JOIN erasures ON erasures.pseudonym = jobs.user_id WHERE jobs.id = OLD.job_id)"
    ),
    "audit": "EXISTS (SELECT 1 FROM retention WHERE what = 'audit' AND OLD.at < horizon)",
}
# An open stretch may be closed, and that is all that ever happens to it.
_FIXED = ("provider", "region", "machine_id", "order_id", "job_id", "kind", "rate_microusd", "per_s", "from_at")
_OLD, _NEW = (", ".join(f"{row}.{name}" for name in _FIXED) for row in ("OLD", "NEW"))
_CHANGES_USAGE = f"OLD.to_at IS NOT NULL OR ({_NEW}) <> ({_OLD})"

_POSTGRES_FUNCTIONS = (
    """CREATE FUNCTION crucible_terminal() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION '%: terminal is for ever', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$""",
    """CREATE FUNCTION crucible_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$""",
    """CREATE FUNCTION crucible_closed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION '%: closed is for ever', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$""",
    """CREATE FUNCTION crucible_ageing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'DELETE' THEN
        IF EXISTS (SELECT 1 FROM retention WHERE what = TG_ARGV[0] AND OLD.at < horizon) THEN RETURN OLD; END IF;
        IF TG_ARGV[0] = 'events' THEN
            IF EXISTS (
                SELECT 1 FROM jobs JOIN erasures ON erasures.pseudonym = jobs.user_id WHERE jobs.id = OLD.job_id
            ) THEN RETURN OLD; END IF;
        END IF;
    END IF;
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
    for table, what in _AGEING.items():
        refused = f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        yield f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} {refused}"
        yield f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} WHEN NOT ({_MAY_GO[what]}) {refused}"
    refused = "BEGIN SELECT RAISE(ABORT, 'usage: closed is for ever'); END"
    yield f"CREATE TRIGGER usage_closed BEFORE UPDATE ON usage WHEN {_CHANGES_USAGE} {refused}"
    yield f"CREATE TRIGGER usage_no_delete BEFORE DELETE ON usage {refused}"


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
    for table, what in _AGEING.items():
        yield (
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW"
            f" EXECUTE FUNCTION crucible_ageing('{what}')"
        )
        yield (f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} EXECUTE FUNCTION crucible_append_only()")
    refused = "EXECUTE FUNCTION crucible_closed()"
    yield f"CREATE TRIGGER usage_closed BEFORE UPDATE ON usage FOR EACH ROW WHEN ({_CHANGES_USAGE}) {refused}"
    yield f"CREATE TRIGGER usage_no_delete BEFORE DELETE ON usage FOR EACH ROW {refused}"
    yield f"CREATE TRIGGER usage_no_truncate BEFORE TRUNCATE ON usage {refused}"
