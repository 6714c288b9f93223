"""Which hosts this server may ask for objects. A user names places in a spec, and the server asks there with its own
credentials from inside its own network: other than the clouds themselves, the operator says where."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from crucible.endpoints import Origin, is_inside, origin_of
from crucible.model.errors import StorageRefused


class Endpoints:
    def __init__(self, listed: Iterable[str]) -> None:
        """Raises InvalidRequest."""
        self._listed = frozenset(origin_of(url) for url in listed)

    def check(self, url: str) -> None:
        """An endpoint that the environment names. Raises StorageRefused."""
        origin = origin_of(url)
        if origin in self._listed:
            return
        if origin.scheme == "http":
            raise _refused(origin, "is plain http")
        if is_inside(origin.host):
            raise _refused(origin, "is on this machine or in a private network")

    def knows(self, host: str) -> bool:
        return self._of_host(host) is not None

    def of_host(self, host: str) -> str:
        """Where minio://host:port is. Raises StorageRefused."""
        origin = self._of_host(host)
        if origin is not None:
            return str(origin)
        raise _refused(origin_of(f"{guessed_scheme(host)}://{host}"), "is no place that the operator listed")

    def _of_host(self, host: str) -> Origin | None:
        origins = (origin_of(f"{scheme}://{host}") for scheme in ("https", "http"))
        return next((origin for origin in origins if origin in self._listed), None)


def guessed_scheme(host: str) -> str:
    """MinIO on this machine or in a private network seldom has a certificate."""
    return "http" if is_inside(urlsplit(f"//{host}").hostname or "") else "https"


def _refused(origin: Origin, reason: str) -> StorageRefused:
    return StorageRefused(
        f"the endpoint {origin} {reason}; start the server with --storage-endpoint {origin} to allow it",
        endpoint=str(origin),
    )
