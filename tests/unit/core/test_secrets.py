"""Whose secrets a job may use, and who may set them."""

import pytest

from crucible.core.secrets import check_holds, check_may_set, owners, wanted
from crucible.model.account import Principal, Role, Standing
from crucible.model.errors import Forbidden, InvalidRequest
from crucible.model.ids import TokenId, UserId
from crucible.model.secret import OwnerKind, Secret, SecretOwner, SecretUse
from crucible.spec import load

ANN = UserId("ann")
MEMBER = Standing(Role.MEMBER, {"vision": Role.MEMBER, "audio": Role.VIEWER})


def names(standing: Standing, project: tuple[str, str] | None, team: str | None) -> list[str]:
    return [str(owner) for owner in owners(ANN, standing, project, team)]


def test_the_nearest_owner_is_asked_first() -> None:
    assert names(MEMBER, ("imagenet", "vision"), "vision") == ["user:ann", "project:imagenet", "team:vision"]
    assert names(MEMBER, None, None) == ["user:ann"]


def test_who_only_looks_at_a_team_does_not_use_its_secrets() -> None:
    assert names(MEMBER, ("whisper", "audio"), "audio") == ["user:ann"]
    assert names(MEMBER, ("alien", "others"), "others") == ["user:ann"]
    assert names(Standing(Role.VIEWER, {"vision": Role.MANAGER}), None, "vision") == []


def test_an_admin_uses_every_teams() -> None:
    assert names(Standing(Role.ADMIN, {}), ("imagenet", "vision"), "vision")[1:] == ["project:imagenet", "team:vision"]


@pytest.mark.parametrize(
    ("role", "in_team", "kind", "may"),
    [
        (Role.MEMBER, None, OwnerKind.USER, True),
        (Role.VIEWER, None, OwnerKind.USER, False),
        (Role.MEMBER, Role.MEMBER, OwnerKind.TEAM, False),
        (Role.MEMBER, Role.MANAGER, OwnerKind.TEAM, True),
        (Role.MEMBER, Role.MANAGER, OwnerKind.PROJECT, True),
        (Role.VIEWER, Role.MANAGER, OwnerKind.TEAM, False),
        (Role.ADMIN, None, OwnerKind.PROJECT, True),
    ],
)
def test_ones_own_and_those_of_teams_that_one_manages_are_set(
    role: Role, in_team: Role | None, kind: OwnerKind, may: bool
) -> None:
    who = Principal(ANN, role, TokenId("t"), {} if in_team is None else {"vision": in_team})
    owner = SecretOwner(kind, "ann" if kind is OwnerKind.USER else "vision")
    if may:
        check_may_set(who, owner, "vision")
    else:
        with pytest.raises(Forbidden):
            check_may_set(who, owner, "vision")


def test_steps_name_theirs_and_take_over_what_the_workflow_names() -> None:
    spec = load(
        "job:\n  secrets: [A]\n  steps:\n    - {name: a, command: x}\n    - {name: b, command: y, secrets: [B, C]}\n"
    ).spec
    assert [(field, use.name) for field, use in wanted(spec)] == [
        ("job.steps[0].secrets[0]", "A"),
        ("job.steps[1].secrets[0]", "B"),
        ("job.steps[1].secrets[1]", "C"),
    ]


@pytest.mark.parametrize("value", [b"\xff", b"a\0b"])
def test_a_variable_holds_text_and_a_file_anything(value: bytes) -> None:
    as_file = SecretUse(name="A", env="A_FILE", file="a")
    check_holds([as_file], lambda name: Secret(value))
    with pytest.raises(InvalidRequest, match="deliver it as a file"):
        check_holds([as_file, SecretUse(name="A", env="A")], lambda name: Secret(value))
