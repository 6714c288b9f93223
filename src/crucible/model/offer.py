"""What can be bought: an offer is priced, dated, and may vanish."""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from crucible.model.ids import OfferId
from crucible.model.units import MicroUsd


class Market(IntEnum):
    """How a machine is paid for. The numbers are those of the columns of an offer table."""

    ON_DEMAND = 0
    SPOT = 1  # may be taken away at any time
    RESERVED = 2  # paid for a term, used or not


class Fabric(IntEnum):
    """What joins machines of one order: only a fast fabric carries gradients of several machines."""

    STANDARD = 0
    HIGH = 1  # EFA, InfiniBand, GPUDirect-TCPX, RDMA


@dataclass(frozen=True, slots=True)
class Target:
    """Where work runs. The provider is never empty; the backend says how work is started there."""

    provider: str  # local, onprem, aws …
    region: str
    backend: str  # local, vm, k8s, slurm, ray …


class Counted(NamedTuple):
    """GPUs of one kind in one place, whatever the size of the machines that are made of them."""

    gpus: int
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    id: OfferId
    target: Target
    instance_type: str
    gpu: str | None  # "H100"; "slot" for a declared slot without hardware; None without GPUs
    gpus: int
    gpu_memory_gib: float
    cpus: int
    memory_gib: float
    price_per_hour: MicroUsd
    is_spot: bool = False
    on_demand_per_hour: MicroUsd | None = None  # spot: of the same machine without; None: nobody says
    stock: str | None = None  # offers that name the same stock draw `gpus` each from one number of free GPUs
    free_gpus: int | None = None  # what is left of the stock now; None: unknown or unlimited
    zone: str = ""  # machines of one order stand in one zone; own hosts: their network
    free_machines: int | None = None  # so many can be had now; None: nobody counts
    all_machines: int | None = None  # so many could, were nobody using any
    counted: Counted | None = None  # of its kind and zone, for people; None: nobody counts
