"""The memory. State and events are written in one transaction, guarded by version; claims let several servers share
one database. Nothing here decides, and no implementation talks to the network inside a transaction."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol

from crucible.model.attempt import Attempt
from crucible.model.catalog import Price
from crucible.model.change import Change
from crucible.model.ids import AttemptId, Digest, JobId, LeaseId, MachineId, NodeId, OrderId, TaskId, TokenId, UserId
from crucible.model.job import Job, JobStatus
from crucible.model.lease import Lease, Node, Order, SpotLives
from crucible.model.ledger import Cooldown, Posting, Usage
from crucible.model.record import Artifact, Beat, Checkpoint, Prediction, Principal, Progress, Record, Token, User
from crucible.model.task import Task
from crucible.model.tree import Tally as Tally
from crucible.model.tree import TaskTree as TaskTree
from crucible.model.units import MicroUsd
from crucible.ports.prices import Feed, PriceFacts, PriceKey, PriceMark, PriceQuery


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's right to a name (`task:…`, `order:…`, `cycle`) until it expires. `fence` grows with each owner."""

    name: str
    owner: str
    fence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobQuery:
    status: frozenset[JobStatus] = frozenset()  # empty: any
    user_id: UserId | None = None
    name: str | None = None
    limit: int = 50
    cursor: str | None = None  # newest first, by (created_at, id)


class JobSummary(NamedTuple):
    """A row of a list; reading fifty of them must stay cheap, and a tuple is made in a third of the time."""

    id: JobId
    name: str
    status: JobStatus
    reason: str | None
    user_id: UserId
    job_type: str
    framework: str
    gpus: int
    selected_provider: str | None
    selected_region: str | None
    cost_running_microusd: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    progress: float | None  # 0 … 1


@dataclass(frozen=True, slots=True)
class JobPage:
    items: tuple[JobSummary, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """A line of the log of everything. `seq` grows; the statuses are set for status changes of the job."""

    seq: int
    job_id: JobId
    kind: str  # job, task, attempt, order, lease, node
    entity_id: str
    version: int
    at: datetime
    type: str
    body: Mapping[str, Any]
    from_status: JobStatus | None = None
    to_status: JobStatus | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Due:
    """Rows whose time has come: somebody must look."""

    tasks: tuple[TaskId, ...] = ()
    orders: tuple[OrderId, ...] = ()
    jobs: tuple[JobId, ...] = ()


@dataclass(frozen=True, slots=True)
class Segment:
    """A sealed piece of a stream: an index for whoever opens it later."""

    stream: str
    number: int
    first_offset: int
    size_bytes: int
    cursors: Mapping[str, int] = field(default_factory=dict)  # source -> next record number


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionQuery:
    """Jobs that have ended, the newest first; None means any."""

    framework: str | None = None
    model_class: str | None = None
    gpu: str | None = None
    team: str | None = None
    status: str | None = None
    teaches: bool = False  # only those whose hours came from speeds
    limit: int = 1000


class Store(Protocol):
    async def close(self) -> None: ...

    # --- entities: load raises NotFound -----------------------------------------------------------
    async def job(self, job_id: JobId) -> Job: ...
    async def task(self, task_id: TaskId) -> Task: ...
    async def attempt(self, attempt_id: AttemptId) -> Attempt: ...
    async def order(self, order_id: OrderId) -> tuple[Order, tuple[Lease, ...]]: ...
    async def lease(self, lease_id: LeaseId) -> Lease: ...
    async def node(self, node_id: NodeId) -> Node: ...
    async def tree(self, task_id: TaskId) -> TaskTree: ...
    async def tally(self, job_id: JobId) -> Tally: ...

    # --- lists ------------------------------------------------------------------------------------
    async def jobs(self, query: JobQuery) -> JobPage: ...
    async def job_tasks(self, job_id: JobId) -> Sequence[Task]: ...
    async def job_attempts(self, job_id: JobId) -> Sequence[Attempt]: ...
    async def job_leases(self, job_id: JobId) -> Sequence[Lease]: ...
    async def job_orders(self, job_id: JobId) -> Sequence[Order]: ...
    async def node_work(self, node_id: NodeId) -> tuple[Node, Lease, Job, Attempt | None]:
        """What a node needs to know: its lease, its job, and the live attempt of its task."""
        ...

    async def waiting(self, now: datetime, limit: int, without: Collection[TaskId] = ()) -> Sequence[TaskTree]:
        """Tasks to place: phase waiting, not_before passed, job desired run; priority, then age. `without` are left
        out."""
        ...

    async def open_leases(self, provider: str, region: str | None = None) -> Sequence[Lease]: ...
    async def open_orders(self, provider: str, region: str | None = None) -> Sequence[Order]:
        """Orders that are not settled."""
        ...

    async def open_places(self) -> Sequence[tuple[str, str]]:
        """Every provider and region of an open lease or an unsettled order, in order."""
        ...

    async def due(self, now: datetime, limit: int) -> Due:
        """Non-terminal rows whose deadline has passed, waiting tasks that nobody wants any more, unsettled orders,
        closing leases' orders, and jobs whose status does not yet follow from their tasks."""
        ...

    async def stranded(self, limit: int) -> Sequence[TaskId]:
        """Tasks that are at work and hold no machine any more: nobody has told them."""
        ...

    async def unfinished_tasks(self, job_id: JobId) -> Sequence[TaskId]: ...
    async def events(self, job_id: JobId, after: int = 0, limit: int = 1000) -> Sequence[LoggedEvent]: ...
    async def artifacts(self, job_id: JobId) -> Sequence[Artifact]: ...
    async def checkpoints(self, lineage: JobId) -> Sequence[Checkpoint]: ...
    async def newest_step(self, lineage: JobId) -> int | None:
        """Of its committed checkpoints; None if there is none."""
        ...

    async def progress(self, job_id: JobId) -> Sequence[Progress]: ...
    async def usage(self, job_id: JobId) -> Sequence[Beat]:
        """The newest beat of each of the job's nodes."""
        ...

    # --- writing ------------------------------------------------------------------------------------
    async def commit(
        self,
        changes: Sequence[Change],
        records: Sequence[Record] = (),
        *,
        label: str,
        claim: Claim | None = None,
    ) -> None:
        """One transaction. Raises StaleVersion if any row is not at its `before.version` (or a new row exists already),
        StaleClaim if `claim` is no longer ours; then nothing was written. `label` names the failpoints around it."""
        ...

    async def submit(
        self,
        changes: Sequence[Change],
        *,
        idempotency_key: str | None,
        user_id: UserId,
        plan: str | None = None,
        records: Sequence[Record] = (),
    ) -> JobId:
        """Commit a new job with its tasks, its plan as JSON, and what is expected of it. With a key that this user used
        before: write nothing and return the first job's id, or raise Conflict if that job had another spec."""
        ...

    async def heard(self, beats: Sequence[Beat], progress: Sequence[Progress]) -> None:
        """Not events: coalesced, no version, the newest wins."""
        ...

    # --- claims: by the database's clock ----------------------------------------------------------------
    async def claim(self, name: str, owner: str, ttl: timedelta) -> Claim | None: ...
    async def renew(self, claim: Claim, ttl: timedelta) -> bool: ...
    async def release(self, claim: Claim) -> None: ...

    # --- servers that share the database ------------------------------------------------------------------
    async def announce(self, server_id: str, url: str, ttl: timedelta) -> None: ...
    async def servers(self) -> Sequence[str]:
        """URLs of live servers."""
        ...

    # --- streams ---------------------------------------------------------------------------------------------
    async def add_segment(self, segment: Segment) -> None: ...
    async def segments(self, stream: str) -> Sequence[Segment]: ...

    # --- prices --------------------------------------------------------------------------------------------
    async def save_prices(
        self,
        feed: str,
        prices: Sequence[Price],
        now: datetime,
        *,
        facts: Mapping[tuple[str, str, str], PriceFacts] | None = None,
        yields_to: Collection[str] = (),
    ) -> int:
        """`prices` are all that `feed` knows now: what it told before and no longer does is withdrawn, an older price
        than the one we have of it is not taken, and a row of another feed is taken over, unless that one is among
        `yields_to`. A changed price joins the history. Returns how many were new, changed or withdrawn. `facts` are by
        provider, region and type; region "" is for every other region."""
        ...

    async def price_feed_failed(self, feed: str, error: str, now: datetime) -> None:
        """What it told before stays."""
        ...

    async def price_feeds(self) -> Sequence[Feed]: ...
    async def forget_price_feed(self, feed: str) -> None:
        """With all that it told."""
        ...

    async def prices(self, after: PriceKey | None = None, limit: int = 1000) -> Sequence[Price]:
        """Page by page; `after` is the key of the last of a page."""
        ...

    async def price_history(self, query: PriceQuery) -> Sequence[Price]:
        """Oldest first."""
        ...

    async def price_mark(self) -> PriceMark:
        """Cheap to ask: the prices have not changed as long as it has not."""
        ...

    # --- money: written as records of a commit ------------------------------------------------------------------
    async def usages(self, provider: str, machines: Collection[MachineId]) -> Mapping[MachineId, Sequence[Usage]]:
        """All stretches of these machines, oldest first; a machine without any is left out."""
        ...

    async def open_usages(self, provider: str, region: str) -> Sequence[Usage]: ...
    async def job_usages(self, job_id: JobId) -> Sequence[Usage]: ...
    async def job_postings(self, job_id: JobId) -> Sequence[Posting]: ...
    async def job_costs(self, job_ids: Collection[JobId]) -> Mapping[JobId, MicroUsd]:
        """What has been posted to each; what still runs is in `open_usages_of`."""
        ...

    async def open_usages_of(self, job_ids: Collection[JobId]) -> Sequence[Usage]: ...
    async def balances(self) -> Mapping[str, MicroUsd]:
        """Of every account; together they are nothing."""
        ...

    async def cooldowns(self, now: datetime) -> Sequence[Cooldown]:
        """Those that still hold, of each key the latest."""
        ...

    async def spot_lives(self, since: datetime, now: datetime) -> Sequence[SpotLives]:
        """Of the machines that were ordered after `since`, those that live until `now` included."""
        ...

    # --- plans and what came of them ---------------------------------------------------------------------------
    async def save_plan(self, job_id: JobId, body: Mapping[str, Any], now: datetime) -> None:
        """The last one counts. `body` becomes JSON."""
        ...

    async def plan(self, job_id: JobId) -> Mapping[str, Any] | None: ...

    async def save_prediction(self, prediction: Prediction) -> None:
        """What is None is left as it was."""
        ...

    async def prediction(self, job_id: JobId) -> Prediction | None: ...
    async def predictions(self, query: PredictionQuery) -> Sequence[Prediction]: ...

    # --- people -----------------------------------------------------------------------------------------------
    async def principal(self, digest: Digest, now: datetime) -> Principal | None:
        """Who holds the token with this digest; None if unknown, expired or revoked."""
        ...

    async def add_user(self, user: User) -> None: ...
    async def users(self) -> Sequence[User]: ...
    async def add_token(self, token: Token) -> None: ...
    async def tokens(self, user_id: UserId | None = None) -> Sequence[Token]: ...
    async def revoke_token(self, token_id: TokenId, now: datetime) -> None: ...
