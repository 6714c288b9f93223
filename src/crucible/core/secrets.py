"""Whose secrets a job may use, and in which order they are looked for; who may set one. Pure."""

from collections.abc import Callable, Iterator, Sequence

from crucible.core.rights import changes, manages, runs_in
from crucible.model.account import Principal, Role, Standing
from crucible.model.errors import Forbidden, InvalidRequest
from crucible.model.ids import TokenId, UserId
from crucible.model.secret import OwnerKind, Secret, SecretOwner, SecretUse
from crucible.model.spec import JobSpec


def owners(user_id: UserId, standing: Standing, project: tuple[str, str] | None, team: str | None) -> list[SecretOwner]:
    """Of the secrets that a job of this user may use, the nearest first: their own, its project's, its team's.
    `project` comes with the team that it belongs to."""
    who = Principal(user_id, standing.role, TokenId(""), standing.teams)
    found = [SecretOwner(OwnerKind.USER, user_id)] if who.role is not Role.VIEWER else []
    if project is not None and runs_in(who, project[1]):
        found.append(SecretOwner(OwnerKind.PROJECT, project[0]))
    if team is not None and runs_in(who, team):
        found.append(SecretOwner(OwnerKind.TEAM, team))
    return found


def check_may_set(who: Principal, owner: SecretOwner, team: str | None) -> None:
    """`team` is the owner's own, or the project's. Raises Forbidden."""
    if owner.kind is OwnerKind.USER:
        if not changes(who, UserId(owner.name), None):
            raise Forbidden("who only looks has no secrets; ask an admin for another role")
    elif not manages(who, team):
        raise Forbidden(f"only managers of the team {team} may change the secrets of {owner}; ask one, or an admin")


def wanted(spec: JobSpec) -> Iterator[tuple[str, SecretUse]]:
    """Every secret that the job or one of its steps names, and where."""
    if not spec.steps:
        yield from ((f"job.secrets[{number}]", use) for number, use in enumerate(spec.secrets))
    for index, step in enumerate(spec.steps):
        for number, use in enumerate(step.job.secrets):
            yield f"job.steps[{index}].secrets[{number}]", use


def check_holds(uses: Sequence[SecretUse], value: Callable[[str], Secret]) -> None:
    """A variable holds text without NUL; a file holds anything. Raises InvalidRequest."""
    for use in uses:
        if use.env is not None and use.file is None and not is_text(value(use.name).reveal()):
            said = f"the secret {use.name} is no text, which is all that the variable {use.env} can hold"
            raise InvalidRequest(f"{said}: deliver it as a file, {{name: {use.name}, file: …}}")


def is_text(value: bytes) -> bool:
    try:
        return "\0" not in value.decode()
    except UnicodeDecodeError:
        return False
