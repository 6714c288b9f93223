"""The kinds of places a workload can go to, seed 003's names: what is true of each whatever it costs today."""

from dataclasses import dataclass
from enum import StrEnum

from crucible.core.cost import OWN
from crucible.model.backends import backend_name
from crucible.model.offer import Market

RESERVED = "_reserved"


class Kind(StrEnum):
    OWN = "own"
    EXTERNAL = "external"  # managed services: quick to start, shared infrastructure
    CLOUD = "cloud"  # virtual machines of one's own: slower to start, full control


# Who sells whole virtual machines of one's own. Everybody else is a service.
_CLOUDS = frozenset({"aws", "gcp", "azure", "alibaba", "tencent"})


@dataclass(frozen=True, slots=True, order=True)
class Backend:
    name: str  # ec2_spot, modal, local
    provider: str
    market: Market

    @property
    def kind(self) -> Kind:
        if self.provider in OWN:
            return Kind.OWN
        return Kind.CLOUD if self.provider in _CLOUDS else Kind.EXTERNAL

    @property
    def is_spot(self) -> bool:
        return self.market is Market.SPOT


# Nobody states a price for these, and still people ask for them.
COLAB = Backend("colab", "colab", Market.ON_DEMAND)
EC2_RESERVED = Backend("ec2_reserved", "aws", Market.RESERVED)


def backend_of(provider: str, how: str, market: Market) -> Backend:
    name = backend_name(provider, how, is_spot=market is Market.SPOT)
    if market is Market.RESERVED:
        name = backend_name(provider, how, is_spot=False).removesuffix("_ondemand") + RESERVED
    return Backend(name, provider, market)
