"""People who sign in elsewhere. A part of StoreContract."""

from dataclasses import replace

import pytest

from crucible.model.account import Membership, Role, Team, User, UserKind
from crucible.model.audit import AuditEntry
from crucible.model.errors import Conflict, Forbidden
from crucible.model.identity import Admission, Identity
from crucible.model.ids import TokenId, UserId
from crucible.ports.store import Store
from crucible.testing.specimens import LATER, NOW

ADA = Identity(issuer="https://id.example", subject="0042", email="ada@example.org", is_email_verified=True)
ADMITTED = Admission(name="ada@example.org", role=None, teams={}, synced=frozenset())
ENTRY = AuditEntry(
    at=NOW, user_id=UserId("?"), token_id=TokenId(""), action="user.sign_in", subject="?", details={"issuer": "x"}
)
BOSS = UserId("boss")


class IdentityContract:
    async def test_who_signs_in_first_becomes_a_member_and_stays_the_same_user(self, store: Store) -> None:
        first = await store.sign_in(ADA, ADMITTED, audit=ENTRY)
        renamed = replace(ADMITTED, name="ada.lovelace@example.org")
        again = await store.sign_in(ADA, renamed, audit=replace(ENTRY, at=LATER))
        assert first == again == User(id=first.id, name="ada@example.org", role=Role.MEMBER, created_at=NOW)
        assert await store.users() == (first,)

    async def test_a_name_that_an_admin_made_beforehand_is_theirs_and_nobody_elses(self, store: Store) -> None:
        made = User(id=UserId("ada@example.org"), name="ada@example.org", role=Role.VIEWER, created_at=NOW)
        await store.add_user(made)
        assert await store.sign_in(ADA, ADMITTED, audit=ENTRY) == made
        with pytest.raises(Conflict, match="another person"):
            await store.sign_in(replace(ADA, subject="0043"), ADMITTED, audit=ENTRY)

    async def test_a_program_of_that_name_is_nobody_who_signs_in(self, store: Store) -> None:
        name = UserId("ada@example.org")
        await store.add_user(User(id=name, name=name, role=Role.MEMBER, created_at=NOW, kind=UserKind.SERVICE))
        with pytest.raises(Conflict, match="program"):
            await store.sign_in(ADA, ADMITTED, audit=ENTRY)

    async def test_the_provider_decides_about_admins_only_where_it_is_asked(self, store: Store) -> None:
        await store.sign_in(ADA, replace(ADMITTED, role=Role.ADMIN), audit=ENTRY)
        assert (await store.sign_in(ADA, ADMITTED, audit=ENTRY)).role is Role.ADMIN
        assert (await store.sign_in(ADA, replace(ADMITTED, role=Role.MEMBER), audit=ENTRY)).role is Role.MEMBER

    async def test_teams_that_the_provider_decides_about_follow_it_and_others_stay(self, store: Store) -> None:
        for name in ("own", "research", "shop"):
            await store.add_team(Team(name=name, created_at=NOW, created_by=BOSS))
        synced = frozenset({"research", "shop", "nobody-made-it"})
        teams = {"research": Role.MANAGER, "nobody-made-it": Role.MEMBER}
        ada = await store.sign_in(ADA, replace(ADMITTED, teams=teams, synced=synced), audit=ENTRY)
        await store.save_member(Membership(team="own", user_id=ada.id, role=Role.VIEWER, created_at=NOW))
        assert await roles(store, ada.id) == {"own": Role.VIEWER, "research": Role.MANAGER}
        await store.sign_in(ADA, replace(ADMITTED, teams={"shop": Role.VIEWER}, synced=synced), audit=ENTRY)
        assert await roles(store, ada.id) == {"own": Role.VIEWER, "shop": Role.VIEWER}

    async def test_who_is_disabled_here_does_not_come_in_and_nothing_changes(self, store: Store) -> None:
        ada = await store.sign_in(ADA, ADMITTED, audit=ENTRY)
        await store.save_user(replace(ada, disabled_at=NOW))
        with pytest.raises(Forbidden, match="disabled"):
            await store.sign_in(ADA, replace(ADMITTED, role=Role.ADMIN), audit=ENTRY)
        assert [user.role for user in await store.users()] == [Role.MEMBER]


async def roles(store: Store, user_id: UserId) -> dict[str, Role]:
    return {one.team: one.role for one in await store.memberships() if one.user_id == user_id}
