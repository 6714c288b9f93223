"""The HTTP client against a real server on loopback."""

import io
import threading

import pytest

from crucible.client.endpoint import Endpoint
from crucible.client.errors import BadConfiguration, ConnectionLost, ServerError, ServerTimeout, ServerUnreachable
from crucible.client.transport import MOST_KEPT, Transport
from crucible.model.errors import Busy, Conflict, InfeasibleJob, InvalidRequest, NotFound, Unauthenticated
from doubles.http_server import Handler, Request, serving


def test_an_answer_is_decoded_and_the_token_is_sent_as_bearer() -> None:
    with serving(lambda request, reply: reply.json({"ok": True})) as server:
        assert server.transport().call("GET", "/v1/jobs", query={"limit": 5, "all": True, "status": None}) == {
            "ok": True
        }
    (request,) = server.requests
    assert request.query == {"limit": "5", "all": "true"}
    assert request.headers["authorization"] == "Bearer s3cret-token"


def test_a_path_in_the_address_comes_before_every_route() -> None:
    with serving(lambda request, reply: reply.json(request.path)) as server:
        transport = Transport(Endpoint(server.url + "/crucible/"))
        assert transport.call("GET", "/v1/me") == "/crucible/v1/me"
        transport.close()
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (404, {"error": "not_found", "message": "no job x", "details": {"id": "x"}}, NotFound, "no job x"),
        (422, {"error": "infeasible_job", "message": "m", "details": {"field": "data.locality"}}, InfeasibleJob, "m"),
        (409, {"error": "conflict", "message": "it is over", "details": {"message": "odd"}}, Conflict, "it is over"),
        (401, {"detail": "who?"}, Unauthenticated, "who?"),
        (418, {"error": "teapot", "message": "short and stout"}, InvalidRequest, "short and stout"),
        (500, "oops", ServerError, "the server answered 500 (HTTP 500)"),
    ],
)
def test_an_error_is_raised_as_the_class_the_server_named(
    status: int, body: object, kind: type[Exception], words: str
) -> None:
    with (
        serving(lambda request, reply: reply.json(body, status)) as server,
        pytest.raises(kind) as raised,
    ):
        server.transport().call("GET", "/v1/x")
    assert raised.type is kind
    assert raised.value.message == words  # type: ignore[attr-defined]
    if isinstance(body, dict) and "details" in body:
        assert raised.value.details == body["details"]  # type: ignore[attr-defined]


def test_an_answer_that_is_not_json_is_said_not_to_be_a_crucible_server() -> None:
    def html(request: Request, reply: Handler) -> None:
        reply.send_response(200)
        reply.send_header("Content-Length", "6")
        reply.end_headers()
        reply.wfile.write(b"<html>")

    with serving(html) as server, pytest.raises(ServerError, match="not JSON; is this a Crucible server"):
        server.transport().call("GET", "/v1/version")


def test_nobody_there_is_server_unreachable_and_names_where_the_address_came_from() -> None:
    with serving(lambda request, reply: reply.json({})) as server:
        url = server.url
    with pytest.raises(
        ServerUnreachable, match=r"no server answers at http://127.* \(from CRUCIBLE_SERVER\)"
    ) as raised:
        Transport(Endpoint(url, "s3cret-token", "CRUCIBLE_SERVER")).call("GET", "/v1/me")
    assert "s3cret" not in repr(raised.value) + repr(Transport(Endpoint(url, "s3cret-token")).endpoint)


def test_a_server_that_moved_is_found_again_by_relocate() -> None:
    with serving(lambda request, reply: reply.json({})) as gone:
        old = gone.url
    with serving(lambda request, reply: reply.json("here")) as server:
        transport = Transport(Endpoint(old), relocate=lambda: Endpoint(server.url, "new"))
        assert transport.call("POST", "/v1/x") == "here"
        transport.close()
    assert server.requests[0].headers["authorization"] == "Bearer new"


def test_a_read_survives_a_kept_connection_that_the_server_closed() -> None:
    calls: list[int] = []

    def once_per_connection(request: Request, reply: Handler) -> None:
        calls.append(1)
        if len(calls) == 2:
            reply.hang_up()  # the second request on the kept connection finds it dead
        else:
            reply.json(len(calls))

    with serving(once_per_connection) as server:
        transport = server.transport()
        assert [transport.call("GET", "/a"), transport.call("GET", "/b")] == [1, 3]
        transport.close()


def test_a_read_survives_any_number_of_kept_connections_that_the_server_closed() -> None:
    """Each POST opens one; after a rest the server has given all of them up."""
    old: list[Handler] = []  # one for each connection

    def rests(request: Request, reply: Handler) -> None:
        if request.method == "POST":
            old.append(reply)
        reply.hang_up() if request.method == "GET" and reply in old else reply.json("done")

    with serving(rests) as server:
        transport = server.transport()
        for _ in range(MOST_KEPT):
            transport.call("POST", "/a", body={})
        assert transport.call("GET", "/b") == "done"
        transport.close()


def test_a_post_whose_answer_is_lost_is_not_repeated_unless_it_may_be() -> None:
    def drop_first(request: Request, reply: Handler) -> None:
        reply.hang_up() if len(server.requests) == 1 else reply.json("done")

    with serving(drop_first) as server, pytest.raises(ConnectionLost):
        server.transport().call("POST", "/v1/tokens", body={})
    assert len(server.requests) == 1
    with serving(drop_first) as server:
        assert server.transport().call("POST", "/v1/jobs", body={"a": 1}, is_repeatable=True) == "done"
    assert [request.body for request in server.requests] == [b'{"a": 1}'] * 2


def test_a_busy_server_is_asked_again_after_the_pause_it_names() -> None:
    def busy_once(request: Request, reply: Handler) -> None:
        if len(server.requests) == 1:
            reply.json({"error": "busy", "message": "later"}, 429, Retry_After="0.01")
        else:
            reply.json("done")

    with serving(busy_once) as server:
        assert server.transport().call("POST", "/v1/jobs", body={}) == "done"


def test_a_server_that_stays_busy_is_reported_as_busy() -> None:
    body = {"error": "busy", "message": "later"}
    with (
        serving(lambda request, reply: reply.json(body, 429, Retry_After="0.01")) as server,
        pytest.raises(Busy, match="later"),
    ):
        server.transport().call("GET", "/v1/jobs")
    assert len(server.requests) == 3


def test_a_silent_server_is_a_timeout() -> None:
    released = threading.Event()
    with serving(lambda request, reply: released.wait(10) and None) as server:
        with pytest.raises(ServerTimeout, match="too long"):
            server.transport(timeout_s=0.05).call("POST", "/v1/x")
        released.set()


def test_an_answer_cut_short_is_a_lost_connection_not_half_an_answer() -> None:
    def cut(request: Request, reply: Handler) -> None:
        reply.send_response(200)
        reply.send_header("Content-Length", "1000")
        reply.end_headers()
        reply.wfile.write(b'{"items": []}')
        reply.hang_up()

    with serving(cut) as server, pytest.raises(ConnectionLost, match="cut short"):
        server.transport().call("POST", "/v1/x")


def test_a_file_is_uploaded_with_its_size_and_head_tells_what_is_there() -> None:
    kept: dict[str, bytes] = {}

    def packages(request: Request, reply: Handler) -> None:
        if request.method == "PUT":
            kept[request.path] = request.body
        reply.json(None, 200 if request.path in kept else 404)

    with serving(packages) as server:
        transport = server.transport()
        assert not transport.has("/v1/packages/abc")
        transport.send_file("/v1/packages/abc", io.BytesIO(b"x" * 100_000), 100_000)
        assert transport.has("/v1/packages/abc")
    assert kept == {"/v1/packages/abc": b"x" * 100_000}


def test_a_stream_gives_whole_lines_however_the_chunks_fall() -> None:
    def chunks(request: Request, reply: Handler) -> None:
        reply.begin_chunks()
        for piece in (b"one\ntw", b"o\n", b"\nthr", b"ee"):
            reply.chunk(piece)
        reply.end_chunks()

    with serving(chunks) as server, server.transport().stream("/logs", {}, idle_s=5) as stream:
        assert list(stream.lines()) == [b"one", b"two", b"", b"three"]


@pytest.mark.parametrize("broken", [b"5\r\ntw", b""], ids=["within a chunk", "between chunks"])
def test_a_broken_stream_shows_no_half_line_and_says_that_it_broke(broken: bytes) -> None:
    def drop(request: Request, reply: Handler) -> None:
        reply.begin_chunks()
        reply.chunk(b"one\nhal")
        reply.wfile.write(broken)
        reply.hang_up()

    shown: list[bytes] = []
    with (
        serving(drop) as server,
        pytest.raises(ConnectionLost),
        server.transport().stream("/logs", {}, idle_s=5) as stream,
    ):
        shown.extend(stream.lines())
    assert shown in ([b"one"], [])  # extend keeps nothing of a generator that raises


def test_a_stream_that_falls_silent_is_a_lost_connection() -> None:
    released = threading.Event()

    def silent(request: Request, reply: Handler) -> None:
        reply.begin_chunks()
        released.wait(10)

    with serving(silent) as server:
        with pytest.raises(ConnectionLost), server.transport().stream("/logs", {}, idle_s=0.05) as stream:
            list(stream.lines())
        released.set()


@pytest.mark.parametrize("url", ["127.0.0.1:80", "ftp://host", "http://", "http://host:x", "http://me:pw@host"])
def test_an_address_that_cannot_be_used_is_refused_with_its_source(url: str) -> None:
    with pytest.raises(BadConfiguration, match="CRUCIBLE_SERVER"):
        Transport(Endpoint(url, None, "CRUCIBLE_SERVER"))
