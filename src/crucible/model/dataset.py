"""Datasets: trees of files, named by their content. A name points to a tree; a tree never changes."""

import re
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import parse_qs, urlencode

from crucible.model.ids import Digest, UserId

SCHEME = "dataset://"  # data.dataset: dataset://NAME or dataset://NAME@DIGEST
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
PLACE = r"[a-z0-9][a-z0-9-]{0,63}/[A-Za-z0-9][A-Za-z0-9-]{0,63}"  # provider/region
_PINNED = re.compile(rf"dataset://({NAME})@([0-9a-f]{{64}})\?(.*)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    name: str
    digest: Digest  # of the tree: sha256 of its manifest
    uri: str  # where its objects are: its home
    region: str | None  # "provider/region" of its home, where that is known
    size_bytes: int
    files: int
    user_id: UserId
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetCopy:
    """A tree in the storage of a region. Written when it is whole."""

    digest: Digest
    place: str  # "provider/region"
    uri: str
    size_bytes: int
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """The tree that a job was given when it was submitted: what a name comes to mean later changes nothing for it. It
    is the job's `dataset_uri`, with all that its plan needs to know of the tree."""

    name: str
    digest: Digest
    size_bytes: int
    home: str  # "provider/region", or "provider/" where nobody said which region

    @property
    def address(self) -> str:
        """As a spec may write it."""
        return f"{SCHEME}{self.name}@{self.digest}"

    @property
    def uri(self) -> str:
        return f"{self.address}?{urlencode({'size': self.size_bytes, 'home': self.home})}"


def pin_of(uri: str | None) -> Pin | None:
    """None: the job reads no registered dataset."""
    found = _PINNED.match(uri or "")
    if found is None:
        return None
    said = parse_qs(found[3], keep_blank_values=True)
    return Pin(name=found[1], digest=Digest(found[2]), size_bytes=int(said["size"][0]), home=said["home"][0])


def named_in(address: str) -> tuple[str, Digest | None]:
    """The name, and the tree if it is said, of dataset://NAME[@DIGEST]."""
    name, _, digest = address.removeprefix(SCHEME).partition("@")
    return name, Digest(digest) if digest else None


def version_name(name: str, digest: Digest) -> str:
    """Under which a tree stays when its name was given to another one."""
    return f"{name}@{digest}"
