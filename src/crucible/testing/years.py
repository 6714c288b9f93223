"""A database with years of jobs in it, made by the database itself: one family of rows, as the store packs it, is
written for every number of a series. A million jobs take minutes; going through the engine would take days."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Text, case, cast, insert, literal, null, select

from crucible.model.attempt import AttemptPhase, Outcome
from crucible.model.ids import JobId, LeaseId, MachineId, OrderId
from crucible.model.job import JobStatus
from crucible.model.lease import LeasePhase, OrderPhase
from crucible.model.ledger import ChargeKind, Entry, Posting, Rate, Usage
from crucible.model.record import Allocation
from crucible.model.task import TaskPhase
from crucible.model.units import MicroUsd
from crucible.store import tables as t
from crucible.store.commits import ALLOCATIONS
from crucible.store.entities import ATTEMPTS, JOBS, LEASES, ORDERS, TASKS
from crucible.store.mapping import Rows, micros
from crucible.store.money import ENTRIES, POSTINGS, USAGES
from crucible.store.sql import Sql, Transaction
from crucible.testing.specimens import TARGET, a_job, a_lease, a_task, an_attempt, an_order

# Written by one statement: tens of megabytes.
CHUNK = 50_000
FIRST = 10_000_000  # ids of equal length sort as their numbers
USERS, TEAMS, PROJECTS, NAMES = 50, 10, 20, 1000
RUN = timedelta(hours=1)
# What happens to every job, each with the status that it leads to.
HISTORY = ("pending", "scheduled", "running", "completed")
COST = 1_234_567  # micro-dollars of the first job; each costs another amount


@dataclass(frozen=True, slots=True)
class Years:
    """`jobs` jobs, the first at `since`, evenly until `until`; all are over but the last `live`, which wait."""

    jobs: int
    since: datetime
    until: datetime
    live: int = 0

    @property
    def step(self) -> int:
        """Microseconds between two jobs."""
        return max(1, micros_between(self.since, self.until) // max(1, self.jobs))


def job_id(number: int) -> JobId:
    return JobId(f"j{FIRST + number}")


def make(tx: Transaction, years: Years, first: int, last: int) -> None:
    """The jobs from number `first` to before `last`, with all that hangs on them, in one transaction."""
    series = select(cast(literal(first), BigInteger).label("n")).cte("series", recursive=True)
    series = series.union_all(select(series.c.n + 1).where(series.c.n < last - 1))
    writer = Writer(tx, years, series.c.n)
    writer.jobs()
    writer.work()
    writer.money()
    writer.history()


def finish(tx: Transaction) -> None:
    """PostgreSQL is told which numbers are taken, and how large the tables are."""
    if tx.is_shared:
        taken = "SELECT setval(pg_get_serial_sequence('events', 'seq'), (SELECT max(seq) FROM events))"
        tx.script([taken, "ANALYZE"])


class Writer:
    def __init__(self, tx: Transaction, years: Years, n: ColumnElement[int]) -> None:
        self._tx = tx
        self._years = years
        self._n = n
        self._created = literal(micros(years.since), BigInteger) + n * years.step
        self._ended = self._created + micros_of(RUN)
        self._is_live = n >= years.jobs - years.live
        self._job = self._id("j")

    def _id(self, kind: str) -> ColumnElement[str]:
        return literal(kind, Text) + cast(self._n + FIRST, Text)

    def _nth(self, kind: str, of: int) -> ColumnElement[str]:
        return literal(kind, Text) + cast(self._n % of, Text)

    def _unless_live(self, value: Any, live: Any = None) -> Any:
        return case((self._is_live, null() if live is None else live), else_=value)

    def jobs(self) -> None:
        job = a_job("j", spec_yaml="job: {command: [python, train.py], resources: {gpus: 1}}\n", team=None)
        status = case((self._n % 10 == 9, JobStatus.FAILED.value), else_=JobStatus.COMPLETED.value)
        self._write(
            JOBS,
            JOBS.pack(job),
            id=self._job,
            lineage=self._job,
            user_id=self._nth("u", USERS),
            team=self._nth("t", TEAMS),
            project=self._nth("p", PROJECTS),
            name=self._nth("train-", NAMES),
            created_at=self._created,
            updated_at=self._ended,
            started_at=self._unless_live(self._created),
            finished_at=self._unless_live(self._ended),
            status=self._unless_live(status, JobStatus.PENDING.value),
            selected_provider=self._unless_live(literal("fake", Text)),
            cost_running_microusd=self._unless_live(self._n % 1000 + COST, 0),
        )

    def work(self) -> None:
        job = a_job("j")
        task = replace(a_task(job), phase=TaskPhase.SUCCEEDED, attempts=1)
        order = replace(an_order(task), phase=OrderPhase.FILLED)
        lease = replace(a_lease(order), phase=LeasePhase.CLOSED)
        attempt = replace(an_attempt(task, [lease]), phase=AttemptPhase.ENDED, outcome=Outcome.SUCCEEDED)
        ids = {"job_id": self._job, "task_id": self._id("t"), "created_at": self._created}
        self._write(
            TASKS,
            TASKS.pack(task),
            id=self._id("t"),
            job_id=self._job,
            created_at=self._created,
            phase=self._unless_live(literal(task.phase.value, Text), TaskPhase.WAITING.value),
            attempts=self._unless_live(1, 0),
        )
        self._write_of_ended(ORDERS, ORDERS.pack(order), id=self._id("o"), **ids)
        self._write_of_ended(
            LEASES, LEASES.pack(lease), id=self._id("l"), order_id=self._id("o"), machine_id=self._id("m"), **ids
        )
        self._write_of_ended(ATTEMPTS, ATTEMPTS.pack(attempt), id=self._id("a"), ended_at=self._ended, **ids)
        given = Allocation(
            job_id=job.id,
            task_id=task.id,
            attempt_id=attempt.id,
            order_id=order.id,
            target=TARGET,
            instance_type="h100x4",
            count=1,
            is_spot=True,
            price_per_hour=MicroUsd(COST),
            estimated_hours=1.0,
            estimated_cost=MicroUsd(COST),
            created_at=job.created_at,
        )
        self._write_of_ended(
            ALLOCATIONS, ALLOCATIONS.pack(given), attempt_id=self._id("a"), order_id=self._id("o"), **ids
        )

    def money(self) -> None:
        now = self._years.since
        amount = self._n % 1000 + COST
        usage = Usage(
            provider="fake",
            region=TARGET.region,
            machine_id=MachineId("m"),
            order_id=OrderId("o"),
            job_id=JobId("j"),
            lease_id=LeaseId("l"),
            rate=Rate(ChargeKind.COMPUTE, MicroUsd(COST), 3600),
            from_at=now,
            to_at=now,
            amount=MicroUsd(COST),
        )
        rate = {"kind": ChargeKind.COMPUTE.value, "rate_microusd": COST, "per_s": 3600}
        self._write_of_ended(
            USAGES,
            {**USAGES.pack(usage), **rate},
            machine_id=self._id("m"),
            order_id=self._id("o"),
            lease_id=self._id("l"),
            job_id=self._job,
            from_at=self._created,
            to_at=self._ended,
            amount_microusd=amount,
        )
        posting = Posting(
            id="p",
            at=now,
            memo="compute",
            job_id=JobId("j"),
            kind=ChargeKind.COMPUTE,
            entries=(Entry("job:j", MicroUsd(1)),),
        )
        self._write_of_ended(POSTINGS, POSTINGS.pack(posting), id=self._id("p"), job_id=self._job, at=self._ended)
        for number, (account, sign) in enumerate(
            ((literal("job:", Text) + self._job, 1), (literal("provider:fake", Text), -1))
        ):
            packed = {**ENTRIES.pack(posting.entries[0]), "posting_id": "p", "number": number}
            self._write_of_ended(
                ENTRIES, packed, posting_id=self._id("p"), account=account, amount_microusd=amount * sign
            )

    def history(self) -> None:
        """Live jobs were only submitted."""
        steps = len(HISTORY)
        for version, status in enumerate(HISTORY):
            line = {
                "seq": self._n * steps + version + 1,
                "job_id": self._job,
                "kind": "job",
                "entity_id": self._job,
                "version": version,
                "at": self._created + version * (micros_of(RUN) // steps),
                "type": "JobStatusChanged" if version else "JobSubmitted",
                "body": '{"reason": "as it goes"}',
            }
            change = {
                "id": line["seq"],
                "job_id": self._job,
                "at": line["at"],
                "to_status": status,
                "meta_json": "{}",
            }
            for table, values in ((t.events, line), (t.job_events, change)):
                self._insert(table, values, None if version == 0 else ~self._is_live)

    # --- one statement each -------------------------------------------------------------------------------------

    def _write(self, rows: Rows[Any], packed: Mapping[str, Any], **of_n: Any) -> None:
        self._insert(rows.table, {**packed, **of_n})

    def _write_of_ended(self, rows: Rows[Any], packed: Mapping[str, Any], **of_n: Any) -> None:
        self._insert(rows.table, {**packed, **of_n}, ~self._is_live)

    def _insert(self, table: Any, values: Mapping[str, Any], condition: Any = None) -> None:
        columns = [table.c[name] for name in values]
        found = select(*(_cell(column, value) for column, value in zip(columns, values.values(), strict=True)))
        found = found.select_from(self._n.table)
        if condition is not None:
            found = found.where(condition)
        self._tx.run(Sql(insert(table).from_select(columns, found)), {})


def _cell(column: Any, value: Any) -> Any:
    if isinstance(value, ColumnElement):
        return value
    return cast(null(), column.type) if value is None else literal(value, column.type)


def micros_of(span: timedelta) -> int:
    return span // timedelta(microseconds=1)


def micros_between(since: datetime, until: datetime) -> int:
    return micros_of(until - since)


# --- whole databases --------------------------------------------------------------------------------------------------


def fill(url: str, years: Years) -> None:
    """An empty database that a store has opened once; nobody else may use it meanwhile."""
    if url.startswith("sqlite"):
        _fill_sqlite(Path(url.removeprefix("sqlite:///")), years)
    else:
        _fill_postgres(url, years)


def _fill_sqlite(path: Path, years: Years) -> None:
    from crucible.store.sqlite import connect, driver, whole

    with closing(connect(path)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA cache_size=-262144")
        tx = Transaction(connection.cursor(), driver(str(path)))
        for first in range(0, years.jobs, CHUNK):
            with whole(connection, driver(str(path))):
                make(tx, years, first, min(first + CHUNK, years.jobs))


def _fill_postgres(url: str, years: Years) -> None:
    from crucible.store.postgres import DRIVER, connect

    with closing(connect(url)) as connection:
        tx = Transaction(connection.cursor(), DRIVER)
        for first in range(0, years.jobs, CHUNK):
            with connection.transaction():
                make(tx, years, first, min(first + CHUNK, years.jobs))
        finish(tx)
