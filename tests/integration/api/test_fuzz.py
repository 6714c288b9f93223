"""Ten thousand spoiled specs and bodies (T11, a slice; `make fuzz` sends more): nothing fails, nothing is slow, and who
is refused hears which field is wrong."""

import pytest

from fuzz.attack import Attacker, judged

from .conftest import Server

INPUTS = 2_500


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_whatever_is_sent_is_answered_soundly(server: Server, seed: int) -> None:
    openapi = server.call("GET", "/v1/openapi.json", "admin").json  # others may be gone by now
    with Attacker(server.port, server.tokens["admin"], openapi, seed) as attacker:
        report = attacker.run(INPUTS)
    assert not report.problems, "\n".join(report.problems[:10])
    assert report.inputs == INPUTS
    assert report.statuses[200] > INPUTS / 100, "the inputs are so bad that nothing is ever looked at"


@pytest.mark.parametrize(
    ("status", "body", "took_s"),
    [
        (500, b"{}", 0.0),
        (200, b"{}", 1.5),
        (422, b'{"error": "invalid_spec", "message": "m", "details": {}}', 0.0),
        (422, b'{"error": "invalid_spec", "message": "m", "details": {"problems": [{"field": ""}]}}', 0.0),
        (400, b'{"error": "invalid_request", "message": "", "details": {"field": "a"}}', 0.0),
    ],
)
def test_an_unsound_answer_is_noticed(status: int, body: bytes, took_s: float) -> None:
    assert judged(status, body, took_s) is not None
