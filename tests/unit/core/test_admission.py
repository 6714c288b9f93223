"""Who may enter: what can never run is refused with the field that blocks and what would help."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from crucible.core.admission import admit, feasible
from crucible.core.offers import make_table, with_live
from crucible.core.perf import make_book
from crucible.core.plan import Question, propose
from crucible.core.proposal import Proposal
from crucible.model.errors import InfeasibleJob, NotAvailableYet
from crucible.model.offer import Offer
from crucible.model.shards import Shards
from crucible.model.spec import Constraints, Data, Framework, JobSpec, Resources
from crucible.model.units import micro_usd
from making import NOW, an_offer

OFFERS = [an_offer(g) for g in range(9)]
BOOK = make_book((), ())


def enter(spec: JobSpec, offers: Sequence[Offer]) -> Proposal:
    enabled = frozenset(offer.target.provider for offer in offers)

    def ask(other: JobSpec, strategy: object, table: object) -> Proposal:
        return propose(Question(spec=other, now=NOW, enabled=enabled, strategy=strategy), table, BOOK)  # type: ignore[arg-type]

    return feasible(spec, with_live(make_table((), ()), offers, NOW), ask, NOW, enabled)


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
        enter(JobSpec(command=("true",), resources=resources), OFFERS)


def test_more_gpus_than_exist_are_refused_though_each_machine_would_fit() -> None:
    with pytest.raises(InfeasibleJob, match="needs 16 free GPUs") as error:
        enter(JobSpec(command=("true",), resources=Resources(gpus=16, max_gpus_per_node=8)), OFFERS)
    assert "at most 8 GPUs" in error.value.details["hint"]


def test_a_busy_machine_is_no_reason_to_refuse() -> None:
    made = enter(JobSpec(command=("true",), resources=Resources(gpus=8)), [an_offer(8, free=0)])
    assert made.runnable is None


def test_a_passed_deadline_is_refused() -> None:
    with pytest.raises(InfeasibleJob, match="has passed"):
        admit(JobSpec(command=("true",), constraints=Constraints(deadline=NOW)), NOW)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (JobSpec(entrypoint="s3://bucket/train.py"), "job.entrypoint"),
        (JobSpec(command=("true",), data=Data(dataset="s3://bucket/data")), "job.data.dataset"),
        (JobSpec(command=("true",), image="busybox", volumes={"/data": "s3://bucket/data"}), "job.volumes"),
    ],
)
def test_what_is_not_built_yet_is_refused_never_ignored(spec: JobSpec, field: str) -> None:
    with pytest.raises(NotAvailableYet) as refused:
        admit(spec, NOW)
    assert refused.value.details["field"] == field


def test_a_declared_slot_stands_for_any_gpu() -> None:
    job = JobSpec(command=("true",), resources=Resources(gpus=1, gpu_types=("H100",)))
    made = enter(job, [an_offer(1, gpu="slot")])
    assert made.runnable is not None and made.runnable.first.gpu == "slot"


def job(hours: float = 10, **limits: object) -> JobSpec:
    need = Resources(gpus=4, estimated_hours=hours)
    return JobSpec(command=("true",), resources=need, constraints=Constraints(**limits))  # type: ignore[arg-type]


def test_a_budget_that_is_too_small_names_one_that_is_not() -> None:
    offers = [an_offer(4, price=2_000_000)]
    with pytest.raises(InfeasibleJob) as refused:
        enter(job(budget=micro_usd(5)), offers)
    assert refused.value.details["field"] == "constraints.budget"
    assert "a budget of $20.00 or more" in refused.value.details["hint"]
    enter(job(budget=micro_usd(20)), offers)


def test_a_deadline_that_is_too_near_names_one_that_is_not() -> None:
    with pytest.raises(InfeasibleJob) as refused:
        enter(job(deadline=NOW + timedelta(hours=1)), [an_offer(4)])
    assert refused.value.details["field"] == "constraints.deadline"
    later = NOW + timedelta(hours=10)
    assert f"{later:%Y-%m-%dT%H:%M}Z or later" in refused.value.details["hint"]
    enter(job(deadline=later), [an_offer(4)])


def test_nothing_for_sale_is_said() -> None:
    with pytest.raises(InfeasibleJob, match="nothing is for sale"):
        enter(job(), [])


@pytest.mark.parametrize(
    "spec",
    [
        JobSpec(command=("train",), shards=Shards(count=9), framework=Framework.HOROVOD),
        JobSpec(command=("train",), shards=Shards(count=9), resources=Resources(nodes=2)),
    ],
)
def test_a_gang_cannot_be_a_command_that_is_run_for_each_shard(spec: JobSpec) -> None:
    with pytest.raises(InfeasibleJob, match="on one machine") as refused:
        admit(spec, NOW)
    assert refused.value.details["field"] == "job.command"
    admit(replace(spec, command=(), entrypoint="infer.py"), NOW)
