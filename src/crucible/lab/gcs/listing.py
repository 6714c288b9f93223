"""One page of a bucket: keys in order, what is below a delimiter folded into prefixes, and where to go on. Pure."""

import base64
import binascii
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from crucible.lab.gcs.errors import UNPRINTABLE, invalid

MOST_KEYS = 1000  # on a page


@dataclass(slots=True)
class Page:
    keys: list[str] = field(default_factory=list)
    prefixes: list[str] = field(default_factory=list)
    next_token: str | None = None

    @property
    def count(self) -> int:
        return len(self.keys) + len(self.prefixes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    prefix: str
    delimiter: str
    after: str  # only what is above it
    most: int


def read(fields: Mapping[str, str]) -> Ask:
    """Raises GcsError."""
    if fields.get("list-type") != "2":
        invalid("The Lab lists with list-type=2 only.")
    most = fields.get("max-keys", str(MOST_KEYS))
    if not most.isascii() or not most.isdecimal() or len(most) > 9:
        invalid(f"max-keys is no whole number: {most:.60}")
    if any(UNPRINTABLE.search(value) for value in fields.values()):
        invalid("The request has characters that XML cannot carry.")
    token = fields.get("continuation-token")
    return Ask(
        prefix=fields.get("prefix", ""),
        delimiter=fields.get("delimiter", ""),
        after=fields.get("start-after", "") if token is None else _last(token),
        most=min(int(most), MOST_KEYS),
    )


def page(keys: Sequence[str], ask: Ask) -> Page:
    """`keys` are in order."""
    found, at = Page(), _start(keys, ask)
    while at < len(keys) and keys[at].startswith(ask.prefix):
        if found.count == ask.most:
            if ask.most:
                found.next_token = _token(max(found.keys[-1:] + found.prefixes[-1:]))
            break
        folded = _folded(keys[at], ask)
        (found.keys if folded is None else found.prefixes).append(folded or keys[at])
        at = at + 1 if folded is None else _past(keys, at, folded)
    return found


def _start(keys: Sequence[str], ask: Ask) -> int:
    at = max(bisect_left(keys, ask.prefix), bisect_right(keys, ask.after))
    is_folded = ask.after.startswith(ask.prefix) and _folded(ask.after, ask) == ask.after
    return _past(keys, at, ask.after) if is_folded else at


def _folded(key: str, ask: Ask) -> str | None:
    """The prefix that stands for it on the page."""
    end = key.find(ask.delimiter, len(ask.prefix)) if ask.delimiter else -1
    return None if end < 0 else key[: end + len(ask.delimiter)]


def _past(keys: Sequence[str], at: int, prefix: str) -> int:
    while at < len(keys) and keys[at].startswith(prefix):
        at += 1
    return at


def _token(last: str) -> str:
    return base64.urlsafe_b64encode(last.encode()).decode()


def _last(token: str) -> str:
    try:
        return base64.b64decode(token.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        invalid("The continuation token is not one of the Lab's.")
