"""People, their tokens, and the machines that work for them."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crucible.api import views
from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import add
from crucible.model.errors import InvalidRequest, NotFound
from crucible.model.ids import TokenId, UserId
from crucible.model.lease import Lease
from crucible.model.record import Principal, Role, User
from crucible.wire import rest


class PeopleRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        add(router, "GET", "/v1/me", self.me, rest.Me)
        add(router, "GET", "/v1/tokens", self.tokens, rest.Tokens)
        add(router, "POST", "/v1/tokens", self.create_token, rest.NewToken, status=201)
        add(router, "DELETE", "/v1/tokens/{token_id}", self.revoke_token, None, status=204)
        add(router, "GET", "/v1/users", self.users, rest.Users)
        add(router, "POST", "/v1/users", self.create_user, rest.UserItem, status=201)
        add(router, "GET", "/v1/nodes", self.nodes, rest.Nodes)

    async def me(self, request: Request) -> Response:
        """Who the token says you are."""
        who = principal(request)
        user = await self._user(who.user_id)
        return json_reply({"user_id": who.user_id, "name": user.name, "role": who.role, "token_id": who.token_id})

    async def tokens(self, request: Request) -> Response:
        """Yours; an admin's list has everybody's. The secrets are not kept anywhere."""
        who = principal(request)
        found = await self._deps.store.tokens(None if who.role is Role.ADMIN else who.user_id)
        return json_reply({"items": [views.token(one) for one in found]})

    async def create_token(self, request: Request, body: rest.NewTokenRequest) -> Response:
        """With the role of its user. The secret is in this answer and nowhere else, ever."""
        who = principal(request)
        user_id = who.user_id if body.user is None else UserId(body.user)
        if user_id != who.user_id and who.role is Role.ADMIN:
            await self._user(user_id)
        expires_at = body.expires_at
        if expires_at is not None and (expires_at.tzinfo is None or expires_at <= self._deps.clock.now()):
            raise InvalidRequest("expires_at must be a moment to come, with its time zone", field="expires_at")
        token, secret = await self._deps.service.create_token(who, name=body.name, user=user_id, expires_at=expires_at)
        return json_reply({**views.token(token), "token": secret}, 201)

    async def revoke_token(self, request: Request, token_id: str) -> Response:
        """It stops working within seconds on every server."""
        if not token_id.isascii() or not token_id.isprintable() or len(token_id) > 128:
            raise NotFound("no such token")
        await self._deps.service.revoke_token(principal(request), TokenId(token_id))
        return Response(status_code=204)

    async def users(self, request: Request) -> Response:
        return json_reply({"items": [views.user(one) for one in await self._deps.store.users()]})

    async def create_user(self, request: Request, body: rest.NewUser) -> Response:
        user = await self._deps.service.create_user(principal(request), name=body.name, role=Role(body.role))
        return json_reply(views.user(user), 201)

    async def nodes(self, request: Request) -> Response:
        """Machines that work on your jobs now; an admin sees all."""
        who = principal(request)
        items = []
        for provider in self._deps.settings.providers:
            for lease in await self._deps.store.open_leases(provider):
                if lease.node_id is not None and await self._may_see(who, lease):
                    items.append(views.node(await self._deps.store.node(lease.node_id), lease))
        return json_reply({"items": items})

    async def _may_see(self, who: Principal, lease: Lease) -> bool:
        return who.role is Role.ADMIN or (await self._deps.store.job(lease.job_id)).user_id == who.user_id

    async def _user(self, user_id: UserId) -> User:
        for user in await self._deps.store.users():
            if user.id == user_id:
                return user
        raise NotFound(f"no user {user_id}")
