"""Filters and pages, as every Describe operation has them."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, TypeVar

from crucible.lab.aws.errors import AwsError, combination, invalid

T = TypeVar("T")

LARGEST_PAGE = 1000
Filter = dict[str, Any]  # {"Name": …, "Values": […]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[T]):
    key: Callable[[T], str]  # one thing, one key: a page goes on after it
    filters: Mapping[str, Callable[[T], Iterable[str | None]]] = field(default_factory=dict)
    tags: Callable[[T], Mapping[str, str]] | None = None
    smallest_page: int = 5
    largest_page: int = LARGEST_PAGE
    refusal_code: str = "InvalidPaginationToken"  # of a page that there is not

    def matching(self, things: Iterable[T], filters: Sequence[Filter]) -> list[T]:
        """Every filter must hold; of a filter's values one is enough."""
        found = list(things)
        for one in filters:
            values_of = self._values(one.get("Name", ""))
            patterns = [_pattern(value) for value in one.get("Values", [])]
            found = [thing for thing in found if _is_any(values_of(thing), patterns)]
        return found

    def page(
        self, things: Sequence[T], values: Mapping[str, Any], ids: str | None = None
    ) -> tuple[list[T], str | None]:
        """The things of one answer and the token for the next; `ids` is the member that must not come with a page."""
        most = values.get("MaxResults")
        if most is not None and ids is not None and values.get(ids):
            combination(f"The parameter {ids} cannot be used with the parameter maxResults")
        if most is not None and not self.smallest_page <= most <= self.largest_page:
            invalid(
                f"Value ( {most} ) for parameter maxResults is invalid. "
                f"Expecting a value between {self.smallest_page} and {self.largest_page}."
            )
        start = self._start(things, values.get("NextToken"))
        end = start + (most or self.largest_page)
        shown = list(things[start:end])
        return shown, _token(end, self.key(shown[-1])) if end < len(things) else None

    def _start(self, things: Sequence[T], token: str | None) -> int:
        """After the last thing of the page before; if that is gone, where it was."""
        if not token:
            return 0
        place, key = _read_token(token, self.refusal_code)
        known = [number for number, thing in enumerate(things) if self.key(thing) == key]
        return known[0] + 1 if known else place

    def _values(self, name: str) -> Callable[[T], Iterable[str | None]]:
        tags = self.tags
        if tags is not None:
            if name.startswith("tag:"):
                return lambda thing: [tags(thing).get(name[4:])]
            if name == "tag-key":
                return lambda thing: tags(thing).keys()
            if name == "tag-value":
                return lambda thing: tags(thing).values()
        if name not in self.filters:
            invalid(f"The filter '{name}' is invalid")
        return self.filters[name]


def _is_any(values: Iterable[str | None], patterns: Sequence[re.Pattern[str]]) -> bool:
    return any(pattern.fullmatch(value) for value in values if value is not None for pattern in patterns)


@lru_cache(maxsize=1024)
def _pattern(text: str) -> re.Pattern[str]:
    """`*` is anything, `?` one letter, a backslash takes that meaning away."""
    stretches = [""]
    for part in re.findall(r"\\.|.", text, re.DOTALL):
        if part == "*":
            stretches.append("")
        else:
            stretches[-1] += "." if part == "?" else re.escape(part[-1])
    first, *rest = stretches
    if not rest:
        return re.compile(first, re.DOTALL)
    # Each stretch is taken where it first comes, for good: no pattern makes the search long.
    inner = "".join(f"(?>.*?{stretch})" for stretch in rest[:-1] if stretch)
    return re.compile(f"{first}{inner}.*{rest[-1]}", re.DOTALL)


def _token(place: int, key: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([place, key]).encode()).decode()


def _read_token(token: str, code: str) -> tuple[int, str]:
    try:
        place, key = json.loads(base64.b64decode(token, altchars=b"-_", validate=True))
    except (ValueError, TypeError, binascii.Error):
        place, key = None, None
    if not isinstance(place, int) or not isinstance(key, str) or place < 0:
        raise AwsError(code, "The specified pagination token is not valid or is expired.")
    return place, key
