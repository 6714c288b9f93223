"""What a cloud's refusals mean to us. The texts are as the library gives them."""

import pytest
from obstore.exceptions import AlreadyExistsError, BaseError, GenericError, PermissionDeniedError, PreconditionError

from crucible.blobs.cloud_trouble import translated
from crucible.model.errors import Conflict, NotFound, PlatformError, StorageFailed, StorageRefused
from crucible.model.storage import parse

WHERE = parse("s3://bucket/prefix")
SIGNED = "https://bucket.example/k?sv=2020&sig=c2VjcmV0"


def said(status: int, code: str) -> str:
    body = f"<Error><Code>{code}</Code><Message>No.</Message></Error>"
    return f"Error performing GET {SIGNED} in 1ms - Server returned non-2xx status code: {status} Oh: {body}"


@pytest.mark.parametrize(
    ("error", "expected", "words"),
    [
        (FileNotFoundError(said(404, "NoSuchKey")), NotFound, "no object k in s3://bucket/prefix"),
        (FileNotFoundError(said(404, "NoSuchBucket")), StorageRefused, "no bucket bucket"),
        (FileNotFoundError("The specified container does not exist. (code: 404)"), StorageRefused, "no bucket"),
        (AlreadyExistsError(said(412, "PreconditionFailed")), Conflict, "not what it was expected"),
        (PreconditionError(said(412, "ConditionNotMet")), Conflict, "not what it was expected"),
        (PermissionDeniedError(said(403, "AccessDenied")), StorageRefused, r"credentials \(AccessDenied\)"),
        (PermissionDeniedError(said(403, "RequestTimeTooSkewed")), StorageRefused, "set its clock"),
        (GenericError(said(403, "SignatureDoesNotMatch")), StorageRefused, "SignatureDoesNotMatch"),
        (GenericError(said(301, "PermanentRedirect")), StorageRefused, "set AWS_REGION"),
        (GenericError(said(400, "InvalidBucketName")), StorageRefused, "InvalidBucketName"),
        (GenericError(said(507, "InsufficientStorage")), StorageFailed, "is full"),
        (GenericError(said(403, "QuotaExceeded")), StorageFailed, "is full"),
        (GenericError(said(429, "SlowDown")), StorageFailed, "try again later"),
        (GenericError(said(503, "ServiceUnavailable")), StorageFailed, "try again later"),
        (GenericError(f"Error performing GET {SIGNED} - HTTP error: error sending request"), StorageFailed, "reached"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_refusal_says_what_to_do_and_shows_no_address(
    error: BaseError, expected: type[PlatformError], words: str
) -> None:
    found = translated(error, WHERE, "k")
    assert type(found) is expected
    with pytest.raises(expected, match=words):
        raise found
    assert "sig=" not in found.message and "bucket.example" not in found.message


def test_who_writes_and_finds_nothing_has_no_bucket() -> None:
    error = FileNotFoundError("status code: 404 Not Found: ")
    assert isinstance(translated(error, WHERE, "k", is_write=True), StorageRefused)
    assert isinstance(translated(error, WHERE, ""), StorageRefused)
    assert isinstance(translated(error, WHERE, "k"), NotFound)
