"""Requests for buckets and whole objects."""

import base64
import binascii
from collections.abc import Mapping
from email.utils import formatdate

from crucible.lab.gcs import conditions, listing, xml
from crucible.lab.gcs.buckets import Blob
from crucible.lab.gcs.call import Call, Operation
from crucible.lab.gcs.conditions import GENERATION_MATCH
from crucible.lab.gcs.errors import GcsError
from crucible.lab.gcs.spool import Spool
from crucible.lab.http import FilePart, Response

XML = {"content-type": "application/xml; charset=UTF-8"}
_READ = frozenset([GENERATION_MATCH, "if-match", "if-none-match"])


async def create_bucket(call: Call) -> Response:
    call.store.buckets.create(call.target.bucket)
    return Response()


async def list_objects(call: Call) -> Response:
    ask = listing.read(call.fields)
    bucket = call.bucket
    page = listing.page(bucket.keys, ask)
    blobs = [bucket.find(key) for key in page.keys]
    return Response(headers=XML, body=xml.listed(bucket.name, ask, page, blobs))


async def put_object(call: Call) -> Response:
    bucket, key = call.bucket, call.target.key
    check_digest(call.headers, call.sent)
    conditions.check_change(call.headers, bucket.get(key))
    kept = call.sent.keep(call.store.folder)
    blob = bucket.put(key, kept, call.sent.size, call.sent.etag, content_type(call.headers))
    return Response(headers=facts(blob))


async def get_object(call: Call) -> Response:
    blob = _read(call)
    span = conditions.span(call.headers.get("range"), blob.size)
    start, length = span or (0, blob.size)
    headers = {**_described(blob), "content-length": str(length)}
    if span is not None:
        headers["content-range"] = f"bytes {start}-{start + length - 1}/{blob.size}"
    file = blob.path.open("rb")  # it stays readable when the object is replaced before all of it is sent
    file.seek(start)
    return Response(status=200 if span is None else 206, headers=headers, file=FilePart(file, length))


async def head_object(call: Call) -> Response:
    blob = _read(call)
    return Response(headers={**_described(blob), "content-length": str(blob.size)})


async def delete_object(call: Call) -> Response:
    blob = call.bucket.find(call.target.key)
    conditions.check_read(call.headers, call.fields, blob)
    call.bucket.remove(blob.key)
    return Response(status=204)


def facts(blob: Blob) -> dict[str, str]:
    return {"etag": blob.etag, "x-goog-generation": str(blob.generation), "x-goog-metageneration": "1"}


def content_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "application/octet-stream")


def check_digest(headers: Mapping[str, str], spool: Spool) -> None:
    """Raises GcsError if the request says which bytes it sends and others came."""
    said = headers.get("content-md5")
    if said is None:
        return
    try:
        digest = base64.b64decode(said, validate=True)
    except (binascii.Error, ValueError):
        digest = b""
    if len(digest) != 16:
        raise GcsError("InvalidDigest", "The Content-MD5 you specified was invalid.")
    if digest != spool.md5:
        raise GcsError("BadDigest", "The Content-MD5 you specified did not match what we received.")


def _read(call: Call) -> Blob:
    blob = call.bucket.find(call.target.key)
    conditions.check_read(call.headers, call.fields, blob)
    return blob


def _described(blob: Blob) -> dict[str, str]:
    return {
        **facts(blob),
        "content-type": blob.content_type,
        "last-modified": formatdate(blob.modified_at, usegmt=True),
        "accept-ranges": "bytes",
    }


OPERATIONS = (
    Operation(name="CreateBucket", method="PUT", handler=create_bucket, is_of_object=False),
    Operation(
        name="ListObjects",
        method="GET",
        handler=list_objects,
        is_of_object=False,
        takes=frozenset(["list-type", "prefix", "delimiter", "continuation-token", "start-after", "max-keys"]),
    ),
    Operation(name="PutObject", method="PUT", handler=put_object, honours=frozenset([GENERATION_MATCH]), has_body=True),
    Operation(name="GetObject", method="GET", handler=get_object, takes=frozenset(["generation"]), honours=_READ),
    Operation(name="HeadObject", method="HEAD", handler=head_object, takes=frozenset(["generation"]), honours=_READ),
    Operation(
        name="DeleteObject",
        method="DELETE",
        handler=delete_object,
        takes=frozenset(["generation"]),
        honours=frozenset([GENERATION_MATCH]),
    ),
)
