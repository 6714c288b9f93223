"""Statements of an identity provider: only one that it signed itself, just now, for this program and this sign-in."""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

import pytest
from joserfc import jwk, jwt

from crucible.identity.id_token import UnknownKey, check, claims_of, identity_of
from crucible.model.errors import Unauthenticated

NOW = 1_800_000_000.0
ISSUER, CLIENT, NONCE = "https://id.example", "crucible", "n-1"
KEY = jwk.RSAKey.generate_key(2048, {"kid": "first"}, private=True)
OTHER = jwk.RSAKey.generate_key(2048, {"kid": "first"}, private=True)
CURVE = jwk.ECKey.generate_key("P-256", {"kid": "curve"}, private=True)
KEYS = {"keys": [KEY.as_dict(private=False), CURVE.as_dict(private=False)]}
GOOD: dict[str, Any] = {
    "iss": ISSUER,
    "aud": CLIENT,
    "sub": "0042",
    "nonce": NONCE,
    "iat": NOW,
    "exp": NOW + 300,
    "email": "ada@example.org",
    "email_verified": True,
    "groups": ["vision", 7],
}


def signed(key: Any = KEY, algorithm: str = "RS256", kid: str = "first", **changes: Any) -> str:
    claims = {name: value for name, value in {**GOOD, **changes}.items() if value is not None}
    return jwt.encode({"alg": algorithm, "kid": kid}, claims, key, algorithms=[algorithm])


def verdict(text: str, now_s: float = NOW) -> Mapping[str, Any]:
    claims = claims_of(text, KEYS)
    check(claims, issuer=ISSUER, client_id=CLIENT, nonce=NONCE, now_s=now_s)
    return claims


@pytest.mark.parametrize(("key", "algorithm", "kid"), [(KEY, "RS256", "first"), (CURVE, "ES256", "curve")])
def test_what_the_provider_signed_for_this_sign_in_is_believed(key: Any, algorithm: str, kid: str) -> None:
    who = identity_of(verdict(signed(key, algorithm, kid)), ISSUER, "groups")
    assert (who.subject, who.email, who.is_email_verified, who.groups) == ("0042", "ada@example.org", True, ("vision",))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"iss": "https://evil.example"}, "another provider"),
        ({"aud": "another"}, "another program"),
        ({"aud": ["crucible", "another"]}, "another program"),
        ({"aud": None}, "another program"),
        ({"nonce": "n-2"}, "another sign-in"),
        ({"nonce": None}, "another sign-in"),
        ({"exp": NOW - 61}, "expired"),
        ({"exp": None}, "lacks exp"),
        ({"exp": True}, "lacks exp"),
        ({"iat": NOW + 61}, "just now"),
        ({"iat": NOW - 3600}, "just now"),
        ({"iat": "now"}, "lacks iat"),
    ],
)
def test_what_was_made_for_something_else_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(Unauthenticated, match=why):
        verdict(signed(**changes))


def test_a_statement_for_several_programs_must_be_made_out_to_this_one() -> None:
    assert verdict(signed(aud=["another", "crucible"], azp="crucible"))["sub"] == "0042"


def test_a_key_of_the_same_name_that_is_not_the_providers_signs_nothing() -> None:
    with pytest.raises(Unauthenticated, match="signature"):
        verdict(signed(OTHER))


def test_a_key_that_is_not_known_may_be_a_new_one() -> None:
    with pytest.raises(UnknownKey):
        verdict(signed(kid="second"))


def by_hand(algorithm: str, key: bytes | None) -> str:
    """As no library would write it."""
    head = {"alg": algorithm, "kid": "first"}
    text = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (head, GOOD))
    mac = b"" if key is None else hmac.new(key, text.encode(), hashlib.sha256).digest()
    return f"{text}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def test_what_nobody_signed_is_refused() -> None:
    with pytest.raises(Unauthenticated):
        verdict(by_hand("none", None))


def test_the_public_key_is_no_password_to_sign_with() -> None:
    with pytest.raises(Unauthenticated):
        verdict(by_hand("HS256", KEY.as_pem(private=False)))


@pytest.mark.parametrize("text", ["", "x", "a.b", "a.b.c", "é.é.é", ".".join(["eyJ9"] * 3)])
def test_what_is_no_statement_at_all_is_refused(text: str) -> None:
    with pytest.raises(Unauthenticated):
        verdict(text)


@pytest.mark.parametrize("subject", [None, "", 7, "s" * 256])
def test_a_statement_about_nobody_is_refused(subject: Any) -> None:
    with pytest.raises(Unauthenticated, match="whom"):
        identity_of(verdict(signed(sub=subject)), ISSUER, "groups")
