"""The gauges: what the database adds up to, and what this process is at, shown to the meter when somebody reads it.
Sums are kept for some seconds, those over everything that ever was for a minute or longer: reading them often costs
nothing, and a million jobs cost no more than a thousand."""

import asyncio
import platform
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from crucible import __version__
from crucible.core.budget import Standing
from crucible.core.waiting import Waits, kind_of
from crucible.engine import metrics
from crucible.engine.budget_shares import left_shares
from crucible.engine.context import Context
from crucible.engine.looks import Look
from crucible.engine.purse import Purse
from crucible.engine.vitals import Loop, Place
from crucible.model.attempt import Attempt, Outcome
from crucible.model.errors import PlatformError
from crucible.model.figures import Account, Figures, Totals
from crucible.model.job import JobStatus
from crucible.model.lease import LeasePhase
from crucible.model.units import MicroUsd, usd
from crucible.ports.meter import Metric

KEEP_S = 5.0
KEEP_TOTALS_S = 60.0
# A look at everything takes at most this share of the time, whatever there is to look at.
REST_PER_LOOK, REST_PER_TOTALS = 10.0, 50.0
# Who reads the figures waits no longer for the first ones.
PATIENCE_S = 3.0
MARKETS = {True: "spot", False: "on_demand"}
NO_TEAM, OTHER = "none", "other"
OPEN = (LeasePhase.REQUESTED, LeasePhase.ACTIVE, LeasePhase.CLOSING)
MOST_TEAMS, MOST_GPUS, MAX_LABEL = 20, 30, 64

Shown = dict[tuple[str, ...], float]


class Gauges:
    def __init__(self, context: Context, agents: Callable[[], int]) -> None:
        """`agents` are those that wait here for work."""
        self._context = context
        self.meter = context.meter
        self._counted = context.counted
        self._agents = agents
        self._loops: dict[str, None] = {}
        self._recovery = context.meter.histogram(metrics.RECOVERY)
        clock, store = context.clock, context.store
        self._figures: Look[Figures] = Look(
            "what is under way", lambda: store.figures(clock.now()), clock, keep_s=KEEP_S, rest_per_look=REST_PER_LOOK
        )
        self._totals: Look[Totals] = Look(
            "everything", lambda: store.totals(clock.now()), clock, keep_s=KEEP_TOTALS_S, rest_per_look=REST_PER_TOTALS
        )
        self._budgets: Look[Sequence[Standing]] = Look(
            "budgets", lambda: Purse(context).standings(), clock, keep_s=KEEP_S, rest_per_look=REST_PER_LOOK
        )
        self.meter.show(metrics.BUILD, {(__version__, platform.python_version()): 1})
        self._counted.expect(context.sellers)
        for outcome in ("exported", "dropped"):
            self.meter.counter(metrics.TRACES, outcome)

    async def text(self) -> tuple[bytes, str]:
        """Every figure of this server, and the type of the text."""
        await self.refresh()
        return await asyncio.to_thread(self.meter.text)

    async def refresh(self) -> None:
        """Everything as it is now, or was a moment ago. Never fails: what cannot be read is shown as it was."""
        figures, totals = await self._figures.latest(PATIENCE_S), await self._totals.latest(PATIENCE_S)
        budgets = await self._budgets.latest(PATIENCE_S)
        try:
            await self._recovered()
            await self._show_shared()
        except PlatformError:
            pass  # the looks above have said so
        if figures is not None:
            self._show_figures(figures, totals)
        if totals is not None:
            self._show_totals(totals)
        if budgets is not None:
            self.meter.show(metrics.BUDGET_LEFT, left_shares(budgets))
        self._show_process()

    def expect(self, loops: Iterable[str]) -> None:
        """Loops that will run: theirs are shown before they fail."""
        self._loops = dict.fromkeys(loops)

    async def stop(self) -> None:
        await self._figures.stop()
        await self._totals.stop()
        await self._budgets.stop()

    # --- of the database ------------------------------------------------------------------------------

    def _show_figures(self, figures: Figures, totals: Totals | None) -> None:
        show, now = self.meter.show, self._context.clock.now()
        ended: Mapping[JobStatus, int] = {} if totals is None else totals.jobs
        known = [status for status in JobStatus if totals is not None or not status.is_terminal]
        show(metrics.JOBS, {(status,): {**figures.jobs, **ended}.get(status, 0) for status in known})
        waiting = Counter[str](dict.fromkeys(Waits, 0))
        for one in figures.waiting:
            waiting[kind_of(one.reason, has_run=one.has_run)] += one.tasks
        show(metrics.TASKS_WAITING, {(kind,): count for kind, count in waiting.items()})
        since = figures.waiting_since or now
        show(metrics.OLDEST_WAIT, {(): max(0.0, (now - since).total_seconds())})
        self._show_machines(figures)
        self._show_gpus(figures)
        self._show_money(metrics.SPEND_RATE, figures.rates, totals)

    def _show_machines(self, figures: Figures) -> None:
        places = list(self._context.sellers)
        machines: Shown = {(*place, phase): 0 for place in places for phase in OPEN}
        held: Shown = dict.fromkeys(places, 0)
        busy: Shown = dict.fromkeys(places, 0)
        for one in figures.held:
            place = one.provider, one.region
            machines[(*place, one.phase)] = one.machines
            held[place] = held.get(place, 0) + one.gpus
            busy[place] = busy.get(place, 0) + one.busy_gpus
        self.meter.show(metrics.MACHINES, machines)
        self.meter.show(metrics.GPUS_HELD, held)
        self.meter.show(metrics.GPUS_BUSY, busy)

    def _show_gpus(self, figures: Figures) -> None:
        """The most frequent by name, the rest together."""
        named = sorted(figures.gpu_percents.items(), key=lambda item: (-len(item[1]), item[0]))
        values: Shown = {(name[:MAX_LABEL],): sum(each) / len(each) / 100 for name, each in named[:MOST_GPUS]}
        others = [value for _, each in named[MOST_GPUS:] for value in each]
        if others:
            values[OTHER,] = sum(others) / len(others) / 100
        self.meter.show(metrics.GPU_UTILISATION, values)

    def _show_totals(self, totals: Totals) -> None:
        self._show_money(metrics.SPEND, totals.spent, totals)
        self.meter.show(metrics.IMBALANCE, {(): usd(totals.imbalance)})

    def _show_money(self, metric: Metric, sums: Mapping[Account, MicroUsd], totals: Totals | None) -> None:
        """Of the teams that have spent most each its own, the rest together."""
        most = top_teams({} if totals is None else totals.spent, MOST_TEAMS)
        values: Shown = defaultdict(float)
        for provider in self._context.providers:
            for market in MARKETS.values():
                values[provider, market, NO_TEAM] = 0.0
        for account, amount in sums.items():
            values[account.provider, MARKETS[account.is_spot], team_label(account.team, most)] += usd(amount)
        self.meter.show(metric, values)

    async def _show_shared(self) -> None:
        store, now = self._context.store, self._context.clock.now()
        feeds = {(feed.name[:MAX_LABEL],): feed.refreshed_at for feed in await store.price_feeds()}
        ages: Shown = {name: float("inf") if at is None else (now - at).total_seconds() for name, at in feeds.items()}
        self.meter.show(metrics.PRICE_AGE, ages)
        self.meter.show(metrics.SERVERS, {(): len(await store.servers())})

    async def _recovered(self) -> None:
        """How long it took the tasks that run again since somebody looked last."""
        again = self._counted.started_again
        while again:
            attempt = again.popleft()
            lost = await self._lost_before(attempt)
            if lost is not None and lost.ended_at is not None and attempt.started_at is not None:
                self._recovery(max(0.0, (attempt.started_at - lost.ended_at).total_seconds()))

    async def _lost_before(self, attempt: Attempt) -> Attempt | None:
        """The attempt that ran before it, if its machine was lost: those between never came to run."""
        task = await self._context.store.task(attempt.task_id)
        known = await self._context.store.task_attempts(attempt.job_id, task.index)
        for one in reversed([other for other in known if other.number < attempt.number]):
            if one.outcome not in (Outcome.LOST, Outcome.UNPLACED):
                return None
            if one.started_at is not None:
                return one
        return None

    # --- of this process --------------------------------------------------------------------------------

    def _show_process(self) -> None:
        show = self.meter.show
        show(metrics.AGENTS, {(): self._agents()})
        show(metrics.WAKES, {(): self._context.wakes.waiting})
        show(metrics.WRITES_WAITING, {(): self._counted.writes_waiting})
        self._show_vitals()
        looks: dict[str, Look[Any]] = {"figures": self._figures, "totals": self._totals, "budgets": self._budgets}
        show(metrics.LOOKED_AGO, {(name,): look.age_s for name, look in looks.items()})
        show(metrics.LOOK_TIME, {(name,): look.took_s for name, look in looks.items()})

    def _show_vitals(self) -> None:
        vitals, now = self._context.vitals, self._context.clock.monotonic()
        loops = {name: vitals.loops.get(name, Loop(name)) for name in (*self._loops, *vitals.loops)}
        self.meter.show(metrics.LOOP_RESTARTS, {(name,): loop.restarts for name, loop in loops.items()})
        self.meter.show(metrics.LOOP_LATE, {(name,): loop.late_s(now) for name, loop in loops.items()})
        strays = {place: vitals.places.get("/".join(place), Place("")) for place in self._context.sellers}
        self.meter.show(metrics.STRAYS, {place: seen.removed for place, seen in strays.items()})


def top_teams(spent: Mapping[Account, MicroUsd], most: int) -> frozenset[str]:
    sums = Counter[str]()
    for account, amount in spent.items():
        if account.team is not None:
            sums[account.team] += amount
    ranked = sorted(sums, key=lambda team: (-sums[team], team))
    return frozenset(ranked[:most])


def team_label(team: str | None, most: Collection[str]) -> str:
    if team is None:
        return NO_TEAM
    return team[:MAX_LABEL] if team in most else OTHER
