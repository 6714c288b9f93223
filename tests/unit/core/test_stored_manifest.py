"""Manifests in storage are hostile until read: the words of agents and scripts are understood, nothing else is."""

import hashlib
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from crucible.core.stored_manifest import BadManifest, is_slot, read_node, read_stored, whole_files, write_stored
from stored import FILES, node_manifest, store

SLOT = "00003-00001-0123456789abcdef"


def stored(step: int = 7, **more: Any) -> bytes:
    return store(lambda key, body: None, SLOT, node_manifest(step, attempt=3, **more))


def resealed(change: Callable[[dict[str, Any]], None], data: bytes) -> bytes:
    """As somebody would who knows how a digest is made."""
    body = json.loads(data)
    change(body)
    body.pop("digest", None)
    plain = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    body["digest"] = hashlib.sha256(plain).hexdigest()
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


def test_what_an_agent_stores_is_understood_word_for_word() -> None:
    data = stored()
    read = read_stored(data, SLOT)
    assert write_stored(read).encode() == data
    assert (read.node.step, read.node.attempt, read.node.shard, read.node.shards) == (7, 3, 0, 1)
    assert read.node.size_bytes == sum(len(content) for content in FILES.values())
    assert [part.name for part in read.node.parts] == list(FILES)
    assert read.node.metadata == {"loss": 0.5}


def test_a_manifest_under_the_name_of_another_slot_is_refused() -> None:
    with pytest.raises(BadManifest, match="another checkpoint"):
        read_stored(stored(), SLOT.replace("00003", "00004"))


def key_elsewhere(body: dict[str, Any]) -> None:
    body["objects"][0]["key"] = "../other/secret"


def key_twice(body: dict[str, Any]) -> None:
    body["objects"][1]["key"] = body["objects"][0]["key"]


def piece_twice(body: dict[str, Any]) -> None:
    body["objects"][1]["holds"] = body["objects"][0]["holds"]


def piece_missing(body: dict[str, Any]) -> None:
    body["objects"].pop()


def wrong_size(body: dict[str, Any]) -> None:
    body["objects"][0]["size"] += 1


def unknown_piece(body: dict[str, Any]) -> None:
    body["objects"][0]["holds"] = [[0, 99]]


def another_step(body: dict[str, Any]) -> None:
    body["step"] = 8


def another_manifest(body: dict[str, Any]) -> None:
    body["manifest"] = node_manifest(9, attempt=3).data.decode()


def no_manifest(body: dict[str, Any]) -> None:
    del body["manifest"]


def not_text(body: dict[str, Any]) -> None:
    body["manifest"] = {"format": 2}


def another_format(body: dict[str, Any]) -> None:
    body["format"] = 2


def true_is_no_number(body: dict[str, Any]) -> None:
    body["objects"][0]["holds"] = [[True, 0]]


@pytest.mark.parametrize(
    "lie",
    [
        key_elsewhere,
        key_twice,
        piece_twice,
        piece_missing,
        wrong_size,
        unknown_piece,
        another_step,
        another_manifest,
        no_manifest,
        not_text,
        another_format,
        true_is_no_number,
    ],
)
def test_a_lie_under_a_good_digest_is_found(lie: Callable[[dict[str, Any]], None]) -> None:
    with pytest.raises(BadManifest):
        read_stored(resealed(lie, stored()), SLOT)


def inner(change: Callable[[dict[str, Any]], None]) -> str:
    return resealed(change, node_manifest(7).data).decode()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("step", -1),
        ("step", 10**18),
        ("step", 1.5),
        ("root", "../parts-0123456789abcdef"),
        ("piece_bytes", 1),
        ("piece_bytes", 1 << 40),
        ("shard", 1),
        ("shards", 0),
        ("shards", 1 << 20),
        ("metadata", []),
        ("is_folder", 1),
        ("is_folder", False),
        ("job_id", 7),
        ("format", 3),
        ("parts", None),
        ("parts", [{"name": "../x", "size": 0, "pieces": []}]),
        ("parts", [{"name": "a//b", "size": 0, "pieces": []}]),
        ("parts", [{"name": "a\0", "size": 0, "pieces": []}]),
        ("parts", [{"name": "x", "size": 5, "pieces": []}]),
        ("parts", [{"name": "x", "size": 0, "pieces": ["0" * 64]}]),
        ("parts", [{"name": "x", "size": 5, "pieces": ["0" * 63]}]),
        ("parts", [{"name": "x", "size": 0, "pieces": []}, {"name": "x", "size": 0, "pieces": []}]),
    ],
)
def test_a_node_s_manifest_that_cannot_be_is_refused(field: str, value: object) -> None:
    with pytest.raises(BadManifest):
        read_node(inner(lambda body: body.__setitem__(field, value)))


@pytest.mark.parametrize(
    "bomb",
    [b"", b"{}", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"digest":' + b"9" * 10_000 + b"}", b'{"digest":NaN}'],
)
def test_what_is_no_manifest_at_all_is_refused(bomb: bytes) -> None:
    with pytest.raises(BadManifest):
        read_stored(bomb, SLOT)


def test_a_manifest_of_the_first_format_has_one_piece_to_a_file() -> None:
    body = json.loads(node_manifest(7).data)
    for name in ("piece_bytes", "shard", "shards"):
        del body[name]
    body["format"] = 1
    body["parts"] = [{"name": "w", "size": 3 << 20, "sha256": "a" * 64}, {"name": "e", "size": 0, "sha256": "b" * 64}]
    node = read_node(resealed(lambda body: None, json.dumps(body).encode()).decode())
    assert [(node.piece_size(*each), node.parts[each[0]].name) for each in node.pieces()] == [(3 << 20, "w")]
    assert [one.key for one in whole_files(node, "step-000000007")] == ["step-000000007/parts-0123456789abcdef/w"]


def test_no_changed_byte_of_a_manifest_goes_unnoticed() -> None:
    data, chance = stored(), random.Random(1)
    for _ in range(400):
        place = chance.randrange(len(data))
        changed = data[:place] + bytes([data[place] ^ (1 << chance.randrange(8))]) + data[place + 1 :]
        for broken in (changed, data[:place], data + data[place:]):
            with pytest.raises(BadManifest):
                read_stored(broken, SLOT)


def test_only_names_of_the_server_are_slots() -> None:
    assert is_slot(SLOT)
    for name in ("", "x", SLOT + "0", SLOT + "\n", SLOT.upper(), "../" + SLOT):
        assert not is_slot(name)
