"""Whatever is asked is answered or refused, in Google's words: nothing makes the front end fail."""

import re
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.lab.gcs.front import OPERATIONS, PREFIX
from crucible.lab.http import Request
from gcs_front import AT, HOST, Google, signed_query

NAMES = sorted({name for operation in OPERATIONS for name in operation.needs | operation.takes})
HEADERS = ["range", "if-match", "if-none-match", "x-goog-if-generation-match", "content-md5", "content-length", "x"]
TEXT = st.one_of(st.sampled_from(["", "0", "1", "2", "bytes=0-", "*", "a"]), st.text(max_size=8))
ENCODED = st.text("ab/%2Fé?#\x01&=+.", max_size=12)


@pytest.fixture(scope="module")
def google() -> Iterator[Google]:
    with tempfile.TemporaryDirectory() as folder:
        made = Google(Path(folder))
        made("PUT", "lab-bucket/a", b"0123456789")
        yield made


@settings(max_examples=150, deadline=None)
@given(
    method=st.sampled_from(["GET", "HEAD", "PUT", "POST", "DELETE", "PATCH"]),
    path=st.one_of(st.sampled_from(["lab-bucket", "lab-bucket/a", "_token"]), ENCODED),
    query=st.lists(st.tuples(st.sampled_from(NAMES), ENCODED), max_size=3),
    headers=st.dictionaries(st.sampled_from(HEADERS), TEXT, max_size=2),
    body=st.binary(max_size=40),
)
def test_any_request_is_answered_or_refused(
    google: Google, method: str, path: str, query: list[tuple[str, str]], headers: dict[str, str], body: bytes
) -> None:
    asked = "&".join(f"{name}={value}" for name, value in query)
    answer = google(method, path, body, asked, **{name.replace("-", "_"): value for name, value in headers.items()})
    assert answer.status < 500
    if answer.status >= 400 and method != "HEAD" and path != "_token":
        assert re.fullmatch(r"[A-Za-z]+", answer.code)
        assert answer.text("Message")


FIELDS = st.sampled_from(["Algorithm", "Credential", "Date", "Expires", "SignedHeaders", "Signature"])


@settings(max_examples=60, deadline=None)
@given(field=FIELDS, value=ENCODED)
def test_a_signed_address_with_anything_in_it_opens_nothing(google: Google, field: str, value: str) -> None:
    path = f"{PREFIX}lab-bucket/a"
    query = re.sub(f"X-Goog-{field}=[^&]*", lambda _: f"X-Goog-{field}={value}", _good(google))
    request = Request(method="GET", path=path, raw_path=path, query=query, headers={"host": HOST}, body=b"")
    answer = google.asked(request)
    assert 400 <= answer.status < 500


@cache
def _good(google: Google) -> str:
    return signed_query(google.key, "GET", f"{PREFIX}lab-bucket/a", AT)
