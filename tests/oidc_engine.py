"""A real identity provider for tests: oidc-provider, certified by the OpenID Foundation, which npm brings into a cache
folder once. It listens on loopback; people sign in at its own pages with their name and any password."""

import fcntl
import html.parser
import http.client
import http.cookies
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode, urljoin, urlsplit

OIDC_PROVIDER = "8.8.1"
START_LIMIT_S = 60.0
CLIENT_ID, CLIENT_SECRET = "crucible", "a client's secret: 100% odd/+"
PEOPLE = {
    "ada": {"email": "Ada@Example.org", "email_verified": True, "name": "Ada Lovelace", "groups": ["vision", "ops"]},
    "bob": {"email": "bob@elsewhere.net", "email_verified": True, "name": "Bob", "groups": []},
    "eve": {"email": "eve@example.org", "email_verified": False, "name": "Eve", "groups": []},
}
PROGRAM = """\
import Provider from 'oidc-provider';
const { port, clients, people } = JSON.parse(process.argv[1]);
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients,
  scopes: ['openid', 'email', 'profile', 'groups'],
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'groups'] },
  pkce: { methods: ['S256'], required: () => true },
  cookies: { keys: ['only for tests'] },
  findAccount: (ctx, id) => people[id] && { accountId: id, claims: async () => ({ sub: id, ...people[id] }) },
});
provider.listen(port, '127.0.0.1');
"""


@dataclass(frozen=True, slots=True)
class OidcEngine:
    issuer: str


@contextmanager
def oidc_engine(callback: str) -> Iterator[OidcEngine]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    client = {
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "redirect_uris": [callback],
        "grant_types": ["authorization_code"],
        "response_types": ["code"],
    }
    settings = json.dumps({"port": port, "clients": [client], "people": PEOPLE})
    process = subprocess.Popen(
        ["node", "--input-type=module", "-e", PROGRAM, "--", settings],
        cwd=installed(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(port, process)
        yield OidcEngine(f"http://127.0.0.1:{port}")
    finally:
        process.kill()
        process.wait()


def wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + START_LIMIT_S
    while time.monotonic() < until:
        assert process.poll() is None, "the identity provider has ended"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the identity provider does not listen")


def installed() -> Path:
    cache = Path(os.environ.get("CRUCIBLE_CACHE") or Path.home() / ".cache" / "crucible")
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"oidc-provider-{OIDC_PROVIDER}"
    with (cache / "oidc-provider.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "whole").exists():
            npm = shutil.which("npm")
            assert npm is not None, "the identity provider of tests needs npm: install Node.js 20 or newer"
            folder.mkdir(exist_ok=True)
            options = ["--no-audit", "--no-fund", "--no-package-lock", "--prefix", str(folder)]
            done = subprocess.run(
                [npm, "install", *options, f"oidc-provider@{OIDC_PROVIDER}"],
                capture_output=True,
                text=True,
                timeout=250,
            )
            assert done.returncode == 0, done.stderr
            (folder / "whole").touch()
    return folder


class Browser:
    """As much of one as signing in takes: cookies, redirects, forms."""

    def __init__(self, person: str) -> None:
        self._person = person
        self._cookies: dict[str, dict[str, str]] = {}  # by server

    def visit(self, address: str, until: str | None = None) -> tuple[str, int, str]:
        """Where it ends up, signing in and agreeing on the way: address, status, page. It does not go to addresses
        that begin with `until`."""
        status, page = 0, ""
        for _ in range(20):
            if until is not None and address.startswith(until):
                break
            status, location, page = self._ask("GET", address)
            if location is None and "<form" in page:
                form = Form(page)
                body = {**form.hidden, **({"login": self._person, "password": "any"} if "login" in form.fields else {})}
                status, location, page = self._ask("POST", urljoin(address, form.action or address), urlencode(body))
            if location is None:
                break
            address = urljoin(address, location)
        return address, status, page

    def _ask(self, method: str, address: str, body: str | None = None) -> tuple[int, str | None, str]:
        parts = urlsplit(address)
        cookies = self._cookies.setdefault(parts.netloc, {})
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection = http.client.HTTPConnection(parts.netloc, timeout=20)
        try:
            connection.request(method, f"{parts.path}?{parts.query}", body, headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        for line in answer.headers.get_all("Set-Cookie") or ():
            cookies |= {name: morsel.value for name, morsel in http.cookies.SimpleCookie(line).items()}
        return answer.status, answer.headers.get("Location"), text


class Form(html.parser.HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.action: str | None = None
        self.fields: set[str] = set()
        self.hidden: dict[str, str] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        if tag == "form":
            self.action = told.get("action")
        elif tag == "input" and told.get("name"):
            self.fields.add(str(told["name"]))
            if told.get("type") == "hidden":
                self.hidden[str(told["name"])] = told.get("value") or ""
