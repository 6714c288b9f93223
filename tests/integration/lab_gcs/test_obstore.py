"""obstore, unmodified, against a real Lab: conditions, ranges, listings, parts, signed addresses, and refusals."""

import http.client
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from urllib.parse import urlsplit

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, BaseError, NotModifiedError, PermissionDeniedError, PreconditionError
from obstore.store import GCSStore

from lab_process import RunningLab

from .conftest import Stores

MINUTE = timedelta(minutes=1)
LIMIT_S = 30.0


def send(method: str, url: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    """As somebody without credentials does it."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=LIMIT_S)
    try:
        connection.request(method, f"{parts.path}?{parts.query}", body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def content(store: GCSStore, key: str) -> bytes:
    return bytes(obstore.get(store, key).bytes())


def test_only_one_of_many_creates_an_object(store: GCSStore) -> None:
    def create(number: int) -> bool:
        try:
            obstore.put(store, "key", f"{number}".encode() * 1000, mode="create")
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(create, range(32)))
    assert won.count(True) == 1
    assert content(store, "key") == f"{won.index(True)}".encode() * 1000


def test_counting_together_loses_nothing(store: GCSStore) -> None:
    obstore.put(store, "count", b"0")

    def increase(_: int) -> None:
        while True:
            seen = obstore.get(store, "count")
            version = {"version": seen.meta["version"], "e_tag": seen.meta["e_tag"]}
            try:
                obstore.put(store, "count", str(int(bytes(seen.bytes())) + 1).encode(), mode=version)
            except PreconditionError:
                continue
            return

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(increase, range(20)))
    assert content(store, "count") == b"20"


def test_a_stale_generation_is_refused(store: GCSStore) -> None:
    first = obstore.put(store, "key", b"one")
    obstore.put(store, "key", b"two")
    with pytest.raises(PreconditionError):
        obstore.put(store, "key", b"three", mode={"version": first["version"], "e_tag": first["e_tag"]})
    assert content(store, "key") == b"two"


def test_reads_keep_to_ranges_and_conditions(store: GCSStore) -> None:
    body = os.urandom(300_000)
    etag = obstore.put(store, "key", body)["e_tag"]
    assert bytes(obstore.get_range(store, "key", start=7, end=290_000)) == body[7:290_000]
    several = obstore.get_ranges(store, "key", starts=[0, 200_000], lengths=[10, 10])
    assert [bytes(part) for part in several] == [body[:10], body[200_000:200_010]]
    assert bytes(obstore.get(store, "key", options={"range": {"suffix": 5}}).bytes()) == body[-5:]
    assert bytes(obstore.get(store, "key", options={"if_match": etag}).bytes()) == body
    with pytest.raises(PreconditionError):
        obstore.get(store, "key", options={"if_match": '"other"'})
    with pytest.raises(NotModifiedError):
        obstore.get(store, "key", options={"if_none_match": etag})
    with pytest.raises(BaseError, match="InvalidRange"):
        obstore.get_range(store, "key", start=300_000, end=300_001)


def test_keys_are_listed_in_order_and_folded_at_slashes(store: GCSStore) -> None:
    names = ["é", "z", "a/b", "a/b c", "a-b", "b/c/d", "a.b", "B", "<&>", "x%2Fy", "#?"]
    for name in names:
        obstore.put(store, name, name.encode())
    listed = [one["path"] for page in obstore.list(store) for one in page]
    assert listed == sorted(names, key=str.encode)
    assert [one["path"] for page in obstore.list(store, offset="a/b") for one in page] == listed[
        listed.index("a/b") + 1 :
    ]
    assert [one["path"] for page in obstore.list(store, "a") for one in page] == ["a/b", "a/b c"]
    folded = obstore.list_with_delimiter(store)
    assert sorted(folded["common_prefixes"]) == ["a", "b"]
    assert "z" in [one["path"] for one in folded["objects"]]


def test_parts_become_one_object(store: GCSStore) -> None:
    body = os.urandom(16 << 20)
    done = obstore.put(store, "large", body, use_multipart=True, chunk_size=5 << 20)
    facts = obstore.head(store, "large")
    assert (facts["size"], facts["version"], facts["e_tag"]) == (len(body), done["version"], done["e_tag"])
    assert content(store, "large") == body


def test_an_object_that_is_replaced_is_read_to_its_end(store: GCSStore) -> None:
    body = os.urandom(24 << 20)
    obstore.put(store, "key", body, use_multipart=False)
    reading = iter(obstore.get(store, "key").stream(min_chunk_size=1 << 20))
    first = bytes(next(reading))
    obstore.put(store, "key", b"new")
    assert first + b"".join(map(bytes, reading)) == body
    assert content(store, "key") == b"new"


def test_signed_requests_need_nothing_else(store: GCSStore) -> None:
    put, get = (obstore.sign(store, method, "a b/ü", MINUTE) for method in ("PUT", "GET"))
    body = os.urandom(2 << 20)
    assert send("PUT", put, body) == (200, b"")
    assert send("GET", get) == (200, body)
    assert send("GET", get, headers={"Range": "bytes=5-9"}) == (206, body[5:10])


def test_signed_requests_are_good_for_what_they_were_signed_for(store: GCSStore) -> None:
    obstore.put(store, "mine", b"mine")
    obstore.put(store, "other", b"other")
    get = obstore.sign(store, "GET", "mine", MINUTE)
    last = "0" if get[-1] != "0" else "1"
    for method, url in (("PUT", get), ("GET", get.replace("/mine?", "/other?")), ("GET", get[:-1] + last)):
        status, said = send(method, url, b"stolen" if method == "PUT" else None)
        assert (status, b"SignatureDoesNotMatch" in said) == (403, True)
    assert send("GET", get.partition("?")[0])[0] == 403
    assert content(store, "mine") == b"mine"


def test_a_signed_request_expires(store: GCSStore) -> None:
    obstore.put(store, "key", b"x")
    put, deadline = obstore.sign(store, "PUT", "key", timedelta(seconds=1)), time.monotonic() + LIMIT_S
    while (answer := send("PUT", put, b"y"))[0] == 200:
        assert time.monotonic() < deadline, "it never expires"
        time.sleep(0.05)
    assert (answer[0], b"ExpiredToken" in answer[1]) == (400, True)


def test_a_large_body_that_is_refused_is_told_why(store: GCSStore) -> None:
    put = obstore.sign(store, "PUT", "key", MINUTE)
    status, said = send("PUT", put, bytes(66 << 20))
    assert (status, b"EntityTooLarge" in said) == (400, True)
    status, said = send("PUT", put[:-2] + "00", bytes(32 << 20))
    assert (status, b"SignatureDoesNotMatch" in said) == (403, True)
    with pytest.raises(FileNotFoundError):
        obstore.head(store, "key")


def test_what_is_not_there_or_not_allowed_is_said_in_its_own_words(stores: Stores, store: GCSStore) -> None:
    with pytest.raises(FileNotFoundError, match="NoSuchBucket"):
        obstore.get(stores("wrong-bucket"), "key")
    with pytest.raises(FileNotFoundError, match="NoSuchBucket"):
        obstore.put(stores("wrong-bucket"), "key", b"x")
    with pytest.raises(BaseError, match="NoSuchBucket"):
        list(obstore.list(stores("wrong-bucket")))
    with pytest.raises(FileNotFoundError, match="NoSuchKey"):
        obstore.get(store, "key")
    with pytest.raises(PermissionDeniedError, match="AccessDenied"):
        obstore.get(stores(skip_signature=True), "key")
    with pytest.raises(BaseError, match="does not emulate"):
        obstore.copy(store, "key", "other")


def test_a_reply_that_is_lost_may_hide_a_success(lab: RunningLab, stores: Stores, store: GCSStore) -> None:
    rule = lab.control.fail("lost-reply", operation="PutObject", count=1)
    with pytest.raises(BaseError):
        obstore.put(store, "key", b"x", mode="create")
    assert content(store, "key") == b"x"
    assert lab.control.clear_faults(rule["id"]) == 1
    patient = stores(prefix=store.prefix, retry_config={"max_retries": 3})
    lab.control.fail("error-before-effect", operation="*Object", count=1)
    lab.control.fail("throttle", operation="*Object", count=1)
    lab.control.fail("server-error", operation="*Object", count=1)
    obstore.put(patient, "key", b"y")
    assert content(store, "key") == b"y"
    assert sum(rule["struck"] for rule in lab.control.faults()) == 3
    lab.control.clear_faults()
    struck = [event["note"].split()[0] for event in lab.control.events() if event["what"] == "fault"]
    assert struck == ["lost-reply", "error-before-effect", "throttle", "server-error"]


def test_the_key_file_is_that_of_a_service_account(lab: RunningLab) -> None:
    with open(lab.control.storage()["GOOGLE_APPLICATION_CREDENTIALS"]) as file:
        said = json.load(file)
    assert said["type"] == "service_account"
    assert said["token_uri"].startswith(lab.url)
    status, answer = send("POST", said["token_uri"], b"grant_type=refresh_token")
    assert (status, json.loads(answer)["error"]) == (400, "invalid_grant")
