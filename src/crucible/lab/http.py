"""A request and its answer, as every front end of the Lab sees them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import BinaryIO


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    path: str  # decoded
    raw_path: str  # as it was sent: signatures are over this
    query: str  # raw
    headers: Mapping[str, str]  # names in small letters
    body: bytes


@dataclass(frozen=True, slots=True)
class FilePart:
    """Bytes of a file from where it stands; whoever sends them closes it."""

    file: BinaryIO
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    file: FilePart | None = None  # instead of a body that would be too large to hold; the headers have its length
    is_cut: bool = False  # nothing is sent: the connection is closed, as if the answer was lost on its way
    after_s: float = 0.0  # sent so late (real seconds)

    def close(self) -> None:
        if self.file is not None:
            self.file.file.close()


class ClientLeft(Exception):
    """In the middle of its request."""
