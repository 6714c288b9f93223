"""Plans with what is known now: the shipped catalog, prices told since, what sellers list at this moment, and what past
jobs took. Planning itself is `core.plan`; every proposal is checked before anybody sees it."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol

from crucible.core import admission, plan, prediction, spread, whynot
from crucible.core.check import check_candidate, check_proposal
from crucible.core.check_flow import check_flow
from crucible.core.check_tasks import check_scaling
from crucible.core.cooling import cooled
from crucible.core.crew_plan import Held, Scaling, more
from crucible.core.cycle import Purchase
from crucible.core.flow import plan as flows
from crucible.core.flow.proposal import FlowPlan
from crucible.core.flow.steps import flow_of
from crucible.core.lives import learned
from crucible.core.offers import Listing, OfferTable, make_table, with_live
from crucible.core.overheads import with_starts
from crucible.core.overlay import with_prices
from crucible.core.perf import SpeedBook, make_book
from crucible.core.plan import Question
from crucible.core.proposal import Candidate, Proposal
from crucible.core.quota import freed, in_use
from crucible.core.relaunch import Relaunch, relaunch, without
from crucible.engine.answers import Answers, Planned, essence
from crucible.engine.context import Context
from crucible.engine.lives import Lives
from crucible.engine.plan_view import listing_view, plan_view
from crucible.engine.telemetry import Telemetry
from crucible.model.catalog import Price
from crucible.model.encoding import encode
from crucible.model.lease import SpotLives
from crucible.model.ledger import Cooldown
from crucible.model.offer import Market, Offer
from crucible.model.quota import Holding, Quota
from crucible.model.spec import JobSpec, Strategy
from crucible.model.units import MicroUsd

OFFERS_FRESH_S = 1.0
# What sellers list is as old as its table: even if nothing changes, it is dated anew so often.
DATED_S = 60.0


class Known(Protocol):
    """What is shipped. Whoever gives it may read it when it is first asked for: a server is ready before."""

    @property
    def table(self) -> OfferTable: ...
    @property
    def book(self) -> SpeedBook: ...


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The offers as columns, and how fast GPUs are."""

    table: OfferTable
    book: SpeedBook


# Without a catalog only what sellers list themselves is on offer.
NO_KNOWLEDGE = Knowledge(make_table((), ()), make_book((), ()))


@dataclass(frozen=True, slots=True)
class Live:
    """The table with what sellers listed, and when they were asked last."""

    looked_at: float
    made_at: float
    offers: Sequence[Offer]
    cooldowns: Sequence[Cooldown]
    quotas: Sequence[Quota]  # with what is in use of them
    table: OfferTable


class Planner:
    def __init__(
        self,
        context: Context,
        knowledge: Known,
        overlay: Callable[[], Awaitable[tuple[int, Sequence[Price]]]],
        offers: Callable[[], Awaitable[Sequence[Offer]]],
        telemetry: Telemetry,
        quotas: Callable[[], Sequence[Quota]] = tuple,
    ) -> None:
        """`quotas` are those that sellers told of, as if nothing were in use."""
        self._context = context
        self._knowledge = knowledge
        self._overlay = overlay
        self._offers = offers
        self._telemetry = telemetry
        self._quotas = quotas
        self._lives = Lives(context)
        self._priced: tuple[int, Sequence[SpotLives], Mapping[str, float], OfferTable] | None = None
        self._live: Live | None = None
        self._answers: Answers | None = None

    async def table(self) -> OfferTable:
        """Prices as told, and what is free on own machines, a second old at most."""
        priced, now = await self._learned(), self._context.clock.monotonic()
        if self._live is None or now - self._live.looked_at > OFFERS_FRESH_S:
            offers, wall = await self._offers(), self._context.clock.now()
            cooldowns = tuple(await self._context.store.cooldowns(wall))
            quotas = await self._in_use(priced)
            seen = None if self._live is None else (self._live.offers, self._live.cooldowns, self._live.quotas)
            if self._live is not None and (offers, cooldowns, quotas) == seen and now - self._live.made_at < DATED_S:
                self._live = replace(self._live, looked_at=now)
            else:
                table = replace(cooled(with_live(priced, offers, wall), cooldowns), quotas=quotas)
                self._live = Live(now, now, offers, cooldowns, quotas, table)
        return self._live.table

    async def _in_use(self, table: OfferTable) -> tuple[Quota, ...]:
        """By what this deployment holds; what others run in the same account is not seen here."""
        quotas = self._quotas()
        providers = sorted({quota.provider for quota in quotas})
        held = [one for provider in providers for one in await self._context.store.holdings(provider)]
        return in_use(quotas, held, table)

    async def _learned(self) -> OfferTable:
        """What is shipped, with the newest prices, what machines lived through, and how long they take beside the
        work."""
        (version, prices), lives = await self._overlay(), await self._lives.known()
        shipped = self._knowledge.table
        starts = await self._telemetry.starts(shipped)
        if self._priced is None or (version, lives, starts) != self._priced[:3]:
            table = learned(with_prices(shipped, prices) if version else shipped, lives)
            self._priced, self._live = (version, lives, starts, with_starts(table, starts)), None
        return self._priced[3]

    @property
    def quotas(self) -> tuple[Quota, ...]:
        """Of the table that was made last."""
        return () if self._live is None else self._live.table.quotas

    def look_again(self) -> None:
        """Something was bought or refused: what was seen a second ago is old."""
        if self._live is not None:
            self._live = replace(self._live, looked_at=float("-inf"))

    async def purchase(self, spec: JobSpec, held: Sequence[Holding] = ()) -> Candidate | None:
        """The best way to run a task now that is enabled and is one order; None if everything is taken, refused or
        over its limits at the moment. `held` is what the task has already: a gang may need only the rest."""
        answers, asked = await self._current(held), essence(spec)
        return answers.purchase(asked, lambda: self._purchase(asked, answers))

    def _purchase(self, spec: JobSpec, answers: Answers) -> Candidate | None:
        question = self._question(spec, None, answers.now)
        found = plan.purchase(question, answers.table, answers.book)
        if found is not None:
            check_candidate(found, spec, 1, answers.now)
        return found

    async def relaunch(self, spec: JobSpec, held: Sequence[Holding] = ()) -> Relaunch | None:
        """The same for a job that is under way, of which `spec` is left."""
        answers, asked = await self._current(held), essence(spec)
        return answers.relaunch(asked, lambda: self._relaunch(asked, answers))

    def _relaunch(self, spec: JobSpec, answers: Answers) -> Relaunch | None:
        found = relaunch(self._question(spec, None, answers.now), answers.table, answers.book)
        if found is not None:
            check_candidate(found.way, without(spec, found.given_up), 1, answers.now)
        return found

    async def scaling(self, spec: JobSpec, left: int, held: Sequence[Held], *, has_begun: bool = False) -> Scaling:
        """What to buy for the `left` tasks of a job that have not ended, and which of its machines may go. The budget
        of `spec` is what is left of it; a job that `has_begun` goes on though nothing keeps its limits."""
        answers, asked, crew = await self._current(), essence(spec), tuple(held)
        return answers.scaling(
            asked, left, crew, has_begun, lambda: self._scaling(asked, left, crew, has_begun, answers)
        )

    def _scaling(self, spec: JobSpec, left: int, held: tuple[Held, ...], has_begun: bool, answers: Answers) -> Scaling:
        question = self._question(spec, None, answers.now)
        made = more(question, left, held, answers.table, answers.book, has_begun=has_begun)
        check_scaling(made, spec, left, held)
        return made

    async def why_nothing(self, spec: JobSpec) -> str:
        """What stands against everything that is enabled."""
        answers, asked = await self._current(), essence(spec)
        made = answers.proposal(asked, None, answers.table, lambda: self._ask(asked, None, answers))
        return admission.blocked(made, self._context.providers)

    async def propose(self, spec: JobSpec, strategy: Strategy | None = None) -> tuple[Proposal, float]:
        """The proposal and the milliseconds of CPU it took."""
        table, book = await self.table(), await self._telemetry.book()
        began = self._context.clock.cpu()
        made = self._propose(spec, strategy, table, book, self._context.clock.now())
        return made, (self._context.clock.cpu() - began) * 1000

    async def best_in(self, spec: JobSpec, strategy: Strategy, places: frozenset[str]) -> Candidate | None:
        """The best way to run it, were machines bought in these places only."""
        table, book = await self.table(), await self._telemetry.book()
        question = replace(self._question(spec, strategy, self._context.clock.now()), enabled=places)
        made = plan.propose(question, table, book)
        check_proposal(made, spec, question.now)
        return made.runnable

    async def flow(
        self, spec: JobSpec, jobs: Sequence[JobSpec], strategy: Strategy | None = None
    ) -> tuple[FlowPlan, FlowPlan]:
        """The plan of a workflow whose steps are `jobs`: the best of everything, and the best of what is enabled."""
        answers = await self._current()
        asked = [essence(job) for job in jobs]
        many = {
            number: answers.proposal(job, strategy, answers.table, partial(self._ask, job, strategy, answers))
            for number, job in enumerate(asked)
            if spread.task_count(job) > 1
        }
        made = self._flow(spec, asked, strategy, {n: p.chosen for n, p in many.items()}, answers, is_enabled=False)
        if all(step.candidate is None or step.candidate.is_enabled for step in made.steps) and made.steps:
            return made, made
        bought = {n: p.runnable for n, p in many.items()}
        return made, self._flow(spec, asked, strategy, bought, answers, is_enabled=True)

    def _flow(
        self,
        spec: JobSpec,
        jobs: Sequence[JobSpec],
        strategy: Strategy | None,
        many: Mapping[int, Candidate | None],
        answers: Answers,
        *,
        is_enabled: bool,
    ) -> FlowPlan:
        given = {number: one for number, one in many.items() if one is not None}
        enabled = self._context.enabled
        flow = flow_of(spec, jobs, given, now=answers.now, enabled=enabled, strategy=strategy)
        made = flows.propose(flows.study(flow, answers.table, answers.book), is_enabled=is_enabled)
        check_flow(made, flow, answers.table)
        return made

    def dead_man(self, made: Proposal) -> timedelta | None:
        """When machines that would be bought end themselves, should all servers be gone; None: they never do."""
        if made.runnable is None:
            return None
        facts = self._context.seller(made.runnable.first.target).facts
        return facts.orphan_after if facts.powers_off else None

    async def why_not(self, spec: JobSpec, strategy: Strategy | None, words: str) -> list[dict[str, Any]]:
        """What stands against the offers that `words` name."""
        question = self._question(spec, strategy, self._context.clock.now())
        told = whynot.explain(question, words, await self.table(), await self._telemetry.book())
        return [{**listing_view(one.listing), "rule": one.rule.code, "reason": one.reason} for one in told]

    async def admit(self, spec: JobSpec) -> Planned:
        """The plan of a job that is to run; of a thousand equal ones that arrive together the first is thought about.
        Raises InfeasibleJob."""
        answers, asked = await self._current(), essence(spec)
        return answers.plan(asked, lambda: self._plan(asked, answers))

    async def _current(self, held: Sequence[Holding] = ()) -> Answers:
        """Answers hold for one table, one book and one minute. Whoever asks for more beside what it holds has more left
        of its quotas than others."""
        table, book, now = await self.table(), await self._telemetry.book(), self._context.clock.now()
        if held and table.quotas:
            return Answers(replace(table, quotas=freed(table.quotas, held, table)), book, now)
        if self._answers is None or not self._answers.hold(table, book, now):
            self._answers = Answers(table, book, now)
        return self._answers

    def _plan(self, spec: JobSpec, answers: Answers) -> Planned:
        began, now = self._context.clock.cpu(), answers.now

        def ask(other: JobSpec, how: Strategy | None, offers: OfferTable) -> Proposal:
            return answers.proposal(other, how, offers, lambda: self._propose(other, how, offers, answers.book, now))

        spec, made = admission.fitting(spec, answers.table, ask, now, self._context.providers)
        # What is only taken now runs where it would, were nothing taken.
        way = made.runnable or ask(spec, None, answers.table.emptied).runnable
        cpu_ms = (self._context.clock.cpu() - began) * 1000
        expected = None if way is None else prediction.expected(spec, way, answers.table, self._telemetry.shipped())
        return Planned(json.dumps(encode(plan_view(made, now, cpu_ms, self.dead_man(made)))), expected, way=way)

    def _ask(self, spec: JobSpec, strategy: Strategy | None, answers: Answers) -> Proposal:
        return self._propose(spec, strategy, answers.table, answers.book, answers.now)

    def _propose(
        self, spec: JobSpec, strategy: Strategy | None, table: OfferTable, book: SpeedBook, now: datetime
    ) -> Proposal:
        question = self._question(spec, strategy, now)
        tasks = spread.task_count(spec)
        if tasks > 1:
            made = spread.propose_tasks(question, tasks, table, book)
        else:
            made = plan.propose(question, table, book)
        check_proposal(made, spec, now)
        return made

    def _question(self, spec: JobSpec, strategy: Strategy | None, now: datetime) -> Question:
        return Question(spec=spec, now=now, enabled=self._context.enabled, strategy=strategy)


def purchase_of(candidate: Candidate) -> Purchase:
    """What is asked of the seller."""
    listing = candidate.first
    return Purchase(offer_of(listing), listing.zone, candidate.nodes, hazard_of(listing))


def offer_of(listing: Listing) -> Offer:
    return Offer(
        id=listing.id,
        target=listing.target,
        instance_type=listing.instance_type,
        gpu=listing.gpu,
        gpus=listing.gpus,
        gpu_memory_gib=listing.gpu_memory_gib,
        cpus=int(listing.cpus),
        memory_gib=listing.memory_gib,
        price_per_hour=listing.price or MicroUsd(0),
        is_spot=listing.market is Market.SPOT,
        on_demand_per_hour=listing.on_demand,
    )


def hazard_of(listing: Listing) -> float | None:
    """Of one machine; None: it cannot be taken away."""
    return listing.hazard_per_hour if listing.market is Market.SPOT else None
