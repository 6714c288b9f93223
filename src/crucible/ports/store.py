"""The memory. State and events are written in one transaction, guarded by version; claims let several servers share
one database. Nothing here decides, and no implementation talks to the network inside a transaction."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol

from crucible.model.account import Sight
from crucible.model.attempt import Attempt
from crucible.model.audit import AuditEntry
from crucible.model.catalog import Price
from crucible.model.change import Change
from crucible.model.channel import Channel
from crucible.model.dataset import Dataset, DatasetCopy
from crucible.model.ids import (
    AttemptId,
    ChannelId,
    Digest,
    JobId,
    LeaseId,
    MachineId,
    NodeId,
    OrderId,
    TaskId,
    UserId,
)
from crucible.model.job import Desired, Job, JobStatus
from crucible.model.lease import Lease, Node, Order, SpotLives
from crucible.model.ledger import Cooldown, Posting, Usage
from crucible.model.outputs import Output, OutputTotals
from crucible.model.quota import Holding
from crucible.model.record import Artifact, Beat, Checkpoint, Prediction, Progress, Record
from crucible.model.shards import Desk, Shard, ShardState, ShardTally, Turn
from crucible.model.task import Task
from crucible.model.tree import Crewed as Crewed
from crucible.model.tree import Crews as Crews
from crucible.model.tree import NodeGlance as NodeGlance
from crucible.model.tree import NodeWork as NodeWork
from crucible.model.tree import Tally as Tally
from crucible.model.tree import TaskTree as TaskTree
from crucible.model.units import MicroUsd
from crucible.ports.accounts import AccountBook
from crucible.ports.alerts import AlertBook
from crucible.ports.budgets import BudgetBook
from crucible.ports.costs import CostBook
from crucible.ports.figures import FigureBook
from crucible.ports.health import HealthBook
from crucible.ports.hosts import HostBook
from crucible.ports.identity import IdentityBook
from crucible.ports.prices import Feed, PriceFacts, PriceKey, PriceMark, PriceQuery
from crucible.ports.retention import RetentionBook
from crucible.ports.secrets import SecretBook
from crucible.ports.templates import TemplateBook
from crucible.ports.traces import TraceBook
from crucible.ports.trials import TrialBook
from crucible.ports.workflows import WorkflowBook


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's right to a name (`task:…`, `order:…`, `cycle`) until it expires. `fence` grows with each owner."""

    name: str
    owner: str
    fence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobQuery:
    status: frozenset[JobStatus] = frozenset()  # empty: any
    seen_by: Sight | None = None  # None: everybody's
    user_id: UserId | None = None
    team: str | None = None
    project: str | None = None
    name: str | None = None
    parent: JobId | None = None  # jobs of this workflow's steps
    with_steps: bool = False  # jobs of steps too, of whatever workflow; else they are left out
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
    health: str | None = None  # a word of model.health: as it was last found
    desired: Desired = Desired.RUN
    team: str | None = None
    project: str | None = None


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
    workflows: tuple[JobId, ...] = ()


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
    provider: str | None = None
    status: str | None = None
    teaches: bool = False  # only those whose hours came from speeds
    limit: int = 1000


class Store(
    AccountBook,
    AlertBook,
    BudgetBook,
    CostBook,
    FigureBook,
    HealthBook,
    HostBook,
    IdentityBook,
    SecretBook,
    TemplateBook,
    TraceBook,
    TrialBook,
    WorkflowBook,
    RetentionBook,
    Protocol,
):
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
    async def task_attempts(self, job_id: JobId, task_index: int) -> Sequence[Attempt]: ...
    async def job_leases(self, job_id: JobId) -> Sequence[Lease]: ...
    async def job_orders(self, job_id: JobId) -> Sequence[Order]: ...
    async def node_work(self, node_id: NodeId) -> NodeWork: ...
    async def node_glance(self, node_id: NodeId) -> NodeGlance: ...

    async def waiting(self, now: datetime, limit: int, without: Collection[TaskId] = ()) -> Sequence[TaskTree]:
        """Tasks to place on machines of their own: phase waiting, not_before passed, job desired run; priority, then
        age. `without` are left out."""
        ...

    async def crewed(self, now: datetime) -> Sequence[Crewed]:
        """Jobs that want to run and have seated tasks that wait, or crews; by priority, then age."""
        ...

    async def crews(self, job_id: JobId) -> Crews: ...
    async def seated(
        self, job_id: JobId, now: datetime, limit: int, *, without: Collection[TaskId] = ()
    ) -> Sequence[Task]:
        """Its next tasks to get a seat, but those of `without`."""
        ...

    async def waiting_tasks(self, job_id: JobId, limit: int) -> Sequence[Task]:
        """Its tasks that have no attempt and wait for one, whenever; crews and steps are none of them."""
        ...

    async def tasks_at_work(self, job_id: JobId) -> Sequence[TaskId]:
        """Its tasks that have not ended, but those that only wait for a seat: they hold nothing."""
        ...

    async def open_leases(self, provider: str, region: str | None = None) -> Sequence[Lease]: ...
    async def holdings(self, provider: str) -> Sequence[Holding]:
        """Open leases, counted by region, type and market."""
        ...

    async def open_orders(self, provider: str, region: str | None = None) -> Sequence[Order]:
        """Orders that are not settled."""
        ...

    async def open_places(self) -> Sequence[tuple[str, str]]:
        """Every provider and region of an open lease or an unsettled order, in order."""
        ...

    async def due(self, now: datetime, limit: int) -> Due:
        """Non-terminal rows whose deadline has passed, waiting tasks that nobody wants any more, unsettled orders,
        closing leases' orders, jobs whose status does not yet follow from their tasks, and workflows with steps that
        are to begin or do not say what their jobs say."""
        ...

    async def stranded(self, limit: int) -> Sequence[TaskId]:
        """Tasks that are at work and hold no machine any more: nobody has told them."""
        ...

    async def unfinished_tasks(self, job_id: JobId) -> Sequence[TaskId]: ...
    async def events(self, job_id: JobId, after: int = 0, limit: int = 1000) -> Sequence[LoggedEvent]: ...
    async def statuses(self, job_id: JobId, after: int = 0, limit: int = 1000) -> Sequence[LoggedEvent]:
        """Of the events, the job's changes of status."""
        ...

    async def artifacts(self, job_id: JobId) -> Sequence[Artifact]: ...
    async def checkpoints(self, lineage: JobId) -> Sequence[Checkpoint]: ...
    async def newest_step(self, lineage: JobId, task_index: int) -> int | None:
        """Of that task's committed checkpoints; None if there is none."""
        ...

    async def progress(self, job_id: JobId) -> Sequence[Progress]:
        """Of each of its tasks, without their curves."""
        ...

    async def task_progress(self, task_id: TaskId) -> Progress | None: ...
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

    # --- people who talk to nodes -------------------------------------------------------------------------
    async def add_channel(self, channel: Channel, now: datetime) -> None:
        """Those that have expired are forgotten meanwhile."""
        ...

    async def channels(self, node_id: NodeId, now: datetime) -> Sequence[Channel]:
        """That wait for the node's agent, in the order of their making."""
        ...

    async def drop_channel(self, channel_id: ChannelId) -> None:
        """Absent is success."""
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

    # --- datasets ---------------------------------------------------------------------------------------------
    async def dataset(self, name: str) -> Dataset | None:
        """By its name, or as NAME@DIGEST: the tree that the name meant before it was given to another one."""
        ...

    async def datasets(self) -> Sequence[Dataset]: ...
    async def save_dataset(self, dataset: Dataset, *, claim: Claim, audit: AuditEntry | None = None) -> None:
        """A tree that had the name before stays as NAME@DIGEST. The same again changes nothing. Raises StaleClaim."""
        ...

    async def remove_datasets(self, names: Sequence[str], *, claim: Claim, audit: AuditEntry | None = None) -> None:
        """All or none. Raises Conflict while a job that is not over needs one of them and no other name has its tree,
        StaleClaim."""
        ...

    async def dataset_jobs(self, digest: Digest) -> Sequence[JobId]:
        """Jobs that were given this tree and are not over."""
        ...

    async def dataset_copies(self, digest: Digest | None = None) -> Sequence[DatasetCopy]:
        """In the storage of regions; written as records of a commit, which fails where there is one already."""
        ...

    async def remove_dataset_copies(self, digest: Digest, *, claim: Claim) -> None: ...

    # --- what tasks left behind: written as records of a commit ---------------------------------------------------
    async def outputs(self, job_id: JobId, after: int = -1, limit: int = 1000) -> Sequence[Output]:
        """Of the tasks whose index is above `after`, in their order."""
        ...

    async def output(self, job_id: JobId, task_index: int) -> Output | None: ...
    async def output_totals(self, job_id: JobId) -> OutputTotals: ...
    async def output_of_tree(self, digest: Digest, seen_by: Sight | None) -> Output | None:
        """What a job of theirs or of their teams left as this tree, the newest; None: of anybody's."""
        ...

    async def kept_outputs(self, uri: str, digests: Collection[Digest]) -> frozenset[Digest]:
        """Those of these trees that some row finds there."""
        ...

    # --- shards: written as records of a submission -----------------------------------------------------------
    async def shards(
        self, job_id: JobId, *, after: int = -1, limit: int = 1000, state: ShardState | None = None
    ) -> Sequence[Shard]:
        """In their order, those above `after`."""
        ...

    async def shard(self, job_id: JobId, number: int) -> Shard: ...
    async def shard_tally(self, job_id: JobId) -> ShardTally: ...
    async def lease_shard(
        self, job_id: JobId, attempt_id: AttemptId, asked: str, decide: Callable[[Desk], Turn]
    ) -> Turn:
        """One transaction: what `decide` gives out and drops is written. Nobody is given what another one gets at the
        same moment. Raises NotFound if the attempt is over."""
        ...

    async def change_shard(
        self,
        job_id: JobId,
        number: int,
        attempt_id: AttemptId,
        change: Callable[[Shard], Shard],
        *,
        label: str,
        durable: bool = True,
    ) -> tuple[Shard, Shard]:
        """One transaction; before and after. Raises NotFound if the attempt is over."""
        ...
