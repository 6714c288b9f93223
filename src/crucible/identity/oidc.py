"""OpenID Connect: the authorisation code flow with PKCE, as a confidential or a public client."""

import asyncio
import base64
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

from crucible.core.sign_in import challenge_of
from crucible.identity import id_token
from crucible.identity.fetching import asked, check_address
from crucible.model.errors import InvalidRequest, Unauthenticated, Unreachable
from crucible.model.identity import Identity

# What a provider says of itself is asked for again after this; new keys sooner, but not for every forged token.
FACTS_LIVE = timedelta(hours=1)
FACTS_REST = timedelta(seconds=5)
KEYS_REST = timedelta(seconds=30)
# A provider that hangs keeps these for ten seconds each, and nobody else's.
THREADS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)  # None: a public client
    name: str = "single sign-on"
    scopes: tuple[str, ...] = ("openid", "email", "profile")
    groups_claim: str = "groups"


class OidcProvider:
    def __init__(self, settings: OidcSettings, now: Callable[[], datetime]) -> None:
        check_address(settings.issuer)
        self.name = settings.name
        self._settings = settings
        self._now = now
        self._facts: tuple[datetime, Mapping[str, Any]] | None = None
        self._failed: tuple[datetime, Unreachable] | None = None
        self._keys: tuple[datetime, Mapping[str, Any]] | None = None
        self._looking = asyncio.Lock()
        self._threads = ThreadPoolExecutor(THREADS, "oidc")

    async def address(self, *, callback: str, state: str, nonce: str, verifier: str) -> str:
        facts = await self._known_facts()
        query = {
            "client_id": self._settings.client_id,
            "response_type": "code",
            "scope": " ".join(self._settings.scopes),
            "redirect_uri": callback,
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge_of(verifier),
            "code_challenge_method": "S256",
        }
        endpoint = str(facts["authorization_endpoint"])
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    async def identity(self, *, code: str, callback: str, nonce: str, verifier: str) -> Identity:
        facts = await self._known_facts()
        told = await self._exchanged(facts, code, callback, verifier)
        claims = await self._claims(str(told.get("id_token") or ""))
        settings = self._settings
        now_s = self._now().timestamp()
        id_token.check(claims, issuer=settings.issuer, client_id=settings.client_id, nonce=nonce, now_s=now_s)
        more = await self._user_info(facts, str(told.get("access_token") or ""), str(claims.get("sub")))
        return id_token.identity_of({**more, **claims}, settings.issuer, settings.groups_claim)

    # --- what the provider says of itself -----------------------------------------------------------------

    async def _known_facts(self) -> Mapping[str, Any]:
        """Asked for once, however many want to sign in; where nobody answers, the next hear so at once."""
        async with self._looking:
            if self._facts is None or self._now() - self._facts[0] > FACTS_LIVE:
                if self._failed is not None and self._now() - self._failed[0] < FACTS_REST:
                    raise Unreachable(self._failed[1].message)
                try:
                    self._facts = self._now(), await self._discovered()
                except Unreachable as error:
                    self._failed = self._now(), error
                    raise
            return self._facts[1]

    async def _discovered(self) -> Mapping[str, Any]:
        issuer = self._settings.issuer
        status, facts = await self._ask("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if status != 200 or facts.get("issuer") != issuer:
            raise Unreachable(f"{issuer} does not describe itself as an identity provider of that very name")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            try:
                check_address(str(facts.get(name) or ""))
            except InvalidRequest as error:
                raise Unreachable(f"{issuer} names no usable {name}") from error
        return facts

    async def _claims(self, text: str) -> Mapping[str, Any]:
        """Once more with new keys, if those that are known could not have signed it."""
        try:
            return id_token.claims_of(text, await self._known_keys(timedelta.max))
        except id_token.UnknownKey:
            pass
        try:
            return id_token.claims_of(text, await self._known_keys(KEYS_REST))
        except id_token.UnknownKey as error:
            raise id_token.refused("no key of the provider has signed it") from error

    async def _known_keys(self, at_most: timedelta) -> Mapping[str, Any]:
        if self._keys is None or self._now() - self._keys[0] > at_most:
            status, keys = await self._ask("GET", str((await self._known_facts())["jwks_uri"]))
            if status != 200:
                raise Unreachable(f"{self._settings.issuer} does not tell its keys: it answers {status}")
            self._keys = self._now(), keys
        return self._keys[1]

    # --- one sign-in --------------------------------------------------------------------------------------

    async def _exchanged(self, facts: Mapping[str, Any], code: str, callback: str, verifier: str) -> Mapping[str, Any]:
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": callback, "code_verifier": verifier}
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if self._settings.client_secret is None:
            form["client_id"] = self._settings.client_id
        else:
            headers["Authorization"] = _basic(self._settings.client_id, self._settings.client_secret)
        status, told = await self._ask("POST", str(facts["token_endpoint"]), body=urlencode(form), headers=headers)
        if status != 200:
            raise id_token.refused(f"the provider does not take the code ({str(told.get('error') or status)[:100]})")
        return told

    async def _user_info(self, facts: Mapping[str, Any], access_token: str, subject: str) -> Mapping[str, Any]:
        """What the statement itself leaves out, such as groups. Of somebody else it is worth nothing."""
        if not access_token or "userinfo_endpoint" not in facts:
            return {}
        headers = {"Authorization": f"Bearer {access_token}"}
        status, told = await self._ask("GET", str(facts["userinfo_endpoint"]), headers=headers)
        if status != 200:
            return {}
        if told.get("sub") != subject:
            raise Unauthenticated("the sign-in was refused: the provider speaks of two different people")
        return told

    async def _ask(
        self, method: str, url: str, *, body: str | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Mapping[str, Any]]:
        ask = partial(asked, method, url, body=body, headers=headers)
        return await asyncio.get_running_loop().run_in_executor(self._threads, ask)


def _basic(user: str, password: str) -> str:
    """Both are form-encoded first: RFC 6749, 2.3.1."""
    pair = f"{quote(user, safe='')}:{quote(password, safe='')}"
    return "Basic " + base64.b64encode(pair.encode()).decode()
