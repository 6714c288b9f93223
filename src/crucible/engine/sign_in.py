"""People who sign in elsewhere. Nothing of a sign-in is kept while it is under way: what must be remembered travels
with the browser, signed; so any server that shares the key can go on where another began.

    program or page            this server                      identity provider
      challenge, redirect  ──>  begin: a signed state      ──>  the person signs in
                                finish: who is it?         <──  code, state
      one-time ticket      <──  user, teams, audit line
      ticket, verifier     ──>  exchange: a token

Who is signed in already has a ticket at once (`ticket`): so their browser comes in without seeing their token.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from crucible.core.sign_in import SignInPolicy, admitted, challenge_of, check_return
from crucible.engine.context import Context
from crucible.engine.people import digest_of
from crucible.model.account import Grant, Principal, Token, User
from crucible.model.audit import AuditEntry
from crucible.model.errors import AddressExpired, Conflict, Forbidden, NotFound, Unauthenticated
from crucible.model.identity import Identity
from crucible.model.ids import TokenId, UserId
from crucible.ports.identity import IdentityProvider

# A person may have to find their second factor; a program only has to ask once more.
BEGUN_LIFE = timedelta(minutes=10)
TICKET_LIFE = timedelta(minutes=2)
SESSION_LIFE = timedelta(hours=12)
_STATE, _TICKET = "crb", "crt"


class SignIn:
    def __init__(self, context: Context, provider: IdentityProvider | None, policy: SignInPolicy) -> None:
        self._context = context
        self._provider = provider
        self._policy = policy
        self._callback = f"{context.url}/v1/login/oidc/callback"

    @property
    def name(self) -> str | None:
        """Of the provider; None: people have tokens here and nothing else."""
        return None if self._provider is None else self._provider.name

    async def begin(self, *, redirect: str, challenge: str, state: str) -> str:
        """Where the browser goes first."""
        provider, context = self._configured(), self._context
        check_return(redirect, context.url)
        nonce = context.random.token()
        begun = self._signed(_STATE, BEGUN_LIFE, nonce=nonce, redirect=redirect, challenge=challenge, state=state)
        verifier = context.keys.hidden(nonce)
        return await provider.address(callback=self._callback, state=begun, nonce=nonce, verifier=verifier)

    async def finish(self, *, code: str, state: str) -> str:
        """Where the browser goes last: with a ticket, and the person is a user here from now on; or with why they are
        not let in, for whoever began to tell them."""
        provider, keys = self._configured(), self._context.keys
        begun = self._opened(_STATE, state)
        nonce = str(begun["nonce"])
        identity = await provider.identity(code=code, callback=self._callback, nonce=nonce, verifier=keys.hidden(nonce))
        try:
            user = await self._enter(identity)
        except Forbidden as error:
            return _back(begun, error=error.code, error_description=str(error))
        ticket = self._signed(_TICKET, TICKET_LIFE, user=user.id, challenge=begun["challenge"], nonce=nonce)
        return _back(begun, code=ticket)

    def given_up(self, *, state: str, error: str) -> str:
        """The same where the provider let nobody in."""
        return _back(self._opened(_STATE, state), error=error[:100])

    def ticket(self, who: Principal, *, challenge: str) -> tuple[str, datetime]:
        """For another program of theirs, and until when. What comes of it may do what the token at hand may, and for no
        longer: else whoever is signed in could stay so for ever."""
        nonce, until = self._context.random.token(), self._context.clock.now() + TICKET_LIFE
        told = {"user": who.user_id, "challenge": challenge, "nonce": nonce, "grants": " ".join(sorted(who.grants))}
        if who.expires_at is not None:
            told["ends"] = who.expires_at.isoformat()
        return self._signed(_TICKET, TICKET_LIFE, **told), until

    async def exchange(self, *, ticket: str, verifier: str) -> tuple[Token, str]:
        """A token for the program that began; a ticket is good for one."""
        context, told = self._context, self._opened(_TICKET, ticket)
        if challenge_of(verifier) != told["challenge"]:
            raise Unauthenticated("another program began this sign-in; begin again")
        secret, now = f"cru_{context.random.token()}", context.clock.now()
        token = Token(
            id=TokenId(hashlib.sha256(ticket.encode()).hexdigest()[:32]),
            user_id=UserId(str(told["user"])),
            name="signed in",
            digest=digest_of(secret),
            created_at=now,
            expires_at=ends_at(told, now),
            grants=tuple(Grant(one) for one in str(told.get("grants", "")).split()),
        )
        entry = audit_of(token.user_id, token.id, "token.sign_in", f"token:{token.id}", now, {})
        try:
            await context.store.add_token(token, audit=entry)
        except Conflict as error:
            raise Unauthenticated("this sign-in has been used already; begin again") from error
        return token, secret

    async def _enter(self, identity: Identity) -> User:
        now, admission = self._context.clock.now(), admitted(identity, self._policy)
        details = {"issuer": identity.issuer, "role": admission.role, "teams": dict(admission.teams)}
        user_id = UserId(admission.name)
        entry = audit_of(user_id, TokenId(""), "user.sign_in", f"user:{user_id}", now, details)
        return await self._context.store.sign_in(identity, admission, audit=entry)

    def _configured(self) -> IdentityProvider:
        if self._provider is None:
            raise NotFound("people do not sign in elsewhere for this server; use a token: crucible login URL")
        return self._provider

    # --- what travels with the browser ----------------------------------------------------------------------

    def _signed(self, kind: str, life: timedelta, **told: str) -> str:
        until = (self._context.clock.now() + life).timestamp()
        return self._context.keys.ticket(kind, json.dumps({**told, "until": until}))

    def _opened(self, kind: str, text: str) -> Mapping[str, Any]:
        told: Mapping[str, Any] = json.loads(self._context.keys.text_of(kind, text))
        if self._context.clock.now().timestamp() > told["until"]:
            raise AddressExpired("this sign-in took too long; begin again")
        return told


def ends_at(ticket: Mapping[str, Any], now: datetime) -> datetime:
    """Of the session that it opens."""
    usual = now + SESSION_LIFE
    return min(usual, datetime.fromisoformat(ticket["ends"])) if "ends" in ticket else usual


def audit_of(
    user_id: UserId, token_id: TokenId, action: str, subject: str, at: datetime, details: Mapping[str, Any]
) -> AuditEntry:
    return AuditEntry(at=at, user_id=user_id, token_id=token_id, action=action, subject=subject, details=details)


def _back(begun: Mapping[str, Any], **told: str) -> str:
    """To whoever began."""
    redirect = str(begun["redirect"])
    return f"{redirect}{'&' if '?' in redirect else '?'}{urlencode({**told, 'state': str(begun['state'])})}"
