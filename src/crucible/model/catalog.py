"""Facts about what is sold: GPUs, instance types, how bills are rounded, what moving data costs. Every fact names its
source and its date; what nobody knows is None, never a guess."""

from dataclasses import dataclass
from datetime import date, datetime

from crucible.model.offer import Fabric, Market
from crucible.model.units import MicroUsd


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    name: str  # "A100-80GB", the name used in specs and everywhere else
    memory_gib: float
    bandwidth_gbps: float  # of its memory, GB/s
    tflops: float  # dense, bf16 or fp16
    tflops_fp8: float | None
    has_bf16: bool
    link_gbps: float  # to its neighbours in the same machine, GB/s
    link: str  # "NVLink3"
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """One type of one provider. `provider` and `name` are its key."""

    provider: str
    name: str
    gpu: str | None
    gpus: int
    gpu_memory_gib: float  # per GPU
    cpus: float
    memory_gib: float
    disk_gib: float | None = None  # local scratch; None: unknown or attachable
    network_gbps: float | None = None
    fabric: Fabric = Fabric.STANDARD
    backend: str = "vm"
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What one machine costs there, in that market, from that moment on. `price` None: on offer, but nobody says for
    how much."""

    provider: str
    region: str
    zone: str  # "" where the provider has none
    instance_type: str
    market: Market
    price: MicroUsd | None
    as_of: datetime
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hazard:
    """How often a spot machine is taken away, and how often there is one, with where that is known from."""

    provider: str
    region: str  # "" for all of the provider
    instance_type: str  # "" for all types of the region
    per_hour: float
    low: float  # 90 % interval of `per_hour`
    high: float
    availability: float | None  # share of the time in which one could be had
    method: str  # a heading of docs/catalog.md
    as_of: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Billing:
    """How a provider rounds: a machine's life is billed in units of `unit_s`, and never for less than `minimum_s`."""

    provider: str
    unit_s: int
    minimum_s: int
    start_s: float  # from the order to a machine that runs our agent
    egress_usd_per_gb: float | None  # to the internet, first tier
    max_nodes: int  # of one cluster
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """Moving data from one region to another. A region is "provider:region"."""

    source: str
    target: str
    usd_per_gb: float
    gbps: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """One measured rate of all machines together. Rates of one source, model, precision and kind can be compared."""

    framework: str
    model: str  # "resnet50", "llama2-70b-lora": an architecture where it is one
    model_class: str
    gpu: str
    gpus: int  # of one machine
    nodes: int
    precision: str
    rate: float
    unit: str  # "samples/s", "tokens/s", "runs/h"
    source: str
    is_inference: bool = False
    fabric: Fabric = Fabric.STANDARD  # what joins the machines, if there are several


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A well-known model. `active` is less than `parameters` where a token meets only some experts."""

    name: str
    aliases: tuple[str, ...]  # Hugging Face ids and other names, in small letters
    model_class: str
    parameters: float
    active: float
    hidden: int | None  # None: it has no one width
    layers: int | None
    heads: int | None
