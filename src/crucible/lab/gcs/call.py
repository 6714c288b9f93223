"""One request on its way through: what it is about, and what may be used to answer it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from crucible.lab.gcs.buckets import Bucket, Buckets, check_key
from crucible.lab.gcs.errors import GcsError, beyond_the_lab, invalid
from crucible.lab.gcs.spool import Spool
from crucible.lab.gcs.uploads import Uploads
from crucible.lab.http import Request, Response

# Of a request that makes an object, these change what others are answered: the Lab would forget them.
_REMEMBERED = frozenset(["cache-control", "content-disposition", "content-encoding", "content-language"])


@dataclass(frozen=True, slots=True)
class Store:
    folder: Path
    buckets: Buckets
    uploads: Uploads


@dataclass(frozen=True, slots=True)
class Target:
    bucket: str
    key: str  # "" for the bucket itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    request: Request
    target: Target
    fields: Mapping[str, str]  # of the query, without those of a signature
    store: Store
    body: Spool | None = None

    @property
    def bucket(self) -> Bucket:
        """Raises GcsError."""
        return self.store.buckets.find(self.target.bucket)

    @property
    def headers(self) -> Mapping[str, str]:
        return self.request.headers

    @property
    def sent(self) -> Spool:
        assert self.body is not None, "an operation that has a body says so"
        return self.body


Handler = Callable[[Call], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    name: str
    method: str
    handler: Handler
    is_of_object: bool = True
    needs: frozenset[str] = frozenset()  # in the query: they tell it from others of its method
    takes: frozenset[str] = frozenset()  # in the query, if they are there
    honours: frozenset[str] = frozenset()  # headers that change what it does
    has_body: bool = False

    def check(self, call: Call) -> None:
        """Raises GcsError for what a client may rely on and the Lab would not honour."""
        for name in call.fields.keys() - self.needs - self.takes:
            beyond_the_lab(f"{name} of {self.name}")
        makes_object = self.method in ("PUT", "POST")
        for name in call.headers.keys() - self.honours:
            if name.startswith(("x-goog-", "if-")) or (makes_object and name in _REMEMBERED):
                beyond_the_lab(f"the header {name} of {self.name}")


def target_of(raw_path: str) -> Target:
    """Of what is behind the prefix. A key may have encoded slashes, or plain ones. Raises GcsError."""
    bucket, _, key = raw_path.partition("/")
    try:
        target = Target(unquote(bucket, errors="strict"), unquote(key, errors="strict"))
    except UnicodeDecodeError:
        raise GcsError("InvalidURI", "Couldn't parse the specified URI: it is not UTF-8.") from None
    if not target.bucket:
        beyond_the_lab("requests without a bucket")
    if target.key:
        check_key(target.key)
    return target


def fields_of(query: str) -> dict[str, str]:
    """Raises GcsError."""
    pairs = [pair for pair in parse_qsl(query, keep_blank_values=True) if not pair[0].startswith("X-Goog-")]
    if len(dict(pairs)) != len(pairs):
        invalid("A parameter is given twice.")
    return dict(pairs)
