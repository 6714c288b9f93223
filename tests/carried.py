"""Trainings that save what they are told to, and what became of it in storage."""

import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_process import rank_work
from crucible.wire import agent as wire
from doubles.storage import StorageDouble

# Its arguments are statements. `save(step, {name: bytes or size})` commits a folder of such files.
TRAIN = """
import hashlib, os, pathlib, shutil, sys, time
from crucible import train
here = pathlib.Path(os.environ['CRUCIBLE_RUN_DIR'])
store = pathlib.Path(os.environ['CRUCIBLE_CHECKPOINTS'])
def content(size, seed):
    return (b'%d ' % seed * (size // 2 + 1))[:size] if size < 1 << 20 else os.urandom(1 << 20) * (size >> 20)
def save(step, files, **options):
    folder = here / 'model'
    shutil.rmtree(folder, ignore_errors=True)
    for name, body in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(body, step) if isinstance(body, int) else body)
    train.save_checkpoint(folder, step, **options)
    print('saved', step, flush=True)
def resumed():
    found = train.latest_checkpoint()
    if found is None:
        return None
    files = [path for shard in found.shards for path in shard.rglob('*') if path.is_file()]
    return found.step, sorted((path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files)
def wait(path):
    while not (here / path).exists(): time.sleep(0.01)
for statement in sys.argv[1:]:
    exec(statement)
"""


def training(*statements: str, **options: Any) -> wire.RankWork:
    return rank_work("python", "-c", TRAIN, *statements, **{"carries_checkpoints": True, **options})


def stored(storage: StorageDouble) -> dict[int, dict[str, bytes]]:
    """Every committed checkpoint, put together from its objects: step to files. Every byte is checked."""
    found: dict[int, dict[str, bytes]] = {}
    for key in storage.names("manifests/"):
        manifest = json.loads(storage.objects[key])
        node = json.loads(manifest["manifest"])
        pieces: dict[tuple[int, int], bytes] = {}
        for each in manifest["objects"]:
            body = storage.objects[each["key"]]
            assert len(body) == each["size"]
            for part, piece in each["holds"]:
                size = min(node["piece_bytes"], node["parts"][part]["size"] - piece * node["piece_bytes"])
                pieces[part, piece], body = body[:size], body[size:]
            assert body == b""
        files = found.setdefault(manifest["step"], {})
        for number, part in enumerate(node["parts"]):
            assert [sha256(pieces[number, i]) for i in range(len(part["pieces"]))] == part["pieces"]
            files[part["name"]] = b"".join(pieces[number, i] for i in range(len(part["pieces"])))
    return found


def sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def until(claim: Callable[[], object], timeout_s: float = 20) -> None:
    deadline = time.monotonic() + timeout_s
    while not claim():
        assert time.monotonic() < deadline, claim
        time.sleep(0.01)


def touch(folder: Path, name: str) -> None:
    (folder / name).write_text("")
