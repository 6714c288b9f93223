"""What opens doors is in no log line of ours."""

import io
import logging

import pytest

from crucible.core.scrubbing import scrubbed
from crucible.engine.keys import Keys
from crucible.logs import FORMAT, ScrubbingFormatter
from crucible.model.ids import AttemptId, NodeId, OrderId

KEYS = Keys(b"key")
TOKENS = [
    "cru_s4fTokenOfSomebody-1234_x",
    KEYS.enrolment(OrderId("order-1a1eca6e5dafc")),
    KEYS.node(NodeId("node-1a1eca6e5dafc")),
    KEYS.attempt(AttemptId("attempt-1a1eca6e5dafc")),
    KEYS.address("PUT objects/k until 5"),
]


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("around", ["{}", "http://h:1/v1/objects/{}?x=1", 'header "{}"', "Bearer {}", "key={},"])
def test_a_token_of_ours_is_taken_out_wherever_it_stands(token: str, around: str) -> None:
    said = scrubbed(f"before {around.format(token)} after")
    assert token not in said and token[-16:] not in said and said.startswith("before ") and said.endswith(" after")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("https://b.s3.amazonaws.com/k?X-Amz-Credential=AKIA%2F1&X-Amz-Signature=0f3c&x=1", "X-Amz-Signature=***&x=1"),
        ("GET https://storage.googleapis.com/b/k?X-Goog-Signature=abcdef done", "X-Goog-Signature=*** done"),
        ("https://a.blob.core.windows.net/c/k?sp=r&sig=a%2Bb%3D&se=1", "&sig=***&se=1"),
        ("cannot reach postgresql://crucible:hunter2@db:5432/x", "postgresql://crucible:***@db:5432/x"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic ***"),
    ],
)
def test_signatures_and_passwords_of_addresses_are_taken_out(text: str, left: str) -> None:
    said = scrubbed(text)
    assert left in said and not any(word in said for word in ("0f3c", "abcdef", "a%2Bb", "hunter2", "dXNlc", "AKIA"))


@pytest.mark.parametrize(
    "text",
    ["job 01a1eca6-e541 is running", "http://127.0.0.1:7070/v1/jobs?limit=5", "crn.short.abc", "10:20 user@host"],
)
def test_the_rest_stays(text: str) -> None:
    assert scrubbed(text) == text


def test_the_log_holds_none_of_it_not_even_in_a_traceback() -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(ScrubbingFormatter(FORMAT))
    log = logging.Logger("test")
    log.addHandler(handler)
    try:
        raise ValueError(f"refused {TOKENS[2]}")
    except ValueError:
        log.exception("node %s", TOKENS[2], extra={"more": TOKENS[0]})
    assert TOKENS[2] not in written.getvalue() and "ValueError: refused crn.***" in written.getvalue()
