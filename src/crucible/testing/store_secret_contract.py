"""Sealed secrets, and which key seals. A part of StoreContract."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import timedelta

import pytest

from crucible.model.account import Membership, Project, Role, Team, User
from crucible.model.audit import AuditEntry
from crucible.model.errors import Conflict, NotFound, StaleClaim
from crucible.model.ids import TokenId, UserId
from crucible.model.secret import OwnerKind, SealedValue, SecretFacts, SecretOwner, StoredSecret
from crucible.ports.accounts import AuditQuery
from crucible.ports.store import Store
from crucible.testing.specimens import LATER, NOW

ANN, TEAM = SecretOwner(OwnerKind.USER, "ann"), SecretOwner(OwnerKind.TEAM, "vision")
PROJECT = SecretOwner(OwnerKind.PROJECT, "imagenet")
ENTRY = AuditEntry(at=NOW, user_id=UserId("ann"), token_id=TokenId("t"), action="secret.set", subject="secret:HF")
TTL = timedelta(seconds=30)

Make = Callable[[int, str | None], StoredSecret]


def sealing(owner: SecretOwner = ANN, name: str = "HF_TOKEN", key_id: str = "k1") -> Make:
    """With the key that counts, or with `key_id` if none does."""

    def make(version: int, current: str | None) -> StoredSecret:
        return StoredSecret(
            owner_kind=owner.kind,
            owner=owner.name,
            name=name,
            version=version,
            key_id=current or key_id,
            wrapped=f"wrapped {version}",
            sealed=f"sealed {version}",
            set_by=UserId("ann"),
            set_at=NOW,
        )

    return make


def seen(*some: StoredSecret) -> tuple[SecretFacts, ...]:
    """As a list shows them."""
    names = [each.name for each in fields(SecretFacts)]
    return tuple(SecretFacts(**{name: getattr(one, name) for name in names}) for one in some)


class SecretContract:
    @pytest.fixture
    async def book(self, store: Store) -> Store:
        """With somebody, their team and its project."""
        await store.add_user(User(id=UserId("ann"), name="ann", role=Role.MEMBER, created_at=NOW))
        await store.add_team(Team(name="vision", created_at=NOW, created_by=UserId("ann")))
        await store.add_project(Project(name="imagenet", team="vision", created_at=NOW, created_by=UserId("ann")))
        return store

    async def test_a_secret_is_remembered_with_the_next_version(self, book: Store) -> None:
        assert await book.secret(ANN, "HF_TOKEN") is None and await book.secrets_key() is None
        first = await book.save_secret(ANN, "HF_TOKEN", sealing(), ENTRY)
        assert first.version == 1 and await book.secret(ANN, "HF_TOKEN") == first
        second = await book.save_secret(ANN, "HF_TOKEN", sealing(), ENTRY)
        assert second.version == 2 and await book.secrets() == seen(second)

    async def test_secrets_are_listed_by_their_owners(self, book: Store) -> None:
        mine = await book.save_secret(ANN, "HF_TOKEN", sealing(), ENTRY)
        ours = await book.save_secret(TEAM, "WANDB", sealing(TEAM, "WANDB"), ENTRY)
        assert await book.secrets() == seen(ours, mine)
        assert await book.secrets([ANN]) == seen(mine)
        assert await book.secrets([]) == ()

    async def test_the_first_key_stays_until_another_one_counts(self, book: Store) -> None:
        await book.save_secret(ANN, "HF_TOKEN", sealing(key_id="k1"), ENTRY)
        assert (await book.save_secret(ANN, "B", sealing(name="B", key_id="k2"), ENTRY)).key_id == "k1"
        claim = await book.claim("secrets-key", "me", TTL)
        assert claim is not None
        await book.seal_with("k2", ENTRY, claim=claim)
        assert await book.secrets_key() == "k2" and await book.secret_keys() == {"k1", "k2"}
        assert (await book.save_secret(ANN, "C", sealing(name="C"), ENTRY)).key_id == "k2"
        assert [one.name for one in await book.sealed_otherwise("k2", 10)] == ["B", "HF_TOKEN"]

    async def test_a_key_counts_only_under_the_claim(self, book: Store) -> None:
        claim = await book.claim("secrets-key", "me", TTL)
        assert claim is not None
        with pytest.raises(StaleClaim):
            await book.seal_with("k2", ENTRY, claim=replace(claim, fence=claim.fence + 1))
        assert await book.secrets_key() is None

    async def test_a_secret_is_wrapped_anew_unless_it_was_changed_meanwhile(self, book: Store) -> None:
        first = await book.save_secret(ANN, "HF_TOKEN", sealing(), ENTRY)
        after = SealedValue(key_id="k2", wrapped="anew", sealed=first.sealed)
        assert await book.rewrap_secret(first, after)
        assert await book.secret(ANN, "HF_TOKEN") == replace(first, key_id="k2", wrapped="anew")
        assert not await book.rewrap_secret(first, after)

    async def test_a_removed_secret_is_gone_and_nothing_is_said_of_none(self, book: Store) -> None:
        await book.save_secret(ANN, "HF_TOKEN", sealing(), ENTRY)
        assert await book.remove_secret(ANN, "HF_TOKEN", ENTRY)
        assert not await book.remove_secret(ANN, "HF_TOKEN", ENTRY)
        assert await book.secrets() == ()

    async def test_the_last_use_is_noted_and_never_goes_back(self, book: Store) -> None:
        await book.save_secret(ANN, "HF_TOKEN", sealing(), ENTRY)
        await book.secrets_used([(ANN, "HF_TOKEN")], LATER)
        await book.secrets_used([(ANN, "HF_TOKEN")], NOW)
        found = await book.secret(ANN, "HF_TOKEN")
        assert found is not None and found.used_at == LATER

    async def test_an_owner_has_only_so_many(self, book: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("crucible.store.secrets.MOST_SECRETS", 2)
        for number in range(2):
            await book.save_secret(ANN, f"S{number}", sealing(name=f"S{number}"), ENTRY)
        with pytest.raises(Conflict, match="remove some"):
            await book.save_secret(ANN, "ONE_MORE", sealing(name="ONE_MORE"), ENTRY)
        await book.save_secret(TEAM, "OTHERS", sealing(TEAM, "OTHERS"), ENTRY)

    async def test_values_set_at_once_are_counted_one_after_the_other(self, book: Store) -> None:
        await book.save_secret(ANN, "HF_TOKEN", sealing(), ENTRY)
        done = await asyncio.gather(
            *(book.save_secret(ANN, "HF_TOKEN", sealing(), ENTRY) for _ in range(8)), return_exceptions=True
        )
        saved = [one for one in done if isinstance(one, StoredSecret)]
        found = await book.secret(ANN, "HF_TOKEN")
        assert found is not None and found.version == 1 + len(saved)
        assert len({one.version for one in saved}) == len(saved)

    async def test_a_team_or_project_that_is_not_there_has_no_secrets(self, book: Store) -> None:
        for owner in (SecretOwner(OwnerKind.TEAM, "audio"), SecretOwner(OwnerKind.PROJECT, "x")):
            with pytest.raises(NotFound, match="there is no"):
                await book.save_secret(owner, "A", sealing(owner, "A"), ENTRY)
        assert await book.secrets() == () and await book.secrets_key() is None

    async def test_a_team_takes_its_secrets_and_those_of_its_projects_along(self, book: Store) -> None:
        for owner in (TEAM, PROJECT, ANN):
            await book.save_secret(owner, "A", sealing(owner, "A"), ENTRY)
        await book.remove_team("vision")
        assert [one.whose for one in await book.secrets()] == [ANN]

    async def test_a_project_takes_its_secrets_along(self, book: Store) -> None:
        for owner in (TEAM, PROJECT):
            await book.save_secret(owner, "A", sealing(owner, "A"), ENTRY)
        await book.remove_project("imagenet")
        assert [one.whose for one in await book.secrets()] == [TEAM]

    async def test_what_is_set_and_removed_is_logged_and_nothing_else(self, book: Store) -> None:
        await book.save_secret(ANN, "A", sealing(name="A"), ENTRY)
        await book.remove_secret(ANN, "A", replace(ENTRY, action="secret.remove"))
        await book.remove_secret(ANN, "A", replace(ENTRY, action="secret.remove"))
        assert [line.action for _, line in await book.audit_lines(AuditQuery())] == ["secret.remove", "secret.set"]

    async def test_standing_is_what_somebody_is_now(self, book: Store) -> None:
        assert await book.standing(UserId("bob")) is None
        found = await book.standing(UserId("ann"))
        assert found is not None and found.role is Role.MEMBER and found.teams == {}
        member = Membership(team="vision", user_id=UserId("ann"), role=Role.MANAGER, created_at=NOW)
        await book.save_member(member)
        found = await book.standing(UserId("ann"))
        assert found is not None and found.teams == {"vision": Role.MANAGER}
        user = await book.user(UserId("ann"))
        with contextlib.suppress(Conflict):  # nobody else is an admin; she is none
            await book.save_user(replace(user, disabled_at=LATER))
            assert await book.standing(UserId("ann")) is None
        assert await book.team_of_project("imagenet") == "vision" and await book.team_of_project("x") is None
