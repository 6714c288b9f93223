"""What a registered dataset is for a job: where it stands in its spec, what its node must bring, and where its objects
are. Pure."""

from collections.abc import Iterable, Set
from dataclasses import replace
from datetime import datetime, timedelta

from crucible.core.rules import STORAGE_HOMES
from crucible.model.dataset import SCHEME, Dataset, Pin, pin_of
from crucible.model.dataset_tree import Tree
from crucible.model.ids import Digest
from crucible.model.launch import DatasetWork
from crucible.model.spec import Data, JobSpec
from crucible.model.storage import parse
from crucible.model.units import GIB

FOLDER = "datasets"
OBJECTS = "objects/"
MANIFESTS = "manifests/"
# An object that nobody registered for so long belongs to an upload that was given up.
ABANDONED_AFTER = timedelta(days=7)


def object_key(name: str) -> str:
    return f"{OBJECTS}{name}"


def manifest_key(digest: Digest) -> str:
    return f"{MANIFESTS}{digest}"


def is_registered(address: str | None) -> bool:
    return address is not None and address.startswith(SCHEME)


def pinned(dataset: Dataset, name: str) -> Pin:
    return Pin(name=name, digest=dataset.digest, size_bytes=dataset.size_bytes, home=home_of(dataset))


def home_of(dataset: Dataset) -> str:
    """The "provider/region" of its storage; without a region where nobody said it."""
    if dataset.region is not None:
        return dataset.region
    provider = STORAGE_HOMES[parse(dataset.uri).scheme]
    return "local/local" if provider == "local" else f"{provider}/"


def with_pin(spec: JobSpec, uri: str | None) -> JobSpec:
    """The spec with what is known of its dataset. What its user says of size and region holds."""
    pin = pin_of(uri)
    return spec if pin is None else replace(spec, data=_data(spec.data, pin))


def _data(data: Data, pin: Pin) -> Data:
    provider = pin.home.partition("/")[0]
    return replace(
        data,
        dataset=pin.address,
        size_gib=pin.size_bytes / GIB if data.size_gib is None else data.size_gib,
        region=pin.home if data.region is None else f"{provider}/{data.region}",
    )


def work_of(spec: JobSpec) -> DatasetWork | None:
    """What must be on the node before its ranks start."""
    address = spec.data.dataset
    if address is None or not is_registered(address):
        return None
    name, _, digest = address.removeprefix(SCHEME).partition("@")
    return DatasetWork(name=name, digest=Digest(digest))


def names_of(trees: Iterable[Tree]) -> frozenset[str]:
    """Of all objects that these trees need."""
    return frozenset(one.name for tree in trees for one in tree.objects)


def is_waste(name: str, modified_at: datetime, gone: Set[str], kept: Set[str], now: datetime) -> bool:
    """Whether an object may go: of what was just removed at once, of what nobody ever registered after a while."""
    return name not in kept and (name in gone or now - modified_at > ABANDONED_AFTER)
