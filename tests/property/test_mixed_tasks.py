"""Groups of different tasks over random catalogs: together as cheap as anything that a planner finds that tries all
numbers of machines for each, and safe where there are many."""

from collections.abc import Iterator, Sequence
from itertools import product
from math import ceil

from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.core.check_tasks import check_mixture
from crucible.core.mixed import Mixture, propose_mixed
from crucible.core.plan import Question
from crucible.model.quota import Quota
from crucible.model.spec import Constraints, Execution, JobSpec, Mode, Resources, Strategy
from crucible.model.sweep import Search, Sweep
from crucible.model.units import MicroUsd
from property.brute_force import Lot, World
from property.test_many_tasks import lots_of, proposed, small, ways_of
from property.test_plan_properties import BOOK, NOW, SOME, table_of, worlds

A_FEW = settings(SOME, max_examples=40)


@st.composite
def kinds(draw: st.DrawFn) -> tuple[JobSpec, int]:
    count = draw(st.integers(1, 3))
    spec = JobSpec(
        command=("true",),
        resources=Resources(
            gpus=draw(st.sampled_from([1, 2, 4])), estimated_hours=draw(st.sampled_from([0.5, 2.0, 7.0]))
        ),
        constraints=Constraints(allow_spot=draw(st.booleans())),
        execution=Execution(mode=Mode.MULTI_TASK),
        sweep=Sweep(method=Search.RANDOM, count=count),
    )
    return spec, count


LIMITS = st.builds(
    Constraints,
    budget=st.sampled_from([None, None, MicroUsd(30_000_000), MicroUsd(200_000_000)]),
    max_price_per_hour=st.sampled_from([None, None, MicroUsd(20_000_000)]),
)


def mixed(
    groups: Sequence[tuple[JobSpec, int]],
    world: World,
    limits: Constraints,
    quotas: Sequence[Quota] = (),
    strategy: Strategy = Strategy.CHEAPEST,
) -> Mixture:
    question = Question(spec=JobSpec(constraints=limits), now=NOW, enabled=frozenset({"aws"}), strategy=strategy)
    made = propose_mixed(question, groups, table_of(world), BOOK, quotas)
    check_mixture(made, groups, limits, NOW, quotas)
    return made


@SOME
@given(worlds(4), st.lists(kinds(), min_size=2, max_size=2), LIMITS, st.sampled_from([None, None, 1, 3]))
def test_groups_together_cost_the_least_that_any_machines_for_them_do(
    world: World, groups: list[tuple[JobSpec, int]], limits: Constraints, most: int | None
) -> None:
    world = small(world)
    quotas = [] if most is None else [Quota(provider="aws", region=region, most=most) for region in ("r1", "r2")]
    made = mixed(groups, world, limits, quotas)
    least = least_at_once(groups, world, limits, {f"{q.provider}:{q.region}": q.most for q in quotas})
    if least is not None:
        assert made.cost is not None
        assert least * (1 - 1e-6) - 1 <= made.cost <= least * (1 + 1e-6) + 1 and made.bound < 1e-6


@SOME
@given(worlds(12), kinds())
def test_one_group_is_planned_as_if_it_were_alone(world: World, group: tuple[JobSpec, int]) -> None:
    world, spec = small(world), group[0]
    made, alone = mixed([group], world, Constraints()), proposed(spec, world, group[1], Strategy.CHEAPEST)
    assert (made.why_not is None) == (alone.chosen is not None)
    if alone.chosen is not None and group[1] > 1:
        assert made.cost == alone.chosen.cost


@A_FEW
@given(worlds(20), st.lists(kinds(), min_size=1, max_size=30), LIMITS, st.sampled_from(Strategy))
def test_many_groups_keep_every_limit_and_say_how_good_they_are(
    world: World, groups: list[tuple[JobSpec, int]], limits: Constraints, strategy: Strategy
) -> None:
    made = mixed(groups, world, limits, [Quota(provider="gcp", most=9)], strategy)
    assert made.why_not is not None or (len(made.placed) == len(groups) and 0 <= made.bound < 1)
    assert made == mixed(groups, world, limits, [Quota(provider="gcp", most=9)], strategy)


def least_at_once(
    groups: Sequence[tuple[JobSpec, int]], world: World, limits: Constraints, quotas: dict[str, int]
) -> int | None:
    """None if not all run at the same time."""
    free = (world.live[0].free_gpus or 0) if world.live else 0
    found = None
    for chosen in product(*(list(covers(spec, count, world)) for spec, count in groups)):
        machines = [(lot, n) for one in chosen for lot, n in one]
        cost = sum(lot.cost * n for lot, n in machines)
        hourly = sum(lot.price * n for lot, n in machines)
        drawn = sum(lot.draws * n for lot, n in machines if lot.stock)
        over = any(sum(n * lot.nodes for lot, n in machines if lot.region == r) > most for r, most in quotas.items())
        is_fine = drawn <= free and not over
        is_fine &= limits.max_price_per_hour is None or hourly <= limits.max_price_per_hour
        is_fine &= limits.budget is None or cost <= limits.budget
        if is_fine and (found is None or cost < found):
            found = cost
    return found


def covers(spec: JobSpec, count: int, world: World) -> Iterator[tuple[tuple[Lot, int], ...]]:
    """All numbers of machines that have enough seats, and not one too many."""
    lots = [lot for way in ways_of(spec, world, count) for lot in lots_of(spec, way, world, count) if lot.waves == 1]
    for counts in product(*(range(ceil(count / lot.seats) + 1) for lot in lots)):
        spare = sum(lot.seats * n for lot, n in zip(lots, counts, strict=True)) - count
        used = [(lot, n) for lot, n in zip(lots, counts, strict=True) if n]
        if spare >= 0 and all(spare < lot.seats for lot, _ in used):
            yield tuple(used)
