"""The figures of a training: batch, sequence, epochs, steps; from the calls that use them, then from names."""

import ast
from collections.abc import Iterator, Sequence

from crucible.core.router.code import Code
from crucible.core.router.constants import Known
from crucible.core.router.facts import Call
from crucible.core.router.findings import Confidence, Finding, What, found

HIGH, MEDIUM, LOW = Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW

# Each: the call, its argument, the argument's position.
Use = tuple[tuple[str, ...], str, int | None]

_TRAINER_ARGUMENTS = (".TrainingArguments", ".Seq2SeqTrainingArguments", ".SFTConfig", ".DPOConfig")
_LIGHTNING = ("lightning.Trainer", "pytorch_lightning.Trainer", "lightning.pytorch.Trainer")

_BATCH: Sequence[Use] = (
    (_TRAINER_ARGUMENTS, "per_device_train_batch_size", None),
    (("torch.utils.data.DataLoader", "torch_geometric.loader.DataLoader"), "batch_size", 1),
    ((".fit",), "batch_size", None),
    ((".image_dataset_from_directory",), "batch_size", None),
    ((".batch",), "batch_size", 0),
    ((".generate", ".predict", ".encode", "transformers.pipeline"), "batch_size", None),
)
_SEQUENCE: Sequence[Use] = (
    ((".SFTConfig", ".SFTTrainer"), "max_seq_length", None),
    (("vllm.LLM",), "max_model_len", None),
    ((".from_pretrained",), "model_max_length", None),
)
_EPOCHS: Sequence[Use] = (
    (_TRAINER_ARGUMENTS, "num_train_epochs", None),
    (_LIGHTNING, "max_epochs", None),
    ((".fit",), "epochs", None),
    ((".train",), "epochs", None),
)
_STEPS: Sequence[Use] = (
    (_TRAINER_ARGUMENTS, "max_steps", None),
    (_LIGHTNING, "max_steps", None),
    (("xgboost.train",), "num_boost_round", 2),
    (("lightgbm.train",), "num_boost_round", 2),
)
_ACCUMULATION: Sequence[Use] = (
    (_TRAINER_ARGUMENTS, "gradient_accumulation_steps", None),
    (_LIGHTNING, "accumulate_grad_batches", None),
    (("accelerate.Accelerator",), "gradient_accumulation_steps", None),
)

_ACCUMULATION_NAMES = ("gradient_accumulation_steps", "grad_accum_steps", "accumulation_steps", "grad_accum")
_BATCH_NAMES = (
    "per_device_train_batch_size",
    "train_batch_size",
    "micro_batch_size",
    "batch_size",
    "bs",
    "BATCH_SIZE",
    "batch",
)
_SEQUENCE_NAMES = (
    "block_size", "seq_len", "seq_length", "sequence_length", "max_seq_len", "max_seq_length", "context_length",
    "max_length", "max_len", "BLOCK_SIZE", "SEQ_LEN", "MAX_LEN", "MAX_LENGTH",
)  # fmt: skip
_EPOCH_NAMES = (
    "num_train_epochs",
    "num_epochs",
    "max_epochs",
    "n_epochs",
    "epochs",
    "EPOCHS",
    "NUM_EPOCHS",
    "N_EPOCHS",
)
_STEP_NAMES = (
    "max_steps", "max_iters", "total_steps", "num_steps", "train_steps", "num_train_steps", "num_iterations",
    "total_iters", "n_iters", "MAX_STEPS", "NUM_STEPS", "STEPS",
)  # fmt: skip


def batch_size(code: Code) -> Iterator[Finding]:
    yield from _loaders_first(code)
    yield from _numbers(code, What.BATCH_SIZE, _BATCH, _BATCH_NAMES)


def sequence_length(code: Code) -> Iterator[Finding]:
    yield from _numbers(code, What.SEQUENCE_LENGTH, _SEQUENCE, _SEQUENCE_NAMES)
    for call in code.calls:  # tokenizer(text, max_length=512)
        node = call.argument("max_length")
        if node is not None and "tokenizer" in call.name.lower():
            known = code.constants.number(node, call.scope)
            if known and _is_count(known):
                yield _counted(What.SEQUENCE_LENGTH, known, "max_length of the tokenizer")


def epochs(code: Code) -> Iterator[Finding]:
    yield from _looped(code, What.EPOCHS, ("epoch",))
    yield from _numbers(code, What.EPOCHS, _EPOCHS, _EPOCH_NAMES)


def steps(code: Code) -> Iterator[Finding]:
    yield from _looped(code, What.STEPS, ("step", "iteration", "iter_num"))
    yield from _numbers(code, What.STEPS, _STEPS, _STEP_NAMES)


def _looped(code: Code, what: What, names: Sequence[str]) -> Iterator[Finding]:
    """`for epoch in range(90)`, with a progress bar around the range or not."""
    for one in code.facts:
        for variable, iterable, scope in one.loops:
            if variable.strip("_") not in names:
                continue
            last = _end_of_range(iterable)
            known = code.constants.number(last, scope)
            if known and _is_count(known):
                yield _counted(what, known, f"the loop over {variable}")


def _end_of_range(iterable: ast.expr) -> ast.expr | None:
    if not isinstance(iterable, ast.Call) or not iterable.args:
        return None
    name = iterable.func.id if isinstance(iterable.func, ast.Name) else ""
    if name in ("range", "trange"):
        return iterable.args[1] if len(iterable.args) > 1 else iterable.args[0]
    return _end_of_range(iterable.args[0]) if name == "tqdm" else None


def accumulation(code: Code) -> Iterator[Finding]:
    """Batches that are added up before the weights move."""
    yield from _numbers(code, What.ACCUMULATION, _ACCUMULATION, _ACCUMULATION_NAMES)


def _loaders_first(code: Code) -> Iterator[Finding]:
    """The loader that trains, not the one that tests: its name or its shuffling tells."""
    loaders = list(code.calls_of(*_BATCH[1][0]))
    for call in sorted(loaders, key=lambda call: not _is_for_training(code, call)):
        known = code.constants.number(call.argument("batch_size", 1), call.scope)
        if known and _is_count(known):
            is_other = "val" in call.target or "test" in call.target or "eval" in call.target
            ceiling = LOW if is_other else known.confidence
            yield _counted(What.BATCH_SIZE, known, f"batch_size of {call.target or 'a DataLoader'}", ceiling)


def _is_for_training(code: Code, call: Call) -> bool:
    shuffles = code.constants.value(call.argument("shuffle"), call.scope)
    return "train" in call.target or (shuffles is not None and shuffles.value is True)


def _numbers(code: Code, what: What, uses: Sequence[Use], names: Sequence[str]) -> Iterator[Finding]:
    for calls, argument, position in uses:
        for call in code.calls_of(*calls):
            if what is What.BATCH_SIZE and call.last == "DataLoader":
                continue
            known = code.constants.number(call.argument(argument, position), call.scope)
            if known and _is_count(known):
                yield _counted(what, known, f"{argument} of {call.last}")
    yield from _by_name(code, what, names)


def _by_name(code: Code, what: What, names: Sequence[str]) -> Iterator[Finding]:
    """A variable, option or field that is called so."""
    for name in names:
        for known, why in code.values_called(name):
            if _is_count(known):
                yield _counted(what, known, why, MEDIUM)


def _is_count(known: Known) -> bool:
    return known.number is not None and known.number >= 1


def _counted(what: What, known: Known, why: str, ceiling: Confidence = HIGH) -> Finding:
    number = known.number or 0.0
    value = int(number) if number == int(number) else number
    confidence = max(known.confidence, ceiling, key=lambda c: c.rank)
    return found(what, value, known.site, confidence, why)
