"""Documents of the XML API: answers and errors as text, and the one document that clients send."""

from collections.abc import Sequence
from datetime import UTC, datetime
from xml.parsers import expat
from xml.sax.saxutils import escape

from crucible.lab.gcs.buckets import Blob
from crucible.lab.gcs.errors import GcsError
from crucible.lab.gcs.listing import Ask, Page

_HEAD = "<?xml version='1.0' encoding='UTF-8'?>"
_NAMESPACE = "http://doc.s3.amazonaws.com/2006-03-01"
_MOST_TEXT = 200  # of an ETag or a number in what clients send


def error(refusal: GcsError) -> bytes:
    return f"{_HEAD}<Error>{_element('Code', refusal.code)}{_element('Message', refusal.message)}</Error>".encode()


def listed(bucket: str, ask: Ask, page: Page, blobs: Sequence[Blob]) -> bytes:
    fields = {
        "Name": bucket,
        "Prefix": ask.prefix,
        "KeyCount": str(page.count),
        "MaxKeys": str(ask.most),
        "IsTruncated": "true" if page.next_token else "false",
        "Delimiter": ask.delimiter or None,
        "NextContinuationToken": page.next_token,
    }
    out = [_element(name, value) for name, value in fields.items() if value is not None]
    out += [f"<Contents>{_contents(blob)}</Contents>" for blob in blobs]
    out += [f"<CommonPrefixes>{_element('Prefix', prefix)}</CommonPrefixes>" for prefix in page.prefixes]
    return _document("ListBucketResult", "".join(out))


def begun(bucket: str, key: str, upload: str) -> bytes:
    names = {"Bucket": bucket, "Key": key, "UploadId": upload}
    return _document("InitiateMultipartUploadResult", "".join(_element(*pair) for pair in names.items()))


def completed(bucket: str, blob: Blob) -> bytes:
    names = {"Bucket": bucket, "Key": blob.key, "ETag": blob.etag}
    return _document("CompleteMultipartUploadResult", "".join(_element(*pair) for pair in names.items()))


def named_parts(body: bytes) -> list[tuple[int, str]]:
    """Number and ETag of each part of a CompleteMultipartUpload. Raises GcsError."""
    reader = _Completion()
    try:
        reader.parser.Parse(body, True)
        return [(int(part["PartNumber"]), part["ETag"]) for part in reader.parts]
    except (expat.ExpatError, KeyError, ValueError):
        raise GcsError(
            "MalformedXML", "The body is no CompleteMultipartUpload with a PartNumber and an ETag in each Part."
        ) from None


class _Completion:
    def __init__(self) -> None:
        self.parts: list[dict[str, str]] = []
        self._open: list[str] = []
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._refuse  # no entities, so nothing that grows

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._open.append(name)
        if self._open == ["CompleteMultipartUpload", "Part"]:
            self.parts.append({})

    def _end(self, name: str) -> None:
        self._open.pop()

    def _text(self, text: str) -> None:
        if self._open[:2] == ["CompleteMultipartUpload", "Part"] and len(self._open) == 3:
            said = self.parts[-1].get(self._open[2], "") + text
            if len(said) > _MOST_TEXT:
                raise ValueError("too long")
            self.parts[-1][self._open[2]] = said

    def _refuse(self, *_: object) -> None:
        raise ValueError("a document type")


def _contents(blob: Blob) -> str:
    fields = {
        "Key": blob.key,
        "Generation": str(blob.generation),
        "MetaGeneration": "1",
        "LastModified": datetime.fromtimestamp(blob.modified_at, UTC).isoformat(timespec="milliseconds")[:-6] + "Z",
        "ETag": blob.etag,
        "Size": str(blob.size),
    }
    return "".join(_element(*pair) for pair in fields.items())


def _document(name: str, content: str) -> bytes:
    return f"{_HEAD}<{name} xmlns='{_NAMESPACE}'>{content}</{name}>".encode()


def _element(name: str, value: str) -> str:
    return f"<{name}>{escape(value)}</{name}>"
