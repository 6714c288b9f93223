"""The hard rules: what a job can run on at all. Each turns offers down with one reason; what depends only on the type
of a machine is asked once per type, what depends only on the region once per region."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt

from crucible.core.cost import OWN, Moves, moves
from crucible.core.cycle import ANY_GPU, shape
from crucible.core.offers import UNKNOWN, Bools, Ints, Listing, OfferTable
from crucible.core.proposal import Rule
from crucible.core.quota import over
from crucible.core.speeds import known_as
from crucible.model.offer import Fabric
from crucible.model.quota import Measure
from crucible.model.spec import JobSpec, Locality, Mode, Replication

Rules = npt.NDArray[np.int8]  # a Rule per entry

# Which provider's storage a URI names; a path is on this computer.
STORAGE_HOMES = {"s3": "aws", "gs": "gcp", "az": "azure", "minio": "onprem", "file": "local"}
OTHER_MAKERS = ("MI",)  # AMD Instinct
BESIDE_ARM = ("T4g", "GH200", "GB200")  # sold only in machines whose processors are ARM: most images do not run there
# Machines of one's own: what is stored at home is not in another cloud for them.
AT_HOME = (*OWN, "slurm")
DATASET = "dataset"  # scheme of what is registered: its home is told by the region, "provider/region"


@dataclass(frozen=True, slots=True)
class Gang:
    """Per shape: so many machines, so many GPUs of each used."""

    nodes: Ints
    used: Ints


@dataclass(frozen=True, slots=True)
class Home:
    """Where the job's data is."""

    provider: str
    region: str | None


@dataclass(frozen=True, slots=True)
class Ruling:
    """Per offer the first rule that turns it down, and what was found out on the way."""

    rule: Rules
    gang: Gang
    moves: Moves | None  # None: no data to move, or nobody says how much


def gang_of(spec: JobSpec, table: OfferTable) -> Gang:
    """As few machines as the GPUs of each allow. Own machines are cut to measure: one size fits the gang."""
    need, gpus = spec.resources, table.shapes.gpus
    least = need.nodes or (2 if need.requires_multi_node else 1)
    if need.gpus == 0:
        return Gang(np.full(len(gpus), least, dtype=np.int64), np.zeros(len(gpus), dtype=np.int64))
    nodes = np.maximum(-(-need.gpus // np.maximum(gpus, 1)), least)
    return Gang(nodes, np.minimum(gpus, -(-need.gpus // nodes)))


def home_of(spec: JobSpec) -> Home | None:
    if spec.data.dataset is None:
        return None
    scheme = spec.data.dataset.partition("://")[0] if "://" in spec.data.dataset else "file"
    if scheme == DATASET:
        provider, _, region = (spec.data.region or "local/local").partition("/")
        return Home(provider, region or None)
    provider = STORAGE_HOMES.get(scheme, "local")
    return Home(provider, "local" if provider == "local" else spec.data.region)


def judge(spec: JobSpec, table: OfferTable, now: datetime) -> Ruling:
    """Cheap rules only: time, money and risk come later, for those that are left."""
    gang = gang_of(spec, table)
    places, moved = place_rules(spec, table)
    by_shape = shape_rules(spec, table, gang)
    rule = by_shape[table.shape]
    limits = spec.constraints
    if not limits.allow_spot:
        later(rule, table.is_spot, Rule.SPOT)
    if places.any():
        rule = np.where(rule == 0, places[table.place], rule)
    later(rule, table.has_no_price, Rule.PRICE_UNKNOWN)
    if limits.max_price_age is not None:
        oldest = now.timestamp() - limits.max_price_age.total_seconds()
        later(rule, table.as_of < oldest, Rule.PRICE_STALE)
    if limits.allow_spot:
        later(rule, table.has_no_hazard, Rule.RISK_UNKNOWN)
    if limits.max_price_per_hour is not None:
        total = table.price * gang.nodes[table.shape]
        later(rule, total > limits.max_price_per_hour, Rule.PRICE_LIMIT)
    for quota in table.quotas:
        passed = over(quota, table, gang.nodes)
        if passed is not None:
            later(rule, passed, Rule.QUOTA)
    return Ruling(sold_out(rule, table, gang), gang, moved)


def later(rule: Rules, broken: Bools, name: Rule) -> Rules:
    """In place: what an earlier rule turned down keeps its reason."""
    rule += (broken & (rule == 0)).view(np.int8) * np.int8(name)  # a tenth of the time of a masked assignment
    return rule


def sold_out(rule: Rules, table: OfferTable, gang: Gang) -> Rules:
    """Only rows of a stock, and those that were refused just now, can be: a handful."""
    for row in table.cooling:
        if rule[row] == 0:
            rule[row] = Rule.SOLD_OUT
    for row, offer in table.live.items():
        if rule[row] == 0 and offer.free_machines is not None and gang.nodes[table.shape[row]] > offer.free_machines:
            rule[row] = Rule.SOLD_OUT
    for row in table.stocked:
        shape_index = table.shape[row]
        wanted = gang.nodes[shape_index] * table.shapes.gpus[shape_index]
        if rule[row] == 0 and wanted > table.free_gpus[table.stock[row]]:
            rule[row] = Rule.SOLD_OUT
    return rule


# --- by type of machine ---------------------------------------------------------------------------------


def shape_rules(spec: JobSpec, table: OfferTable, gang: Gang) -> Rules:
    need, shapes = spec.resources, table.shapes
    rule = np.zeros(len(shapes.name), dtype=np.int8)
    later(rule, ~provider_fits(spec, table)[shapes.seller], Rule.PROVIDER)
    if spec.execution.backend is not None:
        later(rule, np.array([b != spec.execution.backend for b in shapes.backend], dtype=bool), Rule.BACKEND)
    if need.gpus:
        later(rule, (shapes.gpus == 0) | ~gpu_fits(spec, table), Rule.GPU_TYPE)
        later(rule, shapes.gpu_memory_gib < need.gpu_memory_gib, Rule.GPU_MEMORY)
        later(rule, too_wide(spec, table), Rule.GPUS_PER_NODE)
    else:
        later(rule, shapes.gpus > 0, Rule.NO_GPUS_WANTED)
    later(rule, shapes.memory_gib < need.cpu_memory_gib, Rule.CPU_MEMORY)
    later(rule, shapes.cpus < need.cpus, Rule.CPUS)
    later(rule, shapes.disk_gib < need.storage_gib, Rule.STORAGE)  # unknown: disks can be attached
    several = gang.nodes > 1
    if spec.execution.mode is Mode.SINGLE_CLUSTER:
        later(rule, several & (shapes.fabric != Fabric.HIGH), Rule.FABRIC)
    later(rule, several & (gang.nodes > table.sellers.max_nodes[shapes.seller]), Rule.NODE_LIMIT)
    return rule


def provider_fits(spec: JobSpec, table: OfferTable) -> Bools:
    wanted = spec.constraints.providers or (() if spec.execution.executor is None else (spec.execution.executor,))
    return np.array([not wanted or name in wanted for name in table.sellers.name], dtype=bool)


def gpu_fits(spec: JobSpec, table: OfferTable) -> Bools:
    """A declared slot stands for whatever is asked for; A100 means every A100. Who names no GPU means one that runs
    CUDA beside an x86 processor: others must be named."""
    wanted = spec.resources.gpu_types
    if wanted:
        fitting = set().union(*(named(gpu, table.gpus) for gpu in wanted))
    else:
        fitting = {name for name in table.gpus if not name.startswith((*OTHER_MAKERS, *BESIDE_ARM))}
    names = np.array([name == ANY_GPU or name in fitting for name in table.gpus] + [False], dtype=bool)
    return names[table.shapes.gpu]


def named(gpu: str, names: tuple[str, ...]) -> set[str]:
    """All of a family, or the one that is spelled a little differently."""
    want = gpu.upper().replace(" ", "")
    family = {name for name in names if name.upper() == want or name.upper().startswith(f"{want}-")}
    other = known_as(gpu, names)
    return family or ({other} if other is not None else set())


def too_wide(spec: JobSpec, table: OfferTable) -> Bools:
    """More GPUs in one machine than the spec allows; or an own machine that is not of the gang's size."""
    most = spec.resources.max_gpus_per_node
    wide = np.zeros(len(table.shapes.name), dtype=bool) if most is None else table.shapes.gpus > most
    cut = list({int(table.shape[row]) for row in table.live})
    wide[cut] |= table.shapes.gpus[cut] != shape(spec.resources).gpus_per_node
    return wide


# --- by region: the data ----------------------------------------------------------------------------------


def place_rules(spec: JobSpec, table: OfferTable) -> tuple[Rules, Moves | None]:
    """Seed rules of locality: training reads from its own cloud, so data comes to it or it goes to the data."""
    rule = np.zeros(len(table.places.region), dtype=np.int8)
    home = home_of(spec)
    if home is None:
        return rule, None
    provider = table.seller_code(home.provider)
    same_cloud = table.places.seller == provider
    if is_brought(spec) and home.provider in AT_HOME:
        own = np.array([name in AT_HOME for name in table.sellers.name], dtype=bool)
        same_cloud = same_cloud | own[table.places.seller]
    here = same_cloud & np.array([home.region in (None, region) for region in table.places.region], dtype=bool)
    if spec.data.locality is Locality.REQUIRED:
        later(rule, ~here, Rule.LOCALITY)
    is_copied = spec.data.replication_policy is not Replication.NONE
    if spec.execution.mode is Mode.SINGLE_CLUSTER and not is_copied:
        later(rule, ~same_cloud, Rule.CROSS_CLOUD)
    moved = moves_of(spec, table, home)
    if moved is not None:
        later(rule, np.isnan(moved.usd), Rule.LOCALITY)
    return rule, moved


def moves_of(spec: JobSpec, table: OfferTable, home: Home) -> Moves | None:
    size = spec.data.size_gib
    if size is None:
        return None
    place = table.places.find(table.seller_code(home.provider), home.region) if home.region else UNKNOWN
    if place == UNKNOWN:
        return None
    return moves(table, place, size)


def is_brought(spec: JobSpec) -> bool:
    """Whether nodes fetch the data themselves, wherever they are."""
    return (spec.data.dataset or "").startswith(f"{DATASET}://")


# --- words ------------------------------------------------------------------------------------------------


def explain(rule: Rule, spec: JobSpec, offer: Listing, nodes: int, max_nodes: int) -> str:
    """Why `rule` turns `offer` down, for a person."""
    need, limits = spec.resources, spec.constraints
    home = home_of(spec)
    where = f"{home.provider} {home.region or ''}".strip() if home else ""
    match rule:
        case Rule.PROVIDER:
            return f"only {', '.join(limits.providers) or spec.execution.executor} is asked for"
        case Rule.BACKEND:
            return f"needs backend {spec.execution.backend}, it starts work by {offer.target.backend}"
        case Rule.GPU_TYPE:
            if offer.gpu and not need.gpu_types:
                other = "an ARM processor" if offer.gpu.startswith(BESIDE_ARM) else "no CUDA"
                return f"has {offer.gpu} and {other}: name it as gpu_type if your code runs there"
            return f"needs {' or '.join(need.gpu_types) or 'a GPU'}, it has {offer.gpu or 'none'}"
        case Rule.GPU_MEMORY:
            return f"needs {need.gpu_memory_gib:g} GB per GPU, it has {offer.gpu_memory_gib:g}"
        case Rule.GPUS_PER_NODE:
            most = need.max_gpus_per_node or shape(need).gpus_per_node
            gpus = "1 GPU" if offer.gpus == 1 else f"{offer.gpus} GPUs"
            return f"has {gpus} in one machine, {most} {'is' if most == 1 else 'are'} asked for"
        case Rule.NO_GPUS_WANTED:
            return "has GPUs, and the job asks for none"
        case Rule.CPU_MEMORY:
            return f"needs {need.cpu_memory_gib:g} GB of memory, it has {offer.memory_gib:g}"
        case Rule.CPUS:
            return f"needs {need.cpus} CPUs, it has {offer.cpus:g}"
        case Rule.STORAGE:
            return f"needs {need.storage_gib:g} GB of disk, it has less"
        case Rule.FABRIC:
            return f"{nodes} machines would have to be joined, and its network is too slow for that"
        case Rule.NODE_LIMIT:
            return f"would take {nodes} machines, {offer.target.provider} joins at most {max_nodes}"
        case Rule.SPOT:
            return "is a spot machine, and the spec does not allow spot"
        case Rule.LOCALITY:
            if spec.data.locality is Locality.REQUIRED:
                return f"the data is in {where}, and locality is required"
            return f"the data is in {where}, and nobody says what moving it there costs"
        case Rule.CROSS_CLOUD:
            return f"the data is in {where}; training reads from its own cloud unless the data is replicated"
        case Rule.PRICE_UNKNOWN:
            return "its price is not known"
        case Rule.PRICE_STALE:
            return f"its price is of {offer.as_of:%Y-%m-%d}, older than the spec allows"
        case Rule.RISK_UNKNOWN:
            return "nobody knows how often it is taken away"
        case Rule.SPEED_UNKNOWN:
            return f"nobody knows how fast {offer.gpu or 'it'} does this work"
        case Rule.PRICE_LIMIT:
            return "costs more per hour than the spec allows"
        case Rule.QUOTA:
            return over_quota(offer, nodes)
        case Rule.SOLD_OUT:
            if offer.free_gpus is None and offer.cooling is None:
                return f"needs {nodes} machines, {offer.free_machines} can be had"
            return offer.cooling or f"needs {nodes * offer.gpus} free GPUs, {offer.free_gpus} are free"
        case Rule.DEADLINE:
            return "would not finish before the deadline"
        case Rule.BUDGET:
            return "would cost more than the budget"
        case Rule.RELIABILITY:
            if limits.deadline is None and limits.budget is None:
                return "would be taken away again and again, and never finish"
            return f"is too likely to miss: less than {limits.min_reliability:g} to finish within the limits"
        case Rule.NONE:
            return ""


def over_quota(offer: Listing, nodes: int) -> str:
    """The quota that leaves least, if several are in the way of one gang; else it is in the way of all together."""
    each = {Measure.MACHINES: 1.0, Measure.GPUS: offer.gpus, Measure.CPUS: offer.cpus}
    passed = [quota for quota in offer.quotas if nodes * each[quota.measure] > quota.left]
    if not passed:
        return "all tasks together would pass a quota"
    tight = min(passed, key=lambda quota: quota.left)
    return f"needs {nodes * each[tight.measure]:g} {tight.measure}, {tight.left} are left of the quota {tight}"
