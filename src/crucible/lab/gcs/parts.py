"""Requests for uploads in parts: begin, send, complete, give up."""

import asyncio
import secrets

from crucible.lab.gcs import uploads, xml
from crucible.lab.gcs.call import Call, Operation
from crucible.lab.gcs.errors import GcsError, invalid
from crucible.lab.gcs.objects import XML, check_digest, content_type, facts
from crucible.lab.http import Response

# Ten thousand parts are named in less.
MOST_COMPLETION_BYTES = 2 << 20


async def begin(call: Call) -> Response:
    bucket, key = call.bucket.name, call.target.key
    name = call.store.uploads.begin(bucket, key, content_type(call.headers))
    return Response(headers=XML, body=xml.begun(bucket, key, name))


async def send(call: Call) -> Response:
    number = call.fields["partNumber"]
    if not number.isascii() or not number.isdecimal() or len(number) > 9:
        invalid(f"{number:.60} is no part number.")
    check_digest(call.headers, call.sent)
    name = call.fields["uploadId"]
    part = call.store.uploads.add(name, call.bucket.name, call.target.key, int(number), call.sent)
    return Response(headers={"etag": part.etag})


async def complete(call: Call) -> Response:
    bucket, key, name = call.bucket, call.target.key, call.fields["uploadId"]
    if call.sent.size > MOST_COMPLETION_BYTES:
        raise GcsError("MalformedXML", "The body names more parts than there can be.")
    named = xml.named_parts(await asyncio.to_thread(call.sent.path.read_bytes))
    store = call.store.uploads
    found = uploads.chosen(store.find(name, bucket.name, key), named)
    upload = store.end(name, bucket.name, key)
    whole = call.store.folder / secrets.token_hex(16)
    try:
        await asyncio.to_thread(uploads.joined, found, whole)
    finally:
        uploads.discard(upload)
    blob = bucket.put(key, whole, sum(part.size for part in found), uploads.etag_of(found), upload.content_type)
    return Response(headers={**XML, **facts(blob)}, body=xml.completed(bucket.name, blob))


async def abort(call: Call) -> Response:
    uploads.discard(call.store.uploads.end(call.fields["uploadId"], call.bucket.name, call.target.key))
    return Response(status=204)


_UPLOAD = frozenset(["uploadId"])

OPERATIONS = (
    Operation(name="CreateMultipartUpload", method="POST", handler=begin, needs=frozenset(["uploads"])),
    Operation(name="UploadPart", method="PUT", handler=send, needs=_UPLOAD | {"partNumber"}, has_body=True),
    Operation(name="CompleteMultipartUpload", method="POST", handler=complete, needs=_UPLOAD, has_body=True),
    Operation(name="AbortMultipartUpload", method="DELETE", handler=abort, needs=_UPLOAD),
)
