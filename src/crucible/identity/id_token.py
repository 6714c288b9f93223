"""The signed statement of an identity provider, and every check that it must pass before it is believed."""

from collections.abc import Mapping
from typing import Any

from joserfc import jwk, jwt
from joserfc.errors import InvalidKeyIdError, JoseError

from crucible.model.errors import Unauthenticated
from crucible.model.identity import Identity

# Signed by a key that only the provider has: neither "none" nor anything that we could have signed ourselves.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA")
LEEWAY_S = 60  # clocks differ
MAX_AGE_S = 600  # of a statement: it was made for this very sign-in
MAX_GROUPS = 1000


class UnknownKey(Exception):
    """No key here could have signed it: the provider may have new ones."""


def claims_of(text: str, keys: Mapping[str, Any]) -> Mapping[str, Any]:
    """Raises UnknownKey, Unauthenticated."""
    try:
        token = jwt.decode(text, jwk.KeySet.import_key_set(keys), algorithms=ALGORITHMS)  # type: ignore[arg-type]
    except InvalidKeyIdError as error:
        raise UnknownKey from error
    except (JoseError, ValueError) as error:
        raise refused(f"its signature does not hold ({error})") from error
    return token.claims


def check(claims: Mapping[str, Any], *, issuer: str, client_id: str, nonce: str, now_s: float) -> None:
    """Raises Unauthenticated: who made it, for whom, when, and for which sign-in."""
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if claims.get("iss") != issuer:
        raise refused("another provider made it")
    if client_id not in audiences or (len(audiences) > 1 and claims.get("azp") != client_id):
        raise refused("it was made for another program")
    if claims.get("nonce") != nonce:
        raise refused("it was made for another sign-in")
    if now_s > _number(claims, "exp") + LEEWAY_S:
        raise refused("it has expired")
    if not now_s - MAX_AGE_S - LEEWAY_S <= _number(claims, "iat") <= now_s + LEEWAY_S:
        raise refused("it was not made just now; check the clocks of both servers")


def identity_of(claims: Mapping[str, Any], issuer: str, groups_claim: str) -> Identity:
    subject, groups = claims.get("sub"), claims.get(groups_claim)
    if not isinstance(subject, str) or not 0 < len(subject) <= 255:
        raise refused("it does not say whom it speaks of")
    listed = groups if isinstance(groups, list) else [groups]
    return Identity(
        issuer=issuer,
        subject=subject,
        email=_text(claims.get("email")),
        is_email_verified=claims.get("email_verified") in (True, "true"),
        name=_text(claims.get("name")),
        groups=tuple(one for one in listed[:MAX_GROUPS] if isinstance(one, str)),
    )


def refused(why: str) -> Unauthenticated:
    return Unauthenticated(f"the sign-in was refused: {why}")


def _number(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise refused(f"it lacks {name}")
    return float(value)


def _text(value: Any) -> str | None:
    return value[:320] if isinstance(value, str) and value else None
