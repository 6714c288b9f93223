"""What a pretend cloud sells, as a catalog says it: machines with no, one or two GPUs in two zones; those with GPUs are
sold as spot machines too."""

from datetime import datetime

from crucible.core.offers import make_table
from crucible.core.perf import make_book
from crucible.engine.planner import Knowledge
from crucible.model.catalog import Billing, Hazard, InstanceType, Price
from crucible.model.offer import Fabric, Market
from crucible.testing.fake_prices import MINIMUM_S, Kind

ZONES = ("a", "b")
SIZES = (0, 1, 2)


def pretend_catalog(provider: str, region: str, now: datetime) -> Knowledge:
    types = [
        InstanceType(
            provider=provider,
            name=f"{provider}-{gpus}gpu",
            gpu="H100" if gpus else None,
            gpus=gpus,
            gpu_memory_gib=80,
            cpus=8,
            memory_gib=64,
            fabric=Fabric.HIGH,
        )
        for gpus in SIZES
    ]
    prices = [
        Price(
            provider=provider,
            region=region,
            zone=zone,
            instance_type=type_.name,
            market=market,
            price=Kind(type_.gpus, market is Market.SPOT).price(now),
            as_of=now,
            source="pretended",
        )
        for type_ in types
        for zone in ZONES
        for market in (Market.ON_DEMAND, Market.SPOT)
        if type_.gpus or market is Market.ON_DEMAND
    ]
    billing = Billing(
        provider=provider, unit_s=1, minimum_s=MINIMUM_S, start_s=30.0, egress_usd_per_gb=0.0, max_nodes=16, source=""
    )
    hazard = Hazard(
        provider=provider, region="", instance_type="", per_hour=0.1, low=0.0, high=1.0, availability=None,
        method="pretended", as_of=now.date(),
    )  # fmt: skip
    return Knowledge(make_table(types, prices, [billing], [hazard]), make_book((), ()))
