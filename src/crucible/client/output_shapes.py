"""What the API answers about what tasks left behind, as types over plain JSON."""

from typing import TypedDict


class Output(TypedDict):
    task: int
    digest: str  # of the tree; an input of another job is tree://DIGEST
    size_bytes: int
    files: int
    created_at: str


class SignedGet(TypedDict):
    """A secret until it expires."""

    name: str
    size: int | None
    url: str
    headers: dict[str, str]


class OutputView(Output):
    manifest: SignedGet
    first: int
    objects: list[SignedGet]  # some of them, from number `first` on
    total: int
    lives_s: float


class GotOutput(TypedDict):
    task: int
    digest: str
    path: str
