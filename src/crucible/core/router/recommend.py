"""From a workload to ranked backends: what the planner knows of every offer, one prospect per backend, weighed by
`scoring`. The same table, rules and costs as a plan: a recommendation never promises what a plan would refuse."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np

from crucible.core import plan
from crucible.core.offers import UNKNOWN, Floats, Ints, Listing, OfferTable
from crucible.core.perf import CONFIDENCE, SpeedBook
from crucible.core.proposal import Rule
from crucible.core.router.analysis import Analysis
from crucible.core.router.backends import COLAB, EC2_RESERVED, Backend, Kind, backend_of
from crucible.core.router.characteristics import Profile, WorkloadCharacteristics, job_type, profile, workload_of
from crucible.core.router.preferences import OptimizeFor, Preferences
from crucible.core.router.reasons import cons, pros
from crucible.core.router.scoring import RESERVED_H, Best, Merit, Prospect, score
from crucible.core.rules import STORAGE_HOMES, explain
from crucible.model.offer import Market
from crucible.model.spec import Checkpointing, Constraints, JobSpec, Resources
from crucible.model.units import MICRO, micro_usd

COLAB_GPUS = 1  # Colab has one
TIME_SHARE = 0.25  # of an offer's hours beside its cost, when one offer of a backend is chosen
LEAST_H = 1e-6
NEVER = timedelta(days=3660)
LOOKED_AT = 16  # offers of a backend whose interruptions are reckoned


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEstimate:
    hourly_usd: float | None
    total_usd: float | None
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    status: str  # available, queued, limited
    wait_s: float | None
    basis: str  # how one knows


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendRecommendation:
    """Seed 003's shape, with the offer it is about."""

    backend: str
    score: float
    cost: CostEstimate
    availability: Availability
    pros: tuple[str, ...]
    cons: tuple[str, ...]
    merits: Mapping[Merit, float]
    is_enabled: bool
    listing: Listing | None  # the offer that was looked at; None: there is none in the catalog
    count: int  # machines
    hours: float | None


@dataclass(frozen=True, slots=True)
class Exclusion:
    backend: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendations:
    profile: Profile
    ranked: tuple[BackendRecommendation, ...]  # the best first
    excluded: tuple[Exclusion, ...]
    hours_basis: str  # where the hours come from


@dataclass(frozen=True, slots=True)
class _Pick:
    """The offer that stands for a backend."""

    row: int
    rule: Rule
    hourly_usd: float | None
    total_usd: float | None
    hours: float | None
    count: int
    confidence: str


def recommend(
    analysis: Analysis,
    wishes: Preferences,
    table: OfferTable,
    book: SpeedBook,
    now: datetime,
    enabled: frozenset[str],
) -> Recommendations:
    known = profile(analysis, wishes, book.architectures)
    spec = spec_of(known.characteristics, wishes, book)
    study = plan.study(plan.Question(spec=spec, now=now, enabled=enabled), table, book)
    picks, excluded = _picks(study, spec, wishes)
    known = _with_duration(known, picks)
    told = known.characteristics
    prospects = [_prospect(backend, pick, table, told) for backend, pick in picks.items()]
    prospects += [_unpriced(one, told) for one in _unlisted(told, wishes, picks)]
    best = _best(prospects)
    ranked = [_recommended(one, picks.get(one.backend), known, wishes, best, table, enabled) for one in prospects]
    return Recommendations(
        profile=known,
        ranked=tuple(sorted(ranked, key=lambda one: (-one.score, one.backend))),
        excluded=tuple(excluded),
        hours_basis=study.hours.basis,
    )


def spec_of(told: WorkloadCharacteristics, wishes: Preferences, book: SpeedBook) -> JobSpec:
    """The workload as a job, open to every market: which of them suits it is what is asked."""
    return JobSpec(
        type=job_type(told),
        resources=Resources(
            gpus=told.gpus or 0, gpu_memory_gib=told.gpu_memory_gb or 0.0, estimated_hours=told.duration_hours
        ),
        workload=workload_of(told, book.architectures),
        constraints=Constraints(
            allow_spot=True, budget=None if wishes.max_cost_usd is None else micro_usd(wishes.max_cost_usd)
        ),
        checkpoint=Checkpointing(interval=_interval(told)),
    )


def _interval(told: WorkloadCharacteristics) -> timedelta | None:
    """What cannot go on from a checkpoint has none, as far as interruptions are concerned."""
    if told.interruptible is False:
        return NEVER
    return None if told.checkpoint_frequency is None else timedelta(minutes=told.checkpoint_frequency)


# --- one offer per backend --------------------------------------------------------------------------------


def _picks(study: plan.Study, spec: JobSpec, wishes: Preferences) -> tuple[dict[Backend, _Pick], list[Exclusion]]:
    """The best way of each backend; without one, an offer that is only taken or unpriced; else why there is none."""
    table = study.table
    chosen: dict[Backend, _Pick] = {}
    excluded: list[Exclusion] = []
    for backend, rows in sorted(_groups(table).items()):
        if wishes.allowed_backends and backend.name not in wishes.allowed_backends:
            excluded.append(Exclusion(backend.name, "not among the backends that are allowed"))
            continue
        pick = _best_way(study, rows, wishes) or _waiting(study, rows)
        if pick is None:
            excluded.append(Exclusion(backend.name, _why_not(study, spec, rows)))
        else:
            chosen[backend] = pick
    return chosen, excluded


def _groups(table: OfferTable) -> dict[Backend, Ints]:
    """Rows by backend. A backend follows from the shape and the market: few of them differ."""
    keys = table.shape.astype(np.int64) * len(Market) + table.market
    kinds, inverse = np.unique(keys, return_inverse=True)
    names: dict[Backend, list[int]] = {}
    for code, key in enumerate(kinds.tolist()):
        shape, market = divmod(key, len(Market))
        provider = table.sellers.name[table.shapes.seller[shape]]
        names.setdefault(backend_of(provider, table.shapes.backend[shape], Market(market)), []).append(code)
    return {backend: np.flatnonzero(np.isin(inverse, codes)) for backend, codes in names.items()}


def _best_way(study: plan.Study, rows: Ints, wishes: Preferences) -> _Pick | None:
    """The few best if nothing happens, then the best of them with what may happen."""
    rough = study.rough
    mine = np.flatnonzero(np.isin(rough.row, rows))
    if not len(mine):
        return None
    hopeful = mine[np.argsort(_wish(rough.cost[mine], rough.wall_h[mine], wishes), kind="stable")[:LOOKED_AT]]
    ways = plan.ways_at(study, hopeful)
    wish = _wish(ways.cost.astype(np.float64), ways.wall_h, wishes)
    index = int(np.lexsort((ways.row, ways.cost, wish))[0])
    row = int(ways.row[index])
    shape = int(study.table.shape[row])
    is_known = not np.isnan(study.hours.hours[shape])
    return _Pick(
        row=row,
        rule=Rule.NONE,
        hourly_usd=float(ways.price[index]) / MICRO,
        total_usd=float(ways.cost[index]) / MICRO if is_known else None,
        hours=float(ways.work_h[index]) if is_known else None,
        count=int(ways.nodes[index]),
        confidence=CONFIDENCE[study.hours.confidence[shape]] if is_known else "low",
    )


def _wish(cost: Floats, hours: Floats, wishes: Preferences) -> Floats:
    """The least is what is wanted. Without a wish, money counts, and time a little."""
    if wishes.optimize_for is OptimizeFor.COST:
        return cost
    if wishes.optimize_for is OptimizeFor.SPEED:
        return hours
    return cost / max(float(cost.min()), 1.0) + TIME_SHARE * hours / max(float(hours.min()), LEAST_H)


def _waiting(study: plan.Study, rows: Ints) -> _Pick | None:
    """What would fit if it were free, or if somebody said what it costs."""
    for rule in (Rule.SOLD_OUT, Rule.PRICE_UNKNOWN):
        found = rows[study.rule[rows] == rule]
        if len(found):
            row = int(found[0])
            shape, price = int(study.table.shape[row]), int(study.table.price[row])
            count = int(study.ruling.gang.nodes[shape])
            hours = float(study.hours.hours[shape])
            hourly = None if price == UNKNOWN else price * count / MICRO
            is_known = not np.isnan(hours)
            total = hourly * hours if is_known and hourly is not None else None
            return _Pick(row, rule, hourly, total, hours if is_known else None, count, "low")
    return None


def _why_not(study: plan.Study, spec: JobSpec, rows: Ints) -> str:
    """About the offer that came furthest."""
    rules = study.rule[rows]
    row = int(rows[int(np.argmax(rules))])
    shape = int(study.table.shape[row])
    nodes = int(study.ruling.gang.nodes[shape])
    most = int(study.table.sellers.max_nodes[study.table.shapes.seller[shape]])
    listing = study.table.listing(row)
    return f"{listing.instance_type} {explain(Rule(int(rules.max())), spec, listing, nodes, most)}"


def _unlisted(told: WorkloadCharacteristics, wishes: Preferences, picks: Mapping[Backend, _Pick]) -> list[Backend]:
    """Seed 003 names them and no catalog prices them: they are told, without a price."""
    wanted = []
    if told.gpus == COLAB_GPUS:
        wanted.append(COLAB)
    is_long = told.duration_hours is not None and told.duration_hours > RESERVED_H
    if is_long and told.gpus and not any(one.name == EC2_RESERVED.name for one in picks):
        wanted.append(EC2_RESERVED)
    return [one for one in wanted if not wishes.allowed_backends or one.name in wishes.allowed_backends]


# --- weighing ---------------------------------------------------------------------------------------------


def _with_duration(known: Profile, picks: Mapping[Backend, _Pick]) -> Profile:
    """If nobody said how long it takes: as long as on the cheapest."""
    told = known.characteristics
    timed = [pick for pick in picks.values() if pick.hours is not None and pick.total_usd is not None]
    if told.duration_hours is not None or not timed:
        return known
    cheapest = min(timed, key=lambda pick: (pick.total_usd or 0.0, pick.hours or 0.0))
    hours = round(cheapest.hours or 0.0, 2)
    return replace(known, characteristics=replace(told, duration_hours=hours))


def _prospect(backend: Backend, pick: _Pick, table: OfferTable, told: WorkloadCharacteristics) -> Prospect:
    seller = table.shapes.seller[table.shape[pick.row]]
    return Prospect(
        backend=backend,
        hourly_usd=pick.hourly_usd,
        total_usd=pick.total_usd,
        hours=pick.hours,
        start_s=float(table.sellers.start_s[seller]),
        is_free_now=pick.rule is not Rule.SOLD_OUT,
        has_data=_has_data(backend, told),
    )


def _unpriced(backend: Backend, told: WorkloadCharacteristics) -> Prospect:
    return Prospect(
        backend=backend,
        hourly_usd=None,
        total_usd=None,
        hours=None,
        start_s=None,
        is_free_now=True,
        has_data=_has_data(backend, told),
    )


def _has_data(backend: Backend, told: WorkloadCharacteristics) -> bool | None:
    if told.dataset is None or "://" not in told.dataset:
        return None
    return STORAGE_HOMES.get(told.dataset.partition("://")[0]) == backend.provider


def _best(prospects: Sequence[Prospect]) -> Best:
    """What costs nothing is not compared with."""
    costs = [one.hourly_usd if one.total_usd is None else one.total_usd for one in prospects]
    paid = [cost for cost in costs if cost is not None and cost > 0]
    hours = [one.hours for one in prospects if one.hours is not None]
    return Best(min(paid, default=None), min(hours, default=None))


def _recommended(
    prospect: Prospect,
    pick: _Pick | None,
    known: Profile,
    wishes: Preferences,
    best: Best,
    table: OfferTable,
    enabled: frozenset[str],
) -> BackendRecommendation:
    told = known.characteristics
    value, merits = score(prospect, told, wishes, best)
    listing = None if pick is None else table.listing(pick.row)
    return BackendRecommendation(
        backend=prospect.backend.name,
        score=round(value, 4),
        cost=CostEstimate(
            hourly_usd=prospect.hourly_usd,
            total_usd=prospect.total_usd,
            confidence="low" if pick is None else _confidence(pick, prospect, wishes),
        ),
        availability=_availability(prospect, pick, listing),
        pros=tuple(pros(prospect, told, wishes, best)),
        cons=tuple(cons(prospect, told, wishes, enabled, listing)),
        merits=merits,
        is_enabled=prospect.backend.provider in enabled,
        listing=listing,
        count=0 if pick is None else pick.count,
        hours=prospect.hours,
    )


def _confidence(pick: _Pick, prospect: Prospect, wishes: Preferences) -> str:
    """A user's own hours are worth something; interruptions are not certain."""
    level = CONFIDENCE.index(pick.confidence)
    if wishes.duration_hours is not None and pick.total_usd is not None:
        level = max(level, CONFIDENCE.index("medium"))
    if prospect.backend.kind is Kind.OWN and pick.hourly_usd == 0:
        level = CONFIDENCE.index("high")
    if prospect.backend.is_spot or pick.total_usd is None:
        level = max(0, level - 1)
    return CONFIDENCE[level]


def _availability(prospect: Prospect, pick: _Pick | None, listing: Listing | None) -> Availability:
    if pick is None or listing is None:
        return Availability(status="limited", wait_s=None, basis="no offer of it is in the catalog")
    if not prospect.is_free_now:
        return Availability(status="queued", wait_s=None, basis="its GPUs are taken now")
    if listing.free_gpus is not None:
        return Availability(status="available", wait_s=prospect.start_s, basis="free at this moment")
    if prospect.backend.is_spot:
        share = listing.availability
        said = "spot capacity comes and goes" if share is None else f"to be had {share:.0%} of the time"
        is_usual = share is not None and share >= _USUALLY
        return Availability(status="available" if is_usual else "limited", wait_s=prospect.start_s, basis=said)
    return Availability(status="available", wait_s=prospect.start_s, basis="on sale; the stock is not known")


# Spot machines that can be had so often count as available.
_USUALLY = 0.9
