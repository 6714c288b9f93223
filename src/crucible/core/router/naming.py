"""What the name of a model says: its size and kind, from the list of architectures or from the name itself."""

import re
from dataclasses import dataclass

from crucible.core.architectures import Architectures
from crucible.model.spec import ModelClass

_LLM, _ENCODER, _VISION = ModelClass.LLM, ModelClass.TRANSFORMER, ModelClass.VISION
_DETECTION, _DIFFUSION, _SPEECH = ModelClass.DETECTION, ModelClass.DIFFUSION, ModelClass.SPEECH

# Where the name alone tells the kind. The order matters: a detector is often named after what sees for it.
_KINDS: tuple[tuple[str, ModelClass], ...] = (
    (r"stable-diffusion|sdxl|flux|unet2d|diffusion|ddpm", _DIFFUSION),
    (r"whisper|wav2vec|hubert|speech|conformer|tacotron", _SPEECH),
    (r"yolo|rcnn|retinanet|detr|ssd300|deeplab|mask2former|segformer", _DETECTION),
    (r"gpt|llama|mistral|mixtral|qwen|falcon|bloom|opt-|pythia|phi-|gemma|mpt|causallm|deepseek|olmo|smollm", _LLM),
    (r"bert|roberta|electra|t5|bart|deberta|minilm|mpnet|bge|e5-|transformer|marian|pegasus", _ENCODER),
    (r"resnet|vgg|vit|efficientnet|mobilenet|densenet|convnext|swin|inception|regnet|alexnet|cnn|deit|clip", _VISION),
    (r"dlrm|ncf|deepfm|wide_deep|twotower|recommend", ModelClass.RECOMMENDER),
)
_SIZED = re.compile(r"(?:^|[-_])(?:(\d{1,3})x)?(\d{1,4}(?:\.\d{1,3})?)(b|m)(?=$|[-_.])")
_WEIGHT_FILES = (".pt", ".pth", ".yaml", ".onnx", ".safetensors", ".gguf")
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Meaning:
    parameters: float | None
    model_class: ModelClass | None
    is_listed: bool  # else it is read from the name


def meaning(name: str, architectures: Architectures) -> Meaning:
    """Of a constructor, a hub id or a file of weights."""
    short = name[:_LONGEST].rstrip("/")
    for ending in _WEIGHT_FILES:
        short = short.removesuffix(ending)
    known = architectures.find(short)
    if known is not None:
        return Meaning(known.parameters, ModelClass(known.model_class), True)
    return Meaning(_stated_size(short), model_class(short), False)


def model_class(name: str) -> ModelClass | None:
    lowered = name.lower()
    return next((kind for pattern, kind in _KINDS if re.search(pattern, lowered)), None)


def _stated_size(name: str) -> float | None:
    """`pythia-1.4b`, `Mixtral-8x7B`."""
    found = _SIZED.search(name.lower().rpartition("/")[2])
    if found is None:
        return None
    experts, amount, unit = found.groups()
    return float(amount) * int(experts or 1) * (1e9 if unit == "b" else 1e6)
