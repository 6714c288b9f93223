"""Bearer tokens of the one service account: JSON web tokens that its key signed, either as they are or traded for an
access token at the Lab's own token endpoint (RFC 7523). Checks only; nothing of a token is repeated in a message."""

import base64
import binascii
import hashlib
import hmac
import json
from typing import Any

from crucible.lab.gcs.rsa import PublicKey

LONGEST_S = 3600  # of any token
SKEW_S = 300  # how far Google lets a client's clock be off
SCOPES = frozenset(
    f"https://www.googleapis.com/auth/{name}"
    for name in ("cloud-platform", "devstorage.full_control", "devstorage.read_write")
)
AUDIENCE = "https://storage.googleapis.com/"
MOST_BYTES = 16 << 10  # of a token: those of clients have less than one
_ACCESS = "ya29.lab"


class BadToken(Exception):
    """Says what is wrong with it."""


def claims_of(token: str, key: PublicKey, key_id: str, email: str, now: float) -> dict[str, Any]:
    """What a web token says, if `key` signed it, in the name of `email`, for about now. Raises BadToken."""
    head, claims, signature = _parts(token)
    said = _object(head)
    if said.get("alg") != "RS256" or said.get("kid", key_id) != key_id:
        raise BadToken("The token names another key or algorithm than the key file of this Lab.")
    if not key.has_signed(f"{head}.{claims}".encode(), _bytes(signature)):
        raise BadToken("The token's signature is wrong: it was not made with the key file of this Lab.")
    found = _object(claims)
    if found.get("iss") != email or found.get("sub", email) != email:
        raise BadToken("The token was issued by somebody else.")
    _timely(found.get("iat"), found.get("exp"), now)
    return found


def opens_storage(claims: dict[str, Any]) -> bool:
    """Whether a web token may be used as it is."""
    scopes = str(claims.get("scope", "")).split()
    return not SCOPES.isdisjoint(scopes) or claims.get("aud") == AUDIENCE


def access_token(secret: bytes, expires_at: int) -> str:
    return f"{_ACCESS}.{expires_at}.{_mac(secret, str(expires_at))}"


def is_access_token(token: str) -> bool:
    return token.startswith(f"{_ACCESS}.")


def check_access_token(token: str, secret: bytes, now: float) -> None:
    """Raises BadToken."""
    expires_at, _, mac = token.removeprefix(f"{_ACCESS}.").partition(".")
    if not hmac.compare_digest(mac.encode(), _mac(secret, expires_at).encode()):
        raise BadToken("The access token is not of this Lab.")
    if now >= int(expires_at):
        raise BadToken("The access token has expired.")


def _timely(issued: object, expires: object, now: float) -> None:
    for value in (issued, expires):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadToken("The token says not when it was issued and when it expires.")
    assert isinstance(issued, int | float) and isinstance(expires, int | float)
    if issued > now + SKEW_S:
        raise BadToken(f"The token was issued {issued - now:.0f} s in the future: the client's clock is wrong.")
    if now >= expires + SKEW_S:
        raise BadToken(f"The token expired {now - expires:.0f} s ago; if it is new, the client's clock is wrong.")
    if not 0 < expires - issued <= LONGEST_S:
        raise BadToken("The token must be good for an hour at most.")


def _parts(token: str) -> tuple[str, str, str]:
    parts = token.split(".")
    if len(parts) != 3 or len(token) > MOST_BYTES:
        raise BadToken("The bearer token is neither a web token nor an access token.")
    return parts[0], parts[1], parts[2]


def _object(text: str) -> dict[str, Any]:
    try:
        said = json.loads(_bytes(text))
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise BadToken("The token is no JSON web token.")
    return said


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text.encode() + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise BadToken("The token is not written in base64.") from None


def _mac(secret: bytes, text: str) -> str:
    return hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()
