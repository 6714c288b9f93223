"""Signing in elsewhere: two addresses for a browser, and one for the program that sent it there. None of them needs a
token; what they carry is signed. And a way for who is signed in to let another program of theirs in."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from crucible.api import account_views
from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import add, described_query, queried
from crucible.model.errors import InvalidRequest
from crucible.wire import accounts
from crucible.wire import sign_in as wire


class SignInRoutes:
    def __init__(self, deps: Deps) -> None:
        self._sign_in = deps.sign_in
        self._label = deps.settings.label

    def add_to(self, router: APIRouter) -> None:
        add(router, "GET", "/v1/login", self.ways, wire.SignInWays)
        add(router, "POST", "/v1/login/token", self.exchange, accounts.NewToken, status=201)
        add(router, "POST", "/v1/login/ticket", self.ticket, wire.Ticket, status=201)
        for path, endpoint, query in (
            ("/v1/login/oidc", self.begin, wire.Begin),
            ("/v1/login/oidc/callback", self.finish, wire.Callback),
        ):
            add(router, "GET", path, endpoint, None, status=302, openapi_extra=described_query(query))

    async def ways(self) -> Response:
        """How people sign in here, and what its operator calls this server."""
        name = self._sign_in.name
        ways = ["token"] if name is None else ["token", "oidc"]
        return json_reply({"ways": ways, "oidc_name": name, "label": self._label})

    async def begin(self, request: Request) -> Response:
        """Sends a browser to the identity provider."""
        asked = queried(wire.Begin, request)
        return _sent(await self._sign_in.begin(**asked.model_dump()))

    async def finish(self, request: Request) -> Response:
        """Where the identity provider sends the browser back; it goes on to whoever began, with a code for a token."""
        told = queried(wire.Callback, request)
        if told.code is None:
            if told.error is None:
                raise InvalidRequest("the identity provider sent neither a code nor an error", field="code")
            return _sent(self._sign_in.given_up(state=told.state, error=told.error))
        return _sent(await self._sign_in.finish(code=told.code, state=told.state))

    async def ticket(self, request: Request, body: wire.TicketRequest) -> Response:
        """A code that opens one session for you in another program, a browser say; good for two minutes."""
        code, until = self._sign_in.ticket(principal(request), challenge=body.challenge)
        return json_reply({"code": code, "expires_at": until}, 201)

    async def exchange(self, request: Request, body: wire.Exchange) -> Response:
        """A token, for the code that came back and the secret that the challenge was made of."""
        token, secret = await self._sign_in.exchange(ticket=body.code, verifier=body.verifier)
        return json_reply({**account_views.token(token), "token": secret}, 201)


def _sent(address: str) -> Response:
    return RedirectResponse(address, 302)
