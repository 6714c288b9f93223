"""Tiny's HTTP, one call at a time, and its errors in our words: each is named after what the caller does next. Nothing
is retried here, and a purchase that may have been carried out is never called refused."""

import http.client
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from crucible.model.errors import (
    CredentialsRejected,
    NoCapacity,
    OrderRejected,
    OutcomeUnknown,
    ProviderError,
    QuotaReached,
    RateLimited,
    Scope,
)

PROVIDER = "tiny"
TIMEOUT_S = 10.0
RETRY_AFTER_S = 2.0


class NotThere(ProviderError):
    """No such thing; for a delete that is success."""


class Wire:
    def __init__(self, url: str, key: str, region: str) -> None:
        self._url = urlsplit(url)
        self._key = key
        self._region = region

    def ask(self, method: str, path: str, body: Any = None, *, is_purchase: bool = False) -> Any:
        """The JSON of a success. Raises ProviderError's children only."""
        try:
            status, headers, said = self._send(method, path, body)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._lost(f"{type(error).__name__}: {error}", is_purchase) from error
        if status < 300:
            return said
        raise self._refusal(status, headers, said if isinstance(said, dict) else {}, is_purchase)

    def _send(self, method: str, path: str, body: Any) -> tuple[int, Mapping[str, str], Any]:
        kind = http.client.HTTPSConnection if self._url.scheme == "https" else http.client.HTTPConnection
        connection = kind(self._url.hostname or "", self._url.port, timeout=TIMEOUT_S)
        try:
            headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
            text = None if body is None else json.dumps(body)
            connection.request(method, f"/{self._region}{path}", text, headers)
            answer = connection.getresponse()
            said = answer.read()
            return answer.status, dict(answer.headers), json.loads(said) if said else {}
        finally:
            connection.close()

    def _refusal(self, status: int, headers: Mapping[str, str], said: Mapping[str, Any], bought: bool) -> ProviderError:
        message = f"Tiny {self._region}: HTTP {status} {said.get('message', '')}".strip()
        where = {"provider": PROVIDER, "region": self._region}
        match status, said.get("code"):
            case 401 | 403, _:
                return CredentialsRejected(message, **where)
            case 404, _:
                return NotThere(message, **where)
            case 409, "quota":
                return QuotaReached(message, scope=Scope.REGION, **where)
            case 409, _:
                return NoCapacity(message, scope=Scope.ZONE, **where)
            case 429, _:
                return RateLimited(message, retry_after_s=float(headers.get("Retry-After", RETRY_AFTER_S)), **where)
            case status, _ if status >= 500:
                return self._lost(message, bought)
            case _:
                return OrderRejected(message, **where) if bought else ProviderError(message, **where)

    def _lost(self, message: str, is_purchase: bool) -> ProviderError:
        """Nobody knows whether it was done. A purchase must be looked for before anything else."""
        kind = OutcomeUnknown if is_purchase else ProviderError
        return kind(message, provider=PROVIDER, region=self._region)
