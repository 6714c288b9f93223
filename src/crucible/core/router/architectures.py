"""Models by name: how many parameters they have, as their authors state it, and of what kind they are. A name that is
not listed may still state its size (`pythia-1.4b`)."""

import re
from dataclasses import dataclass

from crucible.model.spec import ModelClass

_LLM, _ENCODER, _VISION = ModelClass.LLM, ModelClass.TRANSFORMER, ModelClass.VISION
_DETECTION, _DIFFUSION, _SPEECH = ModelClass.DETECTION, ModelClass.DIFFUSION, ModelClass.SPEECH

# Millions of parameters. Names are in the form of `plain`.
_MILLIONS: dict[ModelClass, dict[str, float]] = {
    _LLM: {
        "gpt2": 124.4, "gpt2-medium": 354.8, "gpt2-large": 774.0, "gpt2-xl": 1557.6, "distilgpt2": 81.9,
        "gpt-neo-125m": 125.2, "gpt-j-6b": 6050.9, "gpt-neox-20b": 20554.6,
        "phi-1": 1418.3, "phi-1-5": 1418.3, "phi-2": 2779.7, "phi-3-mini": 3821.1, "phi-3-mini-4k-instruct": 3821.1,
        "llama-2-7b": 6738.4, "llama-2-13b": 13015.9, "llama-2-70b": 68976.6, "meta-llama-3-8b": 8030.3,
        "llama-3-8b": 8030.3, "llama-3-70b": 70553.7, "tinyllama-1-1b": 1100.0,
        "mistral-7b": 7241.7, "mixtral-8x7b": 46702.8, "mixtral-8x22b": 140620.6,
        "gemma-2b": 2506.2, "gemma-7b": 8537.7, "falcon-7b": 7217.2, "falcon-40b": 41303.3, "bloom": 176247.3,
    },
    _ENCODER: {
        "bert-base-uncased": 109.5, "bert-base-cased": 108.3, "bert-large-uncased": 335.1, "bert-large-cased": 333.6,
        "distilbert-base-uncased": 66.4, "roberta-base": 124.6, "roberta-large": 355.4, "albert-base-v2": 11.7,
        "electra-small-discriminator": 13.5, "electra-base-discriminator": 108.9, "deberta-v3-base": 184.0,
        "deberta-v3-large": 435.1, "xlm-roberta-base": 278.0, "xlm-roberta-large": 559.9,
        "t5-small": 60.5, "t5-base": 222.9, "t5-large": 737.7, "flan-t5-small": 77.0, "flan-t5-base": 247.6,
        "flan-t5-large": 783.2, "flan-t5-xl": 2849.8, "flan-t5-xxl": 11135.3, "bart-base": 139.4, "bart-large": 406.3,
        "all-minilm-l6-v2": 22.7, "all-mpnet-base-v2": 109.5, "bge-small-en-v1-5": 33.4, "bge-base-en-v1-5": 109.5,
    },
    _VISION: {
        "resnet18": 11.69, "resnet34": 21.80, "resnet50": 25.56, "resnet101": 44.55, "resnet152": 60.19,
        "resnet50v2": 25.61, "resnet-50": 25.56, "wide-resnet50-2": 68.88, "resnext50-32x4d": 25.03,
        "resnext101-32x8d": 88.79, "vgg11": 132.86, "vgg16": 138.36, "vgg19": 143.67, "alexnet": 61.10,
        "densenet121": 7.98, "densenet169": 14.15, "densenet201": 20.01, "mobilenet-v2": 3.50, "mobilenetv2": 3.50,
        "mobilenet-v3-small": 2.54, "mobilenet-v3-large": 5.48, "squeezenet1-0": 1.25, "googlenet": 6.62,
        "inception-v3": 27.16, "inceptionv3": 23.85, "xception": 22.91, "efficientnet-b0": 5.29,
        "efficientnetb0": 5.33, "efficientnet-b3": 12.23, "efficientnet-b7": 66.35, "convnext-tiny": 28.59,
        "convnext-base": 88.59, "convnext-large": 197.77, "regnet-y-400mf": 4.34, "vit-b-16": 86.57, "vit-l-16": 304.33,
        "vit-base-patch16-224": 86.57, "vit-large-patch16-224": 304.33, "vit-small-patch16-224": 22.05,
        "deit-small-patch16-224": 22.05, "deit-base-patch16-224": 86.57, "swin-t": 28.29, "swin-b": 87.77,
        "swin-tiny-patch4-window7-224": 28.29, "clip-vit-base-patch32": 151.28, "clip-vit-large-patch14": 427.62,
    },
    _DETECTION: {
        "fasterrcnn-resnet50-fpn": 41.76, "maskrcnn-resnet50-fpn": 44.40, "retinanet-resnet50-fpn": 34.01,
        "ssd300-vgg16": 35.64, "detr-resnet-50": 41.50, "yolov8n": 3.2, "yolov8s": 11.2, "yolov8m": 25.9,
        "yolov8l": 43.7, "yolov8x": 68.2, "yolov5s": 7.2, "yolov5m": 21.2, "yolov5l": 46.5, "yolov5x": 86.7,
        "deeplabv3-resnet50": 42.00, "fcn-resnet50": 35.32,
    },
    _DIFFUSION: {
        "stable-diffusion-v1-4": 1066.0, "stable-diffusion-v1-5": 1066.0, "stable-diffusion-2-1": 1290.0,
        "stable-diffusion-xl-base-1-0": 3470.0,
    },
    _SPEECH: {
        "whisper-tiny": 37.8, "whisper-base": 72.6, "whisper-small": 241.7, "whisper-medium": 763.9,
        "whisper-large": 1543.3, "whisper-large-v2": 1543.3, "whisper-large-v3": 1543.5,
        "wav2vec2-base": 95.0, "wav2vec2-large-960h": 317.0, "hubert-base-ls960": 94.7,
    },
}  # fmt: skip

# Where the name alone tells the kind.
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
_VERSIONS = ("-hf", "-v0-1", "-v0-2", "-v0-3", "-v1-0", "-instruct", "-chat", "-it", "-base", "-pt")


@dataclass(frozen=True, slots=True)
class Architecture:
    name: str
    parameters: float | None
    model_class: ModelClass | None
    is_listed: bool  # else its name states its size


_LISTED = {
    name: Architecture(name, millions * 1e6, kind, True)
    for kind, rows in _MILLIONS.items()
    for name, millions in rows.items()
}


def architecture(name: str) -> Architecture:
    """What `name` (a constructor, a hub id, a file of weights) says about a model."""
    short = plain(name)
    candidates = [short]
    for ending in _VERSIONS:  # llama-2-7b-chat-hf is llama-2-7b
        candidates += [c.removesuffix(ending) for c in candidates if c.endswith(ending)]
    for candidate in candidates:
        if candidate in _LISTED:
            return _LISTED[candidate]
    return Architecture(short, _stated_size(name), model_class(name), False)


def plain(name: str) -> str:
    """Without owner, file ending and the spelling of separators."""
    last = name.rstrip("/").rpartition("/")[2].lower()
    for ending in (".pt", ".pth", ".yaml", ".onnx", ".safetensors", ".gguf"):
        last = last.removesuffix(ending)
    return re.sub(r"[_.\s]+", "-", last)


def model_class(name: str) -> ModelClass | None:
    lowered = name.lower()
    return next((kind for pattern, kind in _KINDS if re.search(pattern, lowered)), None)


def _stated_size(name: str) -> float | None:
    found = _SIZED.search(name.lower().rpartition("/")[2])
    if found is None:
        return None
    experts, amount, unit = found.groups()
    return float(amount) * int(experts or 1) * (1e9 if unit == "b" else 1e6)
