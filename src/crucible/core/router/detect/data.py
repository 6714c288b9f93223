"""What it reads and writes: datasets by name or address, outputs, the internet, and hints that data is private."""

import re
from collections.abc import Iterator
from dataclasses import replace

from crucible.core.router.code import Code
from crucible.core.router.datasets import KNOWN, Dataset, known_dataset
from crucible.core.router.findings import Confidence, Finding, Value, What, found

HIGH, MEDIUM, LOW = Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW

_ADDRESS = re.compile(r"^(?:s3|gs|az|abfs|wasb|minio|hdfs)://\S+$")
_WEB = re.compile(r"^https?://([\w.-]+)\S*$")
_FILE = re.compile(r"^[\w./~-]+\.(?:csv|tsv|parquet|jsonl?|npy|npz|h5|hdf5|tfrecords?|bin|arrow|tar|zip|txt|zarr)$")
_DATA_NAMES = (
    "dataset", "dataset_name", "data", "data_dir", "data_path", "data_root", "dataset_path", "train_data", "train_file",
    "DATASET", "DATA_DIR", "DATA_PATH", "DATA_ROOT",
)  # fmt: skip
_READS = (
    "pandas.read_csv",
    "pandas.read_parquet",
    "pandas.read_json",
    "polars.read_csv",
    "polars.read_parquet",
    "polars.scan_parquet",
    "numpy.load",
    "numpy.memmap",
    "numpy.fromfile",
    "open",
)
_FOLDERS = ("torchvision.datasets.ImageFolder", ".ImageFolder", ".image_dataset_from_directory")
_WRITES = (
    ".to_csv",
    ".to_parquet",
    ".to_json",
    ".save_to_disk",
    "numpy.save",
    "numpy.savez",
    "torch.save",
    "joblib.dump",
    ".savefig",
    ".write_parquet",
)
_DOWNLOADS = (
    ".from_pretrained",
    "datasets.load_dataset",
    "torch.hub.load",
    "urllib.request.urlretrieve",
    "urllib.request.urlopen",
    "requests.get",
    "huggingface_hub.snapshot_download",
    "huggingface_hub.hf_hub_download",
    "wandb.init",
    "timm.create_model",
    "tensorflow_datasets.load",
)
_PRIVATE = re.compile(
    r"\b(?:phi|pii|hipaa|gdpr|patients?|medical[_ -]?records?|confidential|proprietary|internal[_ -]only"
    r"|social[_ -]security)\b",
    re.IGNORECASE,
)
_LINES_LOOKED_AT, _LINE_LENGTH = 20_000, 2_000


def datasets(code: Code) -> Iterator[Finding]:
    yield from _named_datasets(code)
    for text, site in code.texts:
        if _ADDRESS.match(text):
            yield found(What.DATASET, text, site, MEDIUM, "an address of object storage")
    yield from _read_files(code)
    for name in _DATA_NAMES:
        for known, why in code.values_called(name):
            if isinstance(known.value, str) and _is_place(known.value):
                yield found(What.DATASET, known.value, known.site, MEDIUM, why)


def _is_place(text: str) -> bool:
    """A path, an address, or a dataset that everybody knows."""
    return bool(text) and ("/" in text or known_dataset(text) is not None) and "\n" not in text and len(text) < 200


def _named_datasets(code: Code) -> Iterator[Finding]:
    for call in code.calls_of("datasets.load_dataset", "tensorflow_datasets.load"):
        known = code.constants.text(call.argument("path", 0), call.scope)
        if known:
            yield found(What.DATASET, known.value, known.site, known.confidence, f"argument of {call.last}")
    for call in code.calls:
        if call.name.startswith(("torchvision.datasets.", "torchaudio.datasets.", "torchtext.datasets.")):
            if call.name.endswith(_FOLDERS):
                continue
            yield found(What.DATASET, call.last.lower(), call.site, HIGH, f"calls {call.name}")
        elif call.last == "load_data" and ".datasets." in call.name:
            name = call.name.split(".")[-2]
            yield found(What.DATASET, name, call.site, HIGH, f"calls {call.name}")
        elif call.name.startswith("sklearn.datasets."):
            yield found(What.DATASET, call.last, call.site, HIGH, f"calls {call.name}")
    for call in code.calls_of(*_FOLDERS):
        known = code.constants.text(call.argument("root", 0), call.scope)
        if known:
            yield found(What.DATASET, known.value, known.site, known.confidence, f"folder of {call.last}")


def _read_files(code: Code) -> Iterator[Finding]:
    for call in code.calls_of(*_READS):
        mode = code.constants.text(call.argument("mode", 1), call.scope) if call.name == "open" else None
        if mode and str(mode.value)[:1] in "wax":
            continue
        known = code.constants.text(call.node.args[0] if call.node.args else None, call.scope)
        if known and _FILE.match(str(known.value)):
            yield found(What.DATASET, known.value, known.site, MEDIUM, f"read by {call.last}")


def dataset_sizes(code: Code) -> Iterator[Finding]:
    for finding, known in _known_datasets(code):
        yield _told_again(finding, What.DATASET_SIZE_GB, known.size_gb, f"the usual size of {finding.value}")


def samples(code: Code) -> Iterator[Finding]:
    for finding, known in _known_datasets(code):
        if known.samples is not None:
            yield _told_again(finding, What.SAMPLES, known.samples, f"the usual size of {finding.value}")


def _known_datasets(code: Code) -> Iterator[tuple[Finding, Dataset]]:
    for finding in datasets(code):
        known = known_dataset(str(finding.value)) or _in_path(str(finding.value))
        if known is not None:
            yield finding, known


def _told_again(finding: Finding, what: What, value: Value, why: str) -> Finding:
    confidence = max(finding.confidence, MEDIUM, key=lambda c: c.rank)
    return replace(finding, what=what, value=value, why=why, confidence=confidence)


def _in_path(path: str) -> Dataset | None:
    """A folder or bucket that carries a well-known name."""
    parts = re.split(r"[/:.]+", path.lower())
    return next((KNOWN[part] for part in parts if part in KNOWN), None)


def outputs(code: Code) -> Iterator[Finding]:
    for call in code.calls_of(*_WRITES):
        yield found(What.OUTPUT, call.last, call.site, HIGH, f"calls {call.name.lstrip('?.')}")
    for call in code.calls_of("open"):
        mode = code.constants.text(call.argument("mode", 1), call.scope)
        if mode and str(mode.value)[:1] in "wax":
            yield found(What.OUTPUT, "open", call.site, MEDIUM, "opens a file to write")


def internet(code: Code) -> Iterator[Finding]:
    for call in code.calls_of(*_DOWNLOADS):
        yield found(What.INTERNET, True, call.site, MEDIUM, f"{call.last} may download")
    for call in code.calls:
        known = code.constants.value(call.argument("download"), call.scope)
        if known and known.value is True:
            yield found(What.INTERNET, True, call.site, HIGH, "download=True")
    for text, site in code.texts:
        if _WEB.match(text) and "localhost" not in text and "127.0.0.1" not in text:
            yield found(What.INTERNET, True, site, LOW, "an address in the web")
            return


def privacy(code: Code) -> Iterator[Finding]:
    """Words in texts, comments and names; a hint, never a verdict."""
    told = 0
    for one in code.facts:
        for number, line in enumerate(one.unit.lines[:_LINES_LOOKED_AT], 1):
            match = _PRIVATE.search(line[:_LINE_LENGTH])
            if match:
                told += 1
                yield found(What.PRIVACY, match.group().lower(), one.unit.site(number), LOW, "a word for private data")
                if told == 3:
                    return
