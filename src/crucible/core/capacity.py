"""How many GPUs there are where somebody counts them, and how many are free: this computer, own hosts, Slurm. What a
cloud could still sell, nobody knows."""

from collections.abc import Iterable
from dataclasses import dataclass

from crucible.model.offer import Offer


@dataclass(frozen=True, slots=True, order=True)
class Pool:
    provider: str
    region: str
    zone: str
    gpu: str
    gpus: int
    free: int


def pools(offers: Iterable[Offer]) -> list[Pool]:
    """One of each kind and place. Two kinds of one name differ in their memory: they are added up."""
    counts = {
        (offer.target.provider, offer.target.region, offer.zone, offer.gpu, offer.gpu_memory_gib): offer.counted
        for offer in offers
        if offer.counted is not None and offer.gpu is not None
    }
    found: dict[tuple[str, str, str, str], Pool] = {}
    for (provider, region, zone, gpu, _), (gpus, free) in counts.items():
        key = (provider, region, zone, gpu)
        known = found.get(key, Pool(*key, gpus=0, free=0))
        found[key] = Pool(*key, gpus=known.gpus + gpus, free=known.free + free)
    return sorted(found.values())
