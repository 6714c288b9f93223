"""How many GPUs there are, and how many are free."""

from crucible.core.capacity import Pool, pools
from crucible.model.ids import OfferId
from crucible.model.offer import Counted, Offer, Target
from crucible.model.units import MicroUsd


def offer(
    provider: str,
    gpus: int,
    counted: tuple[int, int] | None,
    gpu: str | None = "H100",
    zone: str = "",
    memory_gib: float = 80,
) -> Offer:
    return Offer(
        id=OfferId(f"{provider}/{zone}/{gpu}/{gpus}"),
        target=Target(provider, "here", "vm"),
        instance_type=f"{gpus}gpu",
        gpu=gpu,
        gpus=gpus,
        gpu_memory_gib=memory_gib,
        cpus=8,
        memory_gib=64,
        price_per_hour=MicroUsd(0),
        zone=zone,
        counted=None if counted is None else Counted(*counted),
    )


def test_machines_of_all_sizes_are_made_of_the_same_gpus() -> None:
    assert pools(offer("local", gpus, (8, 5)) for gpus in range(1, 9)) == [Pool("local", "here", "", "H100", 8, 5)]


def test_places_and_kinds_are_apart_and_in_order() -> None:
    found = pools(
        [
            offer("slurm", 1, (4, 0), zone="b"),
            offer("slurm", 1, (4, 4), zone="a"),
            offer("slurm", 1, (2, 1), "A100", zone="a"),
            offer("onprem", 1, (16, 14), zone="a"),
        ]
    )
    assert [(pool.provider, pool.zone, pool.gpu, pool.free, pool.gpus) for pool in found] == [
        ("onprem", "a", "H100", 14, 16),
        ("slurm", "a", "A100", 1, 2),
        ("slurm", "a", "H100", 4, 4),
        ("slurm", "b", "H100", 0, 4),
    ]


def test_one_name_with_two_memories_is_added_up() -> None:
    mixed = [offer("local", 1, (2, 1), "A100", memory_gib=40), offer("local", 1, (6, 6), "A100", memory_gib=80)]
    assert pools(mixed) == [Pool("local", "here", "", "A100", 8, 7)]


def test_what_nobody_counts_and_what_has_no_gpu_is_no_pool() -> None:
    assert pools([offer("aws", 8, None), offer("local", 0, (0, 0), None)]) == []
