"""The store: every method is one transaction, handed to the runner."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from crucible.model.account import Membership, Principal, Project, Sight, Standing, Team, Token, User
from crucible.model.alert import AlertChannel, AlertRule, Delivery, PriceSeen, Told
from crucible.model.attempt import Attempt
from crucible.model.audit import AuditEntry
from crucible.model.budget import Budget, BudgetId, Posted, Stakes
from crucible.model.catalog import Price
from crucible.model.change import Change
from crucible.model.channel import Channel
from crucible.model.costs import CostFacts, CostQuery
from crucible.model.dataset import Dataset, DatasetCopy
from crucible.model.fan_out import FanOut, Fresh
from crucible.model.figures import Figures, Overview, Totals
from crucible.model.health import Finding, HeldNode, JobHealth, PlaceHealth, SystemFacts
from crucible.model.host import Host
from crucible.model.identity import Admission, Identity
from crucible.model.ids import (
    AlertChannelId,
    AlertRuleId,
    AttemptId,
    ChannelId,
    DeliveryId,
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
from crucible.model.notice import Notice
from crucible.model.outputs import Output, OutputTotals
from crucible.model.quota import Holding
from crucible.model.record import Artifact, Beat, Checkpoint, Prediction, Progress, Record, StepResult
from crucible.model.secret import SealedValue, SecretFacts, SecretOwner, StoredSecret
from crucible.model.shards import Desk, Shard, ShardState, ShardTally, Turn
from crucible.model.sweep import Goal, Tried
from crucible.model.task import Task
from crucible.model.template import StoredTemplate
from crucible.model.tree import Crewed, Crews, NodeGlance, NodeWork, Tally, TaskTree
from crucible.model.units import MicroUsd
from crucible.ports.accounts import AuditQuery, Seal
from crucible.ports.alerts import NoticeQuery
from crucible.ports.costs import Cut
from crucible.ports.prices import Feed, PriceFacts, PriceKey, PriceMark, PriceQuery
from crucible.ports.store import Claim, Due, JobPage, JobQuery, LoggedEvent, PredictionQuery, Segment
from crucible.ports.traces import Ended
from crucible.ports.trials import JobProgress, NewCurves, RunTimes, TaskPage, TaskQuery, TrialCount, Tries
from crucible.ports.watch import NOBODY, Watch
from crucible.ports.workflows import Shape
from crucible.store import (
    alerts,
    budgets,
    channels,
    commits,
    costs,
    crews,
    datasets,
    deliveries,
    entities,
    figures,
    health,
    hosts,
    identities,
    lists,
    lives,
    money,
    notices,
    outputs,
    overview,
    people,
    plans,
    prices,
    records,
    secrets,
    shards,
    submissions,
    system,
    teams,
    templates,
    traces,
    trees,
    trials,
    workflows,
)
from crucible.store import audit as audits
from crucible.store.claims import Claims
from crucible.store.prices import save as save_prices
from crucible.store.retention_store import RetentionStore
from crucible.store.runner import Runner
from crucible.store.sql import Transaction


class SqlStore(RetentionStore):
    def __init__(self, runner: Runner, claims: Claims, watch: Watch = NOBODY) -> None:
        self._runner = runner
        self._claims = claims
        self._watch = watch

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

    async def node_glance(self, node_id: NodeId) -> NodeGlance:
        return await self._runner.snapshot(lambda tx: crews.node_glance(tx, node_id))

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

    async def statuses(self, job_id: JobId, after: int = 0, limit: int = 1000) -> Sequence[LoggedEvent]:
        return await self._runner.read(lambda tx: records.statuses(tx, job_id, after, limit))

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
        self._watch.committed(changes, records)

    async def submit(
        self,
        changes: Sequence[Change],
        *,
        idempotency_key: str | None,
        user_id: UserId,
        plan: str | None = None,
        records: Sequence[Record] = (),
    ) -> JobId:
        job_id = await self._runner.write(
            lambda tx: submissions.submit(tx, changes, idempotency_key, user_id, plan, records), label="submit"
        )
        if any(change.after.id == job_id for change in changes):  # else it was submitted before
            self._watch.committed(changes, records)
        return job_id

    async def heard(self, beats: Sequence[Beat], progress: Sequence[Progress]) -> None:
        await self._runner.write(lambda tx: records.heard(tx, beats, progress), label="heard", durable=False)

    # --- figures ----------------------------------------------------------------------------------------------

    async def figures(self, now: datetime) -> Figures:
        return await self._runner.survey(lambda tx: figures.figures(tx, now))

    async def totals(self, now: datetime) -> Totals:
        return await self._runner.survey(lambda tx: figures.totals(tx, now))

    async def overview(self, query: JobQuery) -> Overview:
        return await self._runner.read(lambda tx: overview.overview(tx, query))

    async def ended_jobs(self, after: int, limit: int) -> Sequence[Ended]:
        return await self._runner.read(lambda tx: traces.ended_jobs(tx, after, limit))

    async def newest_status(self) -> int:
        return await self._runner.read(traces.newest_status)

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

    # --- sums of costs ------------------------------------------------------------------------------------------

    async def costs(self, query: CostQuery) -> CostFacts:
        return await self._runner.survey(lambda tx: costs.costs(tx, query))

    async def add_up(self, cut: Cut, before: datetime, limit: int, *, claim: Claim) -> int:
        def guarded(tx: Transaction) -> int:
            self._claims.check(tx, claim)
            return costs.add_up(tx, cut, before, limit)

        return await self._runner.write(guarded, label="costs")

    async def job_names(self, job_ids: Collection[JobId]) -> Mapping[JobId, str]:
        return await self._runner.read(lambda tx: costs.job_names(tx, job_ids))

    async def user_names(self, user_ids: Collection[UserId]) -> Mapping[UserId, str]:
        return await self._runner.read(lambda tx: costs.user_names(tx, user_ids))

    async def enrolments(self, job_id: JobId) -> Mapping[NodeId, datetime]:
        return await self._runner.read(lambda tx: costs.enrolments(tx, job_id))

    async def cooldowns(self, now: datetime) -> Sequence[Cooldown]:
        return await self._runner.read(lambda tx: money.cooldowns(tx, now))

    async def spot_lives(self, since: datetime, now: datetime) -> Sequence[SpotLives]:
        return await self._runner.read(lambda tx: lives.spot_lives(tx, since, now))

    # --- budgets ------------------------------------------------------------------------------------------------

    async def budgets(self) -> Sequence[Budget]:
        return await self._runner.read(budgets.budgets)

    async def budget(self, budget_id: BudgetId) -> Budget:
        return await self._runner.read(lambda tx: budgets.budget(tx, budget_id))

    async def save_budget(self, budget: Budget, audit: AuditEntry) -> None:
        await self._runner.write(lambda tx: budgets.save(tx, budget, audit), label="budget.save")

    async def remove_budget(self, budget_id: BudgetId, audit: AuditEntry) -> None:
        await self._runner.write(lambda tx: budgets.remove(tx, budget_id, audit), label="budget.save")

    async def stakes(self) -> Stakes:
        return await self._runner.snapshot(budgets.stakes)

    async def posted_of(self, job_ids: Collection[JobId]) -> Mapping[JobId, MicroUsd]:
        return await self._runner.read(lambda tx: budgets.posted_of(tx, job_ids))

    async def posted_since(self, since: datetime) -> Sequence[Posted]:
        return await self._runner.snapshot(lambda tx: budgets.posted_since(tx, since))

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
        if not await self._runner.read(lambda tx: workflows.are_any(tx, job_ids)):
            return {}
        return await self._runner.snapshot(lambda tx: workflows.shapes(tx, job_ids))

    async def step_result(self, cache_key: Digest) -> StepResult | None:
        return await self._runner.read(lambda tx: workflows.step_result(tx, cache_key))

    # --- how jobs and providers are -----------------------------------------------------------------------------

    async def job_healths(self, job_ids: Collection[JobId]) -> Mapping[JobId, JobHealth]:
        return await self._runner.read(lambda tx: health.job_healths(tx, job_ids))

    async def open_findings(self, job_ids: Collection[JobId] | None = None) -> Sequence[Finding]:
        return await self._runner.read(lambda tx: health.open_findings(tx, job_ids))

    async def findings(self, job_id: JobId, limit: int = 1000) -> Sequence[Finding]:
        return await self._runner.read(lambda tx: health.history(tx, job_id, limit))

    async def held_nodes(self, job_ids: Collection[JobId], limit: int = 10_000) -> Sequence[HeldNode]:
        return await self._runner.read(lambda tx: health.held_nodes(tx, job_ids, limit))

    async def place_healths(self) -> Sequence[PlaceHealth]:
        return await self._runner.read(health.places)

    async def system_facts(self, heard_after: datetime) -> SystemFacts:
        return await self._runner.snapshot(lambda tx: system.facts(tx, heard_after))

    # --- own hosts ----------------------------------------------------------------------------------------------

    async def hosts(self) -> Sequence[Host]:
        return await self._runner.read(hosts.hosts)

    async def add_hosts(self, new: Sequence[Host], *, audit: AuditEntry | None = None) -> None:
        await self._runner.write(lambda tx: hosts.add(tx, new, audit), label="add_hosts")

    async def save_host(self, host: Host, *, audit: AuditEntry | None = None) -> Host:
        return await self._runner.write(lambda tx: hosts.save(tx, host, audit), label="save_host")

    async def remove_host(self, host: Host, *, audit: AuditEntry | None = None) -> None:
        await self._runner.write(lambda tx: hosts.remove(tx, host, audit), label="remove_host")

    # --- alerts -------------------------------------------------------------------------------------------------

    async def alert_rules(self) -> Sequence[AlertRule]:
        return await self._runner.read(alerts.rules)

    async def alert_rule(self, rule_id: AlertRuleId) -> AlertRule:
        return await self._runner.read(lambda tx: alerts.rule(tx, rule_id))

    async def add_alert_rule(self, rule: AlertRule, entry: AuditEntry) -> None:
        await self._runner.write(lambda tx: alerts.add_rule(tx, rule, entry), label="add_alert_rule")

    async def save_alert_rule(self, rule: AlertRule, entry: AuditEntry) -> AlertRule:
        return await self._runner.write(lambda tx: alerts.save_rule(tx, rule, entry), label="save_alert_rule")

    async def remove_alert_rule(self, rule: AlertRule, entry: AuditEntry) -> None:
        await self._runner.write(lambda tx: alerts.remove_rule(tx, rule, entry), label="remove_alert_rule")

    async def saw_price(self, rule: AlertRule, seen: PriceSeen, notices: Sequence[Notice]) -> bool:
        return await self._runner.write(lambda tx: alerts.saw_price(tx, rule, seen, notices), label="saw_price")

    async def alert_channels(self) -> Sequence[AlertChannel]:
        return await self._runner.read(alerts.channels)

    async def alert_channel(self, channel_id: AlertChannelId) -> AlertChannel:
        return await self._runner.read(lambda tx: alerts.channel(tx, channel_id))

    async def save_alert_channel(self, make: Callable[[str | None], AlertChannel], entry: AuditEntry) -> AlertChannel:
        return await self._runner.write(lambda tx: alerts.save_channel(tx, make, entry), label="save_alert_channel")

    async def remove_alert_channel(self, channel: AlertChannel, entry: AuditEntry) -> None:
        await self._runner.write(lambda tx: alerts.remove_channel(tx, channel, entry), label="remove_alert_channel")

    async def notices(self, query: NoticeQuery) -> Sequence[tuple[int, Notice]]:
        return await self._runner.read(lambda tx: notices.notices(tx, query))

    async def notice(self, seq: int) -> Notice:
        return await self._runner.read(lambda tx: notices.notice(tx, seq))

    async def told(self, seq: int) -> Sequence[Told]:
        return await self._runner.read(lambda tx: deliveries.told(tx, seq))

    async def fan_out(self, decide: Callable[[Fresh], FanOut], now: datetime, limit: int, *, claim: Claim) -> int:
        def work(tx: Transaction) -> int:
            self._claims.check(tx, claim)
            return deliveries.fan_out(tx, decide, now, limit)

        return await self._runner.write(work, label="alerts.fan_out")

    async def has_fresh_notices(self) -> bool:
        return await self._runner.read(deliveries.has_fresh)

    async def due_deliveries(
        self, now: datetime, limit: int, *, without: Collection[AlertChannelId] = ()
    ) -> Sequence[Delivery]:
        return await self._runner.read(lambda tx: deliveries.due(tx, now, limit, without))

    async def delivery_notices(self, delivery_id: DeliveryId) -> Sequence[Notice]:
        return await self._runner.read(lambda tx: deliveries.notices_of(tx, delivery_id))

    async def save_delivery(self, before: Delivery, after: Delivery, *, claim: Claim) -> None:
        def work(tx: Transaction) -> None:
            self._claims.check(tx, claim)
            deliveries.save(tx, before, after)

        await self._runner.write(work, label="alerts.delivery")

    async def deadline_jobs(self, after: JobId | None, limit: int) -> Sequence[Job]:
        return await self._runner.read(lambda tx: deliveries.deadline_jobs(tx, after, limit))

    # --- templates ----------------------------------------------------------------------------------------------

    async def templates(self) -> Sequence[StoredTemplate]:
        return await self._runner.read(templates.templates)

    async def template(self, name: str) -> StoredTemplate | None:
        return await self._runner.read(lambda tx: templates.template(tx, name))

    async def save_template(
        self, template: StoredTemplate, *, by: UserId | None, audit: AuditEntry | None = None
    ) -> StoredTemplate:
        return await self._runner.write(lambda tx: templates.save(tx, template, by, audit), label="save_template")

    async def remove_template(self, name: str, *, by: UserId | None, audit: AuditEntry | None = None) -> bool:
        return await self._runner.write(lambda tx: templates.remove(tx, name, by, audit), label="remove_template")

    # --- secrets ------------------------------------------------------------------------------------------------

    async def secrets(self, owners: Collection[SecretOwner] | None = None) -> Sequence[SecretFacts]:
        return await self._runner.snapshot(lambda tx: secrets.listed(tx, owners))

    async def secret(self, owner: SecretOwner, name: str) -> StoredSecret | None:
        return await self._runner.read(lambda tx: secrets.secret(tx, owner, name))

    async def save_secret(
        self, owner: SecretOwner, name: str, make: Callable[[int, str | None], StoredSecret], entry: AuditEntry
    ) -> StoredSecret:
        return await self._runner.write(lambda tx: secrets.save(tx, owner, name, make, entry), label="save_secret")

    async def remove_secret(self, owner: SecretOwner, name: str, entry: AuditEntry) -> bool:
        return await self._runner.write(lambda tx: secrets.remove(tx, owner, name, entry), label="remove_secret")

    async def secrets_used(self, used: Collection[tuple[SecretOwner, str]], now: datetime) -> None:
        await self._runner.write(lambda tx: secrets.used(tx, used, now), label="secrets_used", durable=False)

    async def standing(self, user_id: UserId) -> Standing | None:
        return await self._runner.snapshot(lambda tx: secrets.standing(tx, user_id))

    async def team_of_project(self, project: str) -> str | None:
        return await self._runner.read(lambda tx: secrets.team_of_project(tx, project))

    async def secrets_key(self) -> str | None:
        return await self._runner.read(secrets.current_key)

    async def secret_keys(self) -> frozenset[str]:
        return await self._runner.read(secrets.keys)

    async def seal_with(self, key_id: str, entry: AuditEntry, *, claim: Claim) -> None:
        def guarded(tx: Transaction) -> None:
            self._claims.check(tx, claim)
            secrets.seal_with(tx, key_id, entry)

        await self._runner.write(guarded, label="seal_with")

    async def sealed_otherwise(self, key_id: str, limit: int) -> Sequence[StoredSecret]:
        return await self._runner.read(lambda tx: secrets.sealed_otherwise(tx, key_id, limit))

    async def rewrap_secret(self, before: StoredSecret, after: SealedValue) -> bool:
        return await self._runner.write(lambda tx: secrets.rewrap(tx, before, after), label="rewrap_secret")

    # --- datasets -----------------------------------------------------------------------------------------------

    async def dataset(self, name: str) -> Dataset | None:
        return await self._runner.read(lambda tx: datasets.dataset(tx, name))

    async def datasets(self) -> Sequence[Dataset]:
        return await self._runner.read(datasets.datasets)

    async def save_dataset(self, dataset: Dataset, *, claim: Claim, audit: AuditEntry | None = None) -> None:
        await self._guarded(lambda tx: datasets.save(tx, dataset, audit), claim)

    async def remove_datasets(self, names: Sequence[str], *, claim: Claim, audit: AuditEntry | None = None) -> None:
        await self._guarded(lambda tx: datasets.remove(tx, names, audit), claim)

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

    async def output_of_tree(self, digest: Digest, seen_by: Sight | None) -> Output | None:
        return await self._runner.read(lambda tx: outputs.of_tree(tx, digest, seen_by))

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

    async def add_user(self, user: User, *, team: Membership | None = None, audit: AuditEntry | None = None) -> None:
        await self._runner.write(lambda tx: people.add_user(tx, user, team, audit), label="user")

    async def users(self) -> Sequence[User]:
        return await self._runner.read(people.users)

    async def user(self, user_id: UserId) -> User:
        return await self._runner.read(lambda tx: people.user(tx, user_id))

    async def save_user(self, user: User, *, audit: AuditEntry | None = None) -> None:
        await self._runner.write(lambda tx: people.save_user(tx, user, audit), label="user")

    async def sign_in(self, identity: Identity, admission: Admission, *, audit: AuditEntry) -> User:
        return await self._runner.write(lambda tx: identities.sign_in(tx, identity, admission, audit), label="sign_in")

    async def add_token(self, token: Token, *, audit: AuditEntry | None = None) -> None:
        await self._runner.write(lambda tx: people.add_token(tx, token, audit), label="token")

    async def tokens(self, user_id: UserId | None = None) -> Sequence[Token]:
        return await self._runner.read(lambda tx: people.tokens(tx, user_id))

    async def token(self, token_id: TokenId) -> Token:
        return await self._runner.read(lambda tx: people.token(tx, token_id))

    async def revoke_token(self, token_id: TokenId, now: datetime, *, audit: AuditEntry | None = None) -> None:
        await self._runner.write(lambda tx: people.revoke_token(tx, token_id, now, audit), label="revoke")

    async def add_team(self, team: Team, *, audit: AuditEntry | None = None) -> None:
        await self._runner.write(lambda tx: teams.add_team(tx, team, audit), label="team")

    async def teams(self) -> Sequence[Team]:
        return await self._runner.read(teams.teams)

    async def remove_team(self, name: str, *, audit: AuditEntry | None = None) -> None:
        await self._runner.write(lambda tx: teams.remove_team(tx, name, audit), label="team")

    async def memberships(self, of: Collection[str] | None = None) -> Sequence[Membership]:
        return await self._runner.read(lambda tx: teams.memberships(tx, of))

    async def save_member(self, membership: Membership, *, audit: AuditEntry | None = None) -> None:
        await self._runner.write(lambda tx: teams.save_member(tx, membership, audit), label="member")

    async def remove_member(self, team: str, user_id: UserId, *, audit: AuditEntry | None = None) -> None:
        await self._runner.write(lambda tx: teams.remove_member(tx, team, user_id, audit), label="member")

    async def add_project(self, project: Project, *, audit: AuditEntry | None = None) -> None:
        await self._runner.write(lambda tx: teams.add_project(tx, project, audit), label="project")

    async def projects(self) -> Sequence[Project]:
        return await self._runner.read(teams.projects)

    async def remove_project(self, name: str, *, audit: AuditEntry | None = None) -> None:
        await self._runner.write(lambda tx: teams.remove_project(tx, name, audit), label="project")

    async def audit_lines(self, query: AuditQuery) -> Sequence[tuple[int, AuditEntry]]:
        return await self._runner.snapshot(lambda tx: audits.lines(tx, query))

    async def check_audit(self, seal: Seal, limit: int = 1000) -> Seal:
        return await self._runner.read(lambda tx: audits.check(tx, seal, limit))
