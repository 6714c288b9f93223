"""Short questions to the identity provider over HTTP: one answer as JSON, bounded in size and time. The operator names
the provider; addresses that it names in turn must be on hosts that are as safe to ask."""

import http.client
import ipaddress
import json
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from crucible.model.errors import InvalidRequest, Unreachable

TIMEOUT_S = 10.0
MAX_ANSWER_BYTES = 1 << 20


def check_address(url: str) -> None:
    """https anywhere, http only on this computer: a token must not be read on its way."""
    wrong = InvalidRequest(f"{url} is no address of an identity provider; write https://host/path")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise wrong from None
    if not host or port == 0 or parts.scheme not in ("https", "http") or parts.username is not None:
        raise wrong
    if parts.scheme == "http" and not is_loopback(host):
        raise InvalidRequest(f"{url} would send secrets unencrypted; an identity provider is reached by https://")


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def asked(
    method: str, url: str, *, body: str | None = None, headers: Mapping[str, str] | None = None
) -> tuple[int, Mapping[str, Any]]:
    """The status and the JSON object of its answer; redirects are not followed. Blocks: call it in a thread."""
    check_address(url)
    parts = urlsplit(url)
    connection = _connection(parts.scheme, parts.hostname or "", parts.port)
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request(method, path, body, {"Accept": "application/json", **(headers or {})})
        answer = connection.getresponse()
        content = answer.read(MAX_ANSWER_BYTES + 1)
        status = answer.status
    except (OSError, http.client.HTTPException) as error:
        raise Unreachable(f"the identity provider at {parts.netloc} does not answer: {error}") from error
    finally:
        connection.close()
    return status, _object(content, parts.netloc)


def _connection(scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
    if scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=ssl.create_default_context())
    return http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)


def _object(content: bytes, place: str) -> Mapping[str, Any]:
    if len(content) > MAX_ANSWER_BYTES:
        raise Unreachable(f"the answer of the identity provider at {place} is too long")
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unreachable(f"what answers at {place} is no identity provider: it does not speak JSON")
    return found
