"""A job file to start from: every value that was found, each with where it came from. What is not known is left out,
so that the file is valid as it stands."""

import json
import math
import re
from collections.abc import Iterator, Mapping

from crucible.core.architectures import Architectures
from crucible.core.router.analysis import Analysis
from crucible.core.router.characteristics import Profile, WorkloadCharacteristics, workload_of
from crucible.core.router.findings import Finding, What, winners
from crucible.core.router.preferences import Preferences
from crucible.model.spec import Framework, Method

_TORCH = ("torch", "lightning", "transformers", "accelerate", "deepspeed")
_LAUNCHED = ("ddp", "fsdp", "torchrun", "deepspeed", "accelerate")
_NAME = 60
_USUAL = "train.py"
_ORDINARY = re.compile(r"(?!git\+)[A-Za-z0-9_][A-Za-z0-9_./+@ -]*\.(?:py|ipynb)")

Line = tuple[str, object, str]  # key, value, where it came from


def skeleton(analysis: Analysis, known: Profile, wishes: Preferences, architectures: Architectures) -> str:
    told, best = known.characteristics, winners(analysis.findings)
    lines = ["job:"]
    lines += _written(_job(analysis, told, best), 2)
    for section, entries in (
        ("resources", _resources(told, wishes, best)),
        ("workload", _workload(told, best, architectures)),
        ("constraints", _constraints(told, wishes)),
        ("checkpoint", _checkpoint(told)),
    ):
        shown = _written(entries, 4)
        lines += [f"  {section}:", *shown] if shown else []
    return "\n".join(lines) + "\n"


def framework_of(told: WorkloadCharacteristics) -> Framework:
    if told.distributed == "horovod":
        return Framework.HOROVOD
    if told.distributed == "multi_worker_mirrored":
        return Framework.TENSORFLOW_MULTIWORKER
    if told.framework in _TORCH:
        return Framework.PYTORCH_DDP if told.distributed in _LAUNCHED else Framework.PYTORCH
    return Framework.TENSORFLOW if told.framework in ("keras", "tensorflow") else Framework.PLAIN


def _job(analysis: Analysis, told: WorkloadCharacteristics, best: Mapping[What, Finding]) -> Iterator[Line]:
    entry, said = _entry(analysis.entry)
    yield "name", entry.rpartition("/")[2].rpartition(".")[0][:_NAME].strip(), ""
    kind = told.job_kind or "training"
    if kind == "hpo":  # the script tries them all by itself: to us it is one job
        tried = f"{told.trials} trials" if told.trials else "its trials"
        yield "type", "training", f"a search; the script runs {tried} itself"
    else:
        yield "type", kind, _from(best, What.JOB_KIND) or "assumed"
    used = What.DISTRIBUTED if told.distributed else What.FRAMEWORK
    yield "framework", framework_of(told).value, _from(best, used)
    if entry.endswith(".ipynb"):
        yield "command", ["jupyter", "nbconvert", "--to", "notebook", "--execute", entry], said or "runs the notebook"
        yield "code", entry if len(analysis.files) == 1 else ".", ""
        return
    yield "entrypoint", entry, said
    if len(analysis.files) > 1:
        yield "code", ".", f"it imports {', '.join(analysis.files[1:4])}"


def _entry(name: str) -> tuple[str, str]:
    """A name that a job file takes, and what to do if that is not the file's own."""
    if not name:
        return _USUAL, "the script"
    if _ORDINARY.fullmatch(name) and ".." not in name.split("/"):
        return name, ""
    return _USUAL, f"rename the script: {name!r} cannot stand here"


def _resources(told: WorkloadCharacteristics, wishes: Preferences, best: Mapping[What, Finding]) -> Iterator[Line]:
    yield "gpus", told.gpus or 0, _gpus_from(told, wishes, best)
    if told.gpus and told.gpu_memory_gb:
        said = "as asked" if wishes.gpu_memory_gb else "reckoned from the size of the model"
        yield "gpu_memory", f"{math.ceil(told.gpu_memory_gb)}GB", said
    if wishes.duration_hours:
        yield "estimated_hours", wishes.duration_hours, "as asked"


def _gpus_from(told: WorkloadCharacteristics, wishes: Preferences, best: Mapping[What, Finding]) -> str:
    if wishes.gpus is not None:
        return "as asked"
    if What.GPUS in best and best[What.GPUS].value == told.gpus:
        return _from(best, What.GPUS)
    return _from(best, What.GPU) if told.needs_gpu is False else "assumed"


def _workload(
    told: WorkloadCharacteristics, best: Mapping[What, Finding], architectures: Architectures
) -> Iterator[Line]:
    load = workload_of(told, architectures)
    if not told.gpus:
        return
    yield "model", load.model, _from(best, What.MODEL)
    yield "model_class", load.model_class, _from(best, What.MODEL_CLASS)
    yield "parameters", None if load.parameters is None else int(load.parameters), _from(best, What.PARAMETERS)
    if load.method is not Method.FULL:
        yield "method", load.method, _from(best, What.METHOD) or _from(best, What.JOB_KIND)
    yield "precision", load.precision, _from(best, What.PRECISION)
    yield "optimizer", load.optimizer, _from(best, What.OPTIMIZER)
    yield "batch_size", load.batch_size, _from(best, What.BATCH_SIZE)
    yield "sequence_length", load.sequence_length, _from(best, What.SEQUENCE_LENGTH)
    yield "steps", None if load.steps is None else int(load.steps), _from(best, What.STEPS)
    yield "tokens", None if load.tokens is None else int(load.tokens), "steps x batch x accumulation x sequence"
    yield "samples", None if load.samples is None else int(load.samples), _from(best, What.SAMPLES)
    if load.samples is not None:  # epochs say nothing without what one has
        yield "epochs", load.epochs, _from(best, What.EPOCHS)


def _constraints(told: WorkloadCharacteristics, wishes: Preferences) -> Iterator[Line]:
    if wishes.max_cost_usd is not None:
        yield "budget", wishes.max_cost_usd, "as asked"
    if told.interruptible is not None:
        said = "it saves and resumes" if told.interruptible else "it does not resume from a checkpoint"
        yield "allow_spot", told.interruptible, "as asked" if wishes.interruptible is not None else said


def _checkpoint(told: WorkloadCharacteristics) -> Iterator[Line]:
    if told.checkpoint_frequency:
        yield "interval", f"{told.checkpoint_frequency}m", "as asked"


def _from(best: Mapping[What, Finding], what: What) -> str:
    finding = best.get(what)
    if finding is None:
        return ""
    return f"{finding.file}:{finding.line}, {finding.confidence} confidence"


def _written(entries: Iterator[Line], indent: int) -> list[str]:
    """JSON is YAML, and quotes what needs it."""
    lines = []
    for key, value, origin in entries:
        if value is not None:
            comment = f"  # {_one_line(origin)}" if origin else ""
            lines.append(f"{' ' * indent}{key}: {_plain(value)}{comment}")
    return lines


def _plain(value: object) -> str:
    if isinstance(value, float) and value == int(value):
        value = int(value)
    return json.dumps(value, ensure_ascii=True)


def _one_line(text: str) -> str:
    """File names come from people: nothing of them may end the comment."""
    return "".join(c if c.isprintable() else " " for c in text)
