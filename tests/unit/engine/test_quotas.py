"""Quotas as sellers tell them: believed for a day, counted with what is held; what nobody knows refuses nothing."""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeVar

from crucible.core.plan import Question, propose
from crucible.engine.planner import Knowledge, Planner
from crucible.engine.quotas import OLDEST, QuotaBook
from crucible.model.errors import ProviderError
from crucible.model.offer import Market
from crucible.model.quota import Holding, Measure, Quota
from market import BOOK, NOW, a_job, a_price, a_table, a_type

T = TypeVar("T")
VCPUS = Quota(provider="aws", region="r1", most=192, measure=Measure.CPUS, market=Market.ON_DEMAND, families=("p",))


@dataclass
class Teller:
    """A seller that knows its quotas, at times."""

    name: str = "aws"
    region: str = "r1"
    told: Sequence[Quota] = (VCPUS,)
    is_broken: bool = False
    asked: int = 0

    async def quotas(self) -> Sequence[Quota]:
        self.asked += 1
        if self.is_broken:
            raise ProviderError("not now", provider=self.name)
        return self.told


@dataclass
class Office:
    sellers: dict[tuple[str, str], Any]
    held: Sequence[Holding] = ()
    at: float = 0.0
    context: Any = field(init=False)

    def __post_init__(self) -> None:
        clock = SimpleNamespace(monotonic=lambda: self.at, now=lambda: NOW, wait_for=self.wait_for)
        store = SimpleNamespace(holdings=self.holdings, cooldowns=self.nothing, spot_lives=self.nothing)
        self.context = SimpleNamespace(clock=clock, store=store, sellers=self.sellers)

    async def wait_for(self, work: Awaitable[T], seconds: float) -> T:
        return await work

    async def holdings(self, provider: str) -> Sequence[Holding]:
        return [one for one in self.held if one.provider == provider]

    async def nothing(self, *_: object) -> Sequence[Any]:
        return ()

    async def no_prices(self) -> tuple[int, Sequence[Any]]:
        return 0, ()

    async def no_starts(self, shipped: Any) -> dict[str, float]:
        return {}

    def planner(self, book: QuotaBook) -> Planner:
        known = Knowledge(a_table([a_type("p5.48xlarge")], [a_price("p5.48xlarge", 20)]), BOOK)
        telemetry: Any = SimpleNamespace(starts=self.no_starts)
        return Planner(self.context, known, self.no_prices, self.nothing, telemetry, book.known)


def test_a_seller_that_cannot_tell_now_is_believed_for_a_day_and_keeps_nobody_waiting() -> None:
    async def story() -> None:
        broken, fine = Teller(region="r1"), Teller(region="r2", told=())
        office = Office({("aws", "r1"): broken, ("aws", "r2"): fine, ("local", "local"): SimpleNamespace()})
        book = QuotaBook(office.context)
        assert book.known() == ()
        assert await book.ask() and book.known() == (VCPUS,)
        broken.is_broken = True
        assert not await book.ask() and fine.asked == 2
        assert book.known() == (VCPUS,)
        office.at = OLDEST.total_seconds() + 1
        assert book.known() == ()

    asyncio.run(story())


def test_plans_know_what_is_left_of_a_quota() -> None:
    async def story() -> None:
        office = Office({("aws", "r1"): Teller()})
        book = QuotaBook(office.context)
        planner = office.planner(book)
        question = Question(spec=a_job(), now=NOW, enabled=frozenset({"aws"}))
        assert (await planner.table()).quotas == ()
        await book.ask()
        office.at = 10.0
        assert propose(question, await planner.table(), BOOK).chosen is not None
        office.held = [Holding("aws", "r1", "p5.48xlarge", Market.ON_DEMAND, 2)]
        planner.look_again()
        table = await planner.table()
        assert [(one.used, one.left) for one in table.quotas] == [(192, 0)]
        refused = propose(question, table, BOOK)
        assert refused.chosen is None and "192 in use" in refused.refusals[-1].reason

    asyncio.run(story())
