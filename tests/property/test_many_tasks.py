"""Many equal tasks over random catalogs: safe, and as good as anything that a planner finds that tries all numbers of
machines and waves."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from math import ceil, isfinite
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crucible.core import cost, risk, spread
from crucible.core.check import check_proposal
from crucible.core.plan import Question
from crucible.core.proposal import Proposal
from crucible.core.unfold import kind_of
from crucible.model.quota import Quota
from crucible.model.shards import Shards
from crucible.model.spec import Execution, JobSpec, Mode, Replication, Strategy
from crucible.model.sweep import Search, Sweep
from crucible.model.task import TaskKind
from property import brute_force
from property.brute_force import Bounds, Lot, Way, World
from property.test_plan_properties import BOOK, JOBS, NOW, SOME, STRATEGIES, limited, table_of, worlds

# Bills are rounded after the choice: by a minute of each machine at most, in these worlds.
UNIT_S = 60


@st.composite
def many(draw: st.DrawFn) -> tuple[JobSpec, int]:
    spec, tasks = draw(JOBS), draw(st.integers(2, 5))
    need = replace(
        spec.resources,
        gpus=min(spec.resources.gpus, 4),
        requires_multi_node=False,
        estimated_hours=draw(st.sampled_from([2.0, 0.5, 7.0])),
        cpus=0,
        cpu_memory_gib=0,
    )
    at_once = draw(st.sampled_from([None, None, None, 1, 2, 3]))
    tried: dict[str, Any] = (
        {"shards": Shards(count=tasks)} if draw(st.booleans()) else {"sweep": Sweep(method=Search.RANDOM, count=tasks)}
    )
    hours = draw(st.sampled_from([None, None, 2.5, 5.0, 16.0]))
    limits = replace(spec.constraints, deadline=None if hours is None else NOW + timedelta(hours=hours))
    mode = Execution(mode=draw(st.sampled_from([Mode.MULTI_TASK, Mode.MULTI_TASK, Mode.SINGLE_CLUSTER])))
    execution = replace(mode, parallelism=at_once)
    return replace(spec, resources=need, constraints=limits, execution=execution, **tried), tasks


def small(world: World) -> World:
    """Bills by the second or the minute, without a minimum."""
    return replace(
        world, billing=[replace(b, unit_s=min(b.unit_s, UNIT_S), minimum_s=0, max_nodes=16) for b in world.billing]
    )


def proposed(job: JobSpec, world: World, tasks: int, strategy: Strategy, quotas: Sequence[Quota] = ()) -> Proposal:
    question = Question(spec=job, now=NOW, enabled=frozenset({"aws"}), strategy=strategy)
    made = spread.propose_tasks(question, tasks, table_of(world), BOOK, quotas)
    check_proposal(made, job, NOW, quotas)
    return made


@SOME
@given(worlds(5), many(), st.sampled_from([Strategy.CHEAPEST, Strategy.SPREAD]), st.sampled_from([None, None, 1, 2]))
def test_many_tasks_cost_the_least_that_any_number_of_machines_does(
    world: World, asked: tuple[JobSpec, int], strategy: Strategy, quota: int | None
) -> None:
    (job, tasks), world = asked, small(world)
    quotas = [] if quota is None else [Quota(provider="aws", region=r, most=quota) for r in ("r1", "r2")]
    made = proposed(job, world, tasks, strategy, quotas)
    least = least_of(job, world, tasks, strategy, {f"{q.provider}:{q.region}": q.most for q in quotas})
    budget = job.constraints.budget
    if made.chosen is None or made.chosen.cost is None:
        # Bills may turn out a little higher than the program reckons; it does not promise what may not be kept.
        assert least is None or (budget is not None and least[1] > budget * 0.95)
        return
    assert least is not None
    assert made.chosen.cost <= least[1] / (1 - made.bound) * (1 + 1e-6) + 1
    assert made.chosen.cost >= least[1] * (1 - 1e-6) - 1


@SOME
@given(worlds(5), many())
def test_own_machines_run_as_many_tasks_as_they_can(world: World, asked: tuple[JobSpec, int]) -> None:
    job, tasks = limited(asked[0], budget=None, deadline=None, performance_weight=0.0, preferred_regions=()), asked[1]
    world = small(world)
    made = proposed(job, world, tasks, Strategy.OWN_FIRST)
    least = least_of(job, world, tasks, Strategy.OWN_FIRST, {})
    assert (made.chosen is None) == (least is None)
    if made.chosen is not None and least is not None:
        foreign = sum(p.tasks for p in made.chosen.parts if p.listing.target.provider not in ("local", "onprem"))
        assert foreign == least[0]
        assert made.chosen.cost is None or made.chosen.cost <= least[1] * 1.02 + 1


@SOME
@given(worlds(12), many(), STRATEGIES)
def test_every_strategy_keeps_every_limit_and_says_the_same_twice(
    world: World, asked: tuple[JobSpec, int], strategy: Strategy
) -> None:
    job, tasks = asked
    assert proposed(job, world, tasks, strategy) == proposed(job, world, tasks, strategy)


@SOME
@given(worlds(8), many())
def test_the_fastest_ends_no_later_than_any_other(world: World, asked: tuple[JobSpec, int]) -> None:
    (job, tasks), world = asked, small(world)
    quickest = proposed(job, world, tasks, Strategy.FASTEST).chosen
    for strategy in (Strategy.CHEAPEST, Strategy.OWN_FIRST):
        other = proposed(job, world, tasks, strategy).chosen
        assert (quickest is None) == (other is None)
        if quickest is not None and other is not None and quickest.expected_h and other.expected_h:
            assert quickest.expected_h <= other.expected_h * (1 + 1e-9)


# --- trying everything ------------------------------------------------------------------------------------


def least_of(
    job: JobSpec, world: World, tasks: int, strategy: Strategy, quotas: dict[str, int]
) -> tuple[int, int] | None:
    """Tasks on foreign machines and dollars, with waves until the deadline or as few as there can be."""
    is_timed = job.constraints.deadline is not None
    most = [tasks] if is_timed else [*range(ceil(tasks / min(job.execution.parallelism or tasks, tasks)), tasks + 1)]
    ways = ways_of(job, world, tasks)
    everything = [lot for way in ways for lot in lots_of(job, way, world, tasks)]
    regions = len({lot.region for lot in everything})
    shares = [ceil(tasks / min(3, max(regions, 1)))] if strategy is Strategy.SPREAD else []
    for share in (*shares, tasks):
        for waves in most:
            lots = [lot for lot in everything if lot.waves <= waves]
            found = best_of(job, world, ways, lots, tasks, share, strategy, quotas)
            if found is not None:
                return found
    return None


def best_of(
    job: JobSpec,
    world: World,
    ways: Sequence[Way],
    lots: Sequence[Lot],
    tasks: int,
    share: int,
    strategy: Strategy,
    quotas: dict[str, int],
) -> tuple[int, int] | None:
    limits, at_once = job.constraints, job.execution.parallelism
    bounds = Bounds(
        tasks=tasks,
        per_region=share,
        free={"stock": world.live[0].free_gpus or 0} if world.live else {},
        hourly=limits.max_price_per_hour,
        at_once=at_once if at_once is not None and at_once < tasks else None,
        quotas=quotas,
        reading=reading_of(job, ways, world, tasks),
    )
    fleets = brute_force.fleets(lots, bounds, strategy is Strategy.OWN_FIRST)
    found = [one for one in fleets if limits.budget is None or one[1] <= limits.budget]
    return min(found, key=lambda one: one if strategy is Strategy.OWN_FIRST else (0, one[1]), default=None)


def ways_of(job: JobSpec, world: World, tasks: int) -> list[Way]:
    _, ways = brute_force.judged(one_of(job, tasks), world, BOOK, NOW)
    return [way for way in ways if not way.firm and isfinite(way.hours)]


def one_of(job: JobSpec, tasks: int) -> JobSpec:
    one = limited(job, budget=None, max_price_per_hour=None)
    if job.shards is not None and job.data.size_gib is not None:
        one = replace(one, data=replace(job.data, size_gib=job.data.size_gib / tasks))
    return one


def reading_of(job: JobSpec, ways: Sequence[Way], world: World, tasks: int) -> dict[str, int]:
    """Dollars of a task that finds no data on its machine, per region."""
    if is_kept(job):
        return {}
    one = one_of(job, tasks)
    moved = {region_of(way): brute_force.move(one, way.sale, world, NOW) for way in ways}
    return {region: round(found[0] * 1e6) for region, found in moved.items() if found is not None}


def is_kept(job: JobSpec) -> bool:
    is_shared = kind_of(job) is TaskKind.SEATED
    return is_shared and job.shards is None and job.data.replication_policy is not Replication.NONE


def region_of(way: Way) -> str:
    return f"{way.sale.provider}:{way.sale.region}"


def lots_of(job: JobSpec, way: Way, world: World, tasks: int) -> list[Lot]:
    """All numbers of seats and waves that one gang of it can have."""
    is_shared, kind, bill = kind_of(job) is TaskKind.SEATED, way.sale.kind, world.rules_of(way.sale.provider)
    if way.nodes > 1 and is_shared:
        return []
    per_machine = kind.gpus // job.resources.gpus if job.resources.gpus else int(kind.cpus)
    seats = max(per_machine, 1) if is_shared else 1
    one = one_of(job, tasks)
    usd, moving_h = brute_force.move(one, way.sale, world, NOW) or (0.0, 0.0)
    is_staged = job.data.replication_policy is Replication.PRE_STAGE
    before_h, during_h = (moving_h, 0.0) if is_staged else (0.0, 0.25 * moving_h)
    once_h = during_h if job.shards is None and job.data.replication_policy is not Replication.NONE else 0.0
    work_h = brute_force.hours_on(one, way.sale, BOOK)
    exposure = exposure_of(job, way, work_h + during_h - once_h, bill.start_s / 3600)
    course = risk.course(exposure)
    start_h, task_h = bill.start_s / 3600 + once_h, float(course.billed_h[0])
    lots = []
    for waves in range(1, tasks + 1):
        starts = 1 if is_shared else waves
        hours = before_h + start_h * starts + waves * float(course.wall_h[0])
        if not is_in_time(job, exposure, course, waves, before_h + start_h * starts):
            break
        each, lives = (start_h + task_h * waves, 1.0) if is_shared else (start_h + task_h, 1.0)
        losses = course.interruptions * (waves if is_shared else 1)
        billed = cost.expected_billed_hours(
            np.array([each]), lives + losses, np.array([bill.unit_s]), np.array([bill.minimum_s])
        )
        paid = int(cost.machine_cost(np.array([way.price]), np.array([1]), billed)[0]) * (1 if is_shared else waves)
        at_once = job.execution.parallelism or tasks
        for used in [seats] if at_once >= tasks else range(1, min(seats, at_once) + 1):
            lots.append(
                Lot(
                    cost=paid + (round(usd * 1e6) if is_kept(job) else 0),
                    price=way.price,
                    seats=used,
                    waves=waves,
                    hours=hours,
                    region=region_of(way),
                    stock="stock" if way.sale.free is not None else None,
                    nodes=way.nodes,
                    draws=way.nodes * kind.gpus,
                    is_own=way.sale.provider in ("local", "onprem"),
                )
            )
    return lots


def exposure_of(job: JobSpec, way: Way, work_h: float, start_h: float) -> risk.Exposure:
    interval = job.checkpoint.interval
    return risk.Exposure(
        work_h=np.array([work_h]),
        hazard=np.array([way.sale.hazard * way.nodes]),
        checkpoint_h=np.array([brute_force.checkpoint_s(job) / 3600]),
        restart_h=np.array([start_h + 60 / 3600]),
        billed_restart_h=np.array([start_h + 60 / 3600]),
        interval_h=np.array([np.nan if interval is None else interval.total_seconds() / 3600]),
    )


def is_in_time(job: JobSpec, one: risk.Exposure, course: risk.Course, waves: int, before_h: float) -> bool:
    """Expected, and with the odds that were asked for."""
    deadline = job.constraints.deadline
    if deadline is None:
        return True
    left_h = (deadline - NOW).total_seconds() / 3600 - before_h
    if waves * float(course.wall_h[0]) > left_h + 1e-9:
        return False
    saves = course.interval_h < one.work_h
    several = replace(
        one,
        work_h=one.work_h * waves,
        checkpoint_h=np.where(saves, one.checkpoint_h, 0.0),
        interval_h=course.interval_h,
    )
    odds = risk.finish_by(several, replace(course, wall_h=course.wall_h * waves), np.array([left_h]))
    return float(odds[0]) >= max(job.constraints.min_reliability, 0.5)
