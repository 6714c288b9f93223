"""Too many requests: who makes them waits, and nobody else (R11, R14)."""

from collections.abc import Iterator

import pytest

from crucible.api.app import ApiSettings
from crucible.api.limits import RateLimits

from .conftest import Reply, Server


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = ApiSettings(
        version="1",
        providers=("fake",),
        is_https=True,
        rate_limits=RateLimits(person=1, agent=50, stranger=0.5),
    )
    server = Server(folder=tmp_path_factory.mktemp("server"), settings=settings)
    server.start()
    yield server
    server.stop()


def until_refused(server: Server, token: str | None, path: str = "/v1/version", refused: int = 429) -> Reply:
    for _ in range(200):
        reply = server.call("GET", path, token)
        if reply.status == refused:
            return reply
    raise AssertionError("there is no limit")


def test_who_asks_too_often_is_told_when_to_come_back_and_others_are_not(strict: Server) -> None:
    agent = strict.agent(strict.submit("bob")).begin()
    reply = until_refused(strict, "alice")
    assert (reply.json["error"], reply.headers["Retry-After"]) == ("busy", "1")
    assert strict.call("GET", "/v1/version", "bob").status == 200
    assert strict.call("GET", "/v1/version", "admin").status == 200
    agent.report("still here")

    # An address that tries tokens is not listened to for a while; agents behind it still are.
    assert strict.call("GET", "/v1/version", "cru_guess").status == 401
    until_refused(strict, "cru_guess")
    assert strict.call("GET", "/v1/version", "bob").status == 429
    agent.report("and here")

    # What needs no token has a limit of its own, and nobody is somewhere else because they say so.
    assert strict.call("GET", "/healthz", None).status == 200
    until_refused(strict, None, "/healthz")
    for name in ("X-Forwarded-For", "X-Real-IP", "Forwarded"):
        assert strict.call("GET", "/healthz", None, headers={name: "203.0.113.7"}).status == 429
    agent.report("and done", state="exited", exit_code=0)


def test_browsers_are_told_what_they_may_not_do(strict: Server) -> None:
    reply = strict.call("GET", "/readyz", None)
    for name, word in {
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "frame-ancestors 'none'",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Permissions-Policy": "camera=()",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Strict-Transport-Security": "max-age=31536000",
        "Cache-Control": "no-store",
    }.items():
        assert word in reply.headers[name], name
