"""Pieces of checkpoints in objects: every piece once, nothing sent that is there, nothing larger than one request."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.agent.manifests import Invalid, NodeManifest, StoredManifest, Stowed, stored_manifest
from crucible.agent.stowing import OBJECT_BYTES, known, known_of, stow
from crucible.core.stored_manifest import read_stored

SLOT, OTHER = "00001-00000-0123456789abcdef", "00002-00000-fedcba9876543210"
MIB = 1 << 20
# A few contents, so that some are the same; digests are not looked at here.
FILES = st.dictionaries(
    st.text("abc/.é", min_size=1, max_size=6).filter(
        lambda name: all(p not in ("", ".", "..") for p in name.split("/"))
    ),
    st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 1000, MIB - 1, MIB, 40 * MIB, 64 * MIB, 65 * MIB, 130 * MIB])),
    max_size=10,
)


def canonical(body: dict[str, Any]) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode("ascii")


def signed(body: dict[str, Any]) -> bytes:
    bare = {name: value for name, value in body.items() if name != "digest"}
    return canonical({**bare, "digest": hashlib.sha256(canonical(bare)).hexdigest()})


def digest(content: int, size: int, piece: int) -> str:
    return hashlib.sha256(b"%d %d %d" % (content, size, piece)).hexdigest()


def body(files: dict[str, tuple[int, int]], piece_bytes: int = 64 * MIB, **changes: Any) -> dict[str, Any]:
    parts = [
        {"name": name, "size": size, "pieces": [digest(content, size, i) for i in range(-(-size // piece_bytes))]}
        for name, (content, size) in files.items()
    ]
    said = {"format": 2, "step": 7, "root": "parts-0123456789abcdef", "is_folder": True, "piece_bytes": piece_bytes}
    whose = {"created_ms": 1, "world_size": 1, "rank": 0, "job_id": "job", "attempt": 1, "shard": 0, "shards": 1}
    return {**said, **whose, "parts": parts, "metadata": {}, **changes}


def node(files: dict[str, tuple[int, int]], **changes: Any) -> NodeManifest:
    return NodeManifest(signed(body(files, **changes)))


@settings(max_examples=60)
@given(FILES, FILES, st.sampled_from([MIB, 16 * MIB, 64 * MIB]))
def test_every_piece_is_in_one_object_and_both_sides_read_it(
    before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]], piece_bytes: int
) -> None:
    old, new = node(before, piece_bytes=piece_bytes), node(after, piece_bytes=piece_bytes)
    sent, _ = stow(old, SLOT, [])
    to_send, same = stow(new, OTHER, known(old, sent))
    text = stored_manifest(OTHER, new, to_send + same)
    mine, theirs = StoredManifest(text.decode()), read_stored(text, OTHER)
    assert [each.key for each in mine.objects] == [each.key for each in theirs.objects]
    assert all(each.size <= max(OBJECT_BYTES, piece_bytes) for each in to_send)
    assert [each.key for each in to_send] == [f"parts/{OTHER}/{number:05d}" for number in range(len(to_send))]
    assert {each.key for each in same} <= {each.key for each in sent}


@given(FILES)
def test_what_did_not_change_is_not_sent(files: dict[str, tuple[int, int]]) -> None:
    sent, _ = stow(node(files), SLOT, [])
    again, same = stow(node(files, step=8), OTHER, known(node(files), sent))
    assert again == [] and len(same) == len(sent)


def test_a_changed_small_file_resends_only_what_it_shares_an_object_with() -> None:
    files = {f"{number:03d}": (number, 500_000) for number in range(100)}
    sent, _ = stow(node(files), SLOT, [])
    assert len(sent) == 4
    to_send, same = stow(node({**files, "000": (1000, 500_000)}), OTHER, known(node(files), sent))
    assert len(same) == 3 and sum(each.size for each in to_send) < 17 * MIB


def test_a_large_file_is_cut_and_a_small_one_is_not_alone() -> None:
    sent, _ = stow(node({"large": (0, 150 * MIB), "one": (1, 10), "two": (2, 20), "mid": (3, MIB)}), SLOT, [])
    assert [each.size for each in sent] == [64 * MIB, 64 * MIB, 22 * MIB, MIB, 30]
    assert sent[-1].holds == [(1, 0), (2, 0)]


def test_the_same_object_is_named_once_however_many_shards_name_it() -> None:
    files = {"a": (1, 10)}
    sent, _ = stow(node(files), SLOT, [])
    stored = StoredManifest(stored_manifest(SLOT, node(files), sent).decode())
    assert len(known_of([stored, stored])) == 1
    twins = node({"a": (1, 10), "b": (1, 10)})
    to_send, same = stow(twins, OTHER, known_of([stored, stored]))
    assert len(same) == 1 and [each.size for each in to_send] == [10]


def test_objects_that_lie_elsewhere_are_not_referred_to() -> None:
    shared = Stowed("step-000000001/parts-0123456789abcdef/a", 10, [(0, 0)])
    assert known(node({"a": (1, 10)}), [shared]) == []


# --- hostile manifests --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../evil", "/etc/passwd", "a/../../b", "a//b", ".", "a\0b", "", "a/."])
def test_a_name_that_leaves_the_folder_is_refused(name: str) -> None:
    with pytest.raises(Invalid, match="would leave"):
        node({name: (0, 1)})


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 3},
        {"step": -1},
        {"step": True},
        {"step": 10**18},
        {"root": "../parts-0123456789abcdef"},
        {"piece_bytes": 0},
        {"piece_bytes": 1 << 40},
        {"shard": 1},
        {"shards": 0},
        {"parts": [{"name": "a", "size": 1, "pieces": []}]},
        {"parts": [{"name": "a", "size": -1, "pieces": []}]},
        {"parts": [{"name": "a", "size": 1, "pieces": ["x" * 64]}]},
        {"parts": [{"name": "a", "size": 1, "pieces": ["ab" * 32]}] * 2},
        {"parts": [{"name": 7, "size": 1, "pieces": ["ab" * 32]}]},
        {"parts": [None]},
        {"parts": 7},
    ],
)
def test_a_manifest_that_no_honest_program_writes_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        NodeManifest(signed({**body({}), **changes}))


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"null", b"[" * 100_000, b"\xff", b'{"digest":""}'])
def test_what_is_no_manifest_is_refused(data: bytes) -> None:
    with pytest.raises(Invalid):
        NodeManifest(data)
    with pytest.raises(Invalid):
        StoredManifest(data.decode("latin-1"))


@given(st.data())
def test_any_changed_byte_shows(data: st.DataObject) -> None:
    text = stored_manifest(SLOT, node({"a": (1, 10)}), stow(node({"a": (1, 10)}), SLOT, [])[0])
    at = data.draw(st.integers(0, len(text) - 1))
    changed = text[:at] + bytes([text[at] ^ data.draw(st.integers(1, 127))]) + text[at + 1 :]
    with pytest.raises(Invalid):
        StoredManifest(changed.decode("latin-1"))


@pytest.mark.parametrize(
    "objects",
    [
        [],
        [{"key": "k", "size": 10, "holds": [[0, 0]]}, {"key": "l", "size": 10, "holds": [[0, 0]]}],
        [{"key": "k", "size": 20, "holds": [[0, 0], [0, 0]]}],
        [{"key": "k", "size": 11, "holds": [[0, 0]]}],
        [{"key": "k", "size": 10, "holds": [[0, 1]]}],
        [{"key": "k", "size": 10, "holds": [[0, -1]]}],
        [{"key": "k", "size": 10, "holds": [[0]]}],
        [{"key": 7, "size": 10, "holds": [[0, 0]]}],
        [{"key": "k", "size": 10, "holds": [[0, 0]]}, {"key": "l", "size": 0, "holds": []}],
    ],
)
def test_objects_that_do_not_hold_every_piece_once_are_refused(objects: list[dict[str, Any]]) -> None:
    inner = node({"a": (1, 10)})
    said = json.loads(stored_manifest(SLOT, inner, []))
    with pytest.raises(Invalid):
        StoredManifest(signed({**said, "objects": objects}).decode())


def test_the_manifest_of_another_checkpoint_inside_is_refused() -> None:
    inner = node({})
    said = json.loads(stored_manifest(SLOT, inner, []))
    with pytest.raises(Invalid, match="another checkpoint"):
        StoredManifest(signed({**said, "step": 8}).decode())
