import pytest

from crucible.core.admission import admit
from crucible.core.cycle import Shape, Want, left, plan, shape
from crucible.model.errors import InfeasibleJob, NotAvailableYet
from crucible.model.ids import LeaseId, TaskId
from crucible.model.spec import Constraints, Data, Framework, JobSpec, Resources
from making import NOW, an_offer

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


@pytest.mark.parametrize(
    ("resources", "word"),
    [
        (Resources(gpus=1, gpu_memory_gib=141), "141 GB per GPU"),
        (Resources(gpus=1, gpu_types=("A100",)), "A100"),
        (Resources(cpu_memory_gib=1000), "1000 GB of memory"),
        (Resources(cpus=999), "999 CPUs"),
    ],
)
def test_what_can_never_fit_is_refused_with_the_reason(resources: Resources, word: str) -> None:
    with pytest.raises(InfeasibleJob, match=word):
        admit(JobSpec(command=("true",), resources=resources), OFFERS, NOW)


def test_more_gpus_than_exist_are_refused_though_each_machine_would_fit() -> None:
    with pytest.raises(InfeasibleJob, match="has 8 in all"):
        admit(JobSpec(command=("true",), resources=Resources(gpus=16, max_gpus_per_node=8)), OFFERS, NOW)


def test_a_busy_machine_is_no_reason_to_refuse() -> None:
    admit(JobSpec(command=("true",), resources=Resources(gpus=8)), [an_offer(8, free=0)], NOW)


def test_a_passed_deadline_is_refused() -> None:
    with pytest.raises(InfeasibleJob, match="has passed"):
        admit(JobSpec(command=("true",), constraints=Constraints(deadline=NOW)), OFFERS, NOW)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (JobSpec(command=("true",), framework=Framework.PYTORCH_DDP), "job.framework"),
        (JobSpec(entrypoint="s3://bucket/train.py"), "job.entrypoint"),
        (JobSpec(command=("true",), data=Data(dataset="s3://bucket/data")), "job.data.dataset"),
        (JobSpec(command=("true",), image="busybox"), "job.image"),
        (JobSpec(steps=({"name": "a"},)), "job.steps"),
    ],
)
def test_what_is_not_built_yet_is_refused_never_ignored(spec: JobSpec, field: str) -> None:
    with pytest.raises(NotAvailableYet) as refused:
        admit(spec, OFFERS, NOW)
    assert refused.value.details["field"] == field


def test_a_declared_slot_stands_for_any_gpu() -> None:
    admit(JobSpec(command=("true",), resources=Resources(gpus=1, gpu_types=("H100",))), [an_offer(1, gpu="slot")], NOW)
