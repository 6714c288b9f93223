"""How long work takes on each machine, and how sure that is (requirements C3, C4)."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.catalog import benchmarks, facts
from crucible.core.offers import OfferTable, make_table
from crucible.core.perf import CONFIDENCE, Hours, Origin, SpeedBook, make_book, work_hours
from crucible.core.speeds import known_as
from crucible.model.catalog import Gpu, InstanceType
from crucible.model.offer import Fabric
from crucible.model.spec import (
    Framework,
    JobSpec,
    JobType,
    Method,
    ModelClass,
    Precision,
    ProgressHint,
    Resources,
    Workload,
)

GPUS = tuple(facts.read(facts.SHIPPED, "gpus.csv", Gpu))
NAMES = tuple(gpu.name for gpu in GPUS)
CLASSES = [None, *ModelClass]


@cache
def book() -> SpeedBook:
    return make_book(benchmarks.benchmarks(), GPUS, benchmarks.architectures().values())


def shape(gpu: str | None, gpus: int, fabric: Fabric = Fabric.HIGH) -> InstanceType:
    return InstanceType(
        provider="x",
        name=f"{gpu}-{gpus}-{fabric.name}",
        gpu=gpu,
        gpus=gpus,
        gpu_memory_gib=80,
        cpus=8,
        memory_gib=64,
        fabric=fabric,
    )


def hours_on(spec: JobSpec, *shapes: InstanceType, speeds: SpeedBook | None = None) -> Hours:
    """With as few machines as hold the job's GPUs, in the order of `shapes`."""
    table = make_table(shapes, [])
    gpus = table.shapes.gpus
    nodes = np.maximum(-(-spec.resources.gpus // np.maximum(gpus, 1)), 1)
    found = work_hours(spec, table, nodes, np.minimum(gpus, max(spec.resources.gpus, 1)), speeds or book())
    order = [place(table, s) for s in shapes]
    return Hours(
        hours=found.hours[order],
        steps_per_hour=found.steps_per_hour[order],
        tokens_per_hour=found.tokens_per_hour[order],
        confidence=found.confidence[order],
        origin=found.origin,
        basis=found.basis,
    )


def place(table: OfferTable, wanted: InstanceType) -> int:
    return table.shapes.name.index(wanted.name)


def words(found: Hours) -> Sequence[str]:
    return [CONFIDENCE[level] for level in found.confidence]


def estimated(hours: float = 6.0, on: str | None = "A100-80GB:8", gpus: int = 8, **workload: object) -> JobSpec:
    return JobSpec(
        resources=Resources(gpus=gpus, estimated_hours=hours, estimated_on=on),
        workload=Workload(**workload),  # type: ignore[arg-type]
    )


def test_an_estimate_without_a_place_stands_for_whatever_is_chosen() -> None:
    found = hours_on(estimated(on=None), shape("A100-80GB", 8), shape("H100-SXM", 8), shape("slot", 8))
    assert found.hours.tolist() == [6.0, 6.0, 6.0]
    assert words(found) == ["low", "low", "low"]
    assert found.origin is Origin.GIVEN
    assert "resources.estimated_on" in found.basis


def test_an_estimate_holds_exactly_where_it_was_made() -> None:
    found = hours_on(estimated(model_class=ModelClass.LLM), shape("A100-80GB", 8))
    assert found.hours[0] == pytest.approx(6.0)
    assert words(found) == ["high"]


@pytest.mark.parametrize("model_class", CLASSES)
def test_faster_gpus_take_less_time_and_slower_ones_more(model_class: ModelClass | None) -> None:
    shapes = [shape(gpu, 8) for gpu in ("B200", "H100-SXM", "A100-80GB", "V100-16GB", "K80")]
    found = hours_on(estimated(model_class=model_class), *shapes)
    assert found.hours.tolist() == sorted(found.hours.tolist())
    assert found.hours[1] < 4 and found.hours[3] > 9


def test_an_h100_does_a_transformer_about_twice_as_fast_as_an_a100() -> None:
    found = hours_on(estimated(model_class=ModelClass.TRANSFORMER), shape("H100-SXM", 8))
    assert found.hours[0] == pytest.approx(3.0, rel=0.15)
    assert words(found) == ["medium"]


def test_what_the_table_measured_of_the_very_model_counts_more_than_its_class() -> None:
    found = hours_on(estimated(model="resnet50", precision=Precision.FP16), shape("H100-SXM", 8))
    assert found.hours[0] == pytest.approx(6 * 11439 / 22050, rel=0.12)  # images/s of 8 GPUs each, as published
    assert words(found) == ["high"]


def test_one_machine_beats_two_and_a_fast_fabric_beats_a_slow_one() -> None:
    shapes = [shape("A100-80GB", 8), shape("A100-80GB", 4), shape("A100-80GB", 4, Fabric.STANDARD)]
    one, fast, slow = hours_on(estimated(model_class=ModelClass.LLM), *shapes).hours
    assert one < fast < slow


def test_more_gpus_than_the_estimate_was_made_on_take_less_time_but_not_in_proportion() -> None:
    spec = estimated(on="A100-80GB:4", model_class=ModelClass.VISION)
    (found,) = hours_on(spec, shape("A100-80GB", 8)).hours
    assert 3.0 < found < 4.0


def test_a_gpu_nobody_knows_takes_as_long_as_was_said() -> None:
    found = hours_on(estimated(), shape("slot", 8), shape("Abacus-9000", 8), shape(None, 0))
    assert found.hours.tolist() == [6.0, 6.0, 6.0]
    assert words(found) == ["low", "low", "low"]


def test_an_estimate_on_a_gpu_nobody_knows_stands_as_it_is() -> None:
    found = hours_on(estimated(on="Abacus-9000:8"), shape("A100-80GB", 8), shape("H100-SXM", 8))
    assert found.hours.tolist() == [6.0, 6.0]
    assert "nothing is known of the speed of Abacus-9000" in found.basis


def test_rates_follow_from_an_estimate() -> None:
    found = hours_on(
        estimated(hours=10, model="gpt2", tokens=1e9, sequence_length=1000, batch_size=25), shape("A100-80GB", 8)
    )
    assert found.tokens_per_hour[0] == pytest.approx(1e8)
    assert found.steps_per_hour[0] == pytest.approx(1e9 / 1000 / 25 / 8 / 10)


def test_steps_are_also_taken_from_the_progress_hint() -> None:
    spec = JobSpec(resources=Resources(gpus=1, estimated_hours=2), progress=ProgressHint(total_steps=500))
    assert hours_on(spec, shape("A10", 1)).steps_per_hour[0] == 250


def trained(gpus: int = 8, framework: Framework = Framework.PYTORCH_DDP, **workload: object) -> JobSpec:
    return JobSpec(framework=framework, resources=Resources(gpus=gpus), workload=Workload(**workload))  # type: ignore[arg-type]


def test_epochs_of_a_measured_model_take_what_the_table_says() -> None:
    spec = trained(model="resnet50", precision=Precision.FP16, samples=1.28e6, epochs=90, batch_size=256)
    found = hours_on(spec, shape("H100-SXM", 8), shape("slot", 8), shape(None, 0))
    assert found.hours[0] == pytest.approx(90 * 1.28e6 / 22050 / 3600, rel=0.1)
    assert found.steps_per_hour[0] == pytest.approx(90 * 1.28e6 / 256 / 8 / found.hours[0])
    assert np.isnan(found.hours[1:]).all()
    assert words(found) == ["medium", "low", "low"]
    assert found.origin is Origin.MEASURED
    assert "measured rate of resnet50" in found.basis


def test_steps_and_a_batch_say_as_much_as_samples() -> None:
    steps = trained(model="resnet50", precision=Precision.FP16, steps=1000, batch_size=256)
    samples = trained(model="resnet50", precision=Precision.FP16, samples=1000 * 256 * 8)
    place = shape("A100-80GB", 8)
    assert hours_on(steps, place).hours[0] == pytest.approx(hours_on(samples, place).hours[0])


def test_a_language_model_is_reckoned_from_its_size() -> None:
    """A 7B model on 8 A100 at a third of their peak: 2,400 tokens a second and GPU."""
    found = hours_on(trained(model="meta-llama/Llama-2-7b-hf", tokens=1e9), shape("A100-80GB", 8))
    assert found.tokens_per_hour[0] / 3600 / 8 == pytest.approx(2500, rel=0.15)
    assert words(found) == ["low"]
    assert found.origin is Origin.RECKONED
    assert "operations per token at 35% of peak" in found.basis


def test_adapters_take_two_thirds_of_the_work() -> None:
    full, lora = (
        hours_on(trained(model="llama-2-7b", method=method, tokens=1e9), shape("A100-80GB", 8)).hours[0]
        for method in (Method.FULL, Method.LORA)
    )
    assert lora == pytest.approx(full * 2 / 3)


def test_writing_one_sequence_at_a_time_is_bound_by_memory() -> None:
    spec = JobSpec(
        type=JobType.INFERENCE,
        resources=Resources(gpus=1),
        workload=Workload(model="mistral-7b", tokens=1e6, batch_size=1, precision=Precision.FP16),
    )
    (rate,) = hours_on(spec, shape("A100-80GB", 1)).tokens_per_hour / 3600
    assert rate == pytest.approx(0.6 * 2039e9 / (2 * 7.24e9), rel=0.01)


def test_inference_of_a_measured_model_uses_its_rate() -> None:
    spec = JobSpec(
        type=JobType.INFERENCE, resources=Resources(gpus=8), workload=Workload(model="llama-2-70b", tokens=1e9)
    )
    found = hours_on(spec, shape("H200-SXM", 8))
    assert found.tokens_per_hour[0] / 3600 == pytest.approx(35000, rel=0.4)  # as published; the fit is of all GPUs
    assert "MLPerf inference" in found.basis


def test_an_unknown_model_of_a_known_class_goes_by_its_size() -> None:
    small, large = (
        hours_on(trained(model_class=ModelClass.VISION, parameters=p, samples=1e6), shape("A10", 8)).hours[0]
        for p in (25.6e6, 51.2e6)
    )
    assert large == pytest.approx(2 * small)


@pytest.mark.parametrize(
    "workload",
    [{}, {"model": "my-model"}, {"model": "resnet50"}, {"tokens": 1e9}, {"model": "resnet50", "steps": 10.0}],
)
def test_what_cannot_be_known_is_unknown_and_says_what_would_help(workload: dict[str, Any]) -> None:
    found = hours_on(trained(**workload), shape("A100-80GB", 8))
    assert np.isnan(found.hours).all() and np.isnan(found.steps_per_hour).all()
    assert found.origin is Origin.UNKNOWN
    assert "give resources.estimated_hours" in found.basis


def test_an_empty_book_still_answers() -> None:
    empty = make_book([], [])
    found = hours_on(estimated(), shape("A100-80GB", 8), speeds=empty)
    assert found.hours.tolist() == [6.0]
    assert np.isnan(hours_on(trained(model="resnet50", samples=1e6), shape("A10", 8), speeds=empty).hours).all()


def test_data_sheets_alone_compare_gpus_with_low_confidence() -> None:
    sheets = make_book([], GPUS)
    found = hours_on(estimated(model_class=ModelClass.LLM), shape("A100-80GB", 8), shape("H100-SXM", 8), speeds=sheets)
    assert found.hours[1] < found.hours[0] == pytest.approx(6.0)
    assert words(found) == ["high", "low"]


def test_no_shapes_no_hours() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert len(work_hours(estimated(), make_table([], []), none, none, book()).hours) == 0


@given(
    gpu=st.sampled_from(NAMES),
    gpus=st.sampled_from([1, 2, 4, 8]),
    job_gpus=st.integers(1, 1_000_000),
    hours=st.floats(0.01, 10_000),
    on=st.sampled_from([f"{name}:{count}" for name in ("A100", "T4", "H100-SXM") for count in (1, 8, 64)]),
    model_class=st.sampled_from(CLASSES),
    precision=st.sampled_from([None, *Precision]),
)
def test_hours_are_positive_and_in_proportion_to_the_estimate(
    gpu: str,
    gpus: int,
    job_gpus: int,
    hours: float,
    on: str,
    model_class: ModelClass | None,
    precision: Precision | None,
) -> None:
    once, twice = (
        hours_on(estimated(h, on, job_gpus, model_class=model_class, precision=precision), shape(gpu, gpus)).hours[0]
        for h in (hours, 2 * hours)
    )
    assert 0 < once < np.inf
    assert twice == pytest.approx(2 * once)


@given(model_class=st.sampled_from(CLASSES), fabric=st.sampled_from(Fabric), gpu=st.sampled_from(NAMES))
def test_more_machines_are_never_slower(model_class: ModelClass | None, fabric: Fabric, gpu: str) -> None:
    found = [
        hours_on(estimated(gpus=gpus, model_class=model_class), shape(gpu, 8, fabric)).hours[0] for gpus in (8, 16, 64)
    ]
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("A100-80GB", "A100-80GB"),
        ("a100-80gb", "A100-80GB"),
        ("A100", "A100-40GB"),
        ("H100", "H100-SXM"),
        ("NVIDIA H100 80GB HBM3", "H100-SXM"),
        ("NVIDIA A100-SXM4-80GB", "A100-80GB"),
        ("Tesla V100-SXM2-32GB", "V100-32GB"),
        ("H200", "H200-SXM"),
        ("H20", "H20"),
        ("RTX 4090", "RTX4090"),
        ("GeForce RTX 4090", "RTX4090"),
        ("4090", "RTX4090"),
        ("RTX6000-Ada", "RTX6000Ada"),
        ("Tesla T4", "T4"),
        ("A100-80GB-SXM", "A100-80GB"),
        ("PRO-6000-MIG-24GB", None),
        ("slot", None),
    ],
)
def test_gpus_are_known_by_what_people_call_them(written: str, meant: str | None) -> None:
    assert known_as(written, NAMES) == meant
