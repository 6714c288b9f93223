"""What a workload is like: seed 003's fields and ours, folded from findings and from what the user says. What is not
known is None; what is assumed is listed as an assumption."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from crucible.core.architectures import Architectures
from crucible.core.router.analysis import Analysis
from crucible.core.router.detect.hardware import NEEDED, UNUSED, USEFUL
from crucible.core.router.findings import Confidence, Finding, Value, What, winners
from crucible.core.router.preferences import Preferences
from crucible.core.sizing import Sizing, memory_needed
from crucible.model.spec import JobType, Method, ModelClass, Optimizer, Precision, Workload

# Work that loses nothing but time when it starts anew, and nobody waits for it.
_STATELESS = ("inference", "eval", "preprocessing")
# How a model is cut into pieces, one per GPU.
_SPLITS = ("fsdp", "deepspeed")
# Of one GPU; what needs more is split.
LARGEST_GIB = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadCharacteristics:
    # --- seed 003's words
    duration_hours: float | None = None
    gpu_memory_gb: float | None = None  # of each GPU
    interruptible: bool | None = None
    needs_persistent_storage: bool | None = None
    dataset_size_gb: float | None = None
    checkpoint_frequency: int | None = None  # minutes
    estimated_cost_tolerance: float | None = None  # dollars
    # --- ours
    framework: str | None = None
    distributed: str | None = None
    job_kind: str | None = None
    model: str | None = None
    model_class: str | None = None
    parameters: float | None = None
    method: str | None = None
    batch_size: int | None = None
    sequence_length: int | None = None
    precision: str | None = None
    optimizer: str | None = None
    epochs: float | None = None
    steps: float | None = None
    accumulation: int | None = None
    samples: int | None = None
    trials: int | None = None
    checkpoints: bool | None = None
    resumes: bool | None = None
    checkpoint_every_steps: int | None = None
    dataset: str | None = None
    needs_gpu: bool | None = None
    gpus: int | None = None
    needs_internet: bool | None = None
    mentions_private_data: bool = False


@dataclass(frozen=True, slots=True)
class Profile:
    characteristics: WorkloadCharacteristics
    assumptions: tuple[str, ...]  # what is taken for true without being known
    memory: tuple[str, ...]  # how the memory was reckoned, line by line


def profile(analysis: Analysis, wishes: Preferences, architectures: Architectures) -> Profile:
    best = winners(analysis.findings)
    told = _told(best)
    told = replace(
        told,
        duration_hours=wishes.duration_hours,
        interruptible=_interruptible(told, wishes),
        needs_persistent_storage=_stores(told, best),
        dataset_size_gb=wishes.dataset_size_gb or told.dataset_size_gb,
        checkpoint_frequency=wishes.checkpoint_frequency_minutes,
        estimated_cost_tolerance=wishes.max_cost_usd,
    )
    told, assumptions = _with_gpus(told, wishes, best)
    if told.mentions_private_data and not wishes.data_privacy:
        assumptions.append("the data may be on shared machines; words in the code hint at private data")
    return _with_memory(told, wishes, assumptions, architectures)


def _told(best: Mapping[What, Finding]) -> WorkloadCharacteristics:
    return WorkloadCharacteristics(
        dataset_size_gb=_number(best, What.DATASET_SIZE_GB),
        framework=_text(best, What.FRAMEWORK),
        distributed=_text(best, What.DISTRIBUTED),
        job_kind=_text(best, What.JOB_KIND),
        model=_text(best, What.MODEL),
        model_class=_text(best, What.MODEL_CLASS),
        parameters=_number(best, What.PARAMETERS) if _is_sure(best, What.PARAMETERS) else None,
        method=_text(best, What.METHOD),
        batch_size=_whole(best, What.BATCH_SIZE),
        sequence_length=_whole(best, What.SEQUENCE_LENGTH),
        precision=_text(best, What.PRECISION),
        optimizer=_text(best, What.OPTIMIZER),
        epochs=_number(best, What.EPOCHS),
        steps=_number(best, What.STEPS),
        accumulation=_whole(best, What.ACCUMULATION),
        samples=_whole(best, What.SAMPLES),
        trials=_whole(best, What.TRIALS),
        checkpoints=_flag(best, What.CHECKPOINTING),
        resumes=_flag(best, What.RESUME),
        checkpoint_every_steps=_whole(best, What.CHECKPOINT_EVERY),
        dataset=_text(best, What.DATASET),
        needs_gpu=_needs_gpu(best),
        gpus=_whole(best, What.GPUS),
        needs_internet=_flag(best, What.INTERNET),
        mentions_private_data=What.PRIVACY in best,
    )


def _is_sure(best: Mapping[What, Finding], what: What) -> bool:
    """A hint is told, and nothing is reckoned from it."""
    return what in best and best[what].confidence is not Confidence.LOW


def _value(best: Mapping[What, Finding], what: What) -> Value | None:
    finding = best.get(what)
    return None if finding is None else finding.value


def _text(best: Mapping[What, Finding], what: What) -> str | None:
    value = _value(best, what)
    return None if value is None else str(value)


def _number(best: Mapping[What, Finding], what: What) -> float | None:
    value = _value(best, what)
    return None if value is None or isinstance(value, str) else float(value)


def _whole(best: Mapping[What, Finding], what: What) -> int | None:
    value = _number(best, what)
    return None if value is None else int(value)


def _flag(best: Mapping[What, Finding], what: What) -> bool | None:
    value = _value(best, what)
    return None if value is None else bool(value)


def _needs_gpu(best: Mapping[What, Finding]) -> bool | None:
    return {NEEDED: True, USEFUL: True, UNUSED: False, None: None}[_value(best, What.GPU)]  # type: ignore[index]


def _interruptible(told: WorkloadCharacteristics, wishes: Preferences) -> bool | None:
    """What saves and goes on may be interrupted; what saves nothing may not, unless it keeps nothing anyway."""
    if wishes.interruptible is not None:
        return wishes.interruptible
    if told.job_kind in _STATELESS or told.job_kind is None:
        return None
    return bool(told.resumes) and told.checkpoints is not False


def _stores(told: WorkloadCharacteristics, best: Mapping[What, Finding]) -> bool | None:
    if told.checkpoints or What.OUTPUT in best:
        return True
    return False if told.job_kind is not None else None


def _with_gpus(
    told: WorkloadCharacteristics, wishes: Preferences, best: Mapping[What, Finding]
) -> tuple[WorkloadCharacteristics, list[str]]:
    if wishes.gpus is not None:
        return replace(told, gpus=wishes.gpus, needs_gpu=wishes.gpus > 0), []
    if told.needs_gpu is False:
        return replace(told, gpus=0), []
    if told.needs_gpu is None:
        return replace(told, gpus=0), ["no GPU: nothing in the code says that it uses one"]
    if told.gpus is not None:
        return told, []
    assumed = ["1 GPU: the code does not say how many"]
    if best[What.GPU].value == USEFUL and best[What.GPU].confidence is not Confidence.HIGH:
        assumed = ["1 GPU: its library uses one if there is one; the code does not say"]
    return replace(told, gpus=1), assumed


def _with_memory(
    told: WorkloadCharacteristics, wishes: Preferences, assumptions: Sequence[str], architectures: Architectures
) -> Profile:
    if wishes.gpu_memory_gb is not None:
        return Profile(replace(told, gpu_memory_gb=wishes.gpu_memory_gb), tuple(assumptions), ())
    if not told.gpus:
        return Profile(told, tuple(assumptions), ())
    sized = memory_needed(workload_of(told, architectures), architectures)
    if sized is None:
        unknown = "any GPU is large enough: the size of the model cannot be read"
        return Profile(told, (*assumptions, unknown), ())
    if sized.parts.per_gpu(1) <= LARGEST_GIB:
        is_split = told.distributed in _SPLITS and told.gpus > 1
        memory = sized.parts.per_gpu(told.gpus if is_split else 1)
        return Profile(replace(told, gpu_memory_gb=round(memory, 1)), tuple(assumptions), sized.how)
    return _split(told, wishes, assumptions, sized)


def _split(told: WorkloadCharacteristics, wishes: Preferences, assumptions: Sequence[str], sized: Sizing) -> Profile:
    """No GPU holds it alone."""
    whole = f"{sized.gib_per_gpu:.0f} GiB are more than one GPU holds"
    if sized.min_gpus == 0:
        return Profile(told, (*assumptions, f"{whole}, and no number of GPUs helps: the batch is too large"), sized.how)
    gpus = max(sized.min_gpus, told.gpus or 1) if wishes.gpus is None else wishes.gpus
    memory = round(sized.parts.per_gpu(max(gpus, 1)), 1)
    split = f"the model is split over {gpus} GPUs: {whole}"
    kept = tuple(one for one in assumptions if not one.startswith("1 GPU"))
    return Profile(replace(told, gpu_memory_gb=memory, gpus=gpus), (*kept, split), sized.how)


def workload_of(told: WorkloadCharacteristics, architectures: Architectures) -> Workload:
    """As a spec says it. A model that is not in the list is known by its size alone."""
    is_listed = told.model is not None and architectures.find(told.model) is not None
    method = Method(told.method) if told.method else Method.FULL
    if told.job_kind in ("inference", "eval"):
        method = Method.INFERENCE
    return Workload(
        model=told.model if is_listed else None,
        model_class=ModelClass(told.model_class) if told.model_class else None,
        parameters=told.parameters,
        method=method,
        precision=Precision(told.precision) if told.precision else None,
        optimizer=Optimizer(told.optimizer) if told.optimizer else None,
        batch_size=told.batch_size,
        sequence_length=told.sequence_length,
        steps=told.steps,
        tokens=_tokens(told),
        samples=None if told.samples is None else float(told.samples),
        epochs=_all_epochs(told),
    )


def _all_epochs(told: WorkloadCharacteristics) -> float | None:
    """A search trains once per trial."""
    if told.job_kind == "hpo" and told.trials:
        return (told.epochs or 1.0) * told.trials
    return told.epochs


def _tokens(told: WorkloadCharacteristics) -> float | None:
    """Of the whole run, where batches are added up before a step."""
    if told.steps and told.batch_size and told.sequence_length and told.accumulation:
        return told.steps * told.batch_size * told.accumulation * told.sequence_length
    return None


def job_type(told: WorkloadCharacteristics) -> JobType:
    return JobType(told.job_kind) if told.job_kind else JobType.TRAINING
