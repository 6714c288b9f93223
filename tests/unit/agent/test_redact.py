"""What is taken out of a log, however it is written and wherever the pieces are cut."""

import base64
import itertools
import json
import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.agent.redact import LEAST, MARK, Redactor, forms

VALUE = b'p@ss/w\xc3\xb6rd+"quote"\\=1'
KEY = b"-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\nAASCBKcwggSjAgEAAoIBAQC7\n-----END KEY-----\n"


def cleaned(value: bytes, *pieces: bytes) -> bytes:
    redactor = Redactor([value])
    return b"".join([*(redactor.feed(piece) for piece in pieces), redactor.end()])


@pytest.mark.parametrize(
    "written",
    [
        VALUE,
        base64.b64encode(VALUE),
        base64.urlsafe_b64encode(VALUE),
        urllib.parse.quote(VALUE.decode()).encode(),
        urllib.parse.quote(VALUE.decode(), safe="").encode(),
        urllib.parse.quote_plus(VALUE.decode()).encode(),
        json.dumps(VALUE.decode())[1:-1].encode(),
        json.dumps(VALUE.decode(), ensure_ascii=False)[1:-1].encode(),
        repr(VALUE.decode())[1:-1].encode(),
    ],
)
def test_a_value_is_taken_out_in_every_usual_form(written: bytes) -> None:
    said = cleaned(VALUE, b"before " + written + b" after\n")
    assert said.startswith(b"before ") and said.endswith(b" after\n") and MARK in said
    assert written not in said


@pytest.mark.parametrize("before", [b"", b"u", b"us", b"user:", b"Aladdin:open "])
def test_a_value_inside_something_that_was_encoded_as_a_whole_is_taken_out(before: bytes) -> None:
    encoded = base64.b64encode(before + VALUE + b"\n")
    said = cleaned(VALUE, b"Authorization: Basic " + encoded)
    left = said.removeprefix(b"Authorization: Basic ").split(MARK)
    assert MARK in said and all(len(part) <= len(encoded) - len(VALUE) for part in left)


def test_each_long_line_of_a_key_is_taken_out() -> None:
    said = cleaned(KEY, b"key: MIIEvQIBADANBgkqhkiG9w0BAQEF\n", b"then: AASCBKcwggSjAgEAAoIBAQC7\n")
    assert said == b"key: ***\nthen: ***\n"


def test_a_short_value_is_left_alone() -> None:
    assert cleaned(b"yes", b"yes and yes\n") == b"yes and yes\n"
    assert forms(b"1234567") == [] and forms(b"12345678")


def test_of_two_secrets_the_longer_one_goes_as_a_whole_even_if_it_comes_in_pieces() -> None:
    redactor = Redactor([b"abcdefgh", b"abcdefghijkl"])
    assert redactor.feed(b"x abcdefgh") + redactor.feed(b"ijkl y") + redactor.end() == b"x *** y"
    assert redactor.feed(b"x abcdefgh") + redactor.feed(b" y") + redactor.end() == b"x *** y"


def test_what_is_no_beginning_of_a_secret_does_not_wait() -> None:
    redactor = Redactor([b"hunter2hunter2"])
    assert redactor.feed(b"step 1\n") == b"step 1\n"
    assert redactor.feed(b"pass hunt") == b"pass "
    assert redactor.feed(b"ing\n") == b"hunting\n"


def test_a_log_of_one_letter_does_not_pile_up() -> None:
    redactor = Redactor([b"a" * 20])
    said = b"".join(redactor.feed(b"a" * 1000) for _ in range(50))
    assert len(redactor.end()) < 100 and set(said) == set(MARK)


@given(
    value=st.binary(min_size=LEAST, max_size=40),
    around=st.lists(st.binary(max_size=30), min_size=2, max_size=5),
    cuts=st.lists(st.integers(0, 300), max_size=8),
)
def test_however_it_is_cut_the_value_is_gone_and_the_rest_stays(
    value: bytes, around: list[bytes], cuts: list[int]
) -> None:
    whole = value.join(around)
    places = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    pieces = [whole[start:end] for start, end in itertools.pairwise(places)]
    said = cleaned(value, *pieces)
    assert value not in said
    if not any(form in b"".join(around) for form in forms(value)):
        assert MARK in said


@given(st.lists(st.binary(max_size=50), max_size=6))
def test_without_the_value_nothing_is_changed(pieces: list[bytes]) -> None:
    value = b"\xffnever printed\xfe"
    whole = b"".join(pieces)
    if not any(form in whole for form in forms(value)):
        assert cleaned(value, *pieces) == whole
