"""Who may ask: web tokens, access tokens and signed addresses, and everything that can be wrong with them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from crucible.lab.gcs.account import EMAIL
from crucible.lab.gcs.front import GRANT, PREFIX
from crucible.lab.gcs.signed import GOOGLE
from crucible.lab.http import Request
from gcs_front import AT, HOST, URL, Answer, Google, a_key, signed_query, web_token

PATH = f"{PREFIX}lab-bucket/key"


def bearing(google: Google, token: str) -> Answer:
    return google.bare("PUT", "lab-bucket/key", b"x", authorization=f"Bearer {token}")


def signed(google: Google, method: str = "PUT", path: str = PATH, **changes: Any) -> Request:
    at = changes.pop("at", google.lab.clock.at)
    key = changes.pop("key", google.key)
    query = signed_query(key, method, path, at, **changes)
    headers = {"host": HOST, **changes.get("headers", {})}
    return Request(method=method, path=path, raw_path=path, query=query, headers=headers, body=b"")


def test_a_web_token_of_the_key_file_opens_everything(google: Google) -> None:
    assert bearing(google, web_token(google.key, google.key_id, AT)).status == 200
    audience = "https://storage.googleapis.com/"
    assert bearing(google, web_token(google.key, google.key_id, AT, scope=None, aud=audience)).status == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "somebody@else"},
        {"sub": "somebody@else"},
        {"scope": "https://www.googleapis.com/auth/devstorage.read_only"},
        {"scope": None},
        {"scope": None, "aud": "https://storage.example.com/"},
        {"exp": int(AT) + 3601},
        {"iat": int(AT) + 3600, "exp": int(AT) + 7200},
        {"iat": int(AT) - 7200, "exp": int(AT) - 3600},
        {"iat": None},
        {"exp": "tomorrow"},
        {"exp": True},
        {"iat": float("nan")},
        {"alg": "none"},
        {"alg": "HS256"},
    ],
    ids=str,
)
def test_a_web_token_that_is_not_quite_right_is_refused(google: Google, changes: dict[str, Any]) -> None:
    answer = bearing(google, web_token(google.key, google.key_id, AT, **changes))
    assert (answer.status, answer.code) == (401, "AuthenticationRequired")
    assert google("GET", "lab-bucket/key").status == 404


def test_a_clock_that_is_an_hour_off_is_named(google: Google) -> None:
    early = bearing(google, web_token(google.key, google.key_id, AT - 7200))
    late = bearing(google, web_token(google.key, google.key_id, AT + 3600))
    assert all("clock is wrong" in answer.text("Message") for answer in (early, late))


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "....", "e30.e30.e30", "é.é.é", "W10.W10.W10", "x" * 20_000])
def test_a_token_that_is_none_is_refused(google: Google, token: str) -> None:
    answer = bearing(google, token)
    assert answer.status == 401
    assert len(token) < 5 or token not in answer.body.decode()


def test_a_token_of_another_key_is_refused(google: Google) -> None:
    for key_id in (google.key_id, "another"):
        assert bearing(google, web_token(a_key(1), key_id, AT)).status == 401
    assert bearing(google, web_token(google.key, "another", AT)).status == 401


def test_other_credentials_are_not_taken(google: Google) -> None:
    answer = google.bare("GET", "lab-bucket/key", authorization="GOOG4-HMAC-SHA256 Credential=x")
    assert (answer.status, answer.code) == (401, "AuthenticationRequired")


def test_nobody_in_particular_is_refused(google: Google) -> None:
    assert google.bare("GET", "lab-bucket/key").code == "AccessDenied"
    assert google.bare("GET", "no-bucket/key").code == "AccessDenied", "what there is, is no stranger's business"


# --- the token endpoint -------------------------------------------------------------------------------------


def granted(google: Google, assertion: str, grant: str = GRANT, method: str = "POST") -> Answer:
    form = urlencode({"grant_type": grant, "assertion": assertion}).encode()
    return google.bare(method, "_token", form)


def assertion(google: Google, **changes: Any) -> str:
    return web_token(google.key, google.key_id, AT, **{"aud": f"{URL}/gcs/_token", **changes})


def test_an_access_token_is_granted_and_opens_everything_until_it_expires(google: Google) -> None:
    key_file = json.loads(Path(google.environment["GOOGLE_APPLICATION_CREDENTIALS"]).read_text())
    assert key_file["token_uri"] == f"{URL}/gcs/_token"
    said = json.loads(granted(google, assertion(google)).body)
    assert said["token_type"] == "Bearer"
    assert bearing(google, said["access_token"]).status == 200
    google.later(said["expires_in"] + 2)
    assert "expired" in bearing(google, said["access_token"]).text("Message")


def test_an_access_token_cannot_be_prolonged(google: Google) -> None:
    token = json.loads(granted(google, assertion(google)).body)["access_token"]
    head, expires_at, mac = token.rsplit(".", 2)
    for forged in (f"{head}.{int(expires_at) + 3600}.{mac}", f"{head}.{expires_at}.", f"{head}.x.{mac}", f"{head}."):
        assert bearing(google, forged).status == 401


@pytest.mark.parametrize("changes", [{"aud": "https://oauth2.googleapis.com/token"}, {"aud": None}, {"iss": "x"}])
def test_an_assertion_for_somebody_else_is_granted_nothing(google: Google, changes: dict[str, Any]) -> None:
    answer = granted(google, assertion(google, **changes))
    assert (answer.status, json.loads(answer.body)["error"]) == (400, "invalid_grant")


def test_only_the_one_grant_is_given(google: Google) -> None:
    good = assertion(google)
    for answer in (granted(google, good, grant="refresh_token"), granted(google, good, method="GET")):
        assert answer.status == 400
    assert google.bare("POST", "_token", b"x" * (65 << 10)).status == 400


# --- signed addresses ---------------------------------------------------------------------------------------


def test_a_signed_address_is_good_for_its_request(google: Google) -> None:
    assert google.asked(signed(google, "PUT"), b"hello").status == 200
    assert google.asked(signed(google, "GET")).body == b"hello"


def test_the_host_that_clients_sign_may_be_googles(google: Google) -> None:
    assert google.asked(signed(google, host=GOOGLE), b"x").status == 200
    assert google.asked(signed(google, host="storage.example.com"), b"x").code == "SignatureDoesNotMatch"


def test_a_signed_address_ends_in_time(google: Google) -> None:
    request = signed(google, expires_s=60)
    google.later(60)
    assert google.asked(request, b"x").status == 200
    google.later(1)
    answer = google.asked(request, b"y")
    assert (answer.status, answer.code) == (400, "ExpiredToken")
    assert google("GET", "lab-bucket/key").body == b"x"


def test_a_signed_address_of_the_future_is_refused(google: Google) -> None:
    answer = google.asked(signed(google, at=AT + 3600), b"x")
    assert (answer.status, answer.code) == (403, "RequestTimeTooSkewed")
    assert google.asked(signed(google, at=AT + 600), b"x").status == 200, "clocks differ a little"


def test_nothing_of_a_signed_request_can_be_changed(google: Google) -> None:
    request = signed(google, headers={"x-goog-if-generation-match": "0", "content-type": "text/plain"})
    headers = dict(request.headers)
    changed = [
        replace(request, method="GET"),
        replace(request, raw_path=f"{PREFIX}lab-bucket/other"),
        replace(request, query=request.query.replace("Expires=60", "Expires=6000")),
        replace(request, query=f"{request.query}&generation=1"),
        replace(request, query=request.query[:-2] + ("00" if request.query[-2:] != "00" else "11")),
        replace(request, headers={**headers, "content-type": "text/html"}),
        replace(request, headers={**headers, "x-goog-if-generation-match": "1"}),
    ]
    assert [google.asked(one, b"x").code for one in changed] == ["SignatureDoesNotMatch"] * len(changed)
    assert google("GET", "lab-bucket/key").status == 404
    assert google.asked(request, b"x").status == 200


def test_a_signature_of_another_key_or_name_is_refused(google: Google) -> None:
    assert google.asked(signed(google, key=a_key(1)), b"x").code == "SignatureDoesNotMatch"
    assert google.asked(signed(google, email="somebody@else"), b"x").code == "AccessDenied"


def test_headers_that_matter_must_be_signed(google: Google) -> None:
    request = signed(google)
    more = replace(request, headers={**request.headers, "x-goog-if-generation-match": "0"})
    assert google.asked(more, b"x").code == "MalformedSecurityHeader"
    less = signed(google, headers={"content-type": "text/plain"})
    assert google.asked(replace(less, headers={"host": HOST}), b"x").code == "MalformedSecurityHeader"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("Algorithm", "GOOG4-HMAC-SHA256"),
        ("Credential", EMAIL),
        ("Credential", f"{EMAIL}/20261116/auto/storage/goog4_request"),
        ("Credential", f"{EMAIL}/20261117/auto/compute/goog4_request"),
        ("Date", "yesterday"),
        ("Date", "20261117T996161Z"),
        ("Date", "٢٠٢٦١١١٧T063000Z"),
        ("Expires", "0"),
        ("Expires", "604801"),
        ("Expires", "-1"),
        ("Expires", "9" * 30),
        ("Signature", "zz"),
        ("Signature", "abc"),
        ("SignedHeaders", ""),
    ],
)
def test_a_malformed_address_is_refused(google: Google, field: str, value: str) -> None:
    request = signed(google)
    pairs = [pair.split("=") for pair in request.query.split("&")]
    query = "&".join(f"{name}={quote(value) if name == f'X-Goog-{field}' else old}" for name, old in pairs)
    answer = google.asked(replace(request, query=query), b"x")
    assert (answer.status, answer.code) == (400, "MalformedSecurityHeader")
    assert f"X-Goog-{field}" in answer.text("Message")
