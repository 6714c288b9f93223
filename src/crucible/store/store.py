"""The store: every method is one transaction, handed to the runner."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from crucible.model.attempt import Attempt
from crucible.model.catalog import Price
from crucible.model.change import Change
from crucible.model.ids import AttemptId, Digest, JobId, LeaseId, MachineId, NodeId, OrderId, TaskId, TokenId, UserId
from crucible.model.job import Job
from crucible.model.lease import Lease, Node, Order, SpotLives
from crucible.model.ledger import Cooldown, Posting, Usage
from crucible.model.record import Artifact, Beat, Checkpoint, Prediction, Principal, Progress, Record, Token, User
from crucible.model.task import Task
from crucible.model.tree import Tally, TaskTree
from crucible.model.units import MicroUsd
from crucible.ports.prices import Feed, PriceFacts, PriceKey, PriceMark, PriceQuery
from crucible.ports.store import Claim, Due, JobPage, JobQuery, LoggedEvent, PredictionQuery, Segment
from crucible.store import commits, entities, lists, lives, money, people, plans, prices, records, submissions, trees
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

    async def job_leases(self, job_id: JobId) -> Sequence[Lease]:
        return await self._runner.read(lambda tx: lists.job_leases(tx, job_id))

    async def job_orders(self, job_id: JobId) -> Sequence[Order]:
        return await self._runner.read(lambda tx: lists.job_orders(tx, job_id))

    async def node_work(self, node_id: NodeId) -> tuple[Node, Lease, Job, Attempt | None]:
        return await self._runner.snapshot(lambda tx: trees.node_work(tx, node_id))

    async def waiting(self, now: datetime, limit: int, without: Collection[TaskId] = ()) -> Sequence[TaskTree]:
        return await self._runner.snapshot(lambda tx: trees.waiting(tx, now, limit, without))

    async def open_leases(self, provider: str, region: str | None = None) -> Sequence[Lease]:
        return await self._runner.read(lambda tx: lists.open_leases(tx, provider, region))

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

    async def newest_step(self, lineage: JobId) -> int | None:
        return await self._runner.read(lambda tx: records.newest_step(tx, lineage))

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
