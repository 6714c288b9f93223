from dataclasses import replace

import pytest

from crucible.core.check import check_plan
from crucible.core.cycle import Purchase, Shape, Want, left, plan, shape, within
from crucible.model.ids import JobId, LeaseId, OfferId, TaskId
from crucible.model.offer import Offer, Target
from crucible.model.spec import Constraints, Execution, JobSpec, Resources
from crucible.model.tree import TaskTree
from making import a_job, a_task, an_offer

OFFERS = [an_offer(g) for g in range(9)]


def want(name: str = "t", held: tuple[str, ...] = (), **resources: object) -> Want:
    spec = JobSpec(command=("true",), resources=Resources(**resources))  # type: ignore[arg-type]
    return Want(TaskId(name), spec, tuple(LeaseId(h) for h in held))


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        (Resources(), Shape(1, 0)),
        (Resources(gpus=8), Shape(1, 8)),
        (Resources(gpus=8, max_gpus_per_node=4), Shape(2, 4)),
        (Resources(gpus=2, requires_multi_node=True), Shape(2, 1)),
        (Resources(gpus=5, max_gpus_per_node=2), Shape(3, 2)),
        (Resources(nodes=3), Shape(3, 0)),
        (Resources(gpus=8, nodes=2), Shape(2, 4)),
    ],
)
def test_the_gang_has_as_few_machines_as_the_limit_allows(resources: Resources, expected: Shape) -> None:
    assert shape(resources) == expected


def test_a_gang_is_placed_whole_or_not_at_all() -> None:
    offers = [an_offer(g, free=3) for g in range(9)]
    made = plan([want(gpus=4, max_gpus_per_node=2)], offers)
    assert made.placements == ()
    assert "needs 4 free GPUs, 3 are free" in made.unplaced[0].reason


def test_each_placement_takes_from_the_stock_before_the_next_is_looked_at() -> None:
    made = plan([want("a", gpus=5), want("b", gpus=5), want("c", gpus=3)], OFFERS)
    assert [p.task_id for p in made.placements] == ["a", "c"]


def test_what_is_left_on_offer_fits_what_the_plan_left_out() -> None:
    wants = [want("a", gpus=5), want("b", gpus=5), want("c", gpus=2)]
    rest = left(OFFERS, plan(wants, OFFERS))
    assert {offer.free_gpus for offer in rest} == {1}
    assert [p.task_id for p in plan([want("b", gpus=5), want("d", gpus=1)], rest).placements] == ["d"]


def test_what_a_task_holds_is_used_before_anything_is_bought() -> None:
    made = plan([want(held=("l1",), gpus=2, max_gpus_per_node=1)], OFFERS)
    (placement,) = made.placements
    assert (placement.reuse, placement.count) == (("l1",), 1)
    (whole,) = plan([want(held=("l1", "l2", "l3"), gpus=2, max_gpus_per_node=1)], []).placements
    assert (whole.reuse, whole.offer) == (("l1", "l2"), None)


def test_the_cheapest_wins_and_the_id_breaks_ties() -> None:
    offers = [an_offer(1, price=3), an_offer(1, price=2), an_offer(1, price=2, id="a-first")]
    (placement,) = plan([want(gpus=1)], offers).placements
    assert placement.offer is not None and placement.offer.id == "a-first"


def test_what_was_planned_is_bought_beside_what_is_held_of_the_same_kind() -> None:
    machine = an_offer(8, price=30, free=None, stock=None)
    wish = replace(want(held=("l0",), gpus=16), purchase=Purchase(machine, "zone-a", 2))
    made = plan([wish], [])
    check_plan(made, [wish], [])
    (placement,) = made.placements
    assert (placement.offer, placement.count, placement.zone) == (machine, 1, "zone-a")
    assert placement.reuse == (LeaseId("l0"),)


def test_what_cannot_be_planned_waits_with_the_planners_reason() -> None:
    wish = replace(want(gpus=8), why_not="waits: sold out everywhere")
    for offers in ([], OFFERS):
        assert [one.reason for one in plan([wish], offers).unplaced] == ["waits: sold out everywhere"]


def test_a_gang_that_is_held_whole_is_used_whole_whatever_shape_the_spec_would_have() -> None:
    """It was bought as four machines with one GPU each, because that was cheaper than two with two."""
    four = tuple(f"l{i}" for i in range(4))
    held = replace(want(held=four, gpus=4, max_gpus_per_node=2), gang=Shape(4, 1))
    (placement,) = plan([held], OFFERS).placements
    check_plan(plan([held], OFFERS), [held], OFFERS)
    assert (placement.shape, placement.reuse, placement.count) == (Shape(4, 1), four, 0)


# --- offers that count machines: own hosts ------------------------------------------------------------------


def hosts(zone: str, gpus: int, free: int, whole: int, **more: object) -> Offer:
    offer = an_offer(gpus, free=None, stock=None, zone=zone, free_machines=free, all_machines=whole, **more)
    return replace(offer, id=OfferId(f"{zone}/{gpus}"))


def test_a_gang_stands_in_one_zone() -> None:
    offers = [hosts("east", 1, 1, 1), hosts("west", 1, 2, 2)]
    asked = want(gpus=2, nodes=2)
    made = plan([asked], offers)
    assert [(p.zone, p.count) for p in made.placements] == [("west", 2)]
    check_plan(made, [asked], offers)


def test_the_rest_of_a_broken_gang_is_bought_where_it_stands() -> None:
    offers = [hosts("east", 1, 5, 5), hosts("west", 1, 1, 3)]
    asked = replace(want(held=("l0", "l1"), gpus=3, nodes=3), zone="west")
    (placed,) = plan([asked], offers).placements
    assert (placed.zone, placed.count, placed.reuse) == ("west", 1, ("l0", "l1"))


def test_a_broken_gang_waits_where_there_is_no_room_beside_it() -> None:
    offers = [hosts("east", 1, 5, 5), hosts("west", 1, 0, 3)]
    asked = replace(want(held=("l0", "l1"), gpus=3, nodes=3), zone="west")
    (miss,) = plan([asked], offers).unplaced
    assert "needs 1 machines, there are 0 free" in miss.reason and miss.reason.startswith("waits")


def test_a_host_is_not_given_away_twice_in_one_plan_whatever_its_offer_is_called() -> None:
    offers = [hosts("east", 1, 1, 1), hosts("east", 2, 1, 1)]
    made = plan([want("a", gpus=1), want("b", gpus=2)], offers)
    assert [p.task_id for p in made.placements] == ["a"]
    assert [offer.free_machines for offer in left(offers, made)] == [0, 0]


def test_more_machines_than_there_are_is_said_to_be_never() -> None:
    (miss,) = plan([want(gpus=3, nodes=3)], [hosts("east", 1, 2, 2)]).unplaced
    assert "needs 3 machines, there are 2 in all" in miss.reason and not miss.reason.startswith("waits")


def test_only_what_the_spec_allows_is_bought_of_several_sellers() -> None:
    here = an_offer(1)
    there = an_offer(1, price=1, free=None, id=OfferId("y"), target=Target("slurm", "lake", "slurm"), stock=None)
    asked = want(gpus=1)
    for spec in (
        replace(asked.spec, constraints=Constraints(providers=("slurm",))),
        replace(asked.spec, execution=Execution(backend="slurm")),
        replace(asked.spec, execution=Execution(executor="slurm")),
    ):
        (placement,) = plan([replace(asked, spec=spec)], [here, there]).placements
        assert placement.offer == there


def test_of_each_job_no_more_tasks_are_looked_at_than_may_run_beside_those_that_do() -> None:
    def tree(job: str, index: int) -> TaskTree:
        task = a_task(id=TaskId(f"{job}{index}"), job_id=JobId(job), index=index)
        return TaskTree(a_job(id=JobId(job)), task, None, (), (), (), {})

    trees = [tree("a", 0), tree("b", 0), tree("a", 1), tree("b", 1), tree("a", 2), tree("c", 0)]
    room = {JobId("a"): 2, JobId("c"): 0}
    assert [one.task.id for one in within(trees, room)] == ["a0", "b0", "a1", "b1"]
    assert [one.task.id for one in within(trees, {JobId("a"): -1})] == ["b0", "b1", "c0"]
