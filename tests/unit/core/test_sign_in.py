"""Who may come in, under which name, and what they belong to."""

import pytest

from crucible.core.sign_in import SignInPolicy, admitted, challenge_of, check_return, group_rule, name_of
from crucible.model.account import Role
from crucible.model.errors import Forbidden, InvalidRequest
from crucible.model.identity import Identity

ADA = Identity(
    issuer="https://id.example",
    subject="0042",
    email="Ada@Example.org",
    is_email_verified=True,
    groups=("vision", "ops"),
)
ALL = SignInPolicy(domains=frozenset({"*"}))


def test_nobody_may_come_in_by_default() -> None:
    with pytest.raises(Forbidden, match="ask an admin"):
        admitted(ADA, SignInPolicy())


@pytest.mark.parametrize("domain", ["example.org", "*"])
def test_a_domain_that_is_let_in_admits_its_people_as_members_of_no_team(domain: str) -> None:
    admission = admitted(ADA, SignInPolicy(domains=frozenset({domain})))
    assert (admission.name, admission.role, dict(admission.teams)) == ("ada@example.org", None, {})


def test_an_address_that_nobody_verified_admits_nobody_and_names_nobody() -> None:
    eve = Identity(issuer="https://id.example", subject="eve/1", email="ada@example.org")
    with pytest.raises(Forbidden):
        admitted(eve, SignInPolicy(domains=frozenset({"example.org"})))
    assert name_of(eve) == "oidc-eve-1"


@pytest.mark.parametrize("email", ["admin", "ADMIN", "@example.org", "admin@", "a@b@c", "admin\n@x", "é@example.org"])
def test_what_is_no_whole_address_names_nobody_whoever_verified_it(email: str) -> None:
    eve = Identity(issuer="i", subject="eve", email=email, is_email_verified=True)
    assert name_of(eve) == "oidc-eve"


def test_a_domain_is_the_whole_part_behind_the_last_at() -> None:
    for email in ("x@example.org.evil.net", "x@evilexample.org", "example.org", "x@example.org@evil.net"):
        eve = Identity(issuer="i", subject="s", email=email, is_email_verified=True)
        with pytest.raises(Forbidden):
            admitted(eve, SignInPolicy(domains=frozenset({"example.org"})))


def test_groups_become_teams_with_the_highest_role_that_any_of_them_gives() -> None:
    rules = {"vision": ("research", Role.VIEWER), "ops": ("research", Role.MANAGER), "sales": ("shop", Role.MEMBER)}
    admission = admitted(ADA, SignInPolicy(groups=rules))
    assert dict(admission.teams) == {"research": Role.MANAGER}
    assert admission.synced == {"research", "shop"}


@pytest.mark.parametrize(("groups", "role"), [(("ops",), Role.ADMIN), ((), Role.MEMBER)])
def test_where_a_group_makes_admins_the_provider_decides_who_is_one(groups: tuple[str, ...], role: Role) -> None:
    who = Identity(issuer="i", subject="s", groups=groups)
    policy = SignInPolicy(domains=frozenset({"*"}), admin_groups=frozenset({"ops"}))
    assert admitted(who, policy).role is role


def test_a_rule_for_a_group_is_read_from_its_text() -> None:
    assert group_rule("a=b=vision:manager") == ("a=b", ("vision", Role.MANAGER))
    assert group_rule("ml=vision") == ("ml", ("vision", Role.MEMBER))


@pytest.mark.parametrize("text", ["", "vision", "=vision", "ml=", "ml=vision:admin", "ml=vision:king"])
def test_a_rule_that_says_nothing_is_refused_with_how_to_write_one(text: str) -> None:
    with pytest.raises(InvalidRequest, match="GROUP=TEAM:ROLE"):
        group_rule(text)


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:5000/", "http://[::1]:5000/x?y=1", "http://localhost:1/", "https://crucible.example/signed-in"],
)
def test_browsers_are_sent_back_to_this_computer_or_this_server(address: str) -> None:
    check_return(address, "https://crucible.example")


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/",
        "http://127.0.0.1/",  # no port: whatever listens there
        "https://127.0.0.1:5000/",
        "http://127.0.0.1.evil.net:80/",
        "https://crucible.example.evil.net/",
        "http://crucible.example/",
        "https://crucible.example@evil.net/",
        "https://x@crucible.example/",
        "javascript:alert(1)",
        "//evil.net",
        "http://127.0.0.1:5000/#x",
    ],
)
def test_browsers_are_sent_back_nowhere_else(address: str) -> None:
    with pytest.raises(InvalidRequest, match="redirect"):
        check_return(address, "https://crucible.example")


def test_the_challenge_is_that_of_rfc_7636() -> None:
    assert challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
