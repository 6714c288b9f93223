"""Teams, projects, what must always hold of them, and the log of changes. A part of StoreContract."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from crucible.model.account import Membership, Project, Role, Team, User, UserKind
from crucible.model.audit import AuditEntry
from crucible.model.change import born
from crucible.model.errors import Conflict, NotFound, PlatformError, UnknownProject, UnknownTeam
from crucible.model.ids import TokenId, UserId
from crucible.model.job import JobStatus, JobStatusChanged, JobSubmitted
from crucible.ports.accounts import AuditQuery, Seal
from crucible.ports.store import Store
from crucible.testing.specimens import LATER, NOW, a_job, step, submitted

ANN = User(id=UserId("ann"), name="ann", role=Role.ADMIN, created_at=NOW)
BOB = User(id=UserId("bob"), name="bob", role=Role.MEMBER, created_at=LATER)
VISION = Team(name="vision", created_at=NOW, created_by=ANN.id)
CATS = Project(name="cats", team="vision", created_at=NOW, created_by=ANN.id)


def line(action: str, team: str | None = None, details: Mapping[str, Any] | None = None) -> AuditEntry:
    return AuditEntry(
        at=NOW,
        user_id=ANN.id,
        token_id=TokenId("t1"),
        action=action,
        subject=f"team:{team}",
        team=team,
        details=details or {},
    )


def member(user: User, role: Role = Role.MEMBER) -> Membership:
    return Membership(team="vision", user_id=user.id, role=role, created_at=NOW)


async def settled(store: Store) -> None:
    """A team, its project and two people."""
    for user in (ANN, BOB):
        await store.add_user(user)
    await store.add_team(VISION)
    await store.add_project(CATS)


class AccountContract:
    # --- teams and projects -----------------------------------------------------------------------------------

    async def test_teams_have_members_and_projects(self, store: Store) -> None:
        await settled(store)
        await store.save_member(member(BOB))
        await store.save_member(replace(member(BOB, Role.MANAGER), created_at=LATER))
        await store.save_member(member(ANN, Role.VIEWER))
        assert await store.teams() == (VISION,)
        assert await store.projects() == (CATS,)
        assert await store.memberships(["vision"]) == (member(ANN, Role.VIEWER), member(BOB, Role.MANAGER))
        assert await store.memberships(["speech"]) == ()
        await store.remove_member("vision", ANN.id)
        assert await store.memberships() == (member(BOB, Role.MANAGER),)
        with pytest.raises(NotFound, match="ann is not in the team vision"):
            await store.remove_member("vision", ANN.id)

    async def test_names_are_taken_once_and_what_they_belong_to_must_be_there(self, store: Store) -> None:
        await settled(store)
        with pytest.raises(Conflict, match="vision"):
            await store.add_team(VISION)
        with pytest.raises(Conflict, match="cats"):
            await store.add_project(CATS)
        for adding in (
            store.add_project(replace(CATS, name="dogs", team="none")),
            store.save_member(replace(member(BOB), team="none")),
            store.save_member(replace(member(BOB), user_id=UserId("nobody"))),
            store.add_user(replace(BOB, id=UserId("x"), name="x"), team=replace(member(BOB), team="none")),
            store.remove_team("none"),
            store.remove_project("none"),
            store.save_user(replace(BOB, id=UserId("nobody"))),
        ):
            with pytest.raises(NotFound):
                await adding
        assert [user.name for user in await store.users()] == ["ann", "bob"]

    async def test_a_service_begins_in_its_team(self, store: Store) -> None:
        await settled(store)
        robot = replace(BOB, id=UserId("ci"), name="ci", kind=UserKind.SERVICE)
        await store.add_user(robot, team=replace(member(BOB), user_id=robot.id))
        assert await store.user(robot.id) == robot
        assert [one.user_id for one in await store.memberships()] == ["ci"]

    async def test_what_jobs_still_run_for_is_not_removed(self, store: Store) -> None:
        await settled(store)
        await store.save_member(member(BOB))
        job, _ = await submitted(store, team="vision", project="cats")
        for removing in (store.remove_team("vision"), store.remove_project("cats")):
            with pytest.raises(Conflict, match="j1"):
                await removing
        await store.commit([step(job, JobStatusChanged(NOW, JobStatus.FAILED, "no"))[1]], label="test")
        await store.remove_team("vision")
        assert (await store.teams(), await store.projects(), await store.memberships()) == ((), (), ())
        assert (await store.job(job.id)).team == "vision", "what it has cost stays in the books"

    async def test_a_job_is_not_counted_under_what_is_gone(self, store: Store) -> None:
        await settled(store)
        for missing, error in (({"team": "none"}, UnknownTeam), ({"team": "vision", "project": "no"}, UnknownProject)):
            job = a_job("j1", **missing)
            with pytest.raises(error):
                await store.submit([born(job, JobSubmitted(NOW))], idempotency_key=None, user_id=job.user_id)

    async def test_a_team_is_removed_or_gets_a_job_and_never_both(self, store: Store) -> None:
        for number in range(5):
            name = f"t{number}"
            await store.add_team(replace(VISION, name=name))
            job = a_job(f"j{number}", team=name)
            both = await asyncio.gather(
                store.submit([born(job, JobSubmitted(NOW))], idempotency_key=None, user_id=job.user_id),
                store.remove_team(name),
                return_exceptions=True,
            )
            failed = [one for one in both if isinstance(one, PlatformError)]
            assert [type(one) for one in failed] in ([UnknownTeam], [Conflict]), both

    # --- admins -----------------------------------------------------------------------------------------------

    async def test_there_is_always_an_admin(self, store: Store) -> None:
        await settled(store)
        for after in (replace(ANN, role=Role.MEMBER), replace(ANN, disabled_at=LATER)):
            with pytest.raises(Conflict, match="ann is the only admin"):
                await store.save_user(after)
        await store.save_user(replace(BOB, role=Role.ADMIN))
        await store.save_user(replace(ANN, disabled_at=LATER))
        assert (await store.user(ANN.id)).disabled_at == LATER
        with pytest.raises(Conflict, match="bob"):
            await store.save_user(BOB)
        await store.save_user(ANN)
        await store.save_user(BOB)

    async def test_two_admins_who_dismiss_each_other_leave_one(self, store: Store) -> None:
        bob = replace(BOB, role=Role.ADMIN)
        for user in (ANN, bob):
            await store.add_user(user)
        for _ in range(5):
            leaving = (store.save_user(replace(user, role=Role.MEMBER)) for user in (ANN, bob))
            both = await asyncio.gather(*leaving, return_exceptions=True)
            assert sum(isinstance(one, Conflict) for one in both) == 1, both
            for user in (ANN, bob):
                await store.save_user(user)

    # --- the log ----------------------------------------------------------------------------------------------

    async def test_a_change_and_its_line_are_written_together_or_not_at_all(self, store: Store) -> None:
        await settled(store)
        await store.add_team(replace(VISION, name="speech"), audit=line("team.create", "speech"))
        with pytest.raises(Conflict):
            await store.add_team(VISION, audit=line("team.create", "vision"))
        await store.commit((), [line("prices.refresh")], label="test")
        found = await store.audit_lines(AuditQuery())
        assert [(seq, entry.action) for seq, entry in found] == [
            (found[0][0], "prices.refresh"),
            (found[1][0], "team.create"),
        ]
        assert found[0][0] > found[1][0]

    async def test_the_log_is_read_newest_first_by_team_person_and_subject(self, store: Store) -> None:
        for number in range(6):
            entry = line(f"a{number}", ("vision", "speech", None)[number % 3])
            await store.commit((), [entry], label="test")

        async def actions(**asked: Any) -> list[str]:
            return [entry.action for _, entry in await store.audit_lines(AuditQuery(**asked))]

        assert await actions() == ["a5", "a4", "a3", "a2", "a1", "a0"]
        assert await actions(limit=2) == ["a5", "a4"]
        assert await actions(teams=frozenset({"vision", "speech"})) == ["a4", "a3", "a1", "a0"]
        assert await actions(teams=frozenset({"vision", "speech"}), limit=3) == ["a4", "a3", "a1"]
        assert await actions(teams=frozenset()) == []
        assert await actions(subject="team:speech") == ["a4", "a1"]
        assert await actions(user_id=UserId("bob")) == []
        third = (await store.audit_lines(AuditQuery(limit=3)))[-1][0]
        assert await actions(before=third) == ["a2", "a1", "a0"]

    async def test_every_line_seals_those_before_it(self, store: Store) -> None:
        odd = {"words": "nul \0, half \ud800, ä", "n": 1.5, "list": [1, None, {"a": True}]}
        await asyncio.gather(*(store.commit((), [line(f"a{n}", "v", odd)], label="test") for n in range(20)))
        seal, steps = Seal(), 0
        while (after := await store.check_audit(seal, limit=7)) != seal:
            seal, steps = after, steps + 1
        assert (seal.broken, steps) == (None, 3)
        newest = (await store.audit_lines(AuditQuery(limit=1)))[0][0]
        assert seal.seq == newest
        forged = replace(seal, digest="0" * 64, seq=newest - 5)
        assert (await store.check_audit(forged)).broken is not None
