"""Which model it is and how large: by name, by its layers, by its configuration."""

import ast
from collections.abc import Iterator

from crucible.core.router.code import Code
from crucible.core.router.constants import Known
from crucible.core.router.facts import Call, Scope
from crucible.core.router.findings import Confidence, Finding, What, found
from crucible.core.router.keras_layers import sequential
from crucible.core.router.layers import LAYERS, Counter, Size
from crucible.core.router.naming import meaning, model_class

HIGH, MEDIUM, LOW = Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW

# Calls that name a model in an argument: the argument and its position.
_BY_ARGUMENT: dict[str, tuple[str, int | None]] = {
    ".from_pretrained": ("pretrained_model_name_or_path", 0),
    "timm.create_model": ("model_name", 0),
    "timm.models.create_model": ("model_name", 0),
    "torchvision.models.get_model": ("name", 0),
    "torch.hub.load": ("model", 1),
    "sentence_transformers.SentenceTransformer": ("model_name_or_path", 0),
    "transformers.pipeline": ("model", 1),
    "vllm.LLM": ("model", 0),
    "ultralytics.YOLO": ("model", 0),
    "whisper.load_model": ("name", 0),
    "trl.SFTTrainer": ("model", 0),
}
_CONSTRUCTORS = ("torchvision.models.", "tensorflow.keras.applications.", "keras.applications.")
_NO_MODEL = ("Tokenizer", "Processor", "FeatureExtractor", "Config", "Scheduler", "GenerationConfig", "Scaler")
_NAMES = (
    "model_name",
    "model_name_or_path",
    "model_id",
    "base_model",
    "arch",
    "MODEL_NAME",
    "MODEL_ID",
    "checkpoint_name",
)
_ESTIMATORS = ("sklearn.", "xgboost.", "lightgbm.", "catboost.")

_TELLING = {
    "vision": ("Conv2d", "Conv2D", "ConvTranspose2d"),
    "transformer": ("TransformerEncoderLayer", "TransformerDecoderLayer", "MultiheadAttention", "MultiHeadAttention"),
}
_LAYERS = ("n_layer", "n_layers", "num_layers", "num_hidden_layers", "depth", "num_blocks")
_WIDTHS = ("n_embd", "d_model", "hidden_size", "embed_dim", "n_embed", "emb_dim", "dim")
_VOCABULARY = ("vocab_size", "n_vocab", "padded_vocab_size")
_CONTEXT = ("block_size", "n_positions", "max_position_embeddings", "max_seq_len")


def models(code: Code) -> Iterator[Finding]:
    """Names first, since they say the most; then sizes of what is written out."""
    for known, why in _named(code):
        yield from _named_model(code, known, why)
    yield from _written_out(code)
    yield from _estimators(code)
    yield from _configured(code)
    yield from _by_layers(code)


def _named(code: Code) -> Iterator[tuple[Known, str]]:
    for call in code.calls:
        key = next((name for name in _BY_ARGUMENT if _is_called(call, name)), None)
        if key and not _is_no_model(call):
            argument, position = _BY_ARGUMENT[key]
            known = code.constants.text(call.argument(argument, position) or call.argument("model"), call.scope)
            if known and not str(known.value).startswith((".", "/")):
                yield known, f"argument of {call.last}"
        elif call.name.startswith(_CONSTRUCTORS) and meaning(call.last, code.architectures).is_listed:
            yield Known(call.last, call.site, HIGH), f"calls {call.name}"
    for name in _NAMES:
        for known, why in code.values_called(name):
            if isinstance(known.value, str) and meaning(known.value, code.architectures).parameters:
                yield Known(known.value, known.site, MEDIUM), why


def _is_called(call: Call, name: str) -> bool:
    return call.name.endswith(name) if name.startswith(".") else call.name == name


def _is_no_model(call: Call) -> bool:
    owner = call.name.removesuffix(".from_pretrained").rpartition(".")[2]
    return call.last == "from_pretrained" and owner.endswith(_NO_MODEL)


def _named_model(code: Code, known: Known, why: str) -> Iterator[Finding]:
    name = str(known.value)
    meant = meaning(name, code.architectures)
    yield found(What.MODEL, name, known.site, known.confidence, why)
    if meant.model_class:
        sure = known.confidence if meant.is_listed else max(known.confidence, MEDIUM, key=lambda c: c.rank)
        yield found(What.MODEL_CLASS, meant.model_class.value, known.site, sure, f"{name} is of that kind")
    if meant.parameters:
        sure = known.confidence if meant.is_listed else max(known.confidence, MEDIUM, key=lambda c: c.rank)
        said = "the published size of" if meant.is_listed else "the size in the name"
        yield found(What.PARAMETERS, meant.parameters, known.site, sure, f"{said} {name}")


def _written_out(code: Code) -> Iterator[Finding]:
    """The largest of the models that the code makes of its own classes, or of layers."""
    counter = Counter(code)
    sizes: list[tuple[Size, str, Call]] = []
    for call in code.calls:
        if _is_inside_module(code, counter, call.scope):
            continue
        if counter.is_module(call.last) or _is_torch_layer(call):
            sizes.append((counter.constructed(call.node, call.scope), call.last, call))
        elif call.name.endswith("keras.Sequential") or call.name.endswith("models.Sequential"):
            sizes.append((_keras(code, call), "Sequential", call))
    known = [entry for entry in sizes if entry[0].parameters > 0]
    if known:
        yield from _measured(*max(known, key=lambda entry: entry[0].parameters))


def _is_torch_layer(call: Call) -> bool:
    return call.name.startswith("torch.nn.") and (call.last == "Sequential" or call.last in LAYERS)


def _is_inside_module(code: Code, counter: Counter, scope: Scope | None) -> bool:
    while scope is not None:
        if scope.is_class and counter.is_module(scope.name):
            return True
        scope = scope.parent
    return False


def _keras(code: Code, call: Call) -> Size:
    """Layers in a list, or added one after another."""
    if call.node.args and isinstance(call.node.args[0], (ast.List, ast.Tuple)):
        return sequential(code, call.node.args[0].elts, call.scope)
    added = [c.node.args[0] for c in code.calls if c.last == "add" and c.node.args and c.name == f"{call.name}().add"]
    return sequential(code, added, call.scope)


def _measured(size: Size, name: str, call: Call) -> Iterator[Finding]:
    why = f"sum of {size.layers} layers of {name}"
    sure = size.confidence
    if size.unknown:
        why, sure = f"{why}, at least: {size.unknown} could not be read", LOW
    yield found(What.PARAMETERS, float(round(size.parameters)), call.site, sure, why)
    yield found(What.MODEL, name, call.site, MEDIUM, "a model written out in the code")
    kind = model_class(name)
    if kind:
        yield found(What.MODEL_CLASS, kind.value, call.site, LOW, f"the name {name}")


def _estimators(code: Code) -> Iterator[Finding]:
    for call in code.calls:
        if call.name.startswith(_ESTIMATORS) and call.last.endswith(
            ("Classifier", "Regressor", "KMeans", "PCA", "SVC")
        ):
            yield found(What.MODEL, call.last, call.site, HIGH, f"calls {call.name}")
        elif call.name in ("xgboost.train", "lightgbm.train"):
            yield found(What.MODEL, call.name, call.site, HIGH, "boosted trees")


def _configured(code: Code) -> Iterator[Finding]:
    """A transformer follows from its depth, width and vocabulary: twelve times width squared per layer."""
    layers, width = _number(code, _LAYERS), _number(code, _WIDTHS)
    if layers is None or width is None:
        return
    depth, wide = layers.number or 0.0, width.number or 0.0
    vocabulary, context = _number(code, _VOCABULARY), _number(code, _CONTEXT)
    blocks = depth * (12 * wide * wide + 13 * wide)
    words = (vocabulary.number or 0.0) * wide if vocabulary else 0.0
    places = (context.number or 0.0) * wide if context else 0.0
    said = f"a transformer of {depth:g} layers, {wide:g} wide"
    if vocabulary is None:
        said += ", without its embeddings: the vocabulary is not known"
    yield found(
        What.PARAMETERS, float(round(blocks + words + places)), layers.site, LOW if vocabulary is None else MEDIUM, said
    )
    yield found(What.MODEL_CLASS, "llm" if context or vocabulary else "transformer", layers.site, LOW, said)


def _by_layers(code: Code) -> Iterator[Finding]:
    """What a model is for shows in its layers."""
    for kind, layers in _TELLING.items():
        for call in code.calls:
            if call.last in layers:
                yield found(What.MODEL_CLASS, kind, call.site, LOW, f"has a layer {call.last}")
                break


def _number(code: Code, names: tuple[str, ...]) -> Known | None:
    for name in names:
        for known, _ in code.values_called(name):
            if known.number is not None and known.number >= 1:
                return known
    return None
