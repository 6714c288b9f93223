"""Which names an object may have. The stores differ about the rest: some fold a backslash, some drop an empty part."""

from crucible.model.errors import InvalidRequest

# The least that a cloud takes, S3, in bytes of UTF-8, with the prefix.
MAX_KEY_BYTES = 1024


def whole_key(prefix: str, key: str) -> str:
    """The key in its bucket. Raises InvalidRequest."""
    whole = f"{prefix}/{key}" if prefix else key
    reason = _flaw(whole)
    if reason:
        raise InvalidRequest(f"{_shown(whole)} cannot name an object: {reason}")
    return whole


def _flaw(key: str) -> str | None:
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        return "it is no Unicode text"
    if size > MAX_KEY_BYTES:
        return f"it has {size} bytes, at most {MAX_KEY_BYTES} are taken"
    if any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in key):
        return "it has control characters"
    if "\\" in key:
        return "it has a backslash"
    if any(part in ("", ".", "..") for part in key.split("/")):
        return "a part between slashes is empty, . or .."
    return None


def _shown(key: str) -> str:
    return ascii(key if len(key) <= 80 else key[:80] + "…")
