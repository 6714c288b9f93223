"""Hard rules: what each turns down, in which order, and in which words."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from crucible.core.proposal import FIELDS, Rule
from crucible.model.offer import Fabric, Market
from crucible.model.spec import Data, Execution, JobSpec, Locality, Mode, Replication
from making import an_offer
from market import NOW, a_job, a_price, a_table, a_type, dollars, propose

S3 = Data(dataset="s3://b/d", size_gib=100.0, region="r1")


def refused(spec: JobSpec, kind: Any = None, **sold: Any) -> tuple[Rule, str]:
    """The rule that turns the only offer down, and what it says."""
    price = a_price("box", sold.pop("dollars", 4.0), **sold)
    made = propose(spec, a_table([kind or a_type("box")], [price], hazard=None))
    assert made.chosen is None and made.feasible == 0
    (one,) = made.refusals
    return one.rule, one.reason


@pytest.mark.parametrize(
    ("spec", "kind", "sold", "rule", "words"),
    [
        (a_job(providers=("gcp",)), None, {}, Rule.PROVIDER, "only gcp is asked for"),
        (
            replace(a_job(), execution=Execution(executor="gcp")),
            None,
            {},
            Rule.PROVIDER,
            "only gcp is asked for",
        ),
        (replace(a_job(), execution=Execution(backend="slurm")), None, {}, Rule.BACKEND, "needs backend slurm"),
        (a_job(need={"gpu_types": ("H100",)}), None, {}, Rule.GPU_TYPE, "needs H100, it has A100-80GB"),
        (a_job(), a_type("box", gpu="MI300X"), {}, Rule.GPU_TYPE, "no CUDA: name it as gpu_type"),
        (a_job(), a_type("box", gpu="GH200"), {}, Rule.GPU_TYPE, "an ARM processor: name it as gpu_type"),
        (a_job(need={"gpu_memory_gib": 141.0}), None, {}, Rule.GPU_MEMORY, "needs 141 GB per GPU, it has 80"),
        (a_job(need={"max_gpus_per_node": 4}), None, {}, Rule.GPUS_PER_NODE, "has 8 GPUs in one machine, 4 are"),
        (a_job(0), None, {}, Rule.NO_GPUS_WANTED, "has GPUs, and the job asks for none"),
        (a_job(need={"cpu_memory_gib": 2000.0}), None, {}, Rule.CPU_MEMORY, "needs 2000 GB of memory, it has 1024"),
        (a_job(need={"cpus": 128}), None, {}, Rule.CPUS, "needs 128 CPUs, it has 96"),
        (a_job(need={"storage_gib": 500.0}), a_type("box", disk_gib=100.0), {}, Rule.STORAGE, "needs 500 GB of disk"),
        (a_job(16), a_type("box", fabric=Fabric.STANDARD), {}, Rule.FABRIC, "2 machines would have to be joined"),
        (a_job(8 * 17), None, {}, Rule.NODE_LIMIT, "would take 17 machines, aws joins at most 16"),
        (a_job(), None, {"market": Market.SPOT}, Rule.SPOT, "is a spot machine"),
        (
            a_job(data=replace(S3, region="r2", locality=Locality.REQUIRED)),
            None,
            {},
            Rule.LOCALITY,
            "the data is in aws r2, and locality is required",
        ),
        (
            a_job(data=replace(S3, dataset="gs://b/d", region=None)),
            None,
            {},
            Rule.CROSS_CLOUD,
            "training reads from its own cloud",
        ),
        (a_job(), None, {"dollars": None}, Rule.PRICE_UNKNOWN, "its price is not known"),
        (
            a_job(max_price_age=timedelta(days=7)),
            None,
            {"as_of": NOW - timedelta(days=8)},
            Rule.PRICE_STALE,
            "its price is of 2026-11-08, older than the spec allows",
        ),
        (a_job(allow_spot=True), None, {"market": Market.SPOT}, Rule.RISK_UNKNOWN, "nobody knows how often"),
        (a_job(max_price_per_hour=dollars(3)), None, {}, Rule.PRICE_LIMIT, "costs more per hour"),
        (a_job(deadline=NOW + timedelta(hours=9)), None, {}, Rule.DEADLINE, "would not finish before the deadline"),
        (a_job(budget=dollars(39)), None, {}, Rule.BUDGET, "would cost more than the budget"),
    ],
)
def test_an_offer_is_turned_down_with_the_reason(
    spec: JobSpec, kind: Any, sold: dict[str, Any], rule: Rule, words: str
) -> None:
    found, said = refused(spec, kind, **sold)
    assert (found, words in said) == (rule, True), said


def test_every_rule_names_the_field_one_would_change() -> None:
    assert set(FIELDS) == set(Rule)
    assert all(FIELDS[rule] for rule in Rule if rule is not Rule.NONE)


@pytest.mark.parametrize(
    ("spec", "kind", "sold", "rule"),
    [
        (a_job(providers=("gcp",), need={"gpu_types": ("H100",)}), None, {}, Rule.PROVIDER),
        (a_job(need={"gpu_types": ("H100",), "gpu_memory_gib": 999.0}), None, {}, Rule.GPU_TYPE),
        (a_job(data=replace(S3, dataset="gs://b/d")), None, {"market": Market.SPOT}, Rule.SPOT),
        (a_job(data=replace(S3, dataset="gs://b/d")), None, {"dollars": None}, Rule.CROSS_CLOUD),
        (a_job(budget=dollars(1), deadline=NOW + timedelta(hours=1)), None, {}, Rule.DEADLINE),
    ],
)
def test_of_several_reasons_the_first_is_told(spec: JobSpec, kind: Any, sold: dict[str, Any], rule: Rule) -> None:
    assert refused(spec, kind, **sold)[0] is rule


def test_a_family_of_gpus_is_every_member_and_a_spelling_is_the_one_that_is_meant() -> None:
    for name in ("A100", "a100-80gb", "A100-SXM4-80GB"):
        assert propose(a_job(need={"gpu_types": (name,)}), a_table([a_type("box")], [a_price("box", 4)])).chosen


def test_independent_tasks_need_no_fabric_and_may_read_across_clouds() -> None:
    far = replace(S3, dataset="gs://b/d", region=None)
    spec = replace(a_job(16, data=far), execution=Execution(mode=Mode.MULTI_TASK))
    table = a_table([a_type("box", fabric=Fabric.STANDARD)], [a_price("box", 4)])
    assert propose(spec, table).chosen is not None


def test_a_disk_that_nobody_describes_can_be_attached() -> None:
    table = a_table([a_type("box", disk_gib=None)], [a_price("box", 4)])
    assert propose(a_job(need={"storage_gib": 500.0}), table).chosen is not None


def test_own_machines_are_cut_to_measure_and_run_out() -> None:
    offers = [an_offer(gpus, free=7) for gpus in range(1, 9)]
    made = propose(a_job(), a_table([], [], live=offers), enabled=("fake",))
    assert {one.rule: one.count for one in made.refusals} == {Rule.GPUS_PER_NODE: 7, Rule.SOLD_OUT: 1}
    assert made.refusals[-1].reason == "needs 8 free GPUs, 7 are free"
    assert propose(a_job(4), a_table([], [], live=offers), enabled=("fake",)).chosen is not None


def test_data_whose_lane_nobody_prices_is_not_moved() -> None:
    """Another region of the same cloud without a price of the lane: never for nothing."""
    spec = a_job(data=replace(S3, region="r2", replication_policy=Replication.PRE_STAGE))
    table = a_table([a_type("box")], [a_price("box", 4), a_price("box", 9, region="r2")])
    made = propose(spec, table)
    assert made.chosen is not None and made.chosen.first.target.region == "r2"
    assert [one.rule for one in made.refusals] == [Rule.LOCALITY]
    assert made.refusals[0].reason == "the data is in aws r2, and nobody says what moving it there costs"
