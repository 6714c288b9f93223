"""What a cluster has, as offers: for each partition and type of GPU one for every number of them in a node, and one
without. Pure: nodes and partitions in, offers out."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from crucible.model.ids import OfferId
from crucible.model.offer import Counted, Offer, Target
from crucible.model.units import MicroUsd
from crucible.providers.slurm.door import ClusterNode, Partition
from crucible.providers.slurm.errors import PROVIDER
from crucible.providers.slurm.settings import ClusterSettings

BACKEND = "slurm"
MIB = 1024
# A node that stays so gives out nothing until a person has looked at it.
OUT = ("DOWN", "DRAIN", "FAIL", "FUTURE", "INVAL", "MAINT", "NOT_RESPONDING", "POWERED_DOWN", "UNKNOWN", "*")
UNTYPED = "gpu"
ANY_GPU = "slot"  # a GRES without a type stands for whatever a job asks for
# GiB, where the operator says nothing: the smallest that is sold under the name.
MEMORY_GIB = {
    "A10": 24,
    "A100": 40,
    "A10G": 24,
    "A30": 24,
    "A40": 48,
    "B200": 180,
    "H100": 80,
    "H200": 141,
    "L4": 24,
    "L40": 48,
    "L40S": 48,
    "P100": 16,
    "T4": 16,
    "V100": 16,
}
UNKNOWN_GIB = 16


def offers_of(settings: ClusterSettings, partitions: Sequence[Partition], nodes: Sequence[ClusterNode]) -> list[Offer]:
    found: list[Offer] = []
    for partition in partitions:
        if not is_wanted(settings, partition) or is_too_short(settings, partition):
            continue
        usable = [node for node in nodes if partition.name in node.partitions and is_usable(node)]
        if usable:
            found += partition_offers(settings, partition.name, usable)
    return found


def is_wanted(settings: ClusterSettings, partition: Partition) -> bool:
    return partition.is_up and (not settings.partitions or partition.name in settings.partitions)


def is_too_short(settings: ClusterSettings, partition: Partition) -> bool:
    """Slurm would take our jobs and never start them."""
    limit, most = settings.time_limit, partition.max_time_s
    return limit is not None and most is not None and limit.total_seconds() > most


def is_usable(node: ClusterNode) -> bool:
    return not any(word in node.state for word in OUT)


def partition_offers(settings: ClusterSettings, partition: str, nodes: Sequence[ClusterNode]) -> Iterator[Offer]:
    yield offer(settings, partition, "", 0, nodes)
    for kind in sorted({kind for node in nodes for kind in node.gpus}):
        most = max(node.gpus.get(kind, 0) for node in nodes)
        counted = Counted(
            sum(node.gpus.get(kind, 0) for node in nodes), sum(node.free_gpus.get(kind, 0) for node in nodes)
        )
        for gpus in range(1, most + 1):
            able = [node for node in nodes if node.gpus.get(kind, 0) >= gpus]
            yield replace(offer(settings, partition, kind, gpus, able), counted=counted)


def offer(settings: ClusterSettings, partition: str, kind: str, gpus: int, nodes: Sequence[ClusterNode]) -> Offer:
    """What every one of `nodes` could give."""
    cpus = min(share_of_cpus(settings, node, kind, gpus) for node in nodes)
    memory_mib = min(max(1, node.memory_mib * cpus // max(node.cpus, 1)) for node in nodes)
    word = (kind or UNTYPED) if gpus else "cpu"
    there = sum(machines_of(settings, node.gpus.get(kind, 0), node.cpus, gpus, cpus) for node in nodes)
    free = there
    if not settings.queues:
        free = sum(machines_of(settings, node.free_gpus.get(kind, 0), node.free_cpus, gpus, cpus) for node in nodes)
    return Offer(
        id=OfferId(f"{PROVIDER}/{settings.name}/{partition}/{word}/{gpus}"),
        target=Target(PROVIDER, settings.name, BACKEND),
        instance_type=f"{partition}/{word}/{gpus}",
        gpu=gpu_name(settings, kind) if gpus else None,
        gpus=gpus,
        gpu_memory_gib=memory_of(settings, kind) if gpus else 0.0,
        cpus=cpus,
        memory_gib=memory_mib / MIB,
        price_per_hour=MicroUsd(round(settings.cost_per_gpu_hour * 1_000_000) * gpus),
        zone=partition,
        free_machines=free,  # where it queues, whatever exists can be had, in time
        all_machines=there,
    )


def share_of_cpus(settings: ClusterSettings, node: ClusterNode, kind: str, gpus: int) -> int:
    if not gpus:
        return max(1, min(settings.cpus, node.cpus))
    if settings.cpus_per_gpu is not None:
        return min(settings.cpus_per_gpu * gpus, node.cpus)
    return max(1, node.cpus * gpus // node.gpus[kind])


def machines_of(settings: ClusterSettings, has_gpus: int, has_cpus: int, gpus: int, cpus: int) -> int:
    """Of one node: machines of an allocation stand on nodes of their own."""
    fits = min(has_cpus // cpus, has_gpus // gpus if gpus else has_cpus)
    return fits if settings.independent else min(fits, 1)


def gpu_name(settings: ClusterSettings, kind: str) -> str:
    return settings.gpu_names.get(kind) or (kind.upper() if kind else ANY_GPU)


def memory_of(settings: ClusterSettings, kind: str) -> float:
    known = settings.gpu_memory_gib.get(kind)
    return float(known or MEMORY_GIB.get(kind.upper().partition("-")[0].partition("_")[0], UNKNOWN_GIB))
