"""How many vCPUs the account may run in a region, by kind and market. It only reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crucible.model.offer import Market
from crucible.model.quota import Measure, Quota
from crucible.providers.aws.errors import PROVIDER

SERVICE = "ec2"


@dataclass(frozen=True, slots=True)
class Known:
    """A quota of Service Quotas."""

    code: str
    name: str
    example: str  # what needs it
    market: Market
    families: tuple[str, ...]

    @property
    def is_for_gpus(self) -> bool:
        return self.families != STANDARD


P, G = ("p",), ("g", "gr", "vt")
STANDARD = ("a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z")

QUOTAS = (
    Known("L-417A185B", "P on demand", "p5.48xlarge needs 192", Market.ON_DEMAND, P),
    Known("L-7212CCBC", "P spot", "p5.48xlarge needs 192", Market.SPOT, P),
    Known("L-DB2E81BA", "G on demand", "g5.xlarge needs 4", Market.ON_DEMAND, G),
    Known("L-3819A6DF", "G spot", "g5.xlarge needs 4", Market.SPOT, G),
    Known("L-1216C47A", "standard on demand", "m7i.xlarge needs 4", Market.ON_DEMAND, STANDARD),
    Known("L-34B43A08", "standard spot", "m7i.xlarge needs 4", Market.SPOT, STANDARD),
)
FOR_GPUS = tuple(known for known in QUOTAS if known.is_for_gpus)


def vcpus(service_quotas: Any) -> Mapping[str, int]:
    """Of machines with GPUs, by the name of the quota. One that was never changed is known by its default only."""
    return {known.name: int(value(service_quotas, known.code)) for known in FOR_GPUS}


def told(service_quotas: Any, region: str) -> Sequence[Quota]:
    """As plans know them."""
    return [
        Quota(
            provider=PROVIDER,
            region=region,
            market=known.market,
            families=known.families,
            measure=Measure.CPUS,
            most=int(value(service_quotas, known.code)),
        )
        for known in QUOTAS
    ]


def value(service_quotas: Any, code: str) -> float:
    try:
        return float(service_quotas.get_service_quota(ServiceCode=SERVICE, QuotaCode=code)["Quota"]["Value"])
    except service_quotas.exceptions.NoSuchResourceException:
        default = service_quotas.get_aws_default_service_quota(ServiceCode=SERVICE, QuotaCode=code)
        return float(default["Quota"]["Value"])
