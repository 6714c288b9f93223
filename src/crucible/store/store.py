"""The store: every method is one transaction, handed to the runner."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from crucible.model.attempt import Attempt
from crucible.model.catalog import Price
from crucible.model.change import Change
from crucible.model.channel import Channel
from crucible.model.dataset import Dataset, DatasetCopy
from crucible.model.host import Host
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
    TokenId,
    UserId,
)
from crucible.model.job import Job
from crucible.model.lease import Lease, Node, Order, SpotLives
from crucible.model.ledger import Cooldown, Posting, Usage
from crucible.model.outputs import Output, OutputTotals
from crucible.model.quota import Holding
from crucible.model.record import (
    Artifact,
    Beat,
    Checkpoint,
    Prediction,
    Principal,
    Progress,
    Record,
    StepResult,
    Token,
    User,
)
from crucible.model.shards import Desk, Shard, ShardState, ShardTally, Turn
from crucible.model.sweep import Goal, Tried
from crucible.model.task import Task
from crucible.model.template import StoredTemplate
from crucible.model.tree import Crewed, Crews, NodeWork, Tally, TaskTree
from crucible.model.units import MicroUsd
from crucible.ports.prices import Feed, PriceFacts, PriceKey, PriceMark, PriceQuery
from crucible.ports.store import Claim, Due, JobPage, JobQuery, LoggedEvent, PredictionQuery, Segment
from crucible.ports.trials import JobProgress, NewCurves, RunTimes, TaskPage, TaskQuery, TrialCount, Tries
from crucible.ports.workflows import Shape
from crucible.store import (
    channels,
    commits,
    crews,
    datasets,
    entities,
    hosts,
    lists,
    lives,
    money,
    outputs,
    people,
    plans,
    prices,
    records,
    shards,
    submissions,
    templates,
    trees,
    trials,
    workflows,
)
from crucible.store.claims import Claims
from crucible.store.prices import save as save_prices
from crucible.store.runner import Runner
from crucible.store.sql import Transaction


class SqlStore:
    def __init__(self, runner: Runner, claims: Claims) -> None:
        self._runner = runner
        self._claims = claims

    async def close(self) -> None:
        await self._runner.close()

    # --- entities -------------------------------------------------------------------------------------------

    async def job(self, job_id: JobId) -> Job:
        return await self._runner.read(lambda tx: entities.job(tx, job_id))

    async def task(self, task_id: TaskId) -> Task:
        return await self._runner.read(lambda tx: entities.task(tx, task_id))

    async def attempt(self, attempt_id: AttemptId) -> Attempt:
        return await self._runner.snapshot(lambda tx: entities.attempt(tx, attempt_id))

    async def order(self, order_id: OrderId) -> tuple[Order, tuple[Lease, ...]]:
        return await self._runner.snapshot(lambda tx: entities.order(tx, order_id))

    async def lease(self, lease_id: LeaseId) -> Lease:
        return await self._runner.read(lambda tx: entities.lease(tx, lease_id))

    async def node(self, node_id: NodeId) -> Node:
        return await self._runner.read(lambda tx: entities.node(tx, node_id))

    async def tree(self, task_id: TaskId) -> TaskTree:
        return await self._runner.snapshot(lambda tx: trees.tree(tx, task_id))

    async def tally(self, job_id: JobId) -> Tally:
        return await self._runner.snapshot(lambda tx: trees.tally(tx, job_id))

    # --- lists ----------------------------------------------------------------------------------------------

    async def jobs(self, query: JobQuery) -> JobPage:
        return await self._runner.read(lambda tx: lists.jobs(tx, query))

    async def job_tasks(self, job_id: JobId) -> Sequence[Task]:
        return await self._runner.read(lambda tx: lists.job_tasks(tx, job_id))

    async def job_attempts(self, job_id: JobId) -> Sequence[Attempt]:
        return await self._runner.snapshot(lambda tx: lists.job_attempts(tx, job_id))

    async def task_attempts(self, job_id: JobId, task_index: int) -> Sequence[Attempt]:
        return await self._runner.snapshot(lambda tx: lists.task_attempts(tx, job_id, task_index))

    async def job_leases(self, job_id: JobId) -> Sequence[Lease]:
        return await self._runner.read(lambda tx: lists.job_leases(tx, job_id))

    async def job_orders(self, job_id: JobId) -> Sequence[Order]:
        return await self._runner.read(lambda tx: lists.job_orders(tx, job_id))

    async def node_work(self, node_id: NodeId) -> NodeWork:
        return await self._runner.snapshot(lambda tx: crews.node_work(tx, node_id))

    async def crewed(self, now: datetime) -> Sequence[Crewed]:
        return await self._runner.snapshot(lambda tx: crews.crewed(tx, now))

    async def crews(self, job_id: JobId) -> Crews:
        return await self._runner.snapshot(lambda tx: crews.crews(tx, job_id))

    async def seated(
        self, job_id: JobId, now: datetime, limit: int, *, without: Collection[TaskId] = ()
    ) -> Sequence[Task]:
        return await self._runner.read(lambda tx: crews.seated(tx, job_id, now, limit, without))

    async def waiting_tasks(self, job_id: JobId, limit: int) -> Sequence[Task]:
        return await self._runner.read(lambda tx: crews.waiting_tasks(tx, job_id, limit))

    async def tasks_at_work(self, job_id: JobId) -> Sequence[TaskId]:
        return await self._runner.read(lambda tx: crews.tasks_at_work(tx, job_id))

    async def waiting(self, now: datetime, limit: int, without: Collection[TaskId] = ()) -> Sequence[TaskTree]:
        return await self._runner.snapshot(lambda tx: trees.waiting(tx, now, limit, without))

    async def open_leases(self, provider: str, region: str | None = None) -> Sequence[Lease]:
        return await self._runner.read(lambda tx: lists.open_leases(tx, provider, region))

    async def holdings(self, provider: str) -> Sequence[Holding]:
        return await self._runner.read(lambda tx: lists.holdings(tx, provider))

    async def open_orders(self, provider: str, region: str | None = None) -> Sequence[Order]:
        return await self._runner.read(lambda tx: lists.open_orders(tx, provider, region))

    async def open_places(self) -> Sequence[tuple[str, str]]:
        return await self._runner.read(lists.open_places)

    async def due(self, now: datetime, limit: int) -> Due:
        return await self._runner.snapshot(lambda tx: lists.due(tx, now, limit))

    async def stranded(self, limit: int) -> Sequence[TaskId]:
        return await self._runner.read(lambda tx: lists.stranded(tx, limit))

    async def unfinished_tasks(self, job_id: JobId) -> Sequence[TaskId]:
        return await self._runner.read(lambda tx: lists.unfinished_tasks(tx, job_id))

    async def events(self, job_id: JobId, after: int = 0, limit: int = 1000) -> Sequence[LoggedEvent]:
        return await self._runner.read(lambda tx: records.events(tx, job_id, after, limit))

    async def artifacts(self, job_id: JobId) -> Sequence[Artifact]:
        return await self._runner.read(lambda tx: records.artifacts(tx, job_id))

    async def checkpoints(self, lineage: JobId) -> Sequence[Checkpoint]:
        return await self._runner.read(lambda tx: records.checkpoints(tx, lineage))

    async def newest_step(self, lineage: JobId, task_index: int) -> int | None:
        return await self._runner.read(lambda tx: records.newest_step(tx, lineage, task_index))

    async def task_progress(self, task_id: TaskId) -> Progress | None:
        return await self._runner.read(lambda tx: records.task_progress(tx, task_id))

    async def progress(self, job_id: JobId) -> Sequence[Progress]:
        return await self._runner.read(lambda tx: records.progress(tx, job_id))

    async def usage(self, job_id: JobId) -> Sequence[Beat]:
        return await self._runner.read(lambda tx: records.usage(tx, job_id))

    # --- writing --------------------------------------------------------------------------------------------

    async def commit(
        self,
        changes: Sequence[Change],
        records: Sequence[Record] = (),
        *,
        label: str,
        claim: Claim | None = None,
    ) -> None:
        def guard(tx: Transaction) -> None:
            self._claims.check(tx, claim)

        await self._runner.write(lambda tx: commits.commit(tx, changes, records, guard), label=label)

    async def submit(
        self,
        changes: Sequence[Change],
        *,
        idempotency_key: str | None,
        user_id: UserId,
        plan: str | None = None,
        records: Sequence[Record] = (),
    ) -> JobId:
        return await self._runner.write(
            lambda tx: submissions.submit(tx, changes, idempotency_key, user_id, plan, records), label="submit"
        )

    async def heard(self, beats: Sequence[Beat], progress: Sequence[Progress]) -> None:
        await self._runner.write(lambda tx: records.heard(tx, beats, progress), label="heard", durable=False)

    # --- claims and servers -----------------------------------------------------------------------------------

    async def claim(self, name: str, owner: str, ttl: timedelta) -> Claim | None:
        return await self._claims.claim(name, owner, ttl)

    async def renew(self, claim: Claim, ttl: timedelta) -> bool:
        return await self._claims.renew(claim, ttl)

    async def release(self, claim: Claim) -> None:
        await self._claims.release(claim)

    async def announce(self, server_id: str, url: str, ttl: timedelta) -> None:
        await self._claims.announce(server_id, url, ttl)

    async def servers(self) -> Sequence[str]:
        return await self._claims.servers()

    # --- people who talk to nodes ---------------------------------------------------------------------------------

    async def add_channel(self, channel: Channel, now: datetime) -> None:
        await self._runner.write(lambda tx: channels.add(tx, channel, now), label="channel", durable=False)

    async def channels(self, node_id: NodeId, now: datetime) -> Sequence[Channel]:
        return await self._runner.read(lambda tx: channels.of_node(tx, node_id, now))

    async def drop_channel(self, channel_id: ChannelId) -> None:
        await self._runner.write(lambda tx: channels.drop(tx, channel_id), label="channel", durable=False)

    # --- streams ------------------------------------------------------------------------------------------------

    async def add_segment(self, segment: Segment) -> None:
        await self._runner.write(lambda tx: records.add_segment(tx, segment), label="segment")

    async def segments(self, stream: str) -> Sequence[Segment]:
        return await self._runner.read(lambda tx: records.segments(tx, stream))

    # --- prices -----------------------------------------------------------------------------------------------

    async def save_prices(
        self,
        feed: str,
        prices: Sequence[Price],
        now: datetime,
        *,
        facts: Mapping[tuple[str, str, str], PriceFacts] | None = None,
        yields_to: Collection[str] = (),
    ) -> int:
        return await self._runner.write(
            lambda tx: save_prices(tx, feed, prices, now, facts or {}, yields_to), label="prices"
        )

    async def prices(self, after: PriceKey | None = None, limit: int = 1000) -> Sequence[Price]:
        return await self._runner.read(lambda tx: prices.page(tx, after, limit))

    async def price_history(self, query: PriceQuery) -> Sequence[Price]:
        return await self._runner.read(lambda tx: prices.history(tx, query))

    async def price_mark(self) -> PriceMark:
        return await self._runner.read(prices.mark)

    async def price_feed_failed(self, feed: str, error: str, now: datetime) -> None:
        await self._runner.write(lambda tx: prices.failed(tx, feed, error, now), label="prices")

    async def price_feeds(self) -> Sequence[Feed]:
        return await self._runner.read(prices.feeds)

    async def forget_price_feed(self, feed: str) -> None:
        await self._runner.write(lambda tx: prices.forget(tx, feed), label="prices")

    # --- money --------------------------------------------------------------------------------------------------

    async def usages(self, provider: str, machines: Collection[MachineId]) -> Mapping[MachineId, Sequence[Usage]]:
        return await self._runner.read(lambda tx: money.usages(tx, provider, machines))

    async def open_usages(self, provider: str, region: str) -> Sequence[Usage]:
        return await self._runner.read(lambda tx: money.open_usages(tx, provider, region))

    async def job_usages(self, job_id: JobId) -> Sequence[Usage]:
        return await self._runner.read(lambda tx: money.job_usages(tx, job_id))

    async def job_postings(self, job_id: JobId) -> Sequence[Posting]:
        return await self._runner.read(lambda tx: money.job_postings(tx, job_id))

    async def job_costs(self, job_ids: Collection[JobId]) -> Mapping[JobId, MicroUsd]:
        return await self._runner.read(lambda tx: money.job_costs(tx, job_ids))

    async def open_usages_of(self, job_ids: Collection[JobId]) -> Sequence[Usage]:
        return await self._runner.read(lambda tx: money.open_usages_of(tx, job_ids))

    async def balances(self) -> Mapping[str, MicroUsd]:
        return await self._runner.read(money.balances)

    async def cooldowns(self, now: datetime) -> Sequence[Cooldown]:
        return await self._runner.read(lambda tx: money.cooldowns(tx, now))

    async def spot_lives(self, since: datetime, now: datetime) -> Sequence[SpotLives]:
        return await self._runner.read(lambda tx: lives.spot_lives(tx, since, now))

    # --- plans and what came of them ----------------------------------------------------------------------------

    async def save_plan(self, job_id: JobId, body: Mapping[str, Any], now: datetime) -> None:
        await self._runner.write(lambda tx: plans.save_plan(tx, job_id, body, now), label="plan")

    async def plan(self, job_id: JobId) -> Mapping[str, Any] | None:
        return await self._runner.read(lambda tx: plans.plan(tx, job_id))

    async def save_prediction(self, prediction: Prediction) -> None:
        await self._runner.write(lambda tx: plans.save_prediction(tx, prediction), label="prediction")

    async def prediction(self, job_id: JobId) -> Prediction | None:
        return await self._runner.read(lambda tx: plans.prediction(tx, job_id))

    async def predictions(self, query: PredictionQuery) -> Sequence[Prediction]:
        return await self._runner.read(lambda tx: plans.predictions(tx, query))

    # --- trials -------------------------------------------------------------------------------------------------

    async def job_progress(self, job_id: JobId) -> JobProgress | None:
        return await self._runner.snapshot(lambda tx: trials.job_progress(tx, job_id))

    async def tries(self, job_id: JobId) -> Tries:
        return await self._runner.read(lambda tx: trials.tries(tx, job_id))

    async def task_page(self, query: TaskQuery) -> TaskPage:
        return await self._runner.snapshot(lambda tx: trials.task_page(tx, query))

    async def tasks_between(self, job_id: JobId, first: int, end: int) -> Sequence[Task]:
        return await self._runner.read(lambda tx: trials.tasks_between(tx, job_id, first, end))

    async def trial_counts(self, job_id: JobId) -> Sequence[TrialCount]:
        return await self._runner.read(lambda tx: trials.trial_counts(tx, job_id))

    async def sweeping(self) -> Sequence[JobId]:
        return await self._runner.read(trials.sweeping)

    async def tried(self, job_id: JobId, goal: Goal, limit: int) -> Sequence[Tried]:
        return await self._runner.snapshot(lambda tx: trials.tried(tx, job_id, goal, limit))

    async def curves(self, job_id: JobId, since: datetime | None) -> NewCurves:
        return await self._runner.read(lambda tx: trials.curves(tx, job_id, since))

    async def running_trials(self, job_id: JobId) -> Collection[TaskId]:
        return await self._runner.read(lambda tx: trials.running_trials(tx, job_id))

    async def run_times(self, job_id: JobId) -> RunTimes:
        return await self._runner.snapshot(lambda tx: trials.run_times(tx, job_id))

    async def newest_checkpoint(self, lineage: JobId, task_index: int) -> Checkpoint | None:
        return await self._runner.read(lambda tx: trials.newest_checkpoint(tx, lineage, task_index))

    # --- workflows ----------------------------------------------------------------------------------------------

    async def child_jobs(self, job_id: JobId) -> Sequence[Job]:
        return await self._runner.read(lambda tx: workflows.child_jobs(tx, job_id))

    async def workflows(self, job_ids: Collection[JobId]) -> Mapping[JobId, Shape]:
        return await self._runner.snapshot(lambda tx: workflows.shapes(tx, job_ids))

    async def step_result(self, cache_key: Digest) -> StepResult | None:
        return await self._runner.read(lambda tx: workflows.step_result(tx, cache_key))

    # --- own hosts ----------------------------------------------------------------------------------------------

    async def hosts(self) -> Sequence[Host]:
        return await self._runner.read(hosts.hosts)

    async def add_hosts(self, new: Sequence[Host]) -> None:
        await self._runner.write(lambda tx: hosts.add(tx, new), label="add_hosts")

    async def save_host(self, host: Host) -> Host:
        return await self._runner.write(lambda tx: hosts.save(tx, host), label="save_host")

    async def remove_host(self, host: Host) -> None:
        await self._runner.write(lambda tx: hosts.remove(tx, host), label="remove_host")

    # --- templates ----------------------------------------------------------------------------------------------

    async def templates(self) -> Sequence[StoredTemplate]:
        return await self._runner.read(templates.templates)

    async def template(self, name: str) -> StoredTemplate | None:
        return await self._runner.read(lambda tx: templates.template(tx, name))

    async def save_template(self, template: StoredTemplate, *, by: UserId | None) -> StoredTemplate:
        return await self._runner.write(lambda tx: templates.save(tx, template, by), label="save_template")

    async def remove_template(self, name: str, *, by: UserId | None) -> bool:
        return await self._runner.write(lambda tx: templates.remove(tx, name, by), label="remove_template")

    # --- datasets -----------------------------------------------------------------------------------------------

    async def dataset(self, name: str) -> Dataset | None:
        return await self._runner.read(lambda tx: datasets.dataset(tx, name))

    async def datasets(self) -> Sequence[Dataset]:
        return await self._runner.read(datasets.datasets)

    async def save_dataset(self, dataset: Dataset, *, claim: Claim) -> None:
        await self._guarded(lambda tx: datasets.save(tx, dataset), claim)

    async def remove_datasets(self, names: Sequence[str], *, claim: Claim) -> None:
        await self._guarded(lambda tx: datasets.remove(tx, names), claim)

    async def dataset_jobs(self, digest: Digest) -> Sequence[JobId]:
        return await self._runner.read(lambda tx: datasets.jobs_of(tx, digest))

    async def dataset_copies(self, digest: Digest | None = None) -> Sequence[DatasetCopy]:
        return await self._runner.read(lambda tx: datasets.copies(tx, digest))

    async def remove_dataset_copies(self, digest: Digest, *, claim: Claim) -> None:
        await self._guarded(lambda tx: datasets.remove_copies(tx, digest), claim)

    async def _guarded(self, work: Callable[[Transaction], None], claim: Claim) -> None:
        def guarded(tx: Transaction) -> None:
            self._claims.check(tx, claim)
            work(tx)

        await self._runner.write(guarded, label="dataset")

    # --- what tasks left behind ---------------------------------------------------------------------------------

    async def outputs(self, job_id: JobId, after: int = -1, limit: int = 1000) -> Sequence[Output]:
        return await self._runner.read(lambda tx: outputs.page(tx, job_id, after, limit))

    async def output(self, job_id: JobId, task_index: int) -> Output | None:
        return await self._runner.read(lambda tx: outputs.of_task(tx, job_id, task_index))

    async def output_totals(self, job_id: JobId) -> OutputTotals:
        return await self._runner.read(lambda tx: outputs.totals(tx, job_id))

    async def output_of_tree(self, digest: Digest, user_id: UserId | None) -> Output | None:
        return await self._runner.read(lambda tx: outputs.of_tree(tx, digest, user_id))

    async def kept_outputs(self, uri: str, digests: Collection[Digest]) -> frozenset[Digest]:
        return await self._runner.read(lambda tx: outputs.kept(tx, uri, digests))

    # --- shards -------------------------------------------------------------------------------------------------

    async def shards(
        self, job_id: JobId, *, after: int = -1, limit: int = 1000, state: ShardState | None = None
    ) -> Sequence[Shard]:
        return await self._runner.read(lambda tx: shards.listed(tx, job_id, after, limit, state))

    async def shard(self, job_id: JobId, number: int) -> Shard:
        return await self._runner.read(lambda tx: shards.shard(tx, job_id, number))

    async def shard_tally(self, job_id: JobId) -> ShardTally:
        return await self._runner.snapshot(lambda tx: shards.tally(tx, job_id))

    async def lease_shard(
        self, job_id: JobId, attempt_id: AttemptId, asked: str, decide: Callable[[Desk], Turn]
    ) -> Turn:
        return await self._runner.write(
            lambda tx: shards.lease(tx, job_id, attempt_id, asked, decide), label="shard.lease"
        )

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
        return await self._runner.write(
            lambda tx: shards.change(tx, job_id, number, attempt_id, change), label=label, durable=durable
        )

    # --- people -------------------------------------------------------------------------------------------------

    async def principal(self, digest: Digest, now: datetime) -> Principal | None:
        return await self._runner.read(lambda tx: people.principal(tx, digest, now))

    async def add_user(self, user: User) -> None:
        await self._runner.write(lambda tx: people.add_user(tx, user), label="user")

    async def users(self) -> Sequence[User]:
        return await self._runner.read(people.users)

    async def add_token(self, token: Token) -> None:
        await self._runner.write(lambda tx: people.add_token(tx, token), label="token")

    async def tokens(self, user_id: UserId | None = None) -> Sequence[Token]:
        return await self._runner.read(lambda tx: people.tokens(tx, user_id))

    async def revoke_token(self, token_id: TokenId, now: datetime) -> None:
        await self._runner.write(lambda tx: people.revoke_token(tx, token_id, now), label="revoke")
