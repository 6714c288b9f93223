"""What a job computes, as amounts: tokens, samples, steps; and how fast one reference GPU would do it. A rate comes
from the table if the model is there; else it is reckoned from the size of the model, and says so."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crucible.core.offers import Floats
from crucible.core.speed_fit import Kind
from crucible.core.speeds import REFERENCE, Rate, SpeedBook
from crucible.model.catalog import Architecture
from crucible.model.spec import JobSpec, JobType, Method, ModelClass, Precision, Workload

# Floating-point operations per token and parameter. Adapters are trained without the gradients of the other weights.
_FLOP = {Method.FULL: 6.0, Method.LORA: 4.0, Method.QLORA: 4.0, Method.INFERENCE: 2.0}
# Share of its peak that the reference reaches: BERT-large on an A100 does 38 % in the table, models without tuned
# kernels less.
_SHARE_OF_PEAK = 0.35
_SHARE_OF_BANDWIDTH = 0.6  # of an A100's, while a language model writes token by token
_WRITTEN_AT_ONCE = 32  # sequences that an inference job writes at once, if nobody says
_BYTES = {"fp32": 4.0, "fp16": 2.0, "bf16": 2.0, "fp8": 1.0}
_TOKEN_CLASSES = (ModelClass.LLM, ModelClass.TRANSFORMER)
_INFERENCE_TYPES = (JobType.INFERENCE, JobType.EVAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    kind: Kind
    model: str | None  # as in the list of architectures if it is there
    parameters: float | None  # that a token meets
    method: Method
    batch_size: int | None
    sequence_length: int | None
    steps: float | None
    tokens: float | None
    samples: float | None  # of all epochs
    framework: str
    team: str

    def steps_on(self, count: Floats) -> Floats:
        """Steps of the whole run with so many GPUs; NaN: unknown."""
        if self.steps is not None:
            return np.full(len(count), self.steps)
        return self.samples_on(count) / (count * (self.batch_size or np.nan))

    def samples_on(self, count: Floats) -> Floats:
        if self.samples is not None:
            return np.full(len(count), self.samples)
        if self.steps is not None and self.batch_size is not None:
            return count * (self.steps * self.batch_size)
        if self.tokens is not None and self.sequence_length is not None:
            return np.full(len(count), self.tokens / self.sequence_length)
        return np.full(len(count), np.nan)

    def tokens_on(self, count: Floats) -> Floats:
        if self.tokens is not None:
            return np.full(len(count), self.tokens)
        return self.samples_on(count) * (self.sequence_length or np.nan)

    def amount_on(self, unit: str, count: Floats) -> Floats:
        return self.tokens_on(count) if unit == "tokens/s" else self.samples_on(count)


@dataclass(frozen=True, slots=True)
class Pace:
    """What one reference GPU does."""

    per_hour: float
    unit: str
    is_measured: bool  # of this very model, in this precision and framework
    basis: str


def work_of(spec: JobSpec, book: SpeedBook) -> Work:
    load = spec.workload
    known = book.architectures.find(load.model) if load.model else None
    method = Method.INFERENCE if spec.type in _INFERENCE_TYPES else load.method
    work = Work(
        kind=Kind(class_of(load, known), load.precision or Precision.BF16, method is Method.INFERENCE),
        model=known.name if known else load.model,
        parameters=load.parameters or (known.active if known else None),
        method=method,
        batch_size=load.batch_size,
        sequence_length=load.sequence_length,
        steps=load.steps or spec.progress.total_steps,
        tokens=load.tokens,
        samples=None if load.samples is None else load.samples * (load.epochs or 1.0),
        framework=spec.framework.partition("_")[0],
        team=spec.team or "",
    )
    best = min(rates_of(work, book), key=lambda rate: rank(rate, work), default=None)
    if best is None:
        return work
    precision = load.precision or best.precision
    return replace(work, kind=replace(work.kind, series=best.series, precision=precision))


def class_of(load: Workload, known: Architecture | None) -> ModelClass | None:
    if load.model_class is not None:
        return load.model_class
    return ModelClass(known.model_class) if known else None


def rates_of(work: Work, book: SpeedBook) -> Sequence[Rate]:
    """Those of the very model, trained in the same way."""
    name = f"{work.model}-lora" if work.method in (Method.LORA, Method.QLORA) else str(work.model)
    return book.rates.get((name, work.kind.is_inference), ())


def rank(rate: Rate, work: Work) -> tuple[bool, str, str]:
    """The likest first."""
    return not is_alike(rate, work), rate.source, rate.series


def is_alike(rate: Rate, work: Work) -> bool:
    halves = ("fp16", "bf16")
    is_same = rate.precision == work.kind.precision or (rate.precision in halves and work.kind.precision in halves)
    return (is_same or work.kind.is_inference) and work.framework in (rate.framework, "plain", "horovod")


def pace_of(work: Work, book: SpeedBook) -> Pace | None:
    """None: nothing is known."""
    return measured(work, book) or reckoned(work, book) or of_its_class(work, book)


def measured(work: Work, book: SpeedBook) -> Pace | None:
    usable = [rate for rate in rates_of(work, book) if has_amount(work, rate.unit)]
    if not usable:
        return None
    rate = min(usable, key=lambda rate: rank(rate, work))
    return Pace(rate.value * 3600, rate.unit, is_alike(rate, work), f"measured rate of {work.model} ({rate.source})")


def has_amount(work: Work, unit: str) -> bool:
    """A run until some quality is reached has no amount."""
    return unit in ("tokens/s", "samples/s") and not np.isnan(work.amount_on(unit, np.ones(1))[0])


def reckoned(work: Work, book: SpeedBook) -> Pace | None:
    """The roofline: a token takes so many operations, and while writing, one look at every weight."""
    reference = book.find(REFERENCE)
    if work.parameters is None or reference is None or work.kind.model_class not in _TOKEN_CLASSES:
        return None
    flop = _FLOP[work.method] * work.parameters
    per_second = reference.tflops * 1e12 * _SHARE_OF_PEAK / flop
    basis = f"{flop:.3g} operations per token at {_SHARE_OF_PEAK:.0%} of peak"
    if work.kind.is_inference and work.kind.model_class is ModelClass.LLM:
        batch = work.batch_size or _WRITTEN_AT_ONCE
        weights = work.parameters * _BYTES[work.kind.precision]
        written = reference.bandwidth_gbps * 1e9 * _SHARE_OF_BANDWIDTH * batch / weights
        per_second = min(per_second, written)
        basis += f", {batch} sequences at once, each weight read once per token"
    return Pace(per_second * 3600, "tokens/s", False, basis)


def of_its_class(work: Work, book: SpeedBook) -> Pace | None:
    """As the nearest in size of the same class, measured in the likest way; in proportion to the parameters."""
    if work.parameters is None or work.kind.model_class is None:
        return None
    size = work.parameters
    near = min(
        siblings(work, book),
        key=lambda pair: (not is_alike(pair[1], work), abs(np.log(pair[0].active / size)), pair[0].name),
        default=None,
    )
    if near is None:
        return None
    known, rate = near
    per_hour = rate.value * 3600 * known.active / size
    return Pace(per_hour, rate.unit, False, f"rate of {known.name} ({rate.source}) in proportion to the parameters")


def siblings(work: Work, book: SpeedBook) -> Iterator[tuple[Architecture, Rate]]:
    """Models of the same class with a rate in samples."""
    for (name, is_inference), rates in book.rates.items():
        known = book.architectures.get(name)
        if known is None or known.model_class != work.kind.model_class or is_inference != work.kind.is_inference:
            continue
        yield from ((known, rate) for rate in rates if rate.unit == "samples/s")
