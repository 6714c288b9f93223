"""Signature Version 4, the checking side: requests signed in their headers and requests signed in their address.
It shares no code with botocore, which does the signing. It knows no accounts: whoever calls it has the secret."""

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Never
from urllib.parse import quote, unquote

from crucible.lab.http import Request

ALGORITHM = "AWS4-HMAC-SHA256"
SKEW = timedelta(minutes=5)  # how far Amazon lets a client's clock be off
LONGEST = 7 * 24 * 3600  # seconds that a signed address may be good for
_STAMP = re.compile(r"\d{8}T\d{6}Z", re.ASCII)
_QUERY_FIELDS = ("Credential", "Date", "Expires", "SignedHeaders", "Signature")


class Denied(Enum):
    MISSING = "missing"
    MALFORMED = "malformed"
    UNKNOWN_KEY = "unknown key"
    MISMATCH = "mismatch"
    EXPIRED = "expired"
    WRONG_REGION = "wrong region"


class NotSigned(Exception):
    def __init__(self, reason: Denied, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a request says about who signed it, and when. Nothing of it is proven yet."""

    access_key: str
    date: str
    region: str
    service: str
    stamp: str
    headers: tuple[str, ...]
    signature: str
    expires_s: int | None = None  # signed in the address

    @property
    def scope(self) -> str:
        return f"{self.date}/{self.region}/{self.service}/aws4_request"

    @property
    def signed_at(self) -> datetime:
        return datetime.strptime(self.stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


def claim_of(request: Request) -> Claim:
    """Raises NotSigned if there is no claim that could be checked."""
    authorization = request.headers.get("authorization")
    if authorization is not None:
        return _in_headers(authorization, request.headers)
    fields = dict(_pairs(request.query))
    if "X-Amz-Algorithm" in fields:
        return _in_address(fields)
    raise NotSigned(Denied.MISSING, "Request is missing Authentication Token")


def verify(claim: Claim, request: Request, secret: str, now: datetime) -> None:
    """Raises NotSigned unless the holder of `secret` signed exactly this request, recently."""
    _timely(claim, now)
    _covers(claim, request)
    text = "\n".join([ALGORITHM, claim.stamp, claim.scope, _sha256(_canonical(claim, request).encode())])
    right = hmac.new(_key(claim, secret), text.encode(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(right.encode(), claim.signature.encode()):
        raise NotSigned(
            Denied.MISMATCH,
            "The request signature we calculated does not match the signature you provided. "
            "Check your AWS Secret Access Key and signing method. Consult the service documentation for details.",
        )


def _in_headers(authorization: str, headers: Mapping[str, str]) -> Claim:
    algorithm, _, rest = authorization.partition(" ")
    if algorithm != ALGORITHM:
        _malformed(f"Authorization header must use {ALGORITHM}.")
    parts = dict(part.strip().partition("=")[::2] for part in rest.split(","))
    for name in ("Credential", "SignedHeaders", "Signature"):
        if not parts.get(name):
            _malformed(f"Authorization header requires '{name}' parameter.")
    stamp = headers.get("x-amz-date")
    if stamp is None:
        _malformed("Authorization header requires existence of a 'X-Amz-Date' header.")
    return _claim(parts["Credential"], stamp, parts["SignedHeaders"], parts["Signature"], None)


def _in_address(fields: Mapping[str, str]) -> Claim:
    if fields["X-Amz-Algorithm"] != ALGORITHM:
        _malformed(f"X-Amz-Algorithm must be {ALGORITHM}.")
    for name in _QUERY_FIELDS:
        if not fields.get(f"X-Amz-{name}"):
            _malformed(f"AWS query-string parameters must include 'X-Amz-{name}'.")
    credential, stamp, expires, signed, signature = (fields[f"X-Amz-{name}"] for name in _QUERY_FIELDS)
    if not expires.isascii() or not expires.isdigit() or not 1 <= int(expires[:9]) <= LONGEST:
        _malformed(f"X-Amz-Expires must be between 1 and {LONGEST} seconds.")
    return _claim(credential, stamp, signed, signature, int(expires))


def _claim(credential: str, stamp: str, signed: str, signature: str, expires_s: int | None) -> Claim:
    parts = credential.split("/")
    if len(parts) != 5 or parts[4] != "aws4_request" or not all(parts):
        _malformed("Credential must have exactly 5 slash-delimited elements: keyid/date/region/service/aws4_request.")
    key, date, region, service, _ = parts
    if not _STAMP.fullmatch(stamp) or not _is_moment(stamp):
        _malformed("Date must be in ISO-8601 'basic format'.")
    if not stamp.startswith(date):
        _malformed("Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP.")
    return Claim(
        access_key=key,
        date=date,
        region=region,
        service=service,
        stamp=stamp,
        headers=tuple(signed.split(";")),
        signature=signature,
        expires_s=expires_s,
    )


def _timely(claim: Claim, now: datetime) -> None:
    signed_at, stamp = claim.signed_at, f"{now:%Y%m%dT%H%M%SZ}"
    last = signed_at + (SKEW if claim.expires_s is None else timedelta(seconds=claim.expires_s))
    if now > last:
        raise NotSigned(Denied.EXPIRED, f"Signature expired: {claim.stamp} is now earlier than {stamp} minus its life.")
    if signed_at > now + SKEW:
        raise NotSigned(Denied.EXPIRED, f"Signature not yet current: {claim.stamp} is still later than {stamp}.")


def _covers(claim: Claim, request: Request) -> None:
    """The signature is over the host and every header of Amazon's that the request carries."""
    must = {"host"} | {name for name in request.headers if name.startswith("x-amz-")}
    bare = sorted(must - set(claim.headers))
    if bare:
        raise NotSigned(
            Denied.MISMATCH, f"There were headers present in the request which were not signed: {', '.join(bare)}"
        )
    absent = sorted(set(claim.headers) - set(request.headers))
    if absent:
        raise NotSigned(Denied.MISMATCH, f"Signed headers are absent from the request: {', '.join(absent)}")


def _canonical(claim: Claim, request: Request) -> str:
    query = sorted(
        (quote(name, safe="-_.~"), quote(value, safe="-_.~"))
        for name, value in _pairs(request.query)
        if claim.expires_s is None or name != "X-Amz-Signature"
    )
    return "\n".join(
        [
            request.method,
            quote(request.raw_path or "/", safe="/~"),
            "&".join(f"{name}={value}" for name, value in query),
            *(f"{name}:{' '.join(request.headers[name].split())}" for name in claim.headers),
            "",
            ";".join(claim.headers),
            _sha256(request.body),
        ]
    )


def _key(claim: Claim, secret: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (claim.date, claim.region, claim.service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def _pairs(query: str) -> list[tuple[str, str]]:
    parts = (part.partition("=") for part in query.split("&") if part)
    return [(unquote(name), unquote(value)) for name, _, value in parts]


def _is_moment(stamp: str) -> bool:
    try:
        datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        return False
    return True


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _malformed(message: str) -> Never:
    raise NotSigned(Denied.MALFORMED, message)
