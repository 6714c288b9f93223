"""The page as it is served: which files, where it says it is, what it may load, and what is kept in caches."""

import gzip
import json
import os
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin

import pytest

from crucible import __version__
from crucible.api.app import ApiSettings

from .conftest import Reply, Server

DESCRIPTION = Path(__file__).parents[3] / "web" / "openapi.json"


def get(server: Server, path: str, method: str = "GET", **headers: str) -> Reply:
    return server.call(method, path, None, headers={name.replace("_", "-"): value for name, value in headers.items()})


class Head(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.base = self.nonce = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        told = dict(attributes)
        if tag == "base":
            self.base = told["href"] or ""
        if tag == "meta" and told.get("name") == "csp-nonce":
            self.nonce = told["content"] or ""


@pytest.mark.parametrize("path", ["/", "/ui"])
def test_the_way_to_the_page_is_relative(server: Server, path: str) -> None:
    reply = get(server, path)
    assert (reply.status, reply.headers["Location"]) == (307, "ui/")


PLACES = ["", "jobs", "jobs/", "jobs/j-1", "jobs/a%2Fb", "jobs/a%2fb/c", "settings/tokens", "jobs?tab=a/b/c"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("prefix", ["", "/some", "/some/deep%2Fer/prefix"])
def test_the_page_knows_the_way_back_from_every_place_and_behind_every_prefix(
    server: Server, place: str, prefix: str
) -> None:
    reply = get(server, f"/ui/{place}")
    assert (reply.status, reply.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    seen = urljoin(f"https://proxy.example{prefix}/ui/{place}", Head(reply.text).base)
    assert seen == f"https://proxy.example{prefix}/ui/"


def test_styles_of_the_page_carry_a_nonce_that_is_never_the_same(server: Server) -> None:
    replies = [get(server, "/ui/"), get(server, "/ui/jobs"), get(server, "/ui/")]
    nonces = {Head(reply.text).nonce for reply in replies}
    assert len(nonces) == 3
    for reply in replies:
        policy = reply.headers["Content-Security-Policy"]
        assert f"style-src 'self' 'nonce-{Head(reply.text).nonce}';" in policy
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "*" not in policy


def test_what_can_change_is_asked_for_each_time_and_what_cannot_is_kept(server: Server) -> None:
    assert get(server, "/ui/").headers["Cache-Control"] == "no-cache"
    assert get(server, "/ui/icon.svg").headers["Cache-Control"] == "no-cache"
    kept = get(server, "/ui/assets/index-a1.js")
    assert kept.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert kept.headers.get_all("Cache-Control") == [kept.headers["Cache-Control"]]
    assert "default-src 'none'" in kept.headers["Content-Security-Policy"]


def test_files_come_packed_to_who_takes_them_so(server: Server) -> None:
    plain, packed = get(server, "/ui/assets/index-a1.js"), get(server, "/ui/assets/index-a1.js", accept_encoding="gzip")
    assert plain.text == gzip.decompress(packed.body).decode() == "go()"
    assert plain.headers["Content-Type"] == packed.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert packed.headers["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Vary"] == "accept-encoding"


def test_a_file_that_the_browser_has_is_not_sent_again(server: Server) -> None:
    etag = get(server, "/ui/icon.svg").headers["ETag"]
    again = get(server, "/ui/icon.svg", if_none_match=f'W/"other", {etag}')
    assert (again.status, again.body, again.headers["ETag"]) == (304, b"", etag)
    assert get(server, "/ui/icon.svg", if_none_match='"other"').status == 200


@pytest.mark.parametrize("path", ["/ui/", "/ui/assets/index-a1.js", "/ui/icon.svg"])
def test_a_head_says_what_a_get_would_send(server: Server, path: str) -> None:
    head, whole = get(server, path, "HEAD"), get(server, path)
    assert (head.status, head.body) == (200, b"")
    for name in ("Content-Length", "Content-Type", "ETag", "Cache-Control"):
        assert head.headers[name] == whole.headers[name]


OUTSIDE = [
    "assets/other-a1.js",
    "assets/../index.html.gz",
    "../pyproject.toml",
    "%2e%2e/%2e%2e/pyproject.toml",
    "..%2f..%2f..%2fetc%2fpasswd.txt",
    "assets/index-a1.js.gz",
    "assets/index-a1.js%00.svg",
    "/etc/passwd.d",
    "index.html",
    ".vite/manifest.json",
    "a/" * 20,
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_only_what_was_built_is_served(server: Server, path: str) -> None:
    reply = get(server, f"/ui/{path}")
    assert (reply.status, reply.json["error"]) == (404, "not_found")


@pytest.mark.parametrize("path", ["../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/", "C:%5cwindows", "a%00b"])
def test_an_address_without_a_file_is_the_pages_own_business(server: Server, path: str) -> None:
    reply = get(server, f"/ui/{path}")
    assert reply.status == 200
    assert re.fullmatch(r"\./|(\.\./)+", Head(reply.text).base)


def test_nothing_is_written_to_the_page(server: Server) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert get(server, "/ui/", method).status == 405


def test_the_page_is_no_part_of_the_api(server: Server) -> None:
    described = server.call("GET", "/v1/openapi.json").json
    assert not [path for path in described["paths"] if path == "/" or path.startswith("/ui")]


def test_the_page_is_written_against_the_api_of_now(server: Server) -> None:
    """After a change run with CRUCIBLE_REWRITE_GOLDEN=1, then `npm run types` in web, and review the diff."""
    described = server.call("GET", "/v1/openapi.json").json
    described["info"]["version"] = __version__
    text = json.dumps(described, indent=1, sort_keys=True) + "\n"
    if os.environ.get("CRUCIBLE_REWRITE_GOLDEN") == "1":
        DESCRIPTION.write_text(text)
    assert json.loads(DESCRIPTION.read_text()) == described


@pytest.fixture
def server_without_page(tmp_path: Path) -> Iterator[Server]:
    running = Server(folder=tmp_path, settings=ApiSettings(version="9.9.9", page=tmp_path / "never-built"))
    running.start()
    yield running
    running.stop()


def test_a_server_without_its_page_says_how_to_build_it(server_without_page: Server) -> None:
    for path in ("/ui/", "/ui/jobs", "/ui/assets/index-a1.js"):
        reply = get(server_without_page, path)
        assert (reply.status, reply.headers["Content-Type"]) == (503, "text/plain; charset=utf-8")
        assert "make web" in reply.text
