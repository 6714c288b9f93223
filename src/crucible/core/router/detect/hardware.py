"""Whether it wants GPUs, and how many."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from crucible.core.router.code import Code
from crucible.core.router.findings import Confidence, Finding, What, found

HIGH, MEDIUM, LOW = Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW

NEEDED, USEFUL, UNUSED = "needed", "useful", "none"

_CUDA_CALLS = (
    ".cuda",
    "torch.cuda.set_device",
    "torch.cuda.amp.GradScaler",
    "torch.cuda.synchronize",
    "torch.cuda.Stream",
)
_ASKS = ("torch.cuda.is_available", "torch.backends.mps.is_available", "tensorflow.config.list_physical_devices")
_GPU_LIBRARIES = ("cupy", "cudf", "cuml", "triton", "pycuda", "vllm", "flash_attn", "bitsandbytes", "apex", "deepspeed")
_CUDA_TEXT = re.compile(r"^cuda(?::\d+)?$")
_LEARNS_ON_GPU = frozenset({"torch", "lightning", "transformers", "accelerate", "keras", "tensorflow", "jax", "flax"})
_COUNTS = ("num_gpus", "n_gpus", "ngpus", "gpus", "nproc_per_node", "NUM_GPUS", "world_size")
_MOST_GPUS = 4096  # a larger number called so is something else
_LIGHTNING = ("lightning.Trainer", "pytorch_lightning.Trainer", "lightning.pytorch.Trainer")


def gpu(code: Code, frameworks: Sequence[Finding]) -> Iterator[Finding]:
    asks = next(code.calls_of(*_ASKS), None)
    for call in code.calls_of(*_CUDA_CALLS):
        value = USEFUL if asks else NEEDED
        yield found(What.GPU, value, call.site, MEDIUM if asks else HIGH, f"calls {call.name.lstrip('?.')}")
        break
    yield from _texts(code, is_optional=asks is not None)
    for imported, is_used in code.imports:
        if imported.module.partition(".")[0] in _GPU_LIBRARIES and is_used:
            yield found(What.GPU, NEEDED, imported.site, HIGH, f"{imported.module.partition('.')[0]} runs on GPUs")
            break
    if asks is not None:
        yield found(What.GPU, USEFUL, asks.site, HIGH, "asks for a GPU and does without one")
    yield from _from_libraries(code, frameworks)


def _texts(code: Code, is_optional: bool) -> Iterator[Finding]:
    for text, site in code.texts:
        if _CUDA_TEXT.match(text):
            value = USEFUL if is_optional else NEEDED
            yield found(What.GPU, value, site, MEDIUM if is_optional else HIGH, f"the device {text}")
            return
    for call in code.calls:
        known = code.constants.value(call.argument("tree_method") or call.argument("device"), call.scope)
        if known and str(known.value) in ("gpu_hist", "gpu"):
            yield found(What.GPU, NEEDED, known.site, HIGH, f"{known.value} runs on a GPU")
            return


def _from_libraries(code: Code, frameworks: Sequence[Finding]) -> Iterator[Finding]:
    if not frameworks:
        return
    learning = next((f for f in frameworks if f.value in _LEARNS_ON_GPU), None)
    if learning is not None:
        yield _again(learning, USEFUL, MEDIUM, f"{learning.value} uses a GPU if there is one")
    elif any(one.unit.trees for one in code.facts):
        yield _again(frameworks[0], UNUSED, MEDIUM, f"nothing here runs on a GPU: {_names(frameworks)}")


def _names(frameworks: Sequence[Finding]) -> str:
    names = ", ".join(dict.fromkeys(str(finding.value) for finding in frameworks))
    return "no library that does" if names == "none" else names


def _again(finding: Finding, value: str, confidence: Confidence, why: str) -> Finding:
    surest = max(confidence, finding.confidence, key=lambda c: c.rank)
    return replace(finding, what=What.GPU, value=value, why=why, confidence=surest)


def gpus(code: Code) -> Iterator[Finding]:
    for call in code.calls_of(*_LIGHTNING):
        devices = code.constants.number(call.argument("devices") or call.argument("gpus"), call.scope)
        nodes = code.constants.number(call.argument("num_nodes"), call.scope)
        if devices and devices.number and devices.number >= 1:
            count = int(devices.number * (nodes.number if nodes and nodes.number else 1))
            yield found(What.GPUS, count, devices.site, devices.confidence, "devices of the Lightning Trainer")
    for call in code.calls_of("vllm.LLM"):
        known = code.constants.number(call.argument("tensor_parallel_size"), call.scope)
        if known and known.number and known.number >= 1:
            yield found(What.GPUS, int(known.number), known.site, known.confidence, "tensor_parallel_size")
    for call in code.calls_of("torch.multiprocessing.spawn"):
        known = code.constants.number(call.argument("nprocs"), call.scope)
        if known and known.number and known.number >= 1:
            yield found(What.GPUS, int(known.number), known.site, known.confidence, "nprocs of spawn")
    yield from _named_counts(code)


def _named_counts(code: Code) -> Iterator[Finding]:
    for name in _COUNTS:
        for known, why in code.values_called(name):
            if known.number and 1 <= known.number <= _MOST_GPUS:
                yield found(What.GPUS, int(known.number), known.site, MEDIUM, why)
