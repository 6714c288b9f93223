"""Checkpoints in storage for tests: the node's manifest as `train` writes it, the one in storage as the agent does."""

import hashlib
from collections.abc import Callable, Mapping

from crucible.agent.manifests import NodeManifest, Stowed, stored_manifest
from crucible.train.checkpoint_manifest import Manifest, Origin, Part, encode

PIECE = 1 << 20
FILES: Mapping[str, bytes] = {"model.bin": bytes(range(256)) * 8192, "log/a.txt": b"hello", "empty": b""}

Put = Callable[[str, bytes], None]


def pieces_of(content: bytes) -> tuple[bytes, ...]:
    return tuple(content[start : start + PIECE] for start in range(0, len(content), PIECE))


def node_manifest(
    step: int,
    files: Mapping[str, bytes] = FILES,
    *,
    job_id: str | None = "job",
    attempt: int = 0,
    shard: int = 0,
    shards: int = 1,
) -> NodeManifest:
    parts = tuple(
        Part(name, len(content), tuple(hashlib.sha256(one).hexdigest() for one in pieces_of(content)))
        for name, content in files.items()
    )
    made = Manifest(
        step=step,
        root="parts-0123456789abcdef",
        parts=parts,
        is_folder=True,
        created_ms=1_700_000_000_000 + step,
        origin=Origin(shards, shard, job_id, attempt),
        metadata={"loss": 0.5},
        shard=shard,
        shards=shards,
        piece_bytes=PIECE,
    )
    return NodeManifest(encode(made))


def store(put: Put, slot: str, node: NodeManifest, files: Mapping[str, bytes] = FILES) -> bytes:
    """Every piece as an object of its own, then the manifest; returns its bytes."""
    contents = list(files.values())
    objects = []
    for number, (part, piece) in enumerate(node.pieces()):
        key, body = f"parts/{slot}/{number:05d}", pieces_of(contents[part])[piece]
        put(key, body)
        objects.append(Stowed(key, len(body), [(part, piece)]))
    data = stored_manifest(slot, node, objects)
    put(f"manifests/{slot}.json", data)
    return data
