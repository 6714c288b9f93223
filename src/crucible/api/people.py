"""People, their tokens, and the machines that work for them."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crucible.api import account_views, views
from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import add, described_query, named, queried
from crucible.core.rights import sees_job
from crucible.model.account import Grant, Principal, Role, UserKind
from crucible.model.ids import TokenId, UserId
from crucible.model.lease import Lease
from crucible.wire import accounts as wire
from crucible.wire import rest


class PeopleRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        whose = described_query(wire.TokenListQuery)
        add(router, "GET", "/v1/me", self.me, wire.Me)
        add(router, "GET", "/v1/tokens", self.tokens, wire.Tokens, openapi_extra=whose)
        add(router, "POST", "/v1/tokens", self.create_token, wire.NewToken, status=201)
        add(router, "DELETE", "/v1/tokens/{token_id}", self.revoke_token, None, status=204)
        add(router, "GET", "/v1/users", self.users, wire.Users)
        add(router, "POST", "/v1/users", self.create_user, wire.UserItem, status=201)
        add(router, "GET", "/v1/users/{user}", self.user, wire.UserItem)
        add(router, "PATCH", "/v1/users/{user}", self.change_user, wire.UserItem)
        add(router, "GET", "/v1/nodes", self.nodes, rest.Nodes)

    async def me(self, request: Request) -> Response:
        """Who the token says you are, what you belong to, and what the token is for."""
        who = principal(request)
        return json_reply(account_views.me(who, (await self._deps.store.user(who.user_id)).name))

    async def tokens(self, request: Request) -> Response:
        """Yours; an admin's list has everybody's. The secrets are not kept anywhere."""
        asked = queried(wire.TokenListQuery, request)
        found = await self._deps.people.tokens(principal(request), UserId(asked.user) if asked.user else None)
        return json_reply({"items": [account_views.token(one) for one in found]})

    async def create_token(self, request: Request, body: wire.NewTokenRequest) -> Response:
        """With the role of its user, for everything or for certain uses. The secret is in this answer and nowhere else,
        ever."""
        token, secret = await self._deps.people.create_token(
            principal(request),
            name=body.name,
            user=None if body.user is None else UserId(body.user),
            expires_at=body.expires_at,
            grants=[Grant(one) for one in body.grants],
        )
        return json_reply({**account_views.token(token), "token": secret}, 201)

    async def revoke_token(self, request: Request, token_id: str) -> Response:
        """It stops working within seconds on every server."""
        await self._deps.people.revoke_token(principal(request), TokenId(named(token_id, "token")))
        return Response(status_code=204)

    async def users(self, request: Request) -> Response:
        """Everybody, for admins; for managers those who are in their teams."""
        found = await self._deps.people.users(principal(request))
        return json_reply({"items": [account_views.user(*one) for one in found]})

    async def user(self, request: Request, user: str) -> Response:
        found = await self._deps.people.user(principal(request), UserId(named(user, "user")))
        return json_reply(account_views.user(*found))

    async def create_user(self, request: Request, body: wire.NewUser) -> Response:
        """Admins make anybody; managers make services for their team."""
        made = await self._deps.people.create_user(
            principal(request), name=body.name, role=Role(body.role), kind=UserKind(body.kind), team=body.team
        )
        found = await self._deps.people.user(principal(request), made.id)
        return json_reply(account_views.user(*found), 201)

    async def change_user(self, request: Request, user: str, body: wire.UserChange) -> Response:
        """Another role, or disabled: then none of their tokens opens anything, until they are enabled again."""
        who, user_id = principal(request), UserId(named(user, "user"))
        role = None if body.role is None else Role(body.role)
        await self._deps.people.change_user(who, user_id, role=role, is_disabled=body.disabled)
        return json_reply(account_views.user(*await self._deps.people.user(who, user_id)))

    async def nodes(self, request: Request) -> Response:
        """Machines that work on jobs that you see; an admin sees all."""
        store, leases = self._deps.store, await self._seen_leases(principal(request))
        held = {one.node_id: one for one in await store.held_nodes({lease.job_id for lease in leases})}
        orders = {order_id: (await store.order(order_id))[0] for order_id in {lease.order_id for lease in leases}}
        items = [
            views.node(await store.node(lease.node_id), lease, orders[lease.order_id], held.get(lease.node_id))
            for lease in leases
            if lease.node_id is not None
        ]
        return json_reply({"items": items})

    async def _seen_leases(self, who: Principal) -> list[Lease]:
        """Of machines that have a node and work on a job that `who` sees."""
        store, places = self._deps.store, self._deps.settings.providers
        leases = [lease for place in places for lease in await store.open_leases(place) if lease.node_id is not None]
        jobs = {lease.job_id for lease in leases}
        seen = {job_id for job_id in jobs if sees_job(who, await store.job(job_id))}
        return [lease for lease in leases if lease.job_id in seen]
