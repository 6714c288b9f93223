"""The shipped rates and models, and how they are made from their sources."""

import json
import lzma
from collections import Counter
from math import log
from pathlib import Path

import pytest

from crucible.catalog import benchmarks, facts
from crucible.core.speed_fit import Fit, kind_of, row_terms, series_of
from crucible.model.catalog import Gpu
from crucible.model.offer import Fabric
from crucible.model.spec import ModelClass

ROWS = benchmarks.benchmarks()
ARCHITECTURES = benchmarks.architectures()
GPUS = {gpu.name: gpu for gpu in facts.read(facts.SHIPPED, "gpus.csv", Gpu)}
LAMBDA = (
    "name_gpu,num_gpu,ssd,bert_base_squad,bert_large_squad,gnmt,resnet50,waveglow,transformerxlbase,transformerxllarge"
)


def test_every_rate_is_a_fact_with_a_source() -> None:
    assert len(ROWS) > 500
    for row in ROWS:
        assert row.rate > 0 and row.gpus >= 1 and row.nodes >= 1 and row.source and row.unit
        assert ModelClass(row.model_class)
    keys = Counter((series_of(r), r.gpu, r.gpus, r.nodes, r.fabric, r.precision) for r in ROWS)
    assert not [key for key, count in keys.items() if count > 1]


def test_measured_models_are_in_the_list_of_models() -> None:
    names = {row.model for row in ROWS if row.unit != "runs/h"}
    assert names <= set(ARCHITECTURES)
    for row in ROWS:
        if row.model in ARCHITECTURES:
            assert row.model_class == ARCHITECTURES[row.model].model_class


def test_the_rates_are_those_that_were_published() -> None:
    rates = {(r.model, r.gpu, r.gpus, r.nodes, r.precision, r.is_inference): r.rate for r in ROWS}
    assert rates["resnet50", "A100-80GB", 8, 1, "fp16", False] == 11439
    assert rates["bert-large", "A100-80GB", 1, 1, "fp16", False] == 152 * 384
    assert rates["llama-2-70b", "MI325X", 8, 2, "fp8", True] == 65320.1
    assert rates["llama-3.1-405b", "H200-SXM", 8, 64, "mixed", False] == round(60 / 209.652, 4)


def test_a_held_out_row_is_foretold_by_the_others() -> None:
    rows = [row for row in ROWS if row.gpu in GPUS]
    fit = Fit.of(rows, GPUS)
    several = Counter(series_of(row) for row in rows)
    errors = sorted(abs(fit.held_out([i])[0]) for i, row in enumerate(rows) if several[series_of(row)] > 1)
    assert errors[len(errors) // 2] < 0.10
    assert errors[int(len(errors) * 0.9)] < 0.35


def test_holding_out_is_the_same_as_never_having_seen() -> None:
    rows = [row for row in ROWS if row.gpu in GPUS and kind_of(row).label == "detection"]
    others, one = rows[:-1], rows[-1]
    quick = Fit.of(rows, GPUS).held_out([len(rows) - 1])[0]
    (slow,), _ = Fit.of(others, GPUS).predict([row_terms(one, GPUS[one.gpu])])
    assert quick == pytest.approx(log(one.rate / (one.gpus * one.nodes)) - slow, abs=1e-6)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("meta-llama/Llama-2-7b-hf", "llama-2-7b"),
        ("llama2-7b", "llama-2-7b"),
        ("NousResearch/Llama-2-7b-chat-hf", "llama-2-7b"),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b"),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"),
        ("google/gemma-2-9b-it", "gemma-2-9b"),
        ("openai-community/gpt2-xl", "gpt2-xl"),
        ("bert-base-uncased", "bert-base"),
        ("ResNet-50", "resnet50"),
        ("torchvision/resnet50", "resnet50"),
        ("stabilityai/stable-diffusion-xl-base-1.0", "stable-diffusion-xl"),
        ("openai/whisper-large-v3", "whisper-large-v3"),
        ("deepseek-ai/DeepSeek-V3", "deepseek-v3"),
        ("my-own-model", None),
        ("", None),
        ("x" * 10_000, None),
    ],
)
def test_models_are_found_by_what_people_call_them(written: str, meant: str | None) -> None:
    found = ARCHITECTURES.find(written)
    assert (found.name if found else None) == meant


def test_the_list_of_models_holds_together() -> None:
    for known in ARCHITECTURES.values():
        assert 0 < known.active <= known.parameters
        assert ModelClass(known.model_class)
        assert ARCHITECTURES.find(known.name) is known
        for alias in known.aliases:
            assert ARCHITECTURES.find(alias) is known, alias


def sources(folder: Path) -> Path:
    """A small copy of the public files, with what must be left out."""
    for name in ("gavel_throughputs", "lambda_bench", "mlperf"):
        (folder / name).mkdir()
    gavel = {
        "v100": {"('ResNet-50 (batch size 64)', 1)": {"null": 5.0}, "('ResNet-50 (batch size 64)', 4)": {"null": 0.0}},
        "v100_unconsolidated": {
            "('ResNet-50 (batch size 64)', 1)": {"null": 5.0},
            "('ResNet-50 (batch size 64)', 8)": {"null": 20.0},
        },
    }
    with lzma.open(folder / "gavel_throughputs/simulation_throughputs.json.xz", "wt") as file:
        json.dump(gavel, file)
    for precision in ("fp16", "fp32"):
        first = f"{LAMBDA}\nLambdaCloud A10,1.0,100,0,42,0,638,0,0,0\nA 2x A10,2.0,150,0,42,0,1400,0,0,0\n"
        (folder / f"lambda_bench/pytorch-train-throughput-{precision}.csv").write_text(first)
        second = ",ssd,resnet50\nOD_1xH200_140GB_SXM_a,900,3000\nOD_1xH200_140GB_SXM_b,0,3100\nOD_1xToaster,9,9\n"
        (folder / f"lambda_bench/pytorch-train-throughput-v2-{precision}.csv").write_text(second)
    (folder / "mlperf/training_v5.0_time_to_train.csv").write_text(
        "submitter,system,benchmark,accelerator,acc_per_node,nodes,runs,median_minutes,min_minutes,max_minutes\n"
        "A,a,bert,NVIDIA H200-SXM5-141GB,8,1,10,6.0,1,9\nB,b,bert,NVIDIA H200-SXM5-141GB,8,1,10,5.0,1,9\n"
        "C,c,bert,NVIDIA H200-SXM5-141GB,8,32,10,1.0,1,9\ntinycorp,d,bert,NVIDIA GeForce RTX 4090,6,1,10,200,1,9\n"
        "E,e,bert,NVIDIA Blackwell GPU (GB200),4,2,10,3,1,9\n"
    )
    (folder / "mlperf/inference_v5.1_summary.csv").write_text(
        "Category,Suite,Model,Scenario,Nodes,Accelerator,a#,weight_data_types,Performance_Result,Performance_Units\n"
        "closed,datacenter,llama2-70b-99,Offline,2,NVIDIA H100-SXM-80GB,8,fp8,62351.6,Tokens/s\n"
        "closed,datacenter,llama2-70b-99,Server,1,NVIDIA H100-SXM-80GB,8,fp8,1,Tokens/s\n"
        "open,edge,llama2-70b-99,Offline,1,NVIDIA H100-SXM-80GB,8,fp8,1,Tokens/s\n"
        "closed,datacenter,whisper,Offline,1,NVIDIA GeForce RTX 4090,2,fp32,104.9,Samples/s\n"
    )
    return folder


def test_rows_are_made_from_the_sources_and_slips_are_left_out(tmp_path: Path) -> None:
    made = {(r.model, r.gpu, r.gpus, r.nodes, r.precision): r for r in benchmarks.build(sources(tmp_path))}
    assert made["resnet50", "V100-16GB", 1, 1, "fp32"].rate == 320
    assert made["resnet50", "V100-16GB", 1, 8, "fp32"].fabric is Fabric.STANDARD
    assert made["resnet50", "A10", 1, 1, "fp16"].rate == 638
    assert ("resnet50", "A10", 2, 1, "fp16") not in made  # more than twice one
    assert made["resnet50", "H200-SXM", 1, 1, "fp16"].rate == 3050  # the median of two machines
    assert made["bert-large", "A10", 1, 1, "fp16"].rate == 42 * 384
    assert made["bert-large", "H200-SXM", 8, 1, "mixed"].rate == pytest.approx(11.0)
    served = made["llama-2-70b", "H100-SXM", 8, 2, "fp8"]
    assert (served.rate, served.unit, served.is_inference, served.fabric) == (62351.6, "tokens/s", True, Fabric.HIGH)
    assert not {"GB200", "RTX4090", "Toaster"} & {r.gpu for r in made.values()}
    assert not [r for r in made.values() if r.nodes == 32]


def test_differences_name_what_is_shipped_and_what_is_given(tmp_path: Path) -> None:
    lines = benchmarks.differences(sources(tmp_path))
    assert any(line.startswith("- pytorch,resnet50") for line in lines)
    assert any(line.startswith("+ pytorch,resnet50,vision,H200-SXM") for line in lines)
