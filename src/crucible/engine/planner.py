"""Plans with what is known now: the shipped catalog, prices told since, and what sellers list at this moment. Planning
itself is `core.plan`; every proposal is checked before anybody sees it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from crucible.core import admission, plan, spread, whynot
from crucible.core.check import check_proposal
from crucible.core.offers import OfferTable, make_table, with_live
from crucible.core.overlay import with_prices
from crucible.core.perf import SpeedBook, make_book
from crucible.core.plan import Question
from crucible.core.proposal import Proposal
from crucible.engine.context import Context
from crucible.engine.plan_view import listing_view
from crucible.model.catalog import Price
from crucible.model.offer import Offer
from crucible.model.spec import JobSpec, Strategy

OFFERS_FRESH_S = 1.0


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is shipped: the offers as columns, and how fast GPUs are."""

    table: OfferTable
    book: SpeedBook


# Without a catalog only what sellers list themselves is on offer.
NO_KNOWLEDGE = Knowledge(make_table((), ()), make_book((), ()))


class Planner:
    def __init__(
        self,
        context: Context,
        knowledge: Knowledge,
        overlay: Callable[[], Awaitable[tuple[int, Sequence[Price]]]],
        offers: Callable[[], Awaitable[Sequence[Offer]]],
    ) -> None:
        self._context = context
        self._knowledge = knowledge
        self._overlay = overlay
        self._offers = offers
        self._priced: tuple[int, OfferTable] = (0, knowledge.table)
        self._live: tuple[float, Sequence[Offer], OfferTable] | None = None

    async def table(self) -> OfferTable:
        """Prices as told, and what is free on own machines, a second old at most."""
        version, prices = await self._overlay()
        if version != self._priced[0]:
            self._priced, self._live = (version, with_prices(self._knowledge.table, prices)), None
        now = self._context.clock.monotonic()
        if self._live is None or now - self._live[0] > OFFERS_FRESH_S:
            offers = await self._offers()
            if self._live is None or offers != self._live[1]:
                table = with_live(self._priced[1], offers, self._context.clock.now())
            else:
                table = self._live[2]
            self._live = (now, offers, table)
        return self._live[2]

    async def propose(self, spec: JobSpec, strategy: Strategy | None = None) -> tuple[Proposal, float]:
        """The proposal and the milliseconds of CPU it took."""
        table = await self.table()
        began = self._context.clock.cpu()
        made = self.ask(spec, strategy, table, self._context.clock.now())
        return made, (self._context.clock.cpu() - began) * 1000

    async def why_not(self, spec: JobSpec, strategy: Strategy | None, words: str) -> list[dict[str, Any]]:
        """What stands against the offers that `words` name."""
        question = self._question(spec, strategy, self._context.clock.now())
        told = whynot.explain(question, words, await self.table(), self._knowledge.book)
        return [{**listing_view(one.listing), "rule": one.rule.code, "reason": one.reason} for one in told]

    async def admit(self, spec: JobSpec) -> tuple[Proposal, float]:
        """The same for a job that is to run. Raises InfeasibleJob."""
        table, now, began = await self.table(), self._context.clock.now(), self._context.clock.cpu()
        made = admission.feasible(spec, table, lambda other, how, offers: self.ask(other, how, offers, now), now)
        return made, (self._context.clock.cpu() - began) * 1000

    def ask(self, spec: JobSpec, strategy: Strategy | None, table: OfferTable, now: datetime) -> Proposal:
        question = self._question(spec, strategy, now)
        tasks = spread.task_count(spec)
        if tasks > 1:
            made = spread.propose_tasks(question, tasks, table, self._knowledge.book)
        else:
            made = plan.propose(question, table, self._knowledge.book)
        check_proposal(made, spec, now)
        return made

    def _question(self, spec: JobSpec, strategy: Strategy | None, now: datetime) -> Question:
        return Question(spec=spec, now=now, enabled=frozenset(self._context.sellers), strategy=strategy)
