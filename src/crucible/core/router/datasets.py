"""Well-known datasets: what must be downloaded, in GB, as their homes state it."""

# By the name in code, lower case, without owner.
SIZES_GB: dict[str, float] = {
    "mnist": 0.012, "fashionmnist": 0.031, "fashion_mnist": 0.031, "kmnist": 0.021, "emnist": 0.56,
    "cifar10": 0.17, "cifar100": 0.17, "svhn": 0.44, "stl10": 2.6, "celeba": 1.4, "food101": 5.0,
    "imagenet": 150.0, "imagenet-1k": 150.0, "imagenet2012": 150.0, "ilsvrc2012": 150.0, "tiny-imagenet": 0.25,
    "coco": 25.0, "cocodetection": 25.0, "voc2012": 2.0, "cityscapes": 11.0, "lsun": 43.0,
    "openwebtext": 13.5, "c4": 305.0, "the_pile": 825.0, "pile": 825.0, "wikitext": 0.19, "wikipedia": 20.0,
    "imdb": 0.084, "squad": 0.035, "squad_v2": 0.045, "glue": 1.0, "ag_news": 0.03, "yelp_review_full": 0.2,
    "alpaca": 0.024, "dolly": 0.013, "databricks-dolly-15k": 0.013, "gsm8k": 0.005, "samsum": 0.003,
    "cnn_dailymail": 0.59, "xsum": 0.26, "librispeech": 60.0, "librispeech_asr": 60.0, "common_voice": 76.0,
    "speechcommands": 2.3, "ljspeech": 2.6, "shakespeare": 0.001, "enwik8": 0.036,
}  # fmt: skip


def size_gb(name: str) -> float | None:
    lowered = name.lower().rstrip("/")
    return SIZES_GB.get(lowered, SIZES_GB.get(lowered.rpartition("/")[2]))
