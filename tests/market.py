"""Small markets for tests of planning: types, prices and interruptions in a line each."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from crucible.core import plan, spread
from crucible.core.check import check_proposal
from crucible.core.offers import OfferTable, make_table, with_live
from crucible.core.perf import make_book
from crucible.core.plan import Question
from crucible.core.proposal import Candidate, Proposal
from crucible.model.catalog import Billing, Hazard, InstanceType, Lane, Price
from crucible.model.offer import Fabric, Market, Offer
from crucible.model.spec import Constraints, Data, JobSpec, Resources, Strategy
from crucible.model.units import MicroUsd, micro_usd

NOW = datetime(2026, 11, 16, tzinfo=UTC)
BOOK = make_book((), ())
SOON = timedelta(hours=12)


def a_type(name: str, gpus: int = 8, provider: str = "aws", **changes: Any) -> InstanceType:
    fields: dict[str, Any] = dict(
        provider=provider, name=name, gpu="A100-80GB" if gpus else None, gpus=gpus, gpu_memory_gib=80.0, cpus=96.0,
        memory_gib=1024.0, fabric=Fabric.HIGH,
    )  # fmt: skip
    return InstanceType(**{**fields, **changes})


def a_price(name: str, dollars: float | None, market: Market = Market.ON_DEMAND, **changes: Any) -> Price:
    fields: dict[str, Any] = dict(
        provider="aws", region="r1", zone="a", instance_type=name, market=market,
        price=None if dollars is None else micro_usd(dollars), as_of=NOW, source="test",
    )  # fmt: skip
    return Price(**{**fields, **changes})


def a_hazard(per_hour: float, provider: str = "aws") -> Hazard:
    return Hazard(
        provider=provider, region="", instance_type="", per_hour=per_hour, low=0.0, high=9.0, availability=None,
        method="test", as_of=NOW.date(),
    )  # fmt: skip


def a_bill(provider: str = "aws", **changes: Any) -> Billing:
    fields: dict[str, Any] = dict(
        provider=provider, unit_s=1, minimum_s=0, start_s=0.0, egress_usd_per_gb=0.09, max_nodes=16, source="test"
    )
    return Billing(**{**fields, **changes})


def a_table(
    types: Sequence[InstanceType],
    prices: Sequence[Price],
    *,
    hazard: float | None = None,
    live: Sequence[Offer] = (),
    lanes: Sequence[Lane] = (),
) -> OfferTable:
    hazards = [] if hazard is None else [a_hazard(hazard)]
    billing = [a_bill(provider) for provider in ("aws", "gcp")]
    return with_live(make_table(types, prices, billing, hazards, lanes), list(live), NOW)


def a_job(
    gpus: int = 8, *, hours: float | None = 10.0, data: Data | None = None, need: Any = None, **limits: Any
) -> JobSpec:
    resources = Resources(gpus=gpus, estimated_hours=hours, **(need or {}))
    return JobSpec(command=("true",), resources=resources, data=data or Data(), constraints=Constraints(**limits))


def propose(spec: JobSpec, table: OfferTable, strategy: Strategy | None = None, enabled: Any = ("aws",)) -> Proposal:
    question = Question(spec=spec, now=NOW, enabled=frozenset(enabled), strategy=strategy)
    tasks = spread.task_count(spec)
    if tasks > 1:
        made = spread.propose_tasks(question, tasks, table, BOOK)
    else:
        made = plan.propose(question, table, BOOK)
    check_proposal(made, spec, NOW)
    return made


def bought(candidate: Candidate | None) -> list[tuple[str, int]]:
    """Ids and numbers of machines."""
    return [] if candidate is None else [(part.listing.id, part.count) for part in candidate.parts]


def dollars(amount: float) -> MicroUsd:
    return micro_usd(amount)
