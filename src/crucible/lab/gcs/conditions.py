"""What a request makes its effect depend on, and which bytes it asks for. Pure."""

import re
from collections.abc import Mapping

from crucible.lab.gcs.buckets import Blob
from crucible.lab.gcs.errors import GcsError, invalid, no_such_key, precondition_failed

GENERATION_MATCH = "x-goog-if-generation-match"
_GENERATION = re.compile(r"[0-9]{1,19}", re.ASCII)
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})", re.ASCII)


class NotModified(Exception):
    """Whoever asks has it already."""


def check_change(headers: Mapping[str, str], blob: Blob | None) -> None:
    """Raises GcsError unless what is there now is what the request expects; 0 is nothing."""
    wanted = headers.get(GENERATION_MATCH)
    if wanted is not None and generation(wanted) != (blob.generation if blob else 0):
        raise precondition_failed(GENERATION_MATCH)


def check_read(headers: Mapping[str, str], fields: Mapping[str, str], blob: Blob) -> None:
    """Raises GcsError or NotModified."""
    if "generation" in fields and generation(fields["generation"]) != blob.generation:
        raise no_such_key(blob.key)  # an older one is not kept
    check_change(headers, blob)
    if "if-match" in headers and not _names(headers["if-match"], blob.etag):
        raise precondition_failed("If-Match")
    if "if-none-match" in headers and _names(headers["if-none-match"], blob.etag):
        raise NotModified


def generation(text: str) -> int:
    if not _GENERATION.fullmatch(text):
        invalid(f"{text:.60} is not a generation.")
    return int(text)


def span(header: str | None, size: int) -> tuple[int, int] | None:
    """Start and length of what is asked for; None: all of it. Raises GcsError."""
    if header is None:
        return None
    match = _RANGE.fullmatch(header.strip())
    if match is None or match[1] == match[2] == "" or (match[1] and match[2] and int(match[1]) > int(match[2])):
        invalid(f"{header:.60} is not one range of bytes.")
    if match[1] == "":
        length = min(int(match[2]), size)
        start = size - length
    else:
        start = int(match[1])
        length = min(int(match[2]) + 1 if match[2] else size, size) - start
    if length <= 0:
        raise GcsError("InvalidRange", f"The requested range cannot be satisfied: the object has {size} bytes.", 416)
    return start, length


def _names(header: str, etag: str) -> bool:
    return any(one.strip() in ("*", etag) for one in header.split(","))
