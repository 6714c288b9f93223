"""Where objects are kept: s3://bucket/prefix, gs://…, az://container/prefix, minio://host[:port]/bucket/prefix, and
file:///folder. The form only; nothing here looks at a disk or a network."""

import re
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote, unquote

from crucible.model.errors import InvalidRequest

# A machine writes a checkpoint as objects of at most this size: each is sent with one signed request.
PIECE_BYTES = 64 << 20

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?\Z")


class Scheme(StrEnum):
    S3 = "s3"
    GS = "gs"
    AZ = "az"
    MINIO = "minio"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Address:
    scheme: Scheme
    host: str  # of minio; "" elsewhere
    bucket: str  # "" for file
    prefix: str  # without slashes at its ends; for file the absolute folder

    @property
    def uri(self) -> str:
        if self.scheme is Scheme.FILE:
            return f"file://{quote(self.prefix)}"
        place = "/".join(part for part in (self.host, self.bucket, self.prefix) if part)
        return f"{self.scheme}://{place}"

    def below(self, key: str) -> "Address":
        joined = f"{self.prefix.rstrip('/')}/{key}" if self.prefix else key
        return Address(self.scheme, self.host, self.bucket, joined.rstrip("/"))


def is_object_storage(place: str) -> bool:
    """Whether only requests reach it, as opposed to a folder that a machine may have mounted."""
    return "://" in place and not place.startswith("file://")


def parse(uri: str) -> Address:
    """Raises InvalidRequest."""
    scheme, _, rest = uri.partition("://")
    if scheme == Scheme.FILE:
        return Address(Scheme.FILE, "", "", _folder(uri, rest))
    if scheme not in set(Scheme):
        raise _bad(uri, "write s3://, gs://, az://, minio:// or file:///")
    host = ""
    if scheme == Scheme.MINIO:
        host, _, rest = rest.partition("/")
        if not _HOST.match(host):
            raise _bad(uri, "write minio://host:port/bucket/prefix")
    bucket, _, prefix = rest.partition("/")
    if not _BUCKET.match(bucket):
        raise _bad(uri, "name a bucket after ://")
    if ".." in prefix.split("/"):
        raise _bad(uri, "a prefix has no ..")
    return Address(Scheme(scheme), host, bucket, prefix.strip("/"))


def _folder(uri: str, rest: str) -> str:
    path = unquote(rest)
    if not path.startswith("/") or ".." in path.split("/"):
        raise _bad(uri, "write file:///absolute/folder")
    return path.rstrip("/") or "/"


def _bad(uri: str, hint: str) -> InvalidRequest:
    return InvalidRequest(f"{uri} is not a place for objects; {hint}")
