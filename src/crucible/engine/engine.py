"""The engine: reconcilers woken by id, the cycle, one poller per seller, and polling as the safety net. A restart is an
ordinary reconcile: there is no recovery path."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType

from crucible.engine.alerts import AlertDesk
from crucible.engine.audits import Audits
from crucible.engine.budget_desk import BudgetDesk
from crucible.engine.budget_wishes import BudgetWishes
from crucible.engine.budgets import BudgetKeeper
from crucible.engine.channels import Channels
from crucible.engine.checkpoint_desk import CheckpointDesk
from crucible.engine.checkpoints import Checkpoints
from crucible.engine.context import Context, log
from crucible.engine.cost_desk import CostDesk
from crucible.engine.crews import CrewDesk
from crucible.engine.dataset_copies import DatasetCopies
from crucible.engine.dataset_nodes import DatasetNodes
from crucible.engine.datasets import Datasets
from crucible.engine.gateway import Gateway
from crucible.engine.gauges import Gauges
from crucible.engine.handing import Handing
from crucible.engine.health import HealthWatch
from crucible.engine.inputs import Inputs
from crucible.engine.metric_keeper import MetricKeeper
from crucible.engine.metrics import LOOP_LAG
from crucible.engine.orders import OrderReconciler
from crucible.engine.outputs import Outputs
from crucible.engine.people import People
from crucible.engine.placer import Placer
from crucible.engine.planner import NO_KNOWLEDGE, Known, Planner
from crucible.engine.poller import Poller
from crucible.engine.prices import PriceBook, PriceRefresher, table_facts
from crucible.engine.privacy import Privacy
from crucible.engine.quotas import QuotaBook
from crucible.engine.recommendations import Recommender
from crucible.engine.retention import Retention
from crucible.engine.savings import Savings
from crucible.engine.secret_keys import SecretKeys
from crucible.engine.secrets import Secrets
from crucible.engine.sending import Sending
from crucible.engine.service import Service
from crucible.engine.shard_outputs import ShardOutputs
from crucible.engine.shards import ShardDesk
from crucible.engine.shelf import Shelf
from crucible.engine.status import StatusDesk
from crucible.engine.step_jobs import StepJobs
from crucible.engine.sweeps import Sweeps
from crucible.engine.system import SystemDesk
from crucible.engine.tasks import JobReconciler, TaskReconciler
from crucible.engine.teams import Teams
from crucible.engine.telemetry import Telemetry
from crucible.engine.telling import Telling
from crucible.engine.templates import Templates
from crucible.engine.tidying import Tidier
from crucible.engine.traces import Traces
from crucible.engine.trees import Trees
from crucible.engine.trial_desk import TrialDesk
from crucible.engine.wakes import Key
from crucible.engine.watches import DeadlineWatch, PriceWatch
from crucible.engine.workflows import WorkflowReconciler
from crucible.model.errors import Busy, NotFound, PlatformError, StorageFailed
from crucible.model.ids import JobId, OrderId, TaskId
from crucible.ports.blobs import Blobs
from crucible.ports.log_scope import looking_at
from crucible.ports.notifier import Outlets
from crucible.ports.prices import Prices
from crucible.ports.templates import ShippedTemplate

WORKERS = 16
# How often rows whose time has come are looked for, and what was heard is written.
DUE_S = 1.0
FLUSH_S = 1.0
DUE_BATCH = 1000
STIR_S = 0.5
STIR_MAX_S = 60.0
# A loop that failed starts again after this; the rows it was at are found by the others meanwhile.
RESTART_S = 1.0


class Engine:
    def __init__(
        self,
        context: Context,
        blobs: Blobs,
        knowledge: Known = NO_KNOWLEDGE,
        prices: Sequence[Prices] = (),
        templates: Mapping[str, ShippedTemplate] = MappingProxyType({}),
        outlets: Outlets | None = None,
    ) -> None:
        """`prices` tells what has changed since the catalog of `knowledge` was made; `templates` come with Crucible.
        Without `outlets` nobody is told of notices."""
        self.context = context
        shelf = Shelf(context)
        self.price_book = PriceBook(context.store, context.clock)
        self.prices = PriceRefresher(
            context,
            prices,
            self.price_book,
            lambda: table_facts(knowledge.table),
            lambda: PriceWatch(context, self.planner.table).look(),
        )
        telemetry = Telemetry(context, lambda: knowledge.book)
        self.quotas = QuotaBook(context)
        self.planner = Planner(context, knowledge, self.price_book.overlay, shelf.offers, telemetry, self.quotas.known)
        self.sweeps = Sweeps(context)
        self.trials = TrialDesk(context, self.sweeps)
        wishes = BudgetWishes(context)
        crews = CrewDesk(context, self.planner, self.sweeps.prepare, wishes.end)
        self.placer = Placer(context, shelf, self.planner, crews, self.sweeps.prepare, wishes.end)
        self.budget_keeper = BudgetKeeper(context, wishes, self.placer.want)
        self.budgets = BudgetDesk(context)
        trees = Trees(context)
        self.datasets = Datasets(context, trees)
        self.dataset_copies = DatasetCopies(context, trees, self.planner.table)
        self.outputs = Outputs(context, trees)
        self.shards = ShardDesk(context, trees, blobs)
        self.shard_outputs = ShardOutputs(context, trees, self.shards)
        self.templates = Templates(context, blobs, templates)
        self.secrets, self.secret_keys = Secrets(context), SecretKeys(context)
        self.service = Service(
            context,
            self.placer,
            self.planner,
            blobs,
            self.datasets,
            Inputs(context),
            self.shards,
            self.templates,
            self.secrets,
        )
        self.recommender = Recommender(self.planner.table, telemetry.book, context.clock, context.providers)
        self.costs, self.savings = CostDesk(context), Savings(context, self.planner)
        self.checkpoints = Checkpoints(context)
        nodes = DatasetNodes(context, trees, self.dataset_copies, self.planner.table)
        self.gateway = Gateway(
            context, self.checkpoints, nodes, self.outputs, self.secrets, self.placer.want, crews.succession
        )
        self.channels = Channels(context)
        self.statuses = StatusDesk(context)
        self.system = SystemDesk(context)
        self.people = People(context)
        self.teams = Teams(context, self.people)
        self.audits = Audits(context)
        self.checkpoint_desk = CheckpointDesk(context, self.checkpoints)
        self.tidier = Tidier(
            context, self.checkpoints, self.gateway.record, (self.outputs.tidy, self.shard_outputs.tidy)
        )
        self.retention = Retention(context, blobs, trees)
        self.privacy = Privacy(context, self.retention)
        self._tasks = TaskReconciler(context, self.placer.want, self.gateway.last_words, self.placer.growth.note, crews)
        self._jobs = JobReconciler(context, telemetry, self.sweeps)
        steps = StepJobs(context, Handing(context, trees).gather, self.datasets.pin, self.service.submit_step)
        self._workflows = WorkflowReconciler(context, steps, self.service.wish_of_workflow)
        self._orders = OrderReconciler(context)
        self.gauges = Gauges(context, lambda: self.gateway.connected)
        self._lag = context.meter.histogram(LOOP_LAG)
        self.alerts = None if outlets is None else AlertDesk(context, outlets)
        self._outlets = outlets
        self._pollers = [Poller(context, seller, self.placer.want) for seller in context.sellers.values()]
        self._running: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Returns when this server is known to the others and every loop runs."""
        await self._announce()
        loops: list[tuple[str, Callable[[], Awaitable[None]]]] = [
            ("announcing", self._announcing),
            ("due", self._due),
            ("flushing", self._flushing),
            ("stirring", self._stirring),
            ("placing", self.placer.run),
            ("budgets", self.budget_keeper.run),
            ("prices", self.prices.run),
            ("quotas", self.quotas.run),
            ("costs", self.costs.run),
            ("sweeps", self.sweeps.run),
            ("tidying", self.tidier.run),
            ("metrics", MetricKeeper(self.context).run),
            ("health", HealthWatch(self.context).run),
            *([("traces", Traces(self.context, self.context.spans).run)] if self.context.spans else []),
            ("retention", self.retention.run),
            *([("copies", self.dataset_copies.run)] if self.context.region_storage else []),
            ("deadlines", DeadlineWatch(self.context).run),
            ("telling", Telling(self.context).run),
            *([("sending", Sending(self.context, self._outlets).run)] if self._outlets is not None else []),
            *((f"polling {poller.name}", poller.run) for poller in self._pollers),
            *((f"listening {poller.name}", poller.listen) for poller in self._pollers),
            *(("working", self._work) for _ in range(WORKERS)),
        ]
        self.gauges.expect(name for name, _ in loops)
        self._running = [asyncio.create_task(self._for_ever(name, loop)) for name, loop in loops]

    def look_for_room(self) -> None:
        """Somebody changed what there is to be had: sellers that count their own stock are asked again, and what waits
        is placed."""
        for seller in self.context.sellers.values():
            if seller.facts.counts_stock:
                self.context.look_at(seller.name, seller.region)
        self.planner.look_again()
        self.placer.want()

    async def stop(self) -> None:
        """Effects under way are cut off where they stand: that is as safe as kill -9, and tested as such."""
        self.context.is_stopping = True
        self.context.hub.notify_all()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self.gauges.stop()
        await self.gateway.flush()

    async def _for_ever(self, name: str, loop: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await loop()
            except (Busy, StorageFailed) as error:
                log.warning("the loop %s of the engine starts again: %s", name, error)
                self.context.vitals.restarted(name, error)
                await self.context.clock.sleep(RESTART_S)
            except Exception as error:
                # One loop's trouble must not end its siblings; what it was doing is found again by polling.
                log.exception("the loop %s of the engine failed and starts again", name)
                self.context.vitals.restarted(name, error)
                await self.context.clock.sleep(RESTART_S)

    async def _work(self) -> None:
        while True:
            key = await self.context.wakes.next()
            self.context.vitals.beat("working")
            with looking_at(key.kind, key.id):
                await self._look(key)

    async def _look(self, key: Key) -> None:
        try:
            await self.step(key)
        except NotFound:
            pass
        except PlatformError as error:
            log.warning("%s %s: %s", key.kind, key.id, error)
        finally:
            self.context.wakes.done(key)

    async def step(self, key: Key) -> None:
        match key.kind:
            case "task":
                await self._tasks.step(TaskId(key.id))
            case "order":
                await self._orders.step(OrderId(key.id))
            case "job":
                await self._jobs.step(JobId(key.id))
            case "workflow":
                await self._workflows.step(JobId(key.id))

    async def _due(self) -> None:
        context = self.context
        while True:
            due = await context.store.due(context.clock.now(), DUE_BATCH)
            context.pulse.beat()
            context.vitals.beat("due", DUE_S)
            for task in due.tasks:
                context.wakes.wake("task", task)
            for order in due.orders:
                context.wakes.wake("order", order)
            for job in due.jobs:
                context.wakes.wake("job", job)
            for workflow in due.workflows:
                context.wakes.wake("workflow", workflow)
            if due.tasks:
                self.placer.want()
            await context.clock.sleep(DUE_S)

    async def _flushing(self) -> None:
        clock = self.context.clock
        while True:
            self.context.vitals.beat("flushing", FLUSH_S)
            began = clock.monotonic()
            await clock.sleep(FLUSH_S)
            self._lag(max(0.0, clock.monotonic() - began - FLUSH_S))
            await self.gateway.flush()

    async def _stirring(self) -> None:
        """Jobs of which one task after another changes are looked at a few times a second."""
        context, seen = self.context, 0
        while True:
            context.vitals.beat("stirring", STIR_MAX_S)
            seen = await context.hub.wait("stirred", seen, STIR_MAX_S)
            stirred, context.stirred = context.stirred, {}
            for job_id in stirred:
                context.wakes.wake("job", job_id)
            await context.clock.sleep(STIR_S)

    async def _announcing(self) -> None:
        every_s = self.context.claim_ttl.total_seconds() / 3
        while True:
            self.context.vitals.beat("announcing", every_s)
            await self.context.clock.sleep(every_s)
            await self._announce()

    async def _announce(self) -> None:
        context = self.context
        await context.store.announce(context.server_id, context.url, context.claim_ttl)
