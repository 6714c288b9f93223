"""Objects in buckets: generations, conditions, ranges, parts, and refusals that change nothing."""

import base64
import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.lab.faults import FaultKind
from crucible.lab.gcs.conditions import span
from crucible.lab.gcs.errors import GcsError
from crucible.lab.gcs.front import PREFIX
from crucible.lab.gcs.spool import MOST_BYTES
from crucible.lab.gcs.uploads import LEAST_BYTES
from crucible.lab.http import ClientLeft, Request
from gcs_front import AT, HOST, Google, web_token

KEY = "lab-bucket/some/key"
ABSENT = {"x_goog_if_generation_match": "0"}


def test_what_is_put_is_got(google: Google) -> None:
    put = google("PUT", KEY, b"hello", content_type="text/plain")
    got = google("GET", KEY)
    assert (got.status, got.body, got.response.headers["content-type"]) == (200, b"hello", "text/plain")
    assert got.response.headers["etag"] == put.response.headers["etag"] == f'"{hashlib.md5(b"hello").hexdigest()}"'
    head = google("HEAD", KEY)
    assert (head.response.headers["content-length"], head.body) == ("5", b"")
    assert head.response.headers["last-modified"] == "Tue, 17 Nov 2026 06:30:00 GMT"
    assert google("HEAD", "lab-bucket/none").status == 404


def test_every_write_has_a_generation_of_its_own(google: Google) -> None:
    generations = [int(google("PUT", KEY, b"x").generation) for _ in range(3)]
    google.later(-3600)
    generations.append(int(google("PUT", KEY, b"x").generation))
    assert generations == sorted(set(generations)), "also when the clock went back"


def test_a_condition_on_the_generation_is_kept(google: Google) -> None:
    first = google("PUT", KEY, b"one", **ABSENT).generation
    assert google("PUT", KEY, b"two", **ABSENT).code == "PreconditionFailed"
    second = google("PUT", KEY, b"two", x_goog_if_generation_match=first).generation
    for stale in (first, "1", str(int(second) + 1)):
        assert google("PUT", KEY, b"three", x_goog_if_generation_match=stale).status == 412
        assert google("DELETE", KEY, x_goog_if_generation_match=stale).status == 412
        assert google("GET", KEY, x_goog_if_generation_match=stale).status == 412
        assert google("GET", KEY, query=f"generation={stale}").code == "NoSuchKey"
    assert google("GET", KEY, x_goog_if_generation_match=second, query=f"generation={second}").body == b"two"
    assert google("DELETE", KEY, x_goog_if_generation_match=second).status == 204
    assert google("PUT", KEY, b"four", x_goog_if_generation_match=second).status == 412
    assert google("PUT", KEY, b"four", **ABSENT).status == 200


def test_reads_are_conditional_on_the_etag(google: Google) -> None:
    etag = google("PUT", KEY, b"x").response.headers["etag"]
    assert google("GET", KEY, if_match=f'"other", {etag}').status == 200
    assert google("GET", KEY, if_match='"other"').code == "PreconditionFailed"
    assert google("GET", KEY, if_none_match='"other"').status == 200
    unchanged = google("GET", KEY, if_none_match=etag)
    assert (unchanged.status, unchanged.body) == (304, b"")
    assert google("HEAD", KEY, if_none_match="*").status == 304


def test_what_is_absent_is_said_to_be(google: Google) -> None:
    assert google("GET", "no-bucket/key").code == "NoSuchBucket"
    assert google("PUT", "no-bucket/key", b"x").code == "NoSuchBucket"
    assert google("GET", "no-bucket", query="list-type=2").code == "NoSuchBucket"
    assert google("GET", KEY).code == "NoSuchKey"
    assert google("DELETE", KEY).code == "NoSuchKey"


def test_buckets_are_made(google: Google) -> None:
    assert google("PUT", "another-bucket").status == 200
    assert google("PUT", "another-bucket/key", b"x").status == 200
    assert google("PUT", "another-bucket").code == "BucketAlreadyOwnedByYou"
    assert google("GET", KEY).code == "NoSuchKey"
    for name in ("ab", "Upper", "_token2", "a..b", "a" * 64):
        assert google("PUT", name).code == "InvalidBucketName"


# --- ranges ---------------------------------------------------------------------------------------------------


@given(st.integers(0, 20), st.integers(0, 25), st.integers(0, 25))
def test_a_range_is_what_a_slice_is(size: int, first: int, last: int) -> None:
    whole = bytes(range(size))
    for header, wanted in (
        (f"bytes={first}-{first + last}", whole[first : first + last + 1]),
        (f"bytes={first}-", whole[first:]),
        (f"bytes=-{last}", whole[max(0, size - last) :] if last else b""),
    ):
        try:
            asked = span(header, size)
        except GcsError as refused:
            assert (refused.status, wanted) == (416, b"")
        else:
            assert asked is not None
            assert whole[asked[0] : asked[0] + asked[1]] == wanted != b""


def test_a_range_says_what_it_is_of(google: Google) -> None:
    google("PUT", KEY, b"0123456789")
    part = google("GET", KEY, range="bytes=2-4")
    assert (part.status, part.body) == (206, b"234")
    assert part.response.headers["content-range"] == "bytes 2-4/10"
    beyond = google("GET", KEY, range="bytes=10-")
    assert (beyond.status, beyond.code) == (416, "InvalidRange")


@pytest.mark.parametrize("text", ["bytes=-", "bytes=5-2", "bytes=0-1,4-5", "items=0-1", "bytes=a-b", "0-1", ""])
def test_a_range_that_is_none_is_refused(google: Google, text: str) -> None:
    google("PUT", KEY, b"0123456789")
    assert google("GET", KEY, range=text).code == "InvalidArgument"


# --- parts ------------------------------------------------------------------------------------------------------


def begun(google: Google, key: str = KEY) -> str:
    return google("POST", key, query="uploads=", content_type="text/plain").text("UploadId")


def named(*parts: tuple[int, str]) -> bytes:
    inner = "".join(f"<Part><ETag>{etag}</ETag><PartNumber>{number}</PartNumber></Part>" for number, etag in parts)
    return f"<CompleteMultipartUpload>{inner}</CompleteMultipartUpload>".encode()


def sent(google: Google, upload: str, number: int, body: bytes) -> str:
    answer = google("PUT", KEY, body, query=f"partNumber={number}&uploadId={upload}")
    assert answer.status == 200, answer.body
    return answer.response.headers["etag"]


def test_parts_are_put_together_in_the_order_of_their_numbers(google: Google) -> None:
    upload, big = begun(google), b"a" * LEAST_BYTES
    last = sent(google, upload, 7, b"end")
    sent(google, upload, 2, b"to be replaced")
    first = sent(google, upload, 2, big)
    sent(google, upload, 9, b"not named")
    assert google("GET", KEY).status == 404, "nothing is there before it is complete"
    done = google("POST", KEY, named((2, first), (7, last)), query=f"uploadId={upload}")
    assert done.generation == google("HEAD", KEY).generation
    assert google("GET", KEY).body == big + b"end"
    assert google("GET", KEY).response.headers["content-type"] == "text/plain"
    assert google("POST", KEY, named((2, first)), query=f"uploadId={upload}").code == "NoSuchUpload"
    assert len(list(google.folder.iterdir())) == 1, "of the parts nothing is left"


def test_an_upload_that_is_given_up_leaves_nothing(google: Google) -> None:
    upload = begun(google)
    sent(google, upload, 1, b"x")
    assert google("DELETE", KEY, query=f"uploadId={upload}").status == 204
    assert google("PUT", KEY, b"x", query=f"partNumber=1&uploadId={upload}").code == "NoSuchUpload"
    assert list(google.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "MalformedXML"),
        (b"<CompleteMultipartUpload>", "MalformedXML"),
        (b"<CompleteMultipartUpload><Part><ETag>x</ETag></Part></CompleteMultipartUpload>", "MalformedXML"),
        (named((1, "x" * 300)), "MalformedXML"),
        (b'<!DOCTYPE x [<!ENTITY e "y">]><CompleteMultipartUpload/>', "MalformedXML"),
        (named(), "InvalidPartOrder"),
        (named((2, "x"), (1, "x")), "InvalidPartOrder"),
        (named((1, "x"), (1, "x")), "InvalidPartOrder"),
        (named((1, '"00000000000000000000000000000000"')), "InvalidPart"),
        (named((5, "x")), "InvalidPart"),
    ],
)
def test_a_completion_that_is_wrong_changes_nothing(google: Google, body: bytes, code: str) -> None:
    upload = begun(google)
    etag = sent(google, upload, 1, b"x")
    assert google("POST", KEY, body, query=f"uploadId={upload}").code == code
    assert google("GET", KEY).code == "NoSuchKey"
    assert google("POST", KEY, named((1, etag)), query=f"uploadId={upload}").status == 200


def test_small_parts_are_refused_but_the_last(google: Google) -> None:
    upload = begun(google)
    parts = [(number, sent(google, upload, number, b"small")) for number in (1, 2)]
    assert google("POST", KEY, named(*parts), query=f"uploadId={upload}").code == "EntityTooSmall"


def test_parts_belong_to_one_object(google: Google) -> None:
    upload = begun(google)
    for number in ("0", "10001", "x", "1e3", "٣"):
        assert google("PUT", KEY, b"x", query=f"partNumber={number}&uploadId={upload}").code == "InvalidArgument"
    assert google("PUT", "lab-bucket/other", b"x", query=f"partNumber=1&uploadId={upload}").code == "NoSuchUpload"
    assert google("DELETE", "lab-bucket/other", query=f"uploadId={upload}").code == "NoSuchUpload"


# --- what is refused ----------------------------------------------------------------------------------------


def test_a_body_that_is_too_large_is_refused_whether_it_says_so_or_not(google: Google) -> None:
    said = google("PUT", KEY, b"x", content_length=str(MOST_BYTES + 1))
    unsaid = google("PUT", KEY, bytes(MOST_BYTES + 1))
    assert said.code == unsaid.code == "EntityTooLarge"
    assert list(google.folder.iterdir()) == []


def test_a_digest_that_does_not_fit_is_refused(google: Google) -> None:
    right, wrong = (base64.b64encode(hashlib.md5(text).digest()).decode() for text in (b"hello", b"other"))
    assert google("PUT", KEY, b"hello", content_md5=wrong).code == "BadDigest"
    assert google("PUT", KEY, b"hello", content_md5="short").code == "InvalidDigest"
    assert google("GET", KEY).status == 404
    assert google("PUT", KEY, b"hello", content_md5=right).status == 200


@pytest.mark.parametrize(
    ("method", "path", "query", "headers"),
    [
        ("GET", KEY, "acl", {}),
        ("GET", KEY, "generation=1&generation=1", {}),
        ("GET", KEY, "generation=x", {}),
        ("PUT", KEY, "uploadId=x", {}),
        ("PUT", KEY, "", {"x_goog_copy_source": "lab-bucket/other"}),
        ("PUT", KEY, "", {"x_goog_if_metageneration_match": "1"}),
        ("PUT", KEY, "", {"x_goog_if_generation_match": "-1"}),
        ("PUT", KEY, "", {"if_match": "x"}),
        ("PUT", KEY, "", {"content_encoding": "gzip"}),
        ("POST", KEY, "uploads", {"cache_control": "no-store"}),
        ("GET", KEY, "", {"if_modified_since": "Tue, 17 Nov 2026 06:30:00 GMT"}),
        ("GET", "lab-bucket", "", {}),
        ("GET", "lab-bucket", "list-type=1", {}),
        ("GET", "lab-bucket", "list-type=2&max-keys=many", {}),
        ("GET", "lab-bucket", "list-type=2&continuation-token=%21", {}),
        ("GET", "lab-bucket", "list-type=2&prefix=%01", {}),
        ("GET", "", "", {}),
        ("PUT", "lab-bucket/" + "x" * 1025, "", {}),
        ("PUT", "lab-bucket/a\nb", "", {}),
        ("PUT", "lab-bucket/..", "", {}),
    ],
)
def test_what_the_lab_would_not_honour_is_refused(
    google: Google, method: str, path: str, query: str, headers: dict[str, str]
) -> None:
    google("PUT", KEY, b"as it was")
    assert google(method, path, b"changed", query, **headers).code == "InvalidArgument"
    assert google("GET", KEY).body == b"as it was"


def test_methods_that_there_are_not_are_refused(google: Google) -> None:
    for method, path in (("POST", KEY), ("PATCH", KEY), ("DELETE", "lab-bucket"), ("HEAD", "lab-bucket")):
        assert google(method, path).status == 405


def test_a_key_is_a_name_and_never_a_path(google: Google, tmp_path: Path) -> None:
    for key in ("../../escaped", "a/../../b", "/etc/passwd", "%2e%2e/x", "a//b", "ü 😀?#&;+"):
        assert google("PUT", f"lab-bucket/{key}", key.encode()).status == 200
        assert google("GET", f"lab-bucket/{key}").body == key.encode()
    assert {path.name for path in tmp_path.iterdir()} == {"gcs", "gcs-key.json"}
    assert all(len(path.name) == 32 for path in google.folder.iterdir())


def test_a_path_that_is_no_text_is_refused(google: Google) -> None:
    raw, token = f"{PREFIX}lab-bucket/%ff", web_token(google.key, google.key_id, AT)
    headers = {"authorization": f"Bearer {token}", "host": HOST}
    request = Request(method="GET", path=raw, raw_path=raw, query="", headers=headers, body=b"")
    assert google.asked(request).code == "InvalidURI"


def test_a_client_that_leaves_in_the_middle_leaves_nothing(google: Google, monkeypatch: pytest.MonkeyPatch) -> None:
    async def torn(body: bytes):  # type: ignore[no-untyped-def]
        yield body
        raise ClientLeft

    google("PUT", KEY, b"as it was")
    with monkeypatch.context() as patch:
        patch.setattr("gcs_front._pieces", torn)
        with pytest.raises(ClientLeft):
            google("PUT", KEY, b"half of it")
    assert google("GET", KEY).body == b"as it was"
    assert len(list(google.folder.iterdir())) == 1


# --- faults -----------------------------------------------------------------------------------------------------


def test_faults_before_the_effect_change_nothing(google: Google) -> None:
    google.fail(FaultKind.ERROR_BEFORE_EFFECT, operation="PutObject", count=1)
    assert google("PUT", KEY, b"x").response.is_cut
    google.fail(FaultKind.THROTTLE, operation="PutObject", count=1)
    assert (google("PUT", KEY, b"x").status, google("GET", KEY).status) == (429, 404)
    google.fail(FaultKind.SERVER_ERROR, operation="Put*", status=503, count=1)
    assert (google("PUT", KEY, b"x").status, google("GET", KEY).status) == (503, 404)
    google.fail(FaultKind.AUTH_EXPIRED, count=1)
    assert (google("PUT", KEY, b"x").status, google("GET", KEY).status) == (401, 404)


def test_faults_after_the_effect_hide_it(google: Google) -> None:
    google.fail(FaultKind.LOST_REPLY, operation="PutObject", count=1)
    assert google("PUT", KEY, b"one", **ABSENT).response.is_cut
    assert google("GET", KEY).body == b"one"
    google.fail(FaultKind.SERVER_ERROR_AFTER, operation="DeleteObject", count=1)
    assert google("DELETE", KEY).status == 500
    assert google("GET", KEY).status == 404
    google("PUT", KEY, b"two")
    google.fail(FaultKind.LOST_REPLY, operation="GetObject", count=1)
    assert google("GET", KEY).response.is_cut


def test_a_request_that_arrives_twice_meets_its_own_effect(google: Google) -> None:
    google.fail(FaultKind.DUPLICATE_DELIVERY, operation="PutObject", count=1)
    assert google("PUT", KEY, b"x", **ABSENT).status == 412
    assert google("GET", KEY).body == b"x"
    google.fail(FaultKind.DUPLICATE_DELIVERY, operation="GetObject", count=1)
    assert google("GET", KEY).body == b"x"


def test_a_slow_answer_says_how_late_it_is(google: Google) -> None:
    google.fail(FaultKind.SLOW, seconds=(2.0, 2.0), operation="GetObject")
    google("PUT", KEY, b"x")
    assert google("GET", KEY).response.after_s == 2.0
