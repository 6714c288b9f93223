"""Pages of a bucket: together they are what a look at every key finds, in order, each once."""

from hypothesis import example, given
from hypothesis import strategies as st

from crucible.lab.gcs.listing import Ask, page, read

KEYS = st.sets(st.text("ab/é\U0001f600", min_size=1, max_size=6), max_size=25)
PIECE = st.text("ab/é", max_size=3)


def expected(keys: set[str], prefix: str, delimiter: str, after: str) -> tuple[list[str], list[str]]:
    plain, folded = set(), set()
    for key in keys:
        if key.startswith(prefix) and key > after:
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                folded.add(prefix + rest[: rest.index(delimiter) + len(delimiter)])
            else:
                plain.add(key)
    return sorted(plain), sorted(folded)


@given(KEYS, PIECE, PIECE, st.integers(1, 7))
def test_pages_without_a_delimiter_are_the_keys(keys: set[str], prefix: str, after: str, most: int) -> None:
    found: list[str] = []
    fields = {"list-type": "2", "prefix": prefix, "start-after": after, "max-keys": str(most)}
    while True:
        one = page(sorted(keys), read(fields))
        assert one.count <= most
        found += one.keys
        if one.next_token is None:
            break
        assert one.count == most
        fields["continuation-token"] = one.next_token
    assert (found, []) == expected(keys, prefix, "", after)


@given(KEYS, PIECE, st.sampled_from(["/", "a/", "é"]), st.integers(1, 7))
@example({"a/", "a/a"}, "a", "a/", 1)  # the delimiter begins within the prefix
def test_pages_with_a_delimiter_fold_what_is_below(keys: set[str], prefix: str, delimiter: str, most: int) -> None:
    plain: list[str] = []
    folded: list[str] = []
    fields = {"list-type": "2", "prefix": prefix, "delimiter": delimiter, "max-keys": str(most)}
    while True:
        one = page(sorted(keys), read(fields))
        plain += one.keys
        folded += one.prefixes
        if one.next_token is None:
            break
        fields["continuation-token"] = one.next_token
    assert (plain, folded) == expected(keys, prefix, delimiter, "")


def test_a_page_of_nothing_has_no_next() -> None:
    assert page(["a"], Ask(prefix="", delimiter="", after="", most=0)).next_token is None
    assert page([], Ask(prefix="", delimiter="/", after="", most=5)).count == 0
