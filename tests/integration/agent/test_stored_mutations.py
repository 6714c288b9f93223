"""A thousand ways to spoil the newest checkpoint in storage. None is taken for one; the next older one is, whole."""

import json
import random
import threading
from collections.abc import Callable
from pathlib import Path

from agent_process import AgentProcess
from carried import training
from crucible.agent.hold import Hold
from crucible.agent.link import Link, Servers
from crucible.agent.meter import Meter
from crucible.agent.protocol import launch_from
from crucible.agent.restore import Restore
from crucible.agent.words import Words
from crucible.train.checkpoint_store import CheckpointStore
from doubles.agent_server import NODE_KEY, ServerDouble
from doubles.storage import StorageDouble

MUTATIONS = 1000
FILES = {"weights": 5000, "deep/state": 300, "empty": 0}

Objects = dict[str, bytes]
Mutation = Callable[[random.Random, Objects, str, list[str]], None]


def flip(chance: random.Random, objects: Objects, manifest: str, parts: list[str]) -> None:
    key = chance.choice([manifest, *parts])
    body = bytearray(objects[key])
    body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
    objects[key] = bytes(body)


def truncate(chance: random.Random, objects: Objects, manifest: str, parts: list[str]) -> None:
    key = chance.choice([manifest, *parts])
    objects[key] = objects[key][: chance.randrange(len(objects[key]))]


def lengthen(chance: random.Random, objects: Objects, manifest: str, parts: list[str]) -> None:
    objects[chance.choice([manifest, *parts])] += chance.randbytes(chance.randrange(1, 9))


def lose(chance: random.Random, objects: Objects, manifest: str, parts: list[str]) -> None:
    del objects[chance.choice([manifest, *parts])]


def swap(chance: random.Random, objects: Objects, manifest: str, parts: list[str]) -> None:
    """Its manifest is that of another, or its part is."""
    key = chance.choice([manifest, *parts])
    others = [other for other in objects if other.partition("/")[0] == key.partition("/")[0] and other != key]
    objects[key] = objects[chance.choice(others)]


def forge(chance: random.Random, objects: Objects, manifest: str, parts: list[str]) -> None:
    """Well-formed, and a lie: another step, size, place or digest."""
    body = json.loads(objects[manifest])
    field = chance.choice(["step", "attempt", "shard", "shards", "slot", "digest", "manifest"])
    lies = {
        "slot": "00000-00000-0000000000000000",
        "digest": "0" * 64,
        "manifest": body["manifest"].replace("1", "2", 1),
    }
    body[field] = lies.get(field, 1 + chance.randrange(9) + int(body[field]) if field not in lies else None)
    objects[manifest] = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


MUTATE: tuple[Mutation, ...] = (flip, flip, truncate, lengthen, lose, swap, forge)


def test_no_spoilt_checkpoint_in_storage_is_taken_and_the_next_older_one_is(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble, tmp_path: Path
) -> None:
    saves = [f"save({step}, {FILES}); wait('{step}')" for step in (10, 20)]
    server.give(training(*saves))
    agent.start()
    for count, step in ((1, 10), (2, 20)):
        server.wait_for(lambda count=count: len(server.checkpoints) == count)
        (agent.rank_folder() / str(step)).touch()
    assert server.exit_of().exit_code == 0
    launch = launch_from(server.work.ranks[0].launch.model_dump())
    whole, words = dict(storage.objects), Words(str(tmp_path / "words"))
    manifest = next(key for key in storage.names("manifests/") if json.loads(whole[key])["step"] == 20)
    slot = json.loads(whole[manifest])["slot"]
    parts = [key for key in storage.names("parts/") if slot in key]
    link, chance = Link(Servers([server.url], [], None), NODE_KEY), random.Random(5)
    taken = []
    for number in range(MUTATIONS):
        storage.objects = dict(whole)
        chance.choice(MUTATE)(chance, storage.objects, manifest, parts)
        folder = tmp_path / f"node-{number}"
        Restore(Hold(str(folder)), launch, link, threading.Event(), Meter(), words).run()
        newest = CheckpointStore(str(folder)).latest(on_skip=print)
        taken.append(newest and newest.step)
    link.close()
    assert taken == [10] * MUTATIONS
