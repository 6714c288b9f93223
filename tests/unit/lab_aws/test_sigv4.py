"""Signatures: Amazon's published example, whatever botocore signs, and everything that can be changed afterwards."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from crucible.lab.aws import sigv4
from crucible.lab.aws.sigv4 import Denied, NotSigned
from crucible.lab.http import Request

KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


def signed(
    *,
    method: str = "POST",
    url: str = "http://127.0.0.1:9000/",
    body: bytes = b"Action=X",
    secret: str = SECRET,
    expires: int | None = None,
) -> Request:
    asked = AWSRequest(method=method, url=url, data=body, headers={"Content-Type": "application/x-www-form-urlencoded"})
    keys = Credentials(KEY, secret)
    signer = (
        SigV4Auth(keys, "ec2", "us-east-1") if expires is None else SigV4QueryAuth(keys, "ec2", "us-east-1", expires)
    )
    signer.add_auth(asked)
    parts = urlsplit(asked.prepare().url)
    headers = {name.lower(): str(value) for name, value in asked.prepare().headers.items()} | {"host": parts.netloc}
    return Request(method=method, path=parts.path, raw_path=parts.path, query=parts.query, headers=headers, body=body)


def check(request: Request, *, secret: str = SECRET, later: timedelta = timedelta()) -> None:
    claim = sigv4.claim_of(request)
    sigv4.verify(claim, request, secret, claim.signed_at + later)


def denied(request: Request, *, secret: str = SECRET, later: timedelta = timedelta()) -> Denied:
    with pytest.raises(NotSigned) as refusal:
        check(request, secret=secret, later=later)
    return refusal.value.reason


def test_the_example_in_amazons_documentation_holds() -> None:
    request = Request(
        method="GET",
        path="/",
        raw_path="/",
        query="Action=ListUsers&Version=2010-05-08",
        headers={
            "content-type": "application/x-www-form-urlencoded; charset=utf-8",
            "host": "iam.amazonaws.com",
            "x-amz-date": "20150830T123600Z",
            "authorization": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "
            "SignedHeaders=content-type;host;x-amz-date, "
            "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
        },
        body=b"",
    )
    claim = sigv4.claim_of(request)
    assert (claim.access_key, claim.region, claim.service) == (KEY, "us-east-1", "iam")
    sigv4.verify(claim, request, SECRET, datetime(2015, 8, 30, 12, 36, tzinfo=UTC))


@given(
    body=st.binary(max_size=50),
    # Clients take dots and empty parts out of a path before they sign it.
    path=st.lists(
        st.text("abc~-_.%20 é", min_size=1, max_size=4).filter(lambda part: part.strip(".") != ""), max_size=3
    ).map(lambda parts: "/" + "/".join(parts)),
    query=st.dictionaries(
        st.text("aB.-_~ +=é&", min_size=1, max_size=4), st.text("aB /:+é&=%", max_size=6), max_size=4
    ),
)
def test_whatever_botocore_signs_is_accepted(body: bytes, path: str, query: dict[str, str]) -> None:
    from urllib.parse import quote, urlencode

    asked = f"http://127.0.0.1:9000{quote(path)}" + ("?" + urlencode(query, quote_via=quote, safe="~") if query else "")
    check(signed(url=asked, body=body))


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_signed_address_is_accepted_as_long_as_it_says(method: str) -> None:
    request = signed(method=method, url="http://127.0.0.1:9000/?Action=DescribeRegions&X=%20a", body=b"", expires=900)
    check(request, later=timedelta(seconds=900))
    assert denied(request, later=timedelta(seconds=901)) is Denied.EXPIRED
    assert denied(request, later=timedelta(minutes=-6)) is Denied.EXPIRED


@pytest.mark.parametrize("minutes", [-5, 0, 5])
def test_a_clock_may_be_off_by_five_minutes(minutes: int) -> None:
    check(signed(), later=timedelta(minutes=minutes))


@pytest.mark.parametrize("seconds", [-301, 301])
def test_a_clock_may_not_be_off_by_more(seconds: int) -> None:
    assert denied(signed(), later=timedelta(seconds=seconds)) is Denied.EXPIRED


def _with(name: str, value: str) -> Callable[[Request], Request]:
    return lambda request: replace(request, headers={**request.headers, name: value})


def _without(name: str) -> Callable[[Request], Request]:
    return lambda request: replace(request, headers={k: v for k, v in request.headers.items() if k != name})


def _authorization(old: str, new: str) -> Callable[[Request], Request]:
    return lambda request: _with("authorization", request.headers["authorization"].replace(old, new))(request)


@pytest.mark.parametrize(
    "tamper",
    [
        lambda request: replace(request, body=request.body + b"&X=1"),
        lambda request: replace(request, method="PUT"),
        lambda request: replace(request, raw_path="/other"),
        lambda request: replace(request, query="X=1"),
        _with("host", "elsewhere"),
        _with("content-type", "text/plain"),
        _with("x-amz-target", "added"),
        _without("content-type"),
        _authorization("us-east-1", "us-west-2"),
        _authorization("/ec2/", "/sts/"),
        _authorization("host;", ""),
    ],
)
def test_nothing_signed_can_be_changed(tamper: Callable[[Request], Request]) -> None:
    assert denied(tamper(signed())) is Denied.MISMATCH


def test_another_secret_does_not_fit() -> None:
    assert denied(signed(secret="wrong")) is Denied.MISMATCH


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (_without("authorization"), Denied.MISSING),
        (_with("authorization", "Basic eDp5"), Denied.MALFORMED),
        (_with("authorization", "AWS4-HMAC-SHA256 Credential=a"), Denied.MALFORMED),
        (_without("x-amz-date"), Denied.MALFORMED),
        (_with("x-amz-date", "20261399T000000Z"), Denied.MALFORMED),
        (_with("x-amz-date", "20200101T000000Z"), Denied.MALFORMED),
        (_authorization("/aws4_request", ""), Denied.MALFORMED),
        (_authorization(KEY, ""), Denied.MALFORMED),
    ],
)
def test_what_is_no_signature_says_so(spoil: Callable[[Request], Request], reason: Denied) -> None:
    assert denied(spoil(signed())) is reason


@pytest.mark.parametrize("expires", ["0", "604801", "-1", "x", "\u0663"])
def test_an_address_is_good_for_a_week_at_most(expires: str) -> None:
    request = signed(method="GET", body=b"", expires=60)
    spoiled = replace(request, query=request.query.replace("X-Amz-Expires=60", f"X-Amz-Expires={expires}"))
    assert denied(spoiled) is Denied.MALFORMED
