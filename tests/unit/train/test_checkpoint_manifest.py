"""What a manifest says, and that nothing but the exact bytes of an honest one is taken (R8)."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.train.checkpoint_manifest import InvalidManifest, Manifest, Origin, Part, decode, encode
from crucible.train.durable import copy_hashed, file_pieces

MIB = 1 << 20
ZEROS = "0" * 64
PLAIN = Manifest(
    step=300,
    root="parts-" + "a" * 16,
    parts=(Part("model/weights.bin", 65 * MIB, (ZEROS, ZEROS)), Part("empty", 0, ())),
    is_folder=True,
    created_ms=1_700_000_000_000,
    origin=Origin(4, 2, "job-1", 3),
    metadata={"loss": 0.5},
    shard=2,
    shards=4,
)


def forged(**changes: Any) -> bytes:
    """With a digest that is right, as anybody could make it."""
    body = {**json.loads(encode(PLAIN)), **changes}
    del body["digest"]
    text = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    digest = hashlib.sha256(text).hexdigest()
    return json.dumps({**body, "digest": digest}, sort_keys=True, separators=(",", ":")).encode()


def test_a_manifest_comes_back_as_it_was() -> None:
    assert decode(encode(PLAIN)) == PLAIN and forged() == encode(PLAIN)


def test_a_manifest_says_all_of_its_format() -> None:
    assert json.loads(encode(PLAIN)) == {
        "format": 2,
        "step": 300,
        "root": "parts-" + "a" * 16,
        "is_folder": True,
        "piece_bytes": 64 * MIB,
        "parts": [
            {"name": "model/weights.bin", "size": 65 * MIB, "pieces": [ZEROS, ZEROS]},
            {"name": "empty", "size": 0, "pieces": []},
        ],
        "created_ms": 1_700_000_000_000,
        "world_size": 4,
        "rank": 2,
        "job_id": "job-1",
        "attempt": 3,
        "shard": 2,
        "shards": 4,
        "metadata": {"loss": 0.5},
        "digest": json.loads(encode(PLAIN))["digest"],
    }


def test_a_manifest_of_the_first_format_is_read_as_one_piece_for_each_file() -> None:
    old = replace(
        PLAIN, piece_bytes=None, shard=0, shards=1, parts=(Part("a", 65 * MIB, (ZEROS,)), Part("empty", 0, ()))
    )
    body = json.loads(encode(old))
    assert body["format"] == 1 and not {"shard", "shards", "piece_bytes"} & set(body)
    assert [part["sha256"] for part in body["parts"]] == [ZEROS, hashlib.sha256().hexdigest()]
    assert decode(encode(old)) == old


@pytest.mark.parametrize(
    "changes",
    [
        {"step": -1},
        {"step": True},
        {"attempt": None},
        {"shard": 4},
        {"shard": -1},
        {"shard": 0, "shards": 0},
        {"shards": 65_537},
        {"shards": 4.0},
        {"piece_bytes": MIB - 1},
        {"piece_bytes": 1 + (1 << 30)},
        {"piece_bytes": None},
        {"piece_bytes": 32 * MIB},
        {"metadata": []},
        {"parts": [{"name": {}, "size": 0, "pieces": []}]},
        {"parts": [{"name": "a", "size": 1, "pieces": []}]},
        {"parts": [{"name": "a", "size": 0, "pieces": [ZEROS]}]},
        {"parts": [{"name": "a", "size": 1, "pieces": [ZEROS, ZEROS]}]},
        {"parts": [{"name": "a", "size": 1, "pieces": [1]}]},
        {"parts": [{"name": "a", "size": 1, "pieces": ["x" * 64]}]},
        {"parts": [{"name": "a", "size": 1, "pieces": ZEROS}]},
        {"parts": [{"name": "a", "size": True, "pieces": [ZEROS]}]},
        {"parts": [{"name": "a", "size": 0, "pieces": []}] * 2},
        {"parts": [], "is_folder": False},
        {"format": 1},
        {"format": 3},
        {"more": 1},
    ],
)
def test_a_manifest_that_no_honest_program_writes_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidManifest):
        decode(forged(**changes))


@given(st.binary(max_size=3 * MIB // 1000), st.integers(1, 700))
def test_pieces_are_the_digests_of_a_file_cut_into_equal_lengths(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, piece_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("pieces")
    (folder / "old").write_bytes(data)
    cut = [data[start : start + piece_bytes] for start in range(0, len(data), piece_bytes)]
    expected = tuple(hashlib.sha256(piece).hexdigest() for piece in cut)
    assert copy_hashed(str(folder / "old"), str(folder / "new"), piece_bytes) == (len(data), expected)
    assert file_pieces(str(folder / "new"), piece_bytes) == expected and (folder / "new").read_bytes() == data


def test_a_piece_longer_than_one_read_is_hashed_whole(tmp_path: Path) -> None:
    data = bytes(range(256)) * 10_000
    (tmp_path / "file").write_bytes(data)
    first, second = file_pieces(str(tmp_path / "file"), 2 * MIB)
    assert first == hashlib.sha256(data[: 2 * MIB]).hexdigest()
    assert second == hashlib.sha256(data[2 * MIB :]).hexdigest()
    assert file_pieces(str(tmp_path / "file"), None) == (hashlib.sha256(data).hexdigest(),)
