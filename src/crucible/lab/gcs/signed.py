"""Signed addresses, the checking side: version 4 with RSA, in the query (GOOG4-RSA-SHA256). It knows no accounts:
whoever calls it has the public key."""

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Never
from urllib.parse import parse_qsl, quote

from crucible.lab.gcs.errors import GcsError
from crucible.lab.gcs.rsa import PublicKey
from crucible.lab.http import Request

ALGORITHM = "GOOG4-RSA-SHA256"
LONGEST_S = 7 * 24 * 3600  # that a signed address may be good for
SKEW_S = 900  # how far Google lets a client's clock be ahead
# Clients of the object_store family sign this host wherever they are told to go: the Lab answers to it too.
GOOGLE = "storage.googleapis.com"
FIELDS = ("Algorithm", "Credential", "Date", "Expires", "SignedHeaders", "Signature")
_STAMP = re.compile(r"\d{8}T\d{6}Z", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What an address says about who signed it, and when. Nothing of it is proven yet."""

    email: str
    scope: str
    stamp: str
    signed_at: float
    expires_s: int
    headers: tuple[str, ...]
    signature: bytes


def claim_of(request: Request) -> Claim | None:
    """None if the address is not signed. Raises GcsError if there is no claim that could be checked."""
    fields = dict(_pairs(request.query))
    if not any(name.lower().startswith("x-goog-") for name in fields):
        return None
    algorithm, credential, stamp, expires, headers, signature = (_field(fields, name) for name in FIELDS)
    if algorithm != ALGORITHM:
        _malformed("X-Goog-Algorithm", f"must be {ALGORITHM}")
    if not _NUMBER.fullmatch(expires) or not 1 <= int(expires) <= LONGEST_S:
        _malformed("X-Goog-Expires", f"must be between 1 and {LONGEST_S} seconds")
    if not _HEX.fullmatch(signature):
        _malformed("X-Goog-Signature", "must be written in hexadecimal")
    email, scope = _scoped(credential, stamp)
    return Claim(
        email=email,
        scope=scope,
        stamp=stamp,
        signed_at=_moment(stamp),
        expires_s=int(expires),
        headers=tuple(headers.split(";")),
        signature=bytes.fromhex(signature),
    )


def verify(claim: Claim, request: Request, key: PublicKey, now: float) -> None:
    """Raises GcsError unless the owner of `key` signed exactly this request, for about now."""
    _timely(claim, now)
    _covers(claim, request)
    hosts = (request.headers.get("host", ""), GOOGLE)
    if not any(key.has_signed(_text(claim, request, host), claim.signature) for host in hosts):
        raise GcsError(
            "SignatureDoesNotMatch",
            "The request signature we calculated does not match the signature you provided. "
            "Check your Google secret key and signing method.",
            403,
        )


def _text(claim: Claim, request: Request, host: str) -> bytes:
    digest = hashlib.sha256(_canonical(claim, request, host).encode()).hexdigest()
    return f"{ALGORITHM}\n{claim.stamp}\n{claim.scope}\n{digest}".encode()


def _canonical(claim: Claim, request: Request, host: str) -> str:
    headers = {**request.headers, "host": host}
    query = sorted(
        (quote(name, safe="-_.~"), quote(value, safe="-_.~"))
        for name, value in _pairs(request.query)
        if name != "X-Goog-Signature"
    )
    return "\n".join(
        [
            request.method,
            request.raw_path,
            "&".join(f"{name}={value}" for name, value in query),
            *(f"{name}:{' '.join(headers[name].split())}" for name in claim.headers),
            "",
            ";".join(claim.headers),
            "UNSIGNED-PAYLOAD",
        ]
    )


def _timely(claim: Claim, now: float) -> None:
    if now > claim.signed_at + claim.expires_s:
        ended = datetime.fromtimestamp(claim.signed_at + claim.expires_s, UTC)
        raise GcsError(
            "ExpiredToken", f"The provided token has expired. Request signature expired at: {ended.isoformat()}"
        )
    if claim.signed_at > now + SKEW_S:
        raise GcsError(
            "RequestTimeTooSkewed",
            f"The difference between the request time ({claim.stamp}) and the server's time is too large.",
            403,
        )


def _covers(claim: Claim, request: Request) -> None:
    """The signature is over the host and every header of Google's that the request carries."""
    must = {"host"} | {name for name in request.headers if name.startswith("x-goog-")}
    bare = sorted(must - set(claim.headers))
    if bare:
        _malformed("X-Goog-SignedHeaders", f"must have every header of the request that matters: {', '.join(bare)}")
    absent = sorted(set(claim.headers) - set(request.headers))
    if absent:
        _malformed("X-Goog-SignedHeaders", f"names headers that the request has not: {', '.join(absent)}")


def _scoped(credential: str, stamp: str) -> tuple[str, str]:
    email, _, scope = credential.partition("/")
    parts = scope.split("/")
    if not email or len(parts) != 4 or not parts[1] or parts[2:] != ["storage", "goog4_request"]:
        _malformed("X-Goog-Credential", "must be email/date/location/storage/goog4_request")
    if not stamp.startswith(parts[0]) or len(parts[0]) != 8:
        _malformed("X-Goog-Credential", "must have the day of X-Goog-Date")
    return email, scope


def _moment(stamp: str) -> float:
    try:
        if not _STAMP.fullmatch(stamp):
            raise ValueError(stamp)
        return datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        _malformed("X-Goog-Date", "must be written as 20260131T235959Z")


def _field(fields: dict[str, str], name: str) -> str:
    value = fields.get(f"X-Goog-{name}", "")
    if not value:
        _malformed(f"X-Goog-{name}", "is missing")
    return value


def _pairs(query: str) -> list[tuple[str, str]]:
    return parse_qsl(query, keep_blank_values=True)


def _malformed(field: str, why: str) -> Never:
    raise GcsError("MalformedSecurityHeader", f"Your request has a malformed header: {field} {why}.")
