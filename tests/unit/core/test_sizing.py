"""Memory of a GPU from the size of a model (requirement C8), beside published cases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.catalog import benchmarks, facts
from crucible.core.sizing import Sizing, gpus_needed, memory_needed, recommend
from crucible.model.catalog import Gpu
from crucible.model.spec import Method, ModelClass, Optimizer, Precision, Workload

GPUS = tuple(facts.read(facts.SHIPPED, "gpus.csv", Gpu))


def needed(**workload: object) -> Sizing:
    found = memory_needed(Workload(**workload), benchmarks.architectures())  # type: ignore[arg-type]
    assert found is not None
    return found


def test_training_all_of_a_7b_model_with_adamw_takes_16_bytes_a_parameter_and_more_than_80_gb() -> None:
    found = needed(model="llama-2-7b", precision=Precision.BF16, optimizer=Optimizer.ADAMW)
    assert found.parts.states == pytest.approx(16 * 6.74e9 / 1024**3)
    assert found.gib_per_gpu > 80
    assert found.min_gpus == 2


def test_adapters_of_a_7b_model_fit_a_24_gb_gpu_with_a_small_batch() -> None:
    assert 14 < needed(model="llama-2-7b", method=Method.LORA, batch_size=1, sequence_length=2048).gib_per_gpu < 24


def test_adapters_over_4_bit_weights_of_a_7b_model_fit_a_16_gb_gpu() -> None:
    assert 5 < needed(model="llama-2-7b", method=Method.QLORA, batch_size=1, sequence_length=2048).gib_per_gpu < 16


def test_the_weights_of_a_70b_model_are_140_gb_in_16_bits() -> None:
    found = needed(model="meta-llama/Llama-2-70b-hf", method=Method.INFERENCE, precision=Precision.FP16)
    assert found.parts.weights * 1024**3 / 1e9 == pytest.approx(140, rel=0.02)
    assert found.parts.gradients == found.parts.optimizer == 0
    assert found.min_gpus == 2


def test_a_405b_model_in_8_bits_needs_a_machine_of_eight() -> None:
    found = needed(model="llama-3.1-405b", method=Method.INFERENCE, precision=Precision.FP8)
    assert found.min_gpus == 8


def test_resnet50_with_256_images_fits_a_40_gb_gpu_and_not_a_16_gb_one() -> None:
    found = needed(model="resnet50", precision=Precision.FP16, optimizer=Optimizer.SGD, batch_size=256)
    assert 16 < found.gib_per_gpu < 40


def test_nanogpt_fits_its_usual_batch_on_24_gb() -> None:
    assert 6 < needed(model="gpt2", precision=Precision.BF16, batch_size=12, sequence_length=1024).gib_per_gpu < 24


def test_it_says_how_it_was_computed_and_what_it_assumed() -> None:
    how = needed(parameters=7e9, model_class=ModelClass.LLM).how
    assert how[:4] == (
        "precision bf16 assumed",
        "optimizer adamw assumed",
        "batch_size 1 assumed",
        "sequence_length 2048 assumed",
    )
    assert how[4] == "weights: 7e+09 parameters x 2 bytes = 13.0 GiB"
    assert any(line.startswith("activations: batch of 1 x 2048 tokens, 33 layers") for line in how)
    assert how[-1].startswith("together ")


def test_nothing_is_said_of_a_model_nobody_knows() -> None:
    assert memory_needed(Workload(model="my-model"), benchmarks.architectures()) is None


def test_the_users_parameters_win_over_the_list() -> None:
    assert needed(model="llama-2-7b", parameters=14e9).parts.weights == pytest.approx(2 * 14e9 / 1024**3)


def test_a_batch_that_no_gpu_holds_is_not_helped_by_more_gpus() -> None:
    found = needed(model="gpt2", batch_size=10_000, sequence_length=1024)
    assert found.min_gpus == 0
    assert recommend(found, GPUS) == []


def test_the_fewest_gpus_come_first_and_of_those_the_smallest() -> None:
    choices = recommend(needed(model="llama-2-7b", precision=Precision.BF16), GPUS, Precision.BF16)
    keys = [(choice.gpus, choice.memory_gib) for choice in choices]
    assert keys == sorted(keys)
    assert choices[0].gpu == "H200-SXM"
    assert all(choice.used_gib <= choice.memory_gib for choice in choices)


def test_a_gpu_that_cannot_compute_in_the_precision_is_not_recommended() -> None:
    sizing = needed(model="gpt2")
    assert "V100-16GB" not in {choice.gpu for choice in recommend(sizing, GPUS, Precision.BF16)}
    assert "V100-16GB" in {choice.gpu for choice in recommend(sizing, GPUS, Precision.FP16)}
    assert "A100-80GB" not in {choice.gpu for choice in recommend(sizing, GPUS, Precision.FP8)}


workloads = st.builds(
    Workload,
    parameters=st.floats(1e5, 1e12),
    model_class=st.sampled_from([None, *ModelClass]),
    method=st.sampled_from(Method),
    precision=st.sampled_from([None, *Precision]),
    optimizer=st.sampled_from([None, *Optimizer]),
    batch_size=st.none() | st.integers(1, 4096),
    sequence_length=st.none() | st.integers(1, 131_072),
)


@given(workloads)
def test_the_parts_are_the_whole_and_sharding_never_hurts(load: Workload) -> None:
    found = memory_needed(load, benchmarks.architectures())
    assert found is not None
    parts = found.parts
    assert min(parts.weights, parts.activations) > 0
    assert found.gib_per_gpu == pytest.approx(parts.states + parts.activations + found.overhead)
    assert parts.per_gpu(8) <= parts.per_gpu(1)
    enough = gpus_needed(parts, 80)
    assert enough == 0 or parts.per_gpu(enough) <= 80


@given(workloads, st.integers(2, 8))
def test_a_larger_batch_never_needs_less(load: Workload, times: int) -> None:
    one = memory_needed(load, benchmarks.architectures())
    fields = {name: getattr(load, name) for name in load.__dataclass_fields__}
    more = memory_needed(
        Workload(**{**fields, "batch_size": (load.batch_size or 1) * times}), benchmarks.architectures()
    )
    assert one is not None and more is not None
    assert more.gib_per_gpu >= one.gib_per_gpu
