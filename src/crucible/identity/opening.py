"""Signing in elsewhere as the operator has set it up, by environment variables: a secret has no place on a command
line. Without CRUCIBLE_OIDC_ISSUER people have tokens and nothing else."""

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from crucible.core.sign_in import SignInPolicy, group_rule
from crucible.model.errors import InvalidRequest
from crucible.ports.identity import IdentityProvider

PREFIX = "CRUCIBLE_OIDC_"


def opened_identity(
    environ: Mapping[str, str], now: Callable[[], datetime]
) -> tuple[IdentityProvider | None, SignInPolicy]:
    """Raises InvalidRequest for settings that can never work. Nobody is asked yet."""
    issuer = environ.get(f"{PREFIX}ISSUER")
    if not issuer:
        return None, SignInPolicy()
    client_id = environ.get(f"{PREFIX}CLIENT_ID")
    if not client_id:
        raise InvalidRequest(f"{PREFIX}ISSUER is set: set {PREFIX}CLIENT_ID too, as {issuer} knows this server")
    try:
        from crucible.identity.oidc import OidcProvider, OidcSettings
    except ModuleNotFoundError as error:
        raise InvalidRequest("signing in elsewhere needs more: pip install 'crucible[oidc]'") from error
    settings = OidcSettings(
        issuer=issuer,
        client_id=client_id,
        client_secret=_secret(environ),
        name=environ.get(f"{PREFIX}NAME") or "single sign-on",
        scopes=("openid", *(_listed(environ, "SCOPES") or ("email", "profile"))),
        groups_claim=environ.get(f"{PREFIX}GROUPS_CLAIM") or "groups",
    )
    return OidcProvider(settings, now), _policy(environ)


def _policy(environ: Mapping[str, str]) -> SignInPolicy:
    policy = SignInPolicy(
        domains=frozenset(domain.lower() for domain in _listed(environ, "DOMAINS")),
        groups=dict(group_rule(text) for text in _listed(environ, "TEAMS")),
        admin_groups=frozenset(_listed(environ, "ADMINS")),
    )
    if policy == SignInPolicy():
        raise InvalidRequest(
            f"nobody could sign in: say who may with {PREFIX}DOMAINS=example.org (or *),"
            f" {PREFIX}TEAMS=group=team:member or {PREFIX}ADMINS=group"
        )
    return policy


def _secret(environ: Mapping[str, str]) -> str | None:
    path = environ.get(f"{PREFIX}CLIENT_SECRET_FILE")
    if path is None:
        return environ.get(f"{PREFIX}CLIENT_SECRET") or None
    try:
        return Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{PREFIX}CLIENT_SECRET_FILE={path} cannot be read: {error}") from error


def _listed(environ: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in environ.get(f"{PREFIX}{name}", "").split(",") if word.strip())
