"""How it trains: precision, optimizer, method, checkpoints, and whether it can go on from one."""

import re
from collections.abc import Iterator, Mapping

from crucible.core.router.code import Code
from crucible.core.router.findings import Confidence, Finding, What, found

HIGH, MEDIUM, LOW = Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW

_OPTIMIZERS: Mapping[str, str] = {
    "adamw": "adamw",
    "adam": "adam",
    "sgd": "sgd",
    "adafactor": "adafactor",
    "lion": "lion",
    "adam8bit": "adam8bit",
    "adamw8bit": "adam8bit",
    "pagedadamw8bit": "adam8bit",
    "rmsprop": "adam",
    "fusedadam": "adam",
}
_HF_OPTIMIZERS: Mapping[str, str] = {
    "adamw_torch": "adamw",
    "adamw_hf": "adamw",
    "adamw_torch_fused": "adamw",
    "adamw_bnb_8bit": "adam8bit",
    "paged_adamw_8bit": "adam8bit",
    "adafactor": "adafactor",
    "sgd": "sgd",
    "lion_32bit": "lion",
}
_OPTIMIZER_HOMES = (
    "torch.optim",
    "tensorflow.keras.optimizers",
    "keras.optimizers",
    "transformers",
    "bitsandbytes",
    "optax",
)
_TYPES: Mapping[str, str] = {
    "torch.bfloat16": "bf16",
    "torch.float16": "fp16",
    "torch.half": "fp16",
    "jax.numpy.bfloat16": "bf16",
    "torch.float8_e4m3fn": "fp8",
}
_TRAINER_ARGUMENTS = (".TrainingArguments", ".Seq2SeqTrainingArguments", ".SFTConfig", ".DPOConfig")
_LIGHTNING = ("lightning.Trainer", "pytorch_lightning.Trainer", "lightning.pytorch.Trainer")
_SAVES = (
    "torch.save",
    "torch.distributed.checkpoint.save",
    ".save_checkpoint",
    ".save_state",
    ".save_pretrained",
    ".save_weights",
    ".save_model",
    "flax.training.checkpoints.save_checkpoint",
)
_CALLBACKS = ("ModelCheckpoint", "BackupAndRestore", "CheckpointCallback")
_LOADS = (
    ".load_checkpoint",
    ".load_state",
    ".restore_checkpoint",
    "flax.training.checkpoints.restore_checkpoint",
    "crucible.train.latest_checkpoint",
    "crucible.train.checkpoint_at",
)
_EVERY = (
    "save_steps",
    "save_every",
    "checkpoint_every",
    "save_interval",
    "ckpt_interval",
    "checkpoint_interval",
    "eval_interval",
)
_RESUME = re.compile(r"resume|init_from|ckpt_path|restore", re.IGNORECASE)


def precision(code: Code) -> Iterator[Finding]:
    yield from _from_trainers(code)
    for call in code.calls_of("torch.autocast", "torch.cuda.amp.autocast", "torch.amp.autocast"):
        dtype = call.argument("dtype", 1)
        kind = _TYPES.get(code.qualified(dtype, call.scope)) if dtype is not None else None
        if kind:
            yield found(What.PRECISION, kind, call.site, HIGH, "autocast")
        elif dtype is None:
            yield found(What.PRECISION, "fp16", call.site, MEDIUM, "autocast without a dtype takes fp16 on a GPU")
    for call in code.calls_of("torch.cuda.amp.GradScaler", "torch.amp.GradScaler"):
        yield found(What.PRECISION, "fp16", call.site, MEDIUM, "a GradScaler is for fp16")
    for call in code.calls_of(".half"):
        yield found(What.PRECISION, "fp16", call.site, HIGH, "calls half()")
    for call in code.calls_of(".bfloat16"):
        yield found(What.PRECISION, "bf16", call.site, HIGH, "calls bfloat16()")
    yield from _from_policies(code)
    for name, site in code.attributes:
        if name in _TYPES:
            yield found(What.PRECISION, _TYPES[name], site, MEDIUM, f"{name} is used")
    yield from _from_texts(code)


def _from_trainers(code: Code) -> Iterator[Finding]:
    for call in code.calls_of(*_TRAINER_ARGUMENTS):
        for option in ("bf16", "fp16"):
            known = code.constants.value(call.argument(option), call.scope)
            if known and known.value is True:
                yield found(What.PRECISION, option, known.site, known.confidence, f"{option}=True of {call.last}")
    for call in (*code.calls_of(*_LIGHTNING), *code.calls_of("accelerate.Accelerator")):
        for option in ("precision", "mixed_precision"):
            known = code.constants.value(call.argument(option), call.scope)
            kind = _precision_word(str(known.value)) if known else None
            if known and kind:
                yield found(What.PRECISION, kind, known.site, known.confidence, f"{option} of {call.last}")


def _precision_word(word: str) -> str | None:
    lowered = word.lower()
    if "bf16" in lowered or "bfloat16" in lowered:
        return "bf16"
    if "8" in lowered and "f" in lowered:
        return "fp8"
    if "16" in lowered:
        return "fp16"
    return "fp32" if "32" in lowered else None


def _from_policies(code: Code) -> Iterator[Finding]:
    for call in code.calls_of(".set_global_policy", ".Policy"):
        known = code.constants.text(call.argument("policy", 0), call.scope)
        kind = _precision_word(str(known.value)) if known else None
        if known and kind:
            yield found(What.PRECISION, kind, known.site, known.confidence, "mixed-precision policy of Keras")


def _from_texts(code: Code) -> Iterator[Finding]:
    """dtype = "bfloat16": a name that says what the text is."""
    for name in ("dtype", "torch_dtype", "precision", "mixed_precision", "DTYPE"):
        for known, why in code.values_called(name):
            kind = _precision_word(known.value) if isinstance(known.value, str) else None
            if kind:
                yield found(What.PRECISION, kind, known.site, MEDIUM, why)
    for call in code.calls:
        dtype = code.constants.text(call.argument("dtype") or call.argument("torch_dtype"), call.scope)
        kind = _precision_word(str(dtype.value)) if dtype else None
        if dtype and kind and kind != "fp32":
            yield found(What.PRECISION, kind, dtype.site, MEDIUM, f"dtype of {call.last}")


def optimizer(code: Code) -> Iterator[Finding]:
    for call in code.calls:
        kind = _OPTIMIZERS.get(call.last.lower())
        if kind and call.name.startswith(_OPTIMIZER_HOMES):
            yield found(What.OPTIMIZER, kind, call.site, HIGH, f"calls {call.name}")
    for call in code.calls_of(*_TRAINER_ARGUMENTS):
        known = code.constants.text(call.argument("optim"), call.scope)
        if known and str(known.value) in _HF_OPTIMIZERS:
            kind = _HF_OPTIMIZERS[str(known.value)]
            yield found(What.OPTIMIZER, kind, known.site, known.confidence, f"optim of {call.last}")
        elif call.argument("optim") is None:
            yield found(What.OPTIMIZER, "adamw", call.site, MEDIUM, f"{call.last} takes AdamW if nothing else is said")
    for call in code.calls_of(".compile"):
        known = code.constants.text(call.argument("optimizer", 0), call.scope)
        kind = _OPTIMIZERS.get(str(known.value).lower()) if known else None
        if known and kind:
            yield found(What.OPTIMIZER, kind, known.site, known.confidence, "optimizer of compile")
    for call in code.calls_of(".configure_optimizers"):
        yield found(What.OPTIMIZER, "adamw", call.site, LOW, "configure_optimizers usually makes an AdamW")


def method(code: Code) -> Iterator[Finding]:
    quantised = next(code.calls_of("transformers.BitsAndBytesConfig"), None)
    for call in code.calls_of("peft.LoraConfig", "peft.get_peft_model"):
        kind = "qlora" if quantised is not None else "lora"
        yield found(What.METHOD, kind, call.site, HIGH, f"calls {call.name}")
        return


def checkpointing(code: Code) -> Iterator[Finding]:
    for call in code.calls:
        if call.last in _CALLBACKS:
            yield found(What.CHECKPOINTING, True, call.site, HIGH, f"the callback {call.last}")
    for call in code.calls_of("optuna.create_study"):
        if call.argument("storage") is not None:
            yield found(What.CHECKPOINTING, True, call.site, HIGH, "the study is stored trial by trial")
    for call in code.calls_of(*_SAVES):
        said = f"calls {call.name.lstrip('?.')}"
        if call.is_repeated or call.last in ("save_state", "save_checkpoint"):
            sure = MEDIUM if call.last in ("save_pretrained", "save_model") else HIGH
            yield found(What.CHECKPOINTING, True, call.site, sure, said)
        else:
            yield found(What.CHECKPOINTING, False, call.site, LOW, f"{said} once, outside any loop: a result")
    for call in code.calls_of(*_TRAINER_ARGUMENTS):
        known = code.constants.value(call.argument("save_strategy"), call.scope)
        if known is None or known.value != "no":
            yield found(What.CHECKPOINTING, True, call.site, HIGH, f"{call.last} saves checkpoints unless told not to")
        else:
            yield found(What.CHECKPOINTING, False, known.site, HIGH, 'save_strategy="no"')


def checkpoint_every(code: Code) -> Iterator[Finding]:
    """In steps."""
    for name in _EVERY:
        for call in code.calls_of(*_TRAINER_ARGUMENTS):
            known = code.constants.number(call.argument(name), call.scope)
            if known and known.number and known.number >= 1:
                yield found(
                    What.CHECKPOINT_EVERY, int(known.number), known.site, known.confidence, f"{name} of {call.last}"
                )
        for known, why in code.values_called(name):
            if known.number and known.number >= 1:
                yield found(What.CHECKPOINT_EVERY, int(known.number), known.site, MEDIUM, why)


def resume(code: Code) -> Iterator[Finding]:
    for call in code.calls:
        for option in ("resume_from_checkpoint", "ckpt_path"):
            if call.last in ("train", "fit") and call.argument(option) is not None:
                yield found(What.RESUME, True, call.site, HIGH, f"{option}= of {call.last}")
        if call.last == "BackupAndRestore":
            yield found(What.RESUME, True, call.site, HIGH, "BackupAndRestore goes on where it was")
    for call in code.calls_of(*_LOADS):
        yield found(What.RESUME, True, call.site, HIGH, f"calls {call.name.lstrip('?.')}")
    for call in code.calls_of("optuna.create_study"):
        known = code.constants.value(call.argument("load_if_exists"), call.scope)
        if known and known.value is True:
            yield found(What.RESUME, True, call.site, HIGH, "the study goes on if it exists")
    yield from _loads_own_state(code)


def _loads_own_state(code: Code) -> Iterator[Finding]:
    """Weights alone may be a pretrained model; with the optimizer's state, or a name that says so, it is a resume."""
    loads = list(code.calls_of(".load_state_dict"))
    for call in loads:
        if "optim" in call.name.lower() or "scheduler" in call.name.lower():
            yield found(What.RESUME, True, call.site, HIGH, "loads the state of its optimizer")
    for name, entries in code.named.items():
        if _RESUME.search(name) and (loads or any(True for _ in code.calls_of("torch.load"))):
            site = entries[0].scope.unit.site(entries[0].value.lineno)
            yield found(What.RESUME, True, site, MEDIUM, f"{name} and a load of saved state")
            return
