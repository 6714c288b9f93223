"""Public benchmarks, read from their own files: Gavel's throughputs, Lambda's deep learning benchmark, MLPerf training
and inference. Of several equal machines the median counts. What is left out, and why, stands beside each reader."""

import csv
import json
import lzma
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median

from crucible.model.catalog import Benchmark
from crucible.model.offer import Fabric
from crucible.model.spec import ModelClass

_MOST_BYTES = 64 * 1024 * 1024  # of an unpacked source

# --- Gavel: PyTorch on one to eight K80, P100 or V100, in one machine ("consolidated") or one in each ---------------

_GAVEL = "gavel throughputs (OSDI'20)"
_GAVEL_GPUS = {"k80": "K80", "p100": "P100", "v100": "V100-16GB"}
# The batch that fills the GPU without overflowing a K80; smaller ones measure the Python around it.
_GAVEL_MODELS = {
    "ResNet-18 (batch size 128)": ("resnet18", ModelClass.VISION, 128),
    "ResNet-50 (batch size 64)": ("resnet50", ModelClass.VISION, 64),
    "Transformer (batch size 128)": ("transformer-base", ModelClass.TRANSFORMER, 128),
    "LM (batch size 80)": ("lstm-lm", ModelClass.OTHER, 80),
    "CycleGAN": ("cyclegan", ModelClass.OTHER, 1),
    "A3C": ("a3c", ModelClass.OTHER, 4),
}


def gavel(path: Path) -> Iterator[Benchmark]:
    """Its recommender reads small files and measures the disk: left out."""
    with lzma.open(path, "rb") as file:
        found = json.loads(file.read(_MOST_BYTES))
    for name, jobs in found.items():
        gpu, _, spread = name.partition("_")
        for job, rates in jobs.items():
            label, count = _gavel_job(job)
            if label in _GAVEL_MODELS and rates.get("null") and not (spread and count == 1):
                yield _gavel_row(label, count, bool(spread), _GAVEL_GPUS[gpu], float(rates["null"]))


def _gavel_job(text: str) -> tuple[str, int]:
    """("('A3C', 1)") as its parts."""
    found = re.fullmatch(r"\('(.*)', ([0-9]+)\)", text)
    return (found[1], int(found[2])) if found else (text, 1)


def _gavel_row(label: str, count: int, is_spread: bool, gpu: str, steps_per_s: float) -> Benchmark:
    model, model_class, batch = _GAVEL_MODELS[label]
    return Benchmark(
        framework="pytorch",
        model=model,
        model_class=model_class,
        gpu=gpu,
        gpus=1 if is_spread else count,
        nodes=count if is_spread else 1,
        precision="fp32",
        rate=round(steps_per_s * batch, 4),
        unit="samples/s",
        source=_GAVEL,
    )


# --- Lambda: PyTorch in one machine -------------------------------------------------------------------------------

_LAMBDA = "lambda deep learning benchmark"
_SQUAD_TOKENS = 384  # of one sample: the length its BERT benchmarks use
_LAMBDA_MODELS = {
    "ssd": ("ssd300", ModelClass.DETECTION, "samples/s", 1),
    "bert_base_squad": ("bert-base", ModelClass.TRANSFORMER, "tokens/s", _SQUAD_TOKENS),
    "bert_large_squad": ("bert-large", ModelClass.TRANSFORMER, "tokens/s", _SQUAD_TOKENS),
    "gnmt": ("gnmt", ModelClass.TRANSFORMER, "tokens/s", 1),
    "resnet50": ("resnet50", ModelClass.VISION, "samples/s", 1),
    "transformerxlbase": ("transformer-xl-base", ModelClass.TRANSFORMER, "tokens/s", 1),
    "transformerxllarge": ("transformer-xl-large", ModelClass.TRANSFORMER, "tokens/s", 1),
    "waveglow": ("waveglow", ModelClass.SPEECH, "samples/s", 1),
}
_LAMBDA_GPUS = (  # the first that is part of the machine's name
    ("Quadro RTX 8000", "RTX8000"),
    ("V100", "V100-16GB"),
    ("RTX 3090", "RTX3090"),
    ("A100 40GB PCIe", "A100-40GB-PCIe"),
    ("A100 80GB PCIe", "A100-80GB-PCIe"),
    ("A100 80GB SXM4", "A100-80GB"),
    ("RTX 6000 Ada", "RTX6000Ada"),
    ("RTX A6000", "RTXA6000"),
    ("RTX 4090", "RTX4090"),
    ("GH200_96GB", "GH200"),
    ("H100 80GB PCIe", "H100-PCIe"),
    ("H100_80GB_PCIe", "H100-PCIe"),
    ("H100 80GB SXM5", "H100-SXM"),
    ("H100_80GB_SXM5", "H100-SXM"),
    ("H200_140GB_SXM", "H200-SXM"),
    ("B200_192GB", "B200"),
    ("A10", "A10"),
)
# More than this share above the rate of one GPU times their number is a slip of the clock, not speed.
_MOST_GAIN = 1.05

Place = tuple[str, str, int]  # model, GPU, GPUs


def lambda_labs(folder: Path) -> Iterator[Benchmark]:
    """NCF (a hundred times too fast on some machines) and Tacotron 2 (equal machines differ by half) are left out, and
    so are machines whose rate is more than that of their GPUs alone. Single precision: one GPU only."""
    for precision in ("fp16", "fp32"):
        files = (f"pytorch-train-throughput-{precision}.csv", f"pytorch-train-throughput-v2-{precision}.csv")
        rates: dict[Place, list[float]] = defaultdict(list)
        for file in files:
            for place, rate in _lambda_rates(folder / file):
                rates[place].append(rate)
        typical = {place: median(values) for place, values in rates.items()}
        for (column, gpu, gpus), rate in typical.items():
            if _is_sound(typical, column, gpu, gpus) and (precision == "fp16" or gpus == 1):
                yield _lambda_row(column, gpu, gpus, precision, rate)


def _lambda_rates(path: Path) -> Iterator[tuple[Place, float]]:
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            machine = row.get("name_gpu") or row.get("") or ""
            gpu = next((ours for theirs, ours in _LAMBDA_GPUS if theirs in machine), None)
            gpus = _lambda_count(machine, row.get("num_gpu"))
            for column in _LAMBDA_MODELS:
                if gpu is not None and float(row.get(column) or 0) > 0:
                    yield (column, gpu, gpus), float(row[column])


def _lambda_count(machine: str, stated: str | None) -> int:
    if stated is not None:
        return int(float(stated))
    found = re.search(r"_([0-9]+)x[A-Z]", machine)
    return int(found[1]) if found else 1


def _is_sound(rates: Mapping[Place, float], column: str, gpu: str, gpus: int) -> bool:
    single = rates.get((column, gpu, 1))
    return single is None or rates[column, gpu, gpus] <= single * gpus * _MOST_GAIN


def _lambda_row(column: str, gpu: str, gpus: int, precision: str, rate: float) -> Benchmark:
    model, model_class, unit, times = _LAMBDA_MODELS[column]
    return Benchmark(
        framework="pytorch",
        model=model,
        model_class=model_class,
        gpu=gpu,
        gpus=gpus,
        nodes=1,
        precision=precision,
        rate=rate * times,
        unit=unit,
        source=_LAMBDA,
    )


# --- MLPerf -------------------------------------------------------------------------------------------------------

_TRAINING = "MLPerf training v5.0"
_INFERENCE = "MLPerf inference v5.1"
_MLPERF_GPUS = {
    "AMD Instinct MI300X 192GB HBM3": "MI300X",
    "AMD Instinct MI325X 256GB HBM3e": "MI325X",
    "AMD Instinct MI355X 288GB HBM3e": "MI355X",
    "NVIDIA B200-SXM-180GB": "B200",
    "NVIDIA Blackwell GPU (B200-SXM-180GB)": "B200",
    "NVIDIA Blackwell GPU (GB200)": "GB200",
    "NVIDIA GB200": "GB200",
    "NVIDIA GB300": "GB300",
    "NVIDIA GeForce RTX 4090": "RTX4090",
    "NVIDIA H100-NVL-94GB": "H100-NVL",
    "NVIDIA H100-SXM-80GB": "H100-SXM",
    "NVIDIA H100-SXM5-80GB": "H100-SXM",
    "NVIDIA H200-NVL-141GB": "H200-NVL",
    "NVIDIA H200-SXM-141GB": "H200-SXM",
    "NVIDIA H200-SXM5-141GB": "H200-SXM",
    "NVIDIA L4-PCIe-24GB": "L4",
    "NVIDIA L40S": "L40S",
    "NVIDIA RTX A5000": "RTXA5000",
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": "RTXPRO6000",
}
_TRAINED = {
    "bert": ("bert-large", ModelClass.TRANSFORMER),
    "dlrm_dcnv2": ("dlrm-dcnv2", ModelClass.RECOMMENDER),
    "llama2_70b_lora": ("llama-2-70b-lora", ModelClass.LLM),
    "llama31_405b": ("llama-3.1-405b", ModelClass.LLM),
    "retinanet": ("retinanet", ModelClass.DETECTION),
    "rgat": ("rgat", ModelClass.OTHER),
    "stable_diffusion": ("stable-diffusion-2.1", ModelClass.DIFFUSION),
}
_SERVED = {
    "deepseek-r1": ("deepseek-r1", ModelClass.LLM),
    "dlrm-v2-99": ("dlrm-dcnv2", ModelClass.RECOMMENDER),
    "llama2-70b-99": ("llama-2-70b", ModelClass.LLM),
    "llama3.1-405b": ("llama-3.1-405b", ModelClass.LLM),
    "llama3.1-8b": ("llama-3.1-8b", ModelClass.LLM),
    "mixtral-8x7b": ("mixtral-8x7b", ModelClass.LLM),
    "retinanet": ("retinanet", ModelClass.DETECTION),
    "rgat": ("rgat", ModelClass.OTHER),
    "stable-diffusion-xl": ("stable-diffusion-xl", ModelClass.DIFFUSION),
    "whisper": ("whisper-large-v3", ModelClass.SPEECH),
}
# Their software is young: it measures the software.
_OTHER_SOFTWARE = ("tinycorp", "krai")
# Machines of one NVLink domain: no fabric between machines is like it.
_DOMAIN_GPUS = ("GB200", "GB300")
# A run on more than so many times the fewest machines is kept short at any price: its batch is far from a user's.
_MOST_TIMES = 16

Layout = tuple[str, str, int, int, str]  # benchmark, GPU, GPUs of a machine, machines, precision


def mlperf_training(path: Path) -> Iterator[Benchmark]:
    """Runs per hour until a quality is reached: on more machines a run takes more steps, as it would for a user."""
    found: dict[Layout, list[float]] = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            gpu, nodes = _MLPERF_GPUS.get(row["accelerator"]), int(row["nodes"])
            if gpu is None or row["submitter"] in _OTHER_SOFTWARE or (nodes > 1 and gpu in _DOMAIN_GPUS):
                continue
            layout = (row["benchmark"], gpu, int(row["acc_per_node"]), nodes, "mixed")
            found[layout].append(60.0 / float(row["median_minutes"]))
    fewest = {name: min(layout[3] for layout in found if layout[0] == name) for name, *_ in found}
    for layout, rates in found.items():
        if layout[3] <= _MOST_TIMES * fewest[layout[0]]:
            yield _mlperf_row(layout, rates, "runs/h")


def mlperf_inference(path: Path) -> Iterator[Benchmark]:
    """Closed division, data centre, offline: as much as the machine can. Mixed, virtual and edge systems are left out,
    and so is single precision, which nobody tuned."""
    found: dict[Layout, list[float]] = defaultdict(list)
    units: dict[str, str] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            gpu, nodes = _MLPERF_GPUS.get(row["Accelerator"]), int(row["Nodes"])
            is_offline = (row["Category"], row["Suite"], row["Scenario"]) == ("closed", "datacenter", "Offline")
            precision = _served_in(row["weight_data_types"])
            if gpu is None or not is_offline or row["Model"] not in _SERVED or precision == "fp32":
                continue
            if not (nodes > 1 and gpu in _DOMAIN_GPUS):
                found[row["Model"], gpu, int(row["a#"]), nodes, precision].append(float(row["Performance_Result"]))
                units[row["Model"]] = row["Performance_Units"].lower()
    yield from (_mlperf_row(layout, rates, units[layout[0]]) for layout, rates in found.items())


def _served_in(types: str) -> str:
    """The narrowest of what is listed: most of the weights."""
    return next((name for name in ("fp4", "fp8", "int8", "fp16", "fp32") if name in types), "fp16")


def _mlperf_row(layout: Layout, rates: list[float], unit: str) -> Benchmark:
    name, gpu, gpus, nodes, precision = layout
    is_inference = unit != "runs/h"
    model, model_class = (_SERVED if is_inference else _TRAINED)[name]
    return Benchmark(
        framework="mlperf",
        model=model,
        model_class=model_class,
        gpu=gpu,
        gpus=gpus,
        nodes=nodes,
        precision=precision,
        rate=round(median(rates), 4),
        unit=unit,
        source=_INFERENCE if is_inference else _TRAINING,
        is_inference=is_inference,
        fabric=Fabric.HIGH if nodes > 1 else Fabric.STANDARD,
    )
