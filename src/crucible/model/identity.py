"""Who somebody is elsewhere, and what that makes them here."""

from collections.abc import Mapping
from dataclasses import dataclass

from crucible.model.account import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What it says of somebody. (`issuer`, `subject`) never changes and is never given to another person; everything
    else may."""

    issuer: str
    subject: str
    email: str | None = None
    is_email_verified: bool = False
    name: str | None = None
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """`synced` are the teams that the provider decides about: who is not among their `teams` leaves them. `role` is
    None where it does not decide who is an admin."""

    name: str
    role: Role | None
    teams: Mapping[str, Role]
    synced: frozenset[str]
