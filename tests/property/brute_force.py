"""The planner a second time, as plainly as can be: one offer at a time, rules as docs/planning.md states them, no
columns, no bounds, no order of looking. Money and risk of one way come from `core.cost` and `core.risk`; nothing else
of the planner is used."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import ceil, inf, isfinite, isnan, nan

import numpy as np

from crucible.core import cost, risk
from crucible.core.offers import OfferTable, make_table
from crucible.core.perf import SpeedBook, work_hours
from crucible.core.proposal import Rule
from crucible.model.catalog import Billing, Hazard, InstanceType, Lane, Price
from crucible.model.offer import Fabric, Market, Offer
from crucible.model.spec import JobSpec, Locality, Mode, Replication, Strategy

HOMES = {"s3": "aws", "gs": "gcp", "az": "azure", "minio": "onprem"}
PLAIN = Billing(provider="", unit_s=1, minimum_s=0, start_s=0.0, egress_usd_per_gb=None, max_nodes=8, source="")
MICRO = 1_000_000
LAST = (Rule.PRICE_LIMIT, Rule.SOLD_OUT)  # asked after whether the speed is known


@dataclass(frozen=True, kw_only=True)
class World:
    """What is on sale, as values."""

    types: Sequence[InstanceType] = ()
    prices: Sequence[Price] = ()
    billing: Sequence[Billing] = ()
    hazards: Sequence[Hazard] = ()
    lanes: Sequence[Lane] = ()
    live: Sequence[Offer] = ()

    def rules_of(self, provider: str) -> Billing:
        return next((b for b in self.billing if b.provider == provider), PLAIN)

    def sales(self, now: datetime) -> "list[Sale]":
        types = {(t.provider, t.name): t for t in self.types}
        listed = [self._sale(types[p.provider, p.instance_type], p) for p in self.prices]
        return sorted(listed, key=lambda sale: sale.id) + [self._own(offer, now) for offer in self.live]

    def _sale(self, kind: InstanceType, price: Price) -> "Sale":
        market = price.market.name.lower().replace("_", "-")
        zone = price.zone or "-"
        return Sale(
            id=f"{price.provider}/{price.region}/{zone}/{kind.name}/{market}",
            kind=kind,
            region=price.region,
            zone=price.zone,
            market=price.market,
            price=price.price,
            as_of=price.as_of,
            hazard=0.0 if price.market is not Market.SPOT else self._hazard(price),
        )

    def _hazard(self, price: Price) -> float:
        """The most particular there is."""
        known = {(h.provider, h.region, h.instance_type): h.per_hour for h in self.hazards}
        places = ((price.region, price.instance_type), ("", price.instance_type), (price.region, ""), ("", ""))
        return next((known[key] for key in ((price.provider, *place) for place in places) if key in known), nan)

    def _own(self, offer: Offer, now: datetime) -> "Sale":
        kind = InstanceType(
            provider=offer.target.provider,
            name=offer.instance_type,
            gpu=offer.gpu,
            gpus=offer.gpus,
            gpu_memory_gib=offer.gpu_memory_gib,
            cpus=offer.cpus,
            memory_gib=offer.memory_gib,
            fabric=Fabric.HIGH if offer.stock else Fabric.STANDARD,
            backend=offer.target.backend,
        )
        return Sale(
            id=offer.id,
            kind=kind,
            region=offer.target.region,
            zone="",
            market=Market.SPOT if offer.is_spot else Market.ON_DEMAND,
            price=offer.price_per_hour,
            as_of=now,
            hazard=nan if offer.is_spot else 0.0,
            free=offer.free_gpus if offer.stock else None,
            is_own=True,
        )


@dataclass(frozen=True, kw_only=True)
class Sale:
    id: str
    kind: InstanceType
    region: str
    zone: str
    market: Market
    price: int | None
    as_of: datetime
    hazard: float
    free: int | None = None
    is_own: bool = False  # cut to measure

    @property
    def provider(self) -> str:
        return self.kind.provider


@dataclass(frozen=True, kw_only=True)
class Way:
    sale: Sale
    order: int
    nodes: int
    firm: int  # machines on demand of a mixed gang
    price: int
    cost: int
    hours: float
    reliability: float
    rough_cost: float
    rough_hours: float
    spare_h: float  # that the budget pays for beyond them
    is_good: bool


# --- rules ------------------------------------------------------------------------------------------------


def gang(spec: JobSpec, sale: Sale) -> tuple[int, int]:
    """Machines, and GPUs of each that are used."""
    need = spec.resources
    least = 2 if need.requires_multi_node else 1
    if need.gpus == 0:
        return least, 0
    nodes = max(ceil(need.gpus / max(sale.kind.gpus, 1)), least)
    return nodes, min(sale.kind.gpus, ceil(need.gpus / nodes))


def own_size(spec: JobSpec) -> int:
    need = spec.resources
    nodes = max(
        1, ceil(need.gpus / (need.max_gpus_per_node or max(need.gpus, 1))), 2 if need.requires_multi_node else 1
    )
    return ceil(need.gpus / nodes)


def refusal(spec: JobSpec, sale: Sale, world: World, now: datetime) -> Rule:
    """The first hard rule that turns it down; NONE if none does. Speed, time and money come later."""
    need, limits, kind = spec.resources, spec.constraints, sale.kind
    nodes, _ = gang(spec, sale)
    wanted = limits.providers or ((spec.execution.executor,) if spec.execution.executor else ())
    is_single = spec.execution.mode is Mode.SINGLE_CLUSTER
    most = need.max_gpus_per_node
    broken = {
        Rule.PROVIDER: bool(wanted) and sale.provider not in wanted,
        Rule.BACKEND: spec.execution.backend not in (None, kind.backend),
        Rule.GPU_TYPE: need.gpus > 0 and not has_gpu(need.gpu_types, kind),
        Rule.GPU_MEMORY: need.gpus > 0 and kind.gpu_memory_gib < need.gpu_memory_gib,
        Rule.GPUS_PER_NODE: need.gpus > 0
        and ((most is not None and kind.gpus > most) or (sale.is_own and kind.gpus != own_size(spec))),
        Rule.NO_GPUS_WANTED: need.gpus == 0 and kind.gpus > 0,
        Rule.CPU_MEMORY: kind.memory_gib < need.cpu_memory_gib,
        Rule.CPUS: kind.cpus < need.cpus,
        Rule.STORAGE: kind.disk_gib is not None and kind.disk_gib < need.storage_gib,
        Rule.FABRIC: nodes > 1 and is_single and kind.fabric is not Fabric.HIGH,
        Rule.NODE_LIMIT: nodes > 1 and nodes > world.rules_of(sale.provider).max_nodes,
        Rule.SPOT: sale.market is Market.SPOT and not limits.allow_spot,
        Rule.LOCALITY: not is_local_enough(spec, sale, world, now, is_single),
        Rule.CROSS_CLOUD: is_single and crosses(spec, sale),
        Rule.PRICE_UNKNOWN: sale.price is None,
        Rule.PRICE_STALE: limits.max_price_age is not None and now - sale.as_of > limits.max_price_age,
        Rule.RISK_UNKNOWN: isnan(sale.hazard),
        Rule.PRICE_LIMIT: limits.max_price_per_hour is not None
        and (sale.price or 0) * nodes > limits.max_price_per_hour,
        Rule.SOLD_OUT: sale.free is not None and nodes * kind.gpus > sale.free,
    }
    return next((rule for rule in sorted(broken) if broken[rule]), Rule.NONE)


def has_gpu(wanted: Sequence[str], kind: InstanceType) -> bool:
    if kind.gpu is None or kind.gpus == 0:
        return False
    if kind.gpu == "slot":
        return True
    if not wanted:
        return not kind.gpu.startswith(("MI", "T4g", "GH200", "GB200"))
    return any(kind.gpu == name or kind.gpu.startswith(f"{name}-") for name in wanted)


def home(spec: JobSpec) -> tuple[str, str | None] | None:
    if spec.data.dataset is None:
        return None
    provider = HOMES.get(spec.data.dataset.partition("://")[0], "local")
    return provider, "local" if provider == "local" else spec.data.region


def is_near(spec: JobSpec, sale: Sale) -> bool:
    data = home(spec)
    return data is None or (sale.provider == data[0] and data[1] in (None, sale.region))


def is_local_enough(spec: JobSpec, sale: Sale, world: World, now: datetime, is_single: bool) -> bool:
    """What nobody says the price of moving of is not moved; what may not be read across clouds says so instead."""
    if spec.data.dataset is None:
        return True
    if spec.data.locality is Locality.REQUIRED and not is_near(spec, sale):
        return False
    if is_single and crosses(spec, sale):
        return True
    moved = move(spec, sale, world, now)
    return moved is None or not isnan(moved[0])


def crosses(spec: JobSpec, sale: Sale) -> bool:
    data = home(spec)
    return data is not None and sale.provider != data[0] and spec.data.replication_policy is Replication.NONE


def move(spec: JobSpec, sale: Sale, world: World, now: datetime) -> tuple[float, float] | None:
    """Dollars and hours of moving the data there; None: there is none, or nobody says how much or from where."""
    data, size = home(spec), spec.data.size_gib
    if data is None or size is None or data[1] is None or not is_known(data, world, now):
        return None
    if (sale.provider, sale.region) == data:
        return 0.0, 0.0
    lanes = {(lane.source, lane.target): lane for lane in world.lanes}
    lane = lanes.get((f"{data[0]}:{data[1]}", f"{sale.provider}:{sale.region}"))
    size_gb = size * 1024**3 / 1e9
    egress = world.rules_of(data[0]).egress_usd_per_gb
    usd = nan
    if lane is not None:
        usd = lane.usd_per_gb * size_gb
    elif sale.provider != data[0] and egress is not None:
        usd = egress * size_gb
    if isnan(usd) and data[0] in ("local", "onprem"):
        usd = 0.0
    gbps = lane.gbps if lane is not None and lane.gbps else 2.0
    return usd, size_gb * 8 / gbps / 3600


def is_known(place: tuple[str, str | None], world: World, now: datetime) -> bool:
    named = {f"{sale.provider}:{sale.region}" for sale in world.sales(now)}
    named |= {end for lane in world.lanes for end in (lane.source, lane.target)}
    return f"{place[0]}:{place[1]}" in named


# --- what a way comes to --------------------------------------------------------------------------------


def judged(spec: JobSpec, world: World, book: SpeedBook, now: datetime) -> tuple[list[tuple[Sale, Rule]], list[Way]]:
    """Every offer with its hard rule, and every way that there is to run the job, good enough or not."""
    sales = world.sales(now)
    verdicts = [refusal(spec, sale, world, now) for sale in sales]
    hours = {id(sale): hours_on(spec, sale, book) for sale in sales}
    is_any_known = any(not isnan(h) for h in hours_by_kind(spec, world, sales, book))
    ways: list[Way] = []
    for order, sale in enumerate(sales):
        if is_any_known and isnan(hours[id(sale)]) and verdicts[order] in (Rule.NONE, *LAST):
            verdicts[order] = Rule.SPEED_UNKNOWN
    limits = spec if is_any_known or is_past(spec, now) else without_limits(spec)
    for order, sale in enumerate(sales):
        if verdicts[order] is Rule.NONE:
            work_h = 1.0 if isnan(hours[id(sale)]) else hours[id(sale)]
            pure = way(limits, sale, order, None, 0, work_h, world, now)
            if not fits_roughly(limits, pure, now):
                continue
            ways.append(pure)
            ways += mixed(limits, pure, work_h, list(zip(sales, verdicts, strict=True)), world, now)
    return list(zip(sales, verdicts, strict=True)), ways


def hours_by_kind(spec: JobSpec, world: World, sales: Sequence[Sale], book: SpeedBook) -> Iterator[float]:
    """Of everything that somebody sells or could sell."""
    for kind in (*world.types, *(sale.kind for sale in sales if sale.is_own)):
        yield hours_of(spec, kind, book)


def hours_on(spec: JobSpec, sale: Sale, book: SpeedBook) -> float:
    return hours_of(spec, sale.kind, book)


def hours_of(spec: JobSpec, kind: InstanceType, book: SpeedBook) -> float:
    table = make_table([kind], [])
    sale = Sale(
        id="", kind=kind, region="", zone="", market=Market.ON_DEMAND, price=None, as_of=datetime.min, hazard=0.0
    )
    nodes, used = gang(spec, sale)
    return float(work_hours(spec, table, np.array([nodes]), np.array([used]), book).hours[0])


def is_past(spec: JobSpec, now: datetime) -> bool:
    return spec.constraints.deadline is not None and spec.constraints.deadline <= now


def without_limits(spec: JobSpec) -> JobSpec:
    return replace(spec, constraints=replace(spec.constraints, budget=None, deadline=None))


def way(
    spec: JobSpec, sale: Sale, order: int, firm: Sale | None, count: int, work_h: float, world: World, now: datetime
) -> Way:
    bill, limits = world.rules_of(sale.provider), spec.constraints
    nodes, _ = gang(spec, sale)
    usd, moving_h = move(spec, sale, world, now) or (0.0, 0.0)
    is_staged = spec.data.replication_policy is Replication.PRE_STAGE
    before_h, during_h = (moving_h, 0.0) if is_staged else (0.0, 0.25 * moving_h)
    start_h = bill.start_s / 3600
    price = (sale.price or 0) * (nodes - count) + ((firm.price or 0) * count if firm else 0)
    exposure = risk.Exposure(
        work_h=np.array([work_h + during_h]),
        hazard=np.array([sale.hazard * (nodes - count)]),
        checkpoint_h=np.array([checkpoint_s(spec) / 3600]),
        restart_h=np.array([start_h + 60 / 3600]),
        billed_restart_h=np.array([start_h + 60 / 3600]),
        interval_h=np.array([spec.checkpoint.interval.total_seconds() / 3600 if spec.checkpoint.interval else nan]),
    )
    course = risk.course(exposure)
    billed = cost.expected_billed_hours(
        start_h + course.billed_h, 1 + course.interruptions, np.array([bill.unit_s]), np.array([bill.minimum_s])
    )
    egress = round(usd * MICRO)
    total = int(cost.machine_cost(np.array([price]), np.array([1]), billed)[0]) + egress
    odds = [1.0]
    if limits.deadline is not None:
        left = (limits.deadline - now).total_seconds() / 3600 - start_h - before_h
        odds.append(float(risk.finish_by(exposure, course, np.array([left]))[0]))
    if limits.budget is not None:
        left = affordable_h(limits.budget, egress, price) - start_h
        odds.append(float(risk.billed_within(exposure, course, np.array([left]))[0]))
    hours = start_h + before_h + float(course.wall_h[0])
    paid_h = work_h + during_h + start_h
    return Way(
        sale=sale,
        order=order,
        nodes=nodes,
        firm=count,
        price=price,
        cost=total,
        hours=hours,
        reliability=min(odds),
        rough_cost=price * paid_h + usd * MICRO,
        rough_hours=paid_h + before_h,
        spare_h=affordable_h(limits.budget, usd * MICRO, price) - paid_h,
        is_good=min(odds) >= max(limits.min_reliability, 0.5) and isfinite(hours),
    )


def affordable_h(budget: int | None, egress: float, price: int) -> float:
    if budget is None:
        return inf
    left = budget - egress
    return left / price if price and left >= 0 else (inf if left >= 0 else -inf)


def checkpoint_s(spec: JobSpec) -> float:
    parameters = spec.workload.parameters
    return 30.0 if parameters is None else max(5.0, parameters * 14.0 / 1e9)


def fits_roughly(spec: JobSpec, one: Way, now: datetime) -> bool:
    """In time and within the budget if nothing happens."""
    limits = spec.constraints
    if limits.deadline is not None and one.rough_hours > (limits.deadline - now).total_seconds() / 3600:
        return False
    return limits.budget is None or one.spare_h >= 0


def mixed(
    spec: JobSpec, pure: Way, work_h: float, sales: Sequence[tuple[Sale, Rule]], world: World, now: datetime
) -> Iterator[Way]:
    """Some of its machines on demand, if the same type is sold so in the same zone."""
    spot, hourly = pure.sale, spec.constraints.max_price_per_hour
    if not spot.hazard > 0:
        return
    for firm, rule in sales:
        is_same = (firm.kind, firm.region, firm.zone) == (spot.kind, spot.region, spot.zone)
        if is_same and firm.market is Market.ON_DEMAND and rule in (Rule.NONE, *LAST):
            for count in range(1, pure.nodes):
                made = way(spec, spot, pure.order, firm, count, work_h, world, now)
                if hourly is None or made.price <= hourly:
                    yield made


# --- the best ---------------------------------------------------------------------------------------------


def best(spec: JobSpec, ways: Sequence[Way], strategy: Strategy) -> Way | None:
    pure = [one for one in ways if not one.firm]
    cheapest = min((one.rough_cost for one in pure if one.rough_cost > 0), default=1.0)
    fastest = min((one.rough_hours for one in pure if one.rough_hours > 0), default=1.0)
    good = [one for one in ways if one.is_good]
    return min(good, key=lambda one: keys(spec, one, strategy, cheapest, fastest), default=None)


def keys(spec: JobSpec, one: Way, strategy: Strategy, cheapest: float, fastest: float) -> tuple[float, ...]:
    """Least first."""
    money, time, missed = one.cost / cheapest, one.hours / fastest, 1 - one.reliability
    weight = spec.constraints.performance_weight
    is_preferred = one.sale.region in spec.constraints.preferred_regions
    score = (1 - weight) * money + weight * time + 0.2 * missed - 0.05 * is_preferred
    is_foreign = one.sale.provider not in ("local", "onprem")
    first: Mapping[Strategy, tuple[float, ...]] = {
        Strategy.BALANCED: (),
        Strategy.CHEAPEST: (money,),
        Strategy.SPREAD: (money,),
        Strategy.FASTEST: (time,),
        Strategy.RELIABLE: (missed + (one.sale.hazard > 0), is_foreign),
        Strategy.NEAR_DATA: (not is_near(spec, one.sale),),
        Strategy.OWN_FIRST: (is_foreign,),
    }
    return (*first[strategy], score, money, time, one.order, one.firm)


# --- many tasks -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lot:
    """One gang of an offer that runs so many tasks at a time, so many times."""

    cost: int
    price: int
    seats: int
    waves: int
    hours: float
    region: str
    stock: str | None
    nodes: int
    draws: int
    is_own: bool

    @property
    def room(self) -> int:
        return self.seats * self.waves


@dataclass(frozen=True, kw_only=True)
class Bounds:
    tasks: int
    per_region: int
    free: Mapping[str, int]
    hourly: int | None = None
    at_once: int | None = None
    quotas: Mapping[str, int] = field(default_factory=dict)  # machines of a region
    reading: Mapping[str, int] = field(default_factory=dict)  # dollars of the data that each task reads in a region


def fleets(lots: Sequence[Lot], bounds: Bounds, is_own_first: bool) -> Iterator[tuple[int, int]]:
    """Tasks on foreign machines and cost of all numbers of gangs, lot by lot: what has the same room everywhere, takes
    the same and costs the same per hour is the same, and the cheapest of it is remembered."""
    regions, stocks, tasks = sorted({lot.region for lot in lots}), sorted(bounds.free), bounds.tasks
    start = ((0,) * len(regions), (0,) * len(regions), (0,) * len(stocks), 0, 0)
    found: dict[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int, int], int] = {start: 0}
    for lot in lots:
        further = dict(found)
        for (room, machines, drawn, price, seats), total in found.items():
            for count in range(1, ceil(tasks / lot.room) + 1):
                here = [count * (r == lot.region) for r in regions]
                more = tuple(min(n + lot.room * c, tasks) for n, c in zip(room, here, strict=True))
                bought = tuple(n + c * lot.nodes for n, c in zip(machines, here, strict=True))
                bought = bought if bounds.quotas else machines
                taken = tuple(n + lot.draws * count * (s == lot.stock) for n, s in zip(drawn, stocks, strict=True))
                hour = 0 if bounds.hourly is None else price + lot.price * count
                used = 0 if bounds.at_once is None else seats + lot.seats * count
                is_fine = all(n <= bounds.free[s] for n, s in zip(taken, stocks, strict=True))
                is_fine &= bounds.hourly is None or hour <= bounds.hourly
                is_fine &= bounds.at_once is None or used <= bounds.at_once
                is_fine &= all(n <= bounds.quotas.get(r, n) for n, r in zip(bought, regions, strict=True))
                if is_fine:
                    key = (more, bought, taken, hour, used)
                    cost = total + lot.cost * count
                    further[key] = min(further.get(key, cost), cost)
        found = further
    own = {lot.region for lot in lots if lot.is_own}
    order = sorted(regions, key=lambda r: (is_own_first and r not in own, bounds.reading.get(r, 0)))
    for (room, *_), total in found.items():
        left, foreign = tasks, 0
        for region in order:
            here = min(left, room[regions.index(region)], bounds.per_region)
            left, total = left - here, total + here * bounds.reading.get(region, 0)
            foreign += here * (region not in own)
        if left == 0:
            yield foreign, total


def table_of(world: World) -> OfferTable:
    return make_table(world.types, world.prices, world.billing, world.hazards, world.lanes)
