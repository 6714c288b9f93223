"""What kind of work it is: training, a sweep, inference, evaluation, preparing data."""

from collections.abc import Iterator

from crucible.core.router.code import Code
from crucible.core.router.findings import Confidence, Finding, What, found

HIGH, MEDIUM, LOW = Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW

_SWEEPS = (
    "optuna.create_study",
    "ray.tune.Tuner",
    "ray.tune.run",
    "wandb.sweep",
    "wandb.agent",
    "hyperopt.fmin",
    "sklearn.model_selection.GridSearchCV",
    "sklearn.model_selection.RandomizedSearchCV",
    "keras_tuner.RandomSearch",
    "keras_tuner.Hyperband",
    "keras_tuner.BayesianOptimization",
)
_TRAINS = (
    ".backward",
    "transformers.Trainer().train",
    "transformers.Seq2SeqTrainer().train",
    "trl.SFTTrainer().train",
    "trl.DPOTrainer().train",
    "lightning.Trainer().fit",
    "pytorch_lightning.Trainer().fit",
    "lightning.pytorch.Trainer().fit",
    "xgboost.train",
    "lightgbm.train",
    ".train_on_batch",
    "crucible.train.log",
    "crucible.train.progress",
    "crucible.train.save_checkpoint",
)
_GRADIENTS = ("jax.grad", "jax.value_and_grad", "tensorflow.GradientTape")
_FITS = (".fit", ".partial_fit", ".fit_transform")
_INFERS = (
    "transformers.pipeline",
    "vllm.LLM",
    "onnxruntime.InferenceSession",
    ".generate",
    ".predict",
    ".predict_proba",
    ".transcribe",
    ".encode_multi_process",
)
_NO_GRADIENTS = ("torch.no_grad", "torch.inference_mode")
_JUDGES = (
    "evaluate.load",
    "lm_eval.simple_evaluate",
    "sklearn.metrics.classification_report",
    "sklearn.metrics.accuracy_score",
    "sklearn.metrics.confusion_matrix",
    ".evaluate",
)
_PREPARES = (".save_to_disk", ".to_parquet", ".push_to_hub", ".write_parquet", ".tofile", ".to_csv", "numpy.savez")
_WRITES = ("csv.writer", "csv.DictWriter", "json.dump")


def job_kind(code: Code) -> Iterator[Finding]:
    """A sweep trains, training evaluates, evaluation infers: whatever includes the others goes first."""
    found_any = False
    for kind, calls in (("hpo", _SWEEPS), ("training", _TRAINS), ("training", _GRADIENTS)):
        for finding in _first(code, kind, calls, HIGH):
            found_any = True
            yield finding
    for finding in _fits(code):
        found_any = True
        yield finding
    if found_any:
        return
    yield from _first(code, "eval", _JUDGES, MEDIUM)
    yield from _first(code, "inference", _INFERS, MEDIUM)
    yield from _first(code, "inference", _NO_GRADIENTS, LOW)
    if not _has_model(code):
        yield from _first(code, "preprocessing", _PREPARES, MEDIUM)
        yield from _first(code, "preprocessing", _WRITES, LOW)


def _first(code: Code, kind: str, names: tuple[str, ...], confidence: Confidence) -> Iterator[Finding]:
    for call in code.calls_of(*names):
        yield found(What.JOB_KIND, kind, call.site, confidence, f"calls {call.name.lstrip('?.')}")
        return


def _fits(code: Code) -> Iterator[Finding]:
    """`.fit` of a scaler or an encoder is no training; that of a model is."""
    for call in code.calls_of(*_FITS):
        owner = call.name.rpartition(".")[0]
        if "preprocessing" in owner or "Scaler" in owner or "Encoder" in owner or "Tokenizer" in owner:
            continue
        sure = HIGH if owner.startswith(("sklearn", "keras", "tensorflow", "xgboost", "lightgbm")) else MEDIUM
        yield found(What.JOB_KIND, "training", call.site, sure, f"calls {call.name.lstrip('?.')}")
        return


def _has_model(code: Code) -> bool:
    return any(True for _ in code.calls_of(".from_pretrained", ".load_state_dict", "torch.load"))


def trials(code: Code) -> Iterator[Finding]:
    for call in code.calls_of("optuna.create_study().optimize", ".optimize"):
        known = code.constants.number(call.argument("n_trials"), call.scope)
        if known and known.number and known.number >= 1:
            yield found(What.TRIALS, int(known.number), known.site, known.confidence, "n_trials of the study")
    for call in code.calls_of("ray.tune.TuneConfig", "wandb.agent", "hyperopt.fmin"):
        for option in ("num_samples", "count", "max_evals"):
            known = code.constants.number(call.argument(option), call.scope)
            if known and known.number and known.number >= 1:
                yield found(What.TRIALS, int(known.number), known.site, known.confidence, f"{option} of {call.name}")
