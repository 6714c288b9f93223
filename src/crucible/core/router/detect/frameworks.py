"""Which libraries do the work, and how processes find each other."""

import re
from collections.abc import Iterator, Mapping

from crucible.core.router.code import Code
from crucible.core.router.findings import Confidence, Finding, What, found

HIGH, MEDIUM, LOW = Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW

# The most particular first: whoever imports lightning imports torch too.
FRAMEWORKS: Mapping[str, str] = {
    "pytorch_lightning": "lightning",
    "lightning": "lightning",
    "deepspeed": "deepspeed",
    "transformers": "transformers",
    "trl": "transformers",
    "peft": "transformers",
    "sentence_transformers": "transformers",
    "diffusers": "transformers",
    "accelerate": "accelerate",
    "torch": "torch",
    "torchvision": "torch",
    "timm": "torch",
    "ultralytics": "torch",
    "vllm": "torch",
    "keras": "keras",
    "tensorflow": "tensorflow",
    "flax": "flax",
    "jax": "jax",
    "xgboost": "xgboost",
    "lightgbm": "lightgbm",
    "catboost": "catboost",
    "sklearn": "sklearn",
    "numpy": "numpy",
    "pandas": "numpy",
    "scipy": "numpy",
}
NO_FRAMEWORK = "none"

_DISTRIBUTED_CALLS: Mapping[str, str] = {
    "torch.nn.parallel.DistributedDataParallel": "ddp",
    "torch.nn.parallel.distributed.DistributedDataParallel": "ddp",
    "torch.distributed.fsdp.FullyShardedDataParallel": "fsdp",
    "torch.distributed.fsdp.fully_shard": "fsdp",
    "torch.distributed._composable.fsdp.fully_shard": "fsdp",
    "torch.nn.DataParallel": "data_parallel",
    "torch.distributed.init_process_group": "ddp",
    "horovod.torch.init": "horovod",
    "horovod.tensorflow.init": "horovod",
    "horovod.tensorflow.keras.init": "horovod",
    "horovod.keras.init": "horovod",
    "tensorflow.distribute.MultiWorkerMirroredStrategy": "multi_worker_mirrored",
    "tensorflow.distribute.experimental.MultiWorkerMirroredStrategy": "multi_worker_mirrored",
    "tensorflow.distribute.MirroredStrategy": "mirrored",
    "accelerate.Accelerator": "accelerate",
    "deepspeed.initialize": "deepspeed",
    "deepspeed.init_distributed": "deepspeed",
    "ray.train.torch.TorchTrainer": "ray",
    "jax.distributed.initialize": "jax",
    "jax.pmap": "pmap",
}
# Not many processes, or only if asked for.
_WEAK = {"mirrored": MEDIUM, "data_parallel": MEDIUM, "accelerate": MEDIUM, "pmap": MEDIUM}
_RANKS = frozenset({"WORLD_SIZE", "LOCAL_RANK", "RANK"})
_STRATEGY = {"ddp": "ddp", "fsdp": "fsdp", "deepspeed": "deepspeed"}
_IMPORT = re.compile(r"^\s*(?:import|from)\s+([A-Za-z_]\w*)", re.MULTILINE)


def frameworks(code: Code) -> Iterator[Finding]:
    order = list(dict.fromkeys(FRAMEWORKS.values()))
    seen: dict[str, Finding] = {}
    for imported, is_used in code.imports:
        name = FRAMEWORKS.get(imported.module.partition(".")[0])
        if imported.module.startswith("tensorflow.keras"):
            name = "keras"
        if name is None:
            continue
        why = "imported" if is_used else "imported, but nothing of it is used"
        finding = found(What.FRAMEWORK, name, imported.site, HIGH if is_used else MEDIUM, why)
        if name not in seen or seen[name].confidence.rank > finding.confidence.rank:
            seen[name] = finding
    _add_keras_of_tensorflow(code, seen)
    if not seen:
        seen.update(_unread(code))
    yield from sorted(seen.values(), key=lambda f: order.index(str(f.value)))
    if not seen and code.facts and any(one.unit.trees for one in code.facts):
        site = code.facts[0].unit.site(1)
        yield found(What.FRAMEWORK, NO_FRAMEWORK, site, MEDIUM, "no machine-learning library is imported")


def _add_keras_of_tensorflow(code: Code, seen: dict[str, Finding]) -> None:
    if "keras" in seen or "tensorflow" not in seen:
        return
    for name, site in code.attributes:
        if name.startswith("tensorflow.keras."):
            seen["keras"] = found(What.FRAMEWORK, "keras", site, HIGH, "tf.keras is used")
            return


def _unread(code: Code) -> Iterator[tuple[str, Finding]]:
    """Imports in text that could not be parsed."""
    for one in code.facts:
        texts = {match.group(1): match.group().strip() for text in one.unit.unread for match in _IMPORT.finditer(text)}
        for module, text in texts.items():
            name = FRAMEWORKS.get(module)
            if name is not None:
                line = next((number for number, line in enumerate(one.unit.lines, 1) if text in line), 1)
                why = "looks like an import; the file cannot be parsed"
                yield name, found(What.FRAMEWORK, name, one.unit.site(line), LOW, why)


def distributed(code: Code) -> Iterator[Finding]:
    yield from _from_calls(code)
    yield from _from_arguments(code)
    yield from _from_environment(code)


def _from_calls(code: Code) -> Iterator[Finding]:
    for call in code.calls:
        how = _DISTRIBUTED_CALLS.get(call.name)
        if how:
            yield found(What.DISTRIBUTED, how, call.site, _WEAK.get(how, HIGH), f"calls {call.name}")


def _from_arguments(code: Code) -> Iterator[Finding]:
    """Lightning's strategy, and what switches the Trainer of transformers to FSDP or DeepSpeed."""
    for call in code.calls_of("lightning.Trainer", "pytorch_lightning.Trainer", "lightning.pytorch.Trainer"):
        known = code.constants.text(call.argument("strategy"), call.scope)
        how = next((how for word, how in _STRATEGY.items() if known and word in str(known.value)), None)
        if how and known:
            yield found(What.DISTRIBUTED, how, known.site, known.confidence, "strategy of the Lightning Trainer")
    for call in code.calls_of(".TrainingArguments", ".SFTConfig", ".Seq2SeqTrainingArguments"):
        for option in ("deepspeed", "fsdp"):
            if call.argument(option) is not None:
                yield found(What.DISTRIBUTED, option, call.site, MEDIUM, f"{option}= of the training arguments")


def _from_environment(code: Code) -> Iterator[Finding]:
    for text, site in code.texts:
        if text in _RANKS:
            yield found(
                What.DISTRIBUTED, "torchrun", site, MEDIUM, f"reads {text}, which a launcher such as torchrun sets"
            )
            return
