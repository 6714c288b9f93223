"""People sign in where their company does (J1): a real identity provider, a real server, the command line, and as much
of a browser as that takes."""

import http.client
import json
import re
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from crucible.core.sign_in import challenge_of
from oidc_engine import CLIENT_ID, CLIENT_SECRET, Browser, oidc_engine
from person import LIMIT_S, Person

BACK = "http://127.0.0.1:1/"  # nobody listens there: what the browser would bring is looked at instead


@dataclass
class Site:
    operator: Person
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def admin(self) -> str:
        return (self.operator.data / "admin-token").read_text().strip()

    def begun(self, verifier: str, **more: str) -> str:
        query = {"redirect": BACK, "challenge": challenge_of(verifier), "state": "mine", **more}
        return f"{self.url}/v1/login/oidc?{urlencode(query)}"

    def code_for(self, person: str, verifier: str) -> str:
        address, _, _ = Browser(person).visit(self.begun(verifier), until=BACK)
        told = parse_qs(urlsplit(address).query)
        assert told["state"] == ["mine"]
        return told["code"][0]

    def ask(self, method: str, path: str, body: Any = None, token: str | None = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        status, content = answer.status, answer.read()
        connection.close()
        return status, json.loads(content) if content else None

    def exchanged(self, code: str, verifier: str) -> tuple[int, Any]:
        return self.ask("POST", "/v1/login/token", {"code": code, "verifier": verifier})


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = tmp_path_factory.mktemp("site")
    (folder / "client-secret").write_text(f"{CLIENT_SECRET}\n")
    with oidc_engine(f"http://127.0.0.1:{port}/v1/login/oidc/callback") as provider:
        operator = Person(folder)
        operator.env |= {
            "CRUCIBLE_PORT": str(port),
            "CRUCIBLE_OIDC_ISSUER": provider.issuer,
            "CRUCIBLE_OIDC_CLIENT_ID": CLIENT_ID,
            "CRUCIBLE_OIDC_CLIENT_SECRET_FILE": str(folder / "client-secret"),
            "CRUCIBLE_OIDC_NAME": "Example's own",
            "CRUCIBLE_OIDC_DOMAINS": "example.org",
            "CRUCIBLE_OIDC_TEAMS": "vision=research:manager",
        }
        assert operator.run("server", "start").returncode == 0
        site = Site(operator, port)
        assert site.ask("POST", "/v1/teams", {"name": "research"}, site.admin)[0] == 201
        yield site
        operator.leave()


def test_a_person_signs_in_with_a_browser_and_uses_the_command_line(site: Site, tmp_path: Path) -> None:
    ada = Person(tmp_path)
    with ada.start("login", site.url, "--sso", "--no-browser") as login:
        assert login.stderr is not None
        address = next(found[0] for line in login.stderr if (found := re.search(r"http://\S+", line)))
        _, status, page = Browser("ada").visit(address)
        out, _ = login.communicate(timeout=LIMIT_S)
    assert (login.returncode, status) == (0, 200), page
    assert "as ada@example.org (member)" in out
    assert "Signed in" in page
    _, team = site.ask("GET", "/v1/teams/research/members", token=site.admin)
    assert [(one["user_id"], one["role"]) for one in team["items"]] == [("ada@example.org", "manager")]
    _, audit = site.ask("GET", "/v1/audit", token=site.admin)
    assert {"user.sign_in", "token.sign_in"} <= {line["action"] for line in audit["items"]}


def test_a_code_is_good_for_one_token_and_only_for_who_began(site: Site) -> None:
    verifier = secrets.token_urlsafe(48)
    code = site.code_for("ada", verifier)
    assert site.exchanged(code, secrets.token_urlsafe(48))[0] == 401
    status, made = site.exchanged(code, verifier)
    assert status == 201
    assert made["expires_at"] is not None
    assert site.ask("GET", "/v1/me", token=made["token"])[1]["user_id"] == "ada@example.org"
    status, told = site.exchanged(code, verifier)
    assert (status, told["error"]) == (401, "unauthenticated")
    assert "used already" in told["message"]


@pytest.mark.parametrize("person", ["bob", "eve"])
def test_who_is_not_let_in_hears_why_and_does_not_exist_here(site: Site, person: str) -> None:
    told = refusal(site, person)
    assert told["error"] == ["forbidden"]
    assert "ask an admin" in told["error_description"][0]
    assert person not in site.operator.run("user", "ls").stdout


def test_the_command_line_ends_at_once_with_why_nobody_was_let_in(site: Site, tmp_path: Path) -> None:
    bob = Person(tmp_path)
    with bob.start("login", site.url, "--sso", "--no-browser") as login:
        assert login.stderr is not None
        address = next(found[0] for line in login.stderr if (found := re.search(r"http://\S+", line)))
        Browser("bob").visit(address)
        _, said = login.communicate(timeout=LIMIT_S)
    assert login.returncode == 4 and "not let in here: ask an admin" in said


def refusal(site: Site, person: str) -> dict[str, list[str]]:
    address, _, _ = Browser(person).visit(site.begun(secrets.token_urlsafe(48)), until=BACK)
    assert address.startswith(BACK)
    told = parse_qs(urlsplit(address).query)
    assert told["state"] == ["mine"] and "code" not in told
    return told


def test_who_is_disabled_here_does_not_come_in(site: Site) -> None:
    site.code_for("ada", secrets.token_urlsafe(48))
    disabled, enabled = ({"disabled": is_so} for is_so in (True, False))
    assert site.ask("PATCH", "/v1/users/ada@example.org", disabled, site.admin)[0] == 200
    assert "disabled here; ask an admin" in refusal(site, "ada")["error_description"][0]
    assert site.ask("PATCH", "/v1/users/ada@example.org", enabled, site.admin)[0] == 200


def test_what_the_provider_refuses_is_told_to_who_began(site: Site) -> None:
    state = parse_qs(urlsplit(location(site, site.begun("v" * 43))).query)["state"][0]
    back = location(site, f"{site.url}/v1/login/oidc/callback?{urlencode({'error': 'access_denied', 'state': state})}")
    assert parse_qs(urlsplit(back).query) == {"error": ["access_denied"], "state": ["mine"]}


def location(site: Site, address: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=30)
    parts = urlsplit(address)
    connection.request("GET", f"{parts.path}?{parts.query}")
    answer = connection.getresponse()
    answer.read()
    connection.close()
    assert answer.status == 302
    return str(answer.headers["Location"])


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"redirect": "https://evil.example/"}, 400),
        ({"challenge": "short"}, 422),
        ({"state": ""}, 422),
    ],
)
def test_a_sign_in_that_would_lead_elsewhere_does_not_begin(site: Site, query: dict[str, str], status: int) -> None:
    parts = urlsplit(site.begun("v" * 43, **query))
    said, told = site.ask("GET", f"{parts.path}?{parts.query}")
    assert (said, told["details"]["field"].rpartition(".")[2]) == (status, next(iter(query)))


@pytest.mark.parametrize("state", ["x", "crb.e30.0000", "cro.e30.0000"])
def test_a_state_that_this_server_did_not_make_leads_nowhere(site: Site, state: str) -> None:
    assert site.ask("GET", f"/v1/login/oidc/callback?{urlencode({'code': 'c', 'state': state})}")[0] == 401
    assert site.exchanged(state, "v" * 43)[0] == 401


def test_a_code_that_the_provider_did_not_give_is_refused(site: Site) -> None:
    state = parse_qs(urlsplit(location(site, site.begun("v" * 43))).query)["state"][0]
    status, told = site.ask("GET", f"/v1/login/oidc/callback?{urlencode({'code': 'forged', 'state': state})}")
    assert (status, told["error"]) == (401, "unauthenticated")


def test_ways_to_sign_in_are_told_to_anybody(site: Site) -> None:
    ways = {"ways": ["token", "oidc"], "oidc_name": "Example's own", "label": None}
    assert site.ask("GET", "/v1/login") == (200, ways)
