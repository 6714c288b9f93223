"""Well-known datasets, as their homes describe them: what must be downloaded, and what one epoch of training sees."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dataset:
    size_gb: float
    samples: int | None = None  # of the training part; None for texts, which are cut as one likes


# By the name in code, lower case, without owner.
KNOWN: dict[str, Dataset] = {
    "mnist": Dataset(0.012, 60_000),
    "fashionmnist": Dataset(0.031, 60_000),
    "fashion_mnist": Dataset(0.031, 60_000),
    "kmnist": Dataset(0.021, 60_000),
    "cifar10": Dataset(0.17, 50_000),
    "cifar100": Dataset(0.17, 50_000),
    "svhn": Dataset(0.44, 73_257),
    "stl10": Dataset(2.6, 5_000),
    "celeba": Dataset(1.4, 162_770),
    "food101": Dataset(5.0, 75_750),
    "imagenet": Dataset(150.0, 1_281_167),
    "imagenet-1k": Dataset(150.0, 1_281_167),
    "imagenet1k": Dataset(150.0, 1_281_167),
    "imagenet2012": Dataset(150.0, 1_281_167),
    "ilsvrc2012": Dataset(150.0, 1_281_167),
    "tiny-imagenet": Dataset(0.25, 100_000),
    "coco": Dataset(25.0, 118_287),
    "cocodetection": Dataset(25.0, 118_287),
    "cityscapes": Dataset(11.0, 2_975),
    "imdb": Dataset(0.084, 25_000),
    "squad": Dataset(0.035, 87_599),
    "squad_v2": Dataset(0.045, 130_319),
    "ag_news": Dataset(0.03, 120_000),
    "yelp_review_full": Dataset(0.2, 650_000),
    "alpaca": Dataset(0.024, 52_002),
    "databricks-dolly-15k": Dataset(0.013, 15_011),
    "gsm8k": Dataset(0.005, 7_473),
    "samsum": Dataset(0.003, 14_732),
    "cnn_dailymail": Dataset(0.59, 287_113),
    "xsum": Dataset(0.26, 204_045),
    "librispeech": Dataset(60.0, 281_241),
    "librispeech_asr": Dataset(60.0, 281_241),
    "speechcommands": Dataset(2.3, 84_843),
    "ljspeech": Dataset(2.6, 13_100),
    "openwebtext": Dataset(13.5),
    "c4": Dataset(305.0),
    "the_pile": Dataset(825.0),
    "wikitext": Dataset(0.19),
    "wikipedia": Dataset(20.0),
    "enwik8": Dataset(0.036),
}


def known_dataset(name: str) -> Dataset | None:
    lowered = name.lower().rstrip("/")
    return KNOWN.get(lowered, KNOWN.get(lowered.rpartition("/")[2]))
