"""What the API answers about datasets, as types over plain JSON."""

from typing import TypedDict


class Dataset(TypedDict):
    name: str  # NAME@DIGEST: what the name meant before it was given to another tree
    digest: str
    uri: str
    region: str | None
    size_bytes: int
    files: int
    user: str
    created_at: str


class DatasetCopy(TypedDict):
    place: str
    uri: str
    size_bytes: int
    created_at: str


class DatasetView(Dataset):
    copies: list[DatasetCopy]
    jobs: list[str]  # that need it now


class SignedPut(TypedDict):
    """A secret until it expires."""

    name: str
    url: str
    headers: dict[str, str]


class Upload(TypedDict):
    missing: list[SignedPut]
    manifest: SignedPut | None
    lives_s: float
