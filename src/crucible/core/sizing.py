"""How much memory of a GPU a model needs, and how many GPUs of which size: weights, gradients, the optimizer's state,
activations, and what the runtime takes. Every figure comes with the line that says how it was made. What the code
really keeps nobody can know from outside: these are estimates on the safe side."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from crucible.core.architectures import Architectures
from crucible.model.catalog import Architecture, Gpu
from crucible.model.spec import Method, ModelClass, Optimizer, Precision, Workload

GIB = 1024.0**3
_BYTES = {Precision.FP32: 4.0, Precision.FP16: 2.0, Precision.BF16: 2.0, Precision.FP8: 1.0}
_QUANTISED = 0.55  # bytes of a 4-bit weight with its scales
_MASTER = 4.0  # bytes: training in 16 bits keeps a copy of each trained weight in 32
# Bytes of state per trained parameter.
_STATE = {
    Optimizer.ADAMW: 8.0,
    Optimizer.ADAM: 8.0,
    Optimizer.LION: 4.0,
    Optimizer.SGD: 4.0,  # with momentum
    Optimizer.ADAM_8BIT: 2.0,
    Optimizer.ADAFACTOR: 0.1,  # sums of rows and columns
    Optimizer.NONE: 0.0,
}
_ADAPTED = 0.01  # adapters, as a share of the parameters: rank 64 on all matrices of a 7B model is 2 %, rank 16 0.6 %
# Bytes that a layer keeps for the backward pass, per token and width, in 16 bits: 34 without the attention matrix,
# which fused kernels do not keep (Korthikanti et al. 2022). Computed again, only its input is kept.
_KEPT, _INPUT = 34.0, 2.0
_VOCABULARY = 32_000  # entries, for the scores of the next token and their gradient in 32 bits
_PER_SAMPLE = 4.0  # bytes kept per parameter and sample in 16 bits: ResNet-50 keeps about 90 MB of a 224 x 224 image
_TABLES = 1.0 * GIB  # what a recommender keeps beside its tables
_CHECKPOINTED_FROM = 1e9  # parameters: language models of this size are trained with activations computed again
_TOKENS = {ModelClass.LLM: 2048, ModelClass.TRANSFORMER: 512, ModelClass.VISION: 197, ModelClass.SPEECH: 1500}
_CONTEXT_GIB = 1.0  # the driver's and the libraries' own
_SLACK = 0.1  # fragmentation, buffers of collectives
_MOST_GPUS = 1024  # beyond that nothing is recommended


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """GiB, if nothing is split."""

    weights: float
    gradients: float
    optimizer: float  # with the 32-bit copy of the weights
    activations: float  # of one GPU's batch; of inference: keys and values

    @property
    def states(self) -> float:
        """What full sharding divides among the GPUs."""
        return self.weights + self.gradients + self.optimizer

    def per_gpu(self, gpus: int) -> float:
        return (self.states / gpus + self.activations) * (1 + _SLACK) + _CONTEXT_GIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    parts: Parts
    overhead: float  # GiB on one GPU
    min_gpus: int  # of 80 GB each; 0: no number is enough, the batch is too large
    how: tuple[str, ...]  # line by line

    @property
    def gib_per_gpu(self) -> float:
        """If one GPU holds everything."""
        return self.parts.per_gpu(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """So many of one GPU hold the model, each so much of it."""

    gpu: str
    gpus: int
    memory_gib: float  # of one
    used_gib: float


@dataclass(frozen=True, slots=True)
class Model:
    """A workload with its gaps filled in; `assumed` says with what."""

    parameters: float
    precision: Precision
    optimizer: Optimizer
    method: Method
    model_class: ModelClass
    batch: int
    tokens: int
    layers: float | None
    width: float | None
    assumed: tuple[str, ...]

    @property
    def is_trained(self) -> bool:
        return self.method is not Method.INFERENCE

    @property
    def is_checkpointed(self) -> bool:
        return self.is_trained and self.model_class is ModelClass.LLM and self.parameters >= _CHECKPOINTED_FROM

    @property
    def trained(self) -> float:
        """Parameters that get gradients."""
        shares = {Method.FULL: 1.0, Method.LORA: _ADAPTED, Method.QLORA: _ADAPTED, Method.INFERENCE: 0.0}
        return self.parameters * shares[self.method]

    @property
    def weight_bytes(self) -> float:
        if self.method is Method.QLORA:
            return _QUANTISED
        # Training in 8 bits computes in them; the weights stay in 16.
        return max(_BYTES[self.precision], 2.0) if self.is_trained else _BYTES[self.precision]


def memory_needed(load: Workload, architectures: Architectures) -> Sizing | None:
    """None if nobody says how large the model is."""
    model = model_of(load, architectures)
    if model is None:
        return None
    parts = Parts(
        weights=model.parameters * model.weight_bytes / GIB,
        gradients=model.trained * max(_BYTES[model.precision], 2.0) / GIB,
        optimizer=model.trained * _state_bytes(model) / GIB,
        activations=activation_bytes(model) / GIB,
    )
    overhead = parts.per_gpu(1) - parts.states - parts.activations
    return Sizing(
        parts=parts, overhead=overhead, min_gpus=gpus_needed(parts, 80.0), how=tuple(_explained(model, parts, overhead))
    )


def gpus_needed(parts: Parts, memory_gib: float) -> int:
    """The least power of two that holds the model, fully sharded; 0: none does."""
    gpus = 1
    while gpus <= _MOST_GPUS and parts.per_gpu(gpus) > memory_gib:
        gpus *= 2
    return gpus if gpus <= _MOST_GPUS else 0


def recommend(sizing: Sizing, gpus: Iterable[Gpu], precision: Precision | None = None) -> Sequence[Choice]:
    """Every GPU that can do it, with how many it takes: fewest first, then the smallest."""
    able = [gpu for gpu in gpus if _computes_in(gpu, precision)]
    counts = {gpu.name: gpus_needed(sizing.parts, gpu.memory_gib) for gpu in able}
    choices = [
        Choice(
            gpu=gpu.name,
            gpus=counts[gpu.name],
            memory_gib=gpu.memory_gib,
            used_gib=sizing.parts.per_gpu(counts[gpu.name]),
        )
        for gpu in able
        if counts[gpu.name]
    ]
    return sorted(choices, key=lambda choice: (choice.gpus, choice.memory_gib, choice.gpu))


def _computes_in(gpu: Gpu, precision: Precision | None) -> bool:
    if precision is Precision.BF16:
        return gpu.has_bf16
    return precision is not Precision.FP8 or gpu.tflops_fp8 is not None


# --- what is not said ---------------------------------------------------------------------------------------


def model_of(load: Workload, architectures: Architectures) -> Model | None:
    known = architectures.find(load.model) if load.model else None
    parameters = load.parameters or (known.parameters if known else None)
    if parameters is None:
        return None
    model_class = load.model_class or (ModelClass(known.model_class) if known else ModelClass.OTHER)
    precision = load.precision or Precision.BF16
    optimizer = load.optimizer or Optimizer.ADAMW
    tokens = load.sequence_length or _TOKENS.get(model_class, 1)
    layers, width = _form(model_class, parameters, known)
    assumed = [
        f"{name} {value} assumed"
        for name, given, value in (
            ("precision", load.precision, precision),
            ("optimizer", load.optimizer or load.method is Method.INFERENCE, optimizer),
            ("batch_size", load.batch_size, 1),
            ("sequence_length", load.sequence_length or width is None, tokens),
        )
        if not given
    ]
    return Model(
        parameters=parameters,
        precision=precision,
        optimizer=optimizer,
        method=load.method,
        model_class=model_class,
        batch=load.batch_size or 1,
        tokens=tokens,
        layers=layers,
        width=width,
        assumed=tuple(assumed),
    )


def _form(model_class: ModelClass, parameters: float, known: Architecture | None) -> tuple[float | None, float | None]:
    """Layers and width of a transformer: known, or those of a usual one of that size (12 layers·width², width 128
    times the layers); None for others."""
    if known is not None and known.layers and known.hidden:
        return float(known.layers), float(known.hidden)
    if model_class not in (ModelClass.LLM, ModelClass.TRANSFORMER):
        return None, None
    layers = (parameters / (12 * 128**2)) ** (1 / 3)
    return layers, 128 * layers


def _state_bytes(model: Model) -> float:
    is_copied = model.precision is not Precision.FP32
    return _STATE[model.optimizer] + (_MASTER if is_copied else 0.0)


def activation_bytes(model: Model, is_kept: bool = False) -> float:
    """Of one GPU's batch. `is_kept`: even where they are usually computed again."""
    times = 2.0 if model.precision is Precision.FP32 else 1.0
    if model.layers is None or model.width is None:
        if model.model_class is ModelClass.RECOMMENDER:
            return _TABLES
        return model.batch * model.parameters * _PER_SAMPLE * times * (1.0 if model.is_trained else 0.1)
    cells = float(model.batch * model.tokens) * model.width
    if not model.is_trained:
        return 2 * cells * model.layers * max(_BYTES[model.precision], 1.0)  # keys and values
    scores = 8.0 * model.batch * model.tokens * _VOCABULARY if model.model_class is ModelClass.LLM else 0.0
    if model.is_checkpointed and not is_kept:
        return times * cells * (_INPUT * model.layers + _KEPT) + scores
    return times * cells * _KEPT * model.layers + scores


# --- how ------------------------------------------------------------------------------------------------------


def _explained(model: Model, parts: Parts, overhead: float) -> Iterator[str]:
    yield from model.assumed
    yield f"weights: {model.parameters:.4g} parameters x {model.weight_bytes:g} bytes = {parts.weights:.1f} GiB"
    if model.is_trained:
        yield (
            f"gradients: {model.trained:.4g} trained x {max(_BYTES[model.precision], 2.0):g} bytes "
            f"= {parts.gradients:.1f} GiB"
        )
        copy = "" if model.precision is Precision.FP32 else " and a 32-bit copy of the weights"
        yield (
            f"optimizer: {model.optimizer}{copy}, {model.trained:.4g} trained x {_state_bytes(model):g} bytes "
            f"= {parts.optimizer:.1f} GiB"
        )
    yield _of_activations(model, parts)
    yield f"overhead: {_CONTEXT_GIB:g} GiB of the runtime and {_SLACK:.0%} of the rest = {overhead:.1f} GiB"
    yield f"together {parts.per_gpu(1):.1f} GiB on one GPU; {parts.per_gpu(8):.1f} GiB on each of 8, fully sharded"


def _of_activations(model: Model, parts: Parts) -> str:
    if model.layers is None or model.width is None:
        if model.model_class is ModelClass.RECOMMENDER:
            return f"activations: small beside the tables, {parts.activations:.1f} GiB assumed"
        return f"activations: in proportion to ResNet-50's, batch of {model.batch} = {parts.activations:.1f} GiB"
    shape = f"batch of {model.batch} x {model.tokens} tokens, {model.layers:.0f} layers of width {model.width:.0f}"
    if not model.is_trained:
        return f"keys and values: {shape}, no grouped heads = {parts.activations:.1f} GiB"
    if model.is_checkpointed:
        kept = activation_bytes(model, is_kept=True) / GIB
        return f"activations: {shape}, computed again = {parts.activations:.1f} GiB; kept they are {kept:.1f} GiB"
    return f"activations: {shape} = {parts.activations:.1f} GiB"
