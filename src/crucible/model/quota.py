"""What an account may have of a provider at a time, whatever is for sale."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile

from crucible.model.offer import Market


class Measure(StrEnum):
    MACHINES = "machines"
    GPUS = "GPUs"
    CPUS = "vCPUs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    provider: str
    most: int
    used: int = 0  # of it, by what we hold or have ordered
    measure: Measure = Measure.MACHINES
    region: str | None = None  # None: in all of them together
    market: Market | None = None  # None: spot and on demand together
    families: tuple[str, ...] = ()  # of instance types; none: all of them

    @property
    def left(self) -> int:
        return max(self.most - self.used, 0)

    def __str__(self) -> str:
        where = self.provider if self.region is None else f"{self.provider}/{self.region}"
        kind = "" if self.market is None else f" {self.market.name.lower().replace('_', '-')}"
        family = f" {', '.join(f'{name}*' for name in self.families)}" if self.families else ""
        in_use = f" ({self.used} in use)" if self.used else ""
        return f"{where}{kind}{family}: {self.most} {self.measure}{in_use}"

    def holds_for(self, provider: str, region: str, market: Market, instance_type: str) -> bool:
        return (
            provider == self.provider
            and self.region in (None, region)
            and self.market in (None, market)
            and is_of(self.families, instance_type)
        )


@dataclass(frozen=True, slots=True)
class Holding:
    """Machines of one kind that we hold, have ordered, or have not yet got rid of."""

    provider: str
    region: str
    instance_type: str
    market: Market
    machines: int


def is_of(families: Sequence[str], instance_type: str) -> bool:
    """The family of a type are the letters that its name begins with: p of p5.48xlarge, trn of trn1.2xlarge."""
    return not families or "".join(takewhile(str.isalpha, instance_type)) in families
