"""People, servers and segments. A part of StoreContract."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from crucible.model.account import Grant, Membership, Principal, Role, Team, Token, User
from crucible.model.errors import Conflict, NotFound
from crucible.model.ids import Digest, TokenId, UserId
from crucible.ports.store import Segment, Store
from crucible.testing.specimens import LATER, NOW

ANN = User(id=UserId("u1"), name="ann", role=Role.ADMIN, created_at=NOW)
BOB = User(id=UserId("u2"), name="bob", role=Role.MEMBER, created_at=LATER)
TOKEN = Token(id=TokenId("t1"), user_id=ANN.id, name="laptop", digest=Digest("d1"), created_at=NOW)


class PeopleContract:
    async def test_a_token_tells_who_is_asking(self, store: Store) -> None:
        await store.add_user(ANN)
        await store.add_token(TOKEN)
        assert await store.principal(TOKEN.digest, NOW) == Principal(ANN.id, Role.ADMIN, TOKEN.id)
        assert await store.principal(Digest("unknown"), NOW) is None

    async def test_an_expired_or_revoked_token_is_nobody(self, store: Store) -> None:
        await store.add_user(ANN)
        short = replace(TOKEN, id=TokenId("t2"), digest=Digest("d2"), expires_at=LATER)
        for token in (TOKEN, short):
            await store.add_token(token)
        assert await store.principal(short.digest, NOW)
        assert await store.principal(short.digest, LATER) is None
        await store.revoke_token(TOKEN.id, NOW)
        await store.revoke_token(TOKEN.id, LATER)
        assert await store.principal(TOKEN.digest, NOW) is None
        assert await store.tokens() == (replace(TOKEN, revoked_at=NOW), short)

    async def test_a_token_tells_teams_and_what_it_is_for(self, store: Store) -> None:
        for user in (ANN, BOB):
            await store.add_user(user)
        await store.add_token(replace(TOKEN, user_id=BOB.id, grants=(Grant.JOBS, Grant.READ)))
        for team, role in (("vision", Role.MANAGER), ("speech", Role.VIEWER)):
            await store.add_team(Team(name=team, created_at=NOW, created_by=ANN.id))
            await store.save_member(Membership(team=team, user_id=BOB.id, role=role, created_at=NOW))
        who = await store.principal(TOKEN.digest, NOW)
        assert who is not None
        assert (who.role, who.teams) == (Role.MEMBER, {"vision": Role.MANAGER, "speech": Role.VIEWER})
        assert who.grants == {Grant.JOBS, Grant.READ}

    async def test_users_and_tokens_are_listed(self, store: Store) -> None:
        for user in (BOB, ANN):
            await store.add_user(user)
        theirs = replace(TOKEN, id=TokenId("t2"), user_id=BOB.id, digest=Digest("d2"), created_at=LATER)
        for token in (theirs, TOKEN):
            await store.add_token(token)
        assert await store.users() == (ANN, BOB)
        assert await store.tokens() == (TOKEN, theirs)
        assert await store.tokens(BOB.id) == (theirs,)

    async def test_names_and_secrets_are_taken_once(self, store: Store) -> None:
        await store.add_user(ANN)
        await store.add_token(TOKEN)
        with pytest.raises(Conflict, match="ann"):
            await store.add_user(replace(ANN, id=UserId("u9")))
        with pytest.raises(Conflict):
            await store.add_token(replace(TOKEN, id=TokenId("t9")))
        with pytest.raises(NotFound, match="u2"):
            await store.add_token(replace(TOKEN, id=TokenId("t9"), user_id=BOB.id, digest=Digest("d9")))
        with pytest.raises(NotFound, match="t9"):
            await store.revoke_token(TokenId("t9"), NOW)

    async def test_servers_are_known_while_they_announce_themselves(self, store: Store) -> None:
        await store.announce("s2", "http://two", timedelta(seconds=30))
        await store.announce("s1", "http://one", timedelta(milliseconds=1))
        async with asyncio.timeout(10):
            while await store.servers() != ["http://two"]:  # noqa: ASYNC110 - time passes, nobody tells
                await asyncio.sleep(0.005)
        await store.announce("s1", "http://moved", timedelta(seconds=30))
        assert await store.servers() == ["http://moved", "http://two"]

    async def test_segments_are_kept_in_order_and_once(self, store: Store) -> None:
        first = Segment("task-1/log", 0, 0, 2**33, {"0/0": 12})
        second = Segment("task-1/log", 1, 2**33, 10, {"0/0": 15})
        for segment in (second, first, first, replace(first, stream="other")):
            await store.add_segment(segment)
        assert await store.segments("task-1/log") == (first, second)
        assert await store.segments("nothing") == ()
