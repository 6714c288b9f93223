"""Which hosts this server may ask for objects. A user names places in a spec, and the server asks there with its own
credentials from inside its own network: other than the clouds themselves, the operator says where."""

import ipaddress
from collections.abc import Iterable
from urllib.parse import SplitResult, urlsplit

from crucible.model.errors import InvalidRequest, StorageRefused

Origin = tuple[str, str, int]  # scheme, host, port

_PORTS = {"http": 80, "https": 443}


class Endpoints:
    def __init__(self, listed: Iterable[str]) -> None:
        """Raises InvalidRequest."""
        self._listed = frozenset(_origin(url) for url in listed)

    def check(self, url: str) -> None:
        """An endpoint that the environment names. Raises StorageRefused."""
        origin = _origin(url)
        if origin in self._listed:
            return
        if origin[0] == "http":
            raise _refused(origin, "is plain http")
        if _is_inside(origin[1]):
            raise _refused(origin, "is on this machine or in a private network")

    def knows(self, host: str) -> bool:
        return self._of_host(host) is not None

    def of_host(self, host: str) -> str:
        """Where minio://host:port is. Raises StorageRefused."""
        origin = self._of_host(host)
        if origin is not None:
            return _written(origin)
        raise _refused(_origin(f"{guessed_scheme(host)}://{host}"), "is no place that the operator listed")

    def _of_host(self, host: str) -> Origin | None:
        origins = (_origin(f"{scheme}://{host}") for scheme in ("https", "http"))
        return next((origin for origin in origins if origin in self._listed), None)


def guessed_scheme(host: str) -> str:
    """MinIO on this machine or in a private network seldom has a certificate."""
    return "http" if _is_inside(urlsplit(f"//{host}").hostname or "") else "https"


def _origin(url: str) -> Origin:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidRequest(f"{url} is no endpoint; write https://host:port") from None
    if parts.scheme not in _PORTS or not parts.hostname or _has_more(parts):
        raise InvalidRequest(f"{parts.scheme}://{parts.hostname} is no endpoint; write https://host:port")
    return parts.scheme, parts.hostname, port or _PORTS[parts.scheme]


def _has_more(parts: SplitResult) -> bool:
    """Names, passwords and queries do not belong into an endpoint; Azure's emulator has its account in the path."""
    return bool(parts.username or parts.password or parts.query or parts.fragment)


def _is_inside(host: str) -> bool:
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _written(origin: Origin) -> str:
    scheme, host, port = origin
    name = f"[{host}]" if ":" in host else host
    return f"{scheme}://{name}" if port == _PORTS[scheme] else f"{scheme}://{name}:{port}"


def _refused(origin: Origin, reason: str) -> StorageRefused:
    where = _written(origin)
    return StorageRefused(
        f"the endpoint {where} {reason}; start the server with --storage-endpoint {where} to allow it", endpoint=where
    )
