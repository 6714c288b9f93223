"""Who of those that sign in elsewhere may come in, under which name, and what they belong to. Nobody may by default."""

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from crucible.model.account import Role
from crucible.model.errors import Forbidden, InvalidRequest
from crucible.model.identity import Admission, Identity

ANYBODY = "*"
# As names of users may be, and never without its domain: one that is called "admin" there is not the admin here.
_EMAIL = re.compile(r"(?=.{3,64}\Z)[a-z0-9][a-z0-9._-]*@[a-z0-9][a-z0-9.-]*")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInPolicy:
    domains: frozenset[str] = frozenset()  # of verified e-mail addresses; "*": whoever the provider knows
    groups: Mapping[str, tuple[str, Role]] = field(default_factory=dict)  # of the provider -> a team, and as what
    admin_groups: frozenset[str] = frozenset()


def admitted(identity: Identity, policy: SignInPolicy) -> Admission:
    """Raises Forbidden."""
    groups = set(identity.groups)
    teams: dict[str, Role] = {}
    for group, (team, role) in policy.groups.items():
        if group in groups and (team not in teams or role.covers(teams[team])):
            teams[team] = role
    is_admin = bool(groups & policy.admin_groups)
    if not (is_admin or teams or _is_of_domain(identity, policy.domains)):
        raise Forbidden("you are signed in, but not let in here: ask an admin to admit your domain or group")
    return Admission(
        name=name_of(identity),
        role=(Role.ADMIN if is_admin else Role.MEMBER) if policy.admin_groups else None,
        teams=teams,
        synced=frozenset(team for team, _ in policy.groups.values()),
    )


def name_of(identity: Identity) -> str:
    """A verified e-mail address names a person; anything else that they chose themselves could be somebody else's."""
    if identity.email is not None and identity.is_email_verified:
        email = identity.email.lower()
        if _EMAIL.fullmatch(email):
            return email
    subject = re.sub(r"[^A-Za-z0-9._-]", "-", identity.subject)[:56]
    return f"oidc-{subject}"


def group_rule(text: str) -> tuple[str, tuple[str, Role]]:
    """GROUP=TEAM or GROUP=TEAM:ROLE. Raises InvalidRequest."""
    group, _, rest = text.rpartition("=")
    team, _, role = rest.partition(":")
    if not group or not team or (role or Role.MEMBER) not in (Role.VIEWER, Role.MEMBER, Role.MANAGER):
        raise InvalidRequest(
            f"{text!r} says nothing of groups; write GROUP=TEAM:ROLE, the role viewer, member or manager"
        )
    return group, (team, Role(role or Role.MEMBER))


def check_return(address: str, own: str) -> None:
    """Where a browser is sent when it is done: to a program on the same computer, or to a page of this server. Anywhere
    else, a code would be given away. Raises InvalidRequest."""
    parts, home = urlsplit(address), urlsplit(own)
    is_program = parts.scheme == "http" and parts.hostname in _LOOPBACK and parts.port is not None
    is_page = (parts.scheme, parts.netloc) == (home.scheme, home.netloc)
    if parts.username is not None or parts.fragment or not (is_program or is_page):
        raise InvalidRequest("redirect names neither a port of your own computer nor this server", field="redirect")


def challenge_of(verifier: str) -> str:
    """S256 of RFC 7636: shows that whoever ends a sign-in is who began it."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def _is_of_domain(identity: Identity, domains: frozenset[str]) -> bool:
    if ANYBODY in domains:
        return True
    if identity.email is None or not identity.is_email_verified:
        return False
    _, at, domain = identity.email.rpartition("@")
    return bool(at) and domain.lower() in domains
