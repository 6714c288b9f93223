"""The dataset of a job comes to the node before its ranks start: once, whole, every byte checked, and found again."""

import contextlib
import os
import random
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_process import AgentProcess, rank_work
from crucible.core.datasets import manifest_key, object_key
from crucible.model.dataset_tree import OBJECT_BYTES, Tree
from crucible.wire.agent import DatasetWork, RankWork
from doubles.agent_server import ServerDouble
from doubles.storage import StorageDouble
from doubles.trees import TreesDouble

NewAgent = Callable[..., AgentProcess]
SHOW = (
    'cd "$DATASET" && find . -type f -o -type l | LC_ALL=C sort && cat a.txt && test "$DATASET" = "$CRUCIBLE_DATASET"'
)
OBJECTS = "objects/"


def reading(tree: Tree, *, script: str = SHOW, **options: Any) -> RankWork:
    return rank_work("/bin/sh", "-c", script, dataset=DatasetWork(name="images", digest=tree.digest), **options)


def files(*, seed: int = 1, big: int = 0) -> dict[str, bytes]:
    dice = random.Random(seed)
    found = {"a.txt": b"hello\n", "deep/er/b.bin": dice.randbytes(3 << 20), "same": b"hello\n", "empty": b""}
    found |= {f"many/{n}": dice.randbytes(100) for n in range(300)}
    return found | ({"big": dice.randbytes(big)} if big else {})


def cached(agent: AgentProcess, tree: Tree) -> Path:
    return agent.folder / "cache" / "datasets" / tree.digest / "tree"


def noted(agent: AgentProcess) -> list[str]:
    """The objects that have come, as far as an agent after this one would know."""
    lists = (agent.folder / "cache" / "datasets").rglob("done")
    return [line.split()[0] for one in lists for line in one.read_text().splitlines()]


def test_a_tree_comes_whole_and_read_only(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, trees: TreesDouble
) -> None:
    body = files(big=OBJECT_BYTES + 5) | {"run.sh": b"#!/bin/sh\necho ran\n"}
    tree = trees.add(body, links={"deep/link": "../a.txt"}, programs="run.sh")
    agent = new_agent()
    server.give(reading(tree, script=SHOW + " && ./run.sh && cat deep/link"))
    agent.start()
    assert server.exit_of().exit_code == 0, agent.said()
    lines = server.lines()
    assert lines[-3:] == ["hello", "ran", "hello"] and len(lines) == len(body) + 1 + 3
    folder = cached(agent, tree)
    assert {name: (folder / name).read_bytes() for name in body} == body
    modes = {stat.S_IMODE(path.lstat().st_mode) & 0o222 for path in folder.rglob("*") if not path.is_symlink()}
    assert modes == {0} and os.access(folder / "run.sh", os.X_OK)
    assert server.has_line("dataset images came from storage", "sys")
    (told,) = trees.fetched
    assert told.source == "aws/us-east-1" and told.size_bytes == sum(one.size for one in tree.objects)


def test_ranks_of_a_node_and_later_jobs_find_what_was_brought(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, trees: TreesDouble
) -> None:
    tree = trees.add(files())
    agent = new_agent()
    server.give(*(reading(tree, rank=rank) for rank in range(3)))
    agent.start()
    assert [server.exit_of(rank=rank).exit_code for rank in range(3)] == [0, 0, 0], agent.said()
    brought = storage.count("GET", OBJECTS)
    assert brought == len(tree.objects)
    server.give(reading(tree, attempt_id="att-2", job_id="job-2"))
    assert server.exit_of("att-2").exit_code == 0
    assert storage.count("GET", OBJECTS) == brought and len(trees.fetched) == 1


def test_two_agents_of_one_host_share_the_cache(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, trees: TreesDouble, tmp_path: Path
) -> None:
    tree = trees.add(files())
    agents = [new_agent(), new_agent()]
    server.give(reading(tree))
    for agent in agents:
        agent.boot(servers=[server.url], cache=str(tmp_path / "shared"))
        agent.start()
    for agent in agents:
        server.wait_for(lambda agent=agent: (agent.rank_folder() / "result.json").exists())
    assert storage.count("GET", OBJECTS) == len(tree.objects)


def test_an_agent_that_is_killed_half_way_goes_on(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, trees: TreesDouble
) -> None:
    tree = trees.add({"a.txt": b"x"} | {f"f{n}": random.Random(n).randbytes(2 << 20) for n in range(6)})
    agent = new_agent()
    storage.fail("GET", object_key(tree.objects[3].name), "held")
    server.give(reading(tree))
    agent.start()
    storage.wait_for(lambda: storage.count("held") and len(noted(agent)) >= 2)
    agent.kill()
    kept = noted(agent)
    assert not cached(agent, tree).exists()
    storage.release()
    before = len(storage.requests)
    agent.start()
    assert server.exit_of().exit_code == 0, agent.said()
    again = {key for method, key, _ in storage.requests[before:] if method == "GET"}
    assert not again & {object_key(name) for name in kept}
    (told,) = trees.fetched
    assert told.size_bytes == sum(one.size for one in tree.objects)


def test_broken_lines_expired_signatures_and_a_copy_that_is_made_are_waited_out(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, trees: TreesDouble
) -> None:
    tree = trees.add(files())
    trees.waits = 2
    storage.fail("GET", OBJECTS, "cut", 2)
    storage.fail("GET", OBJECTS, "503", 2)
    storage.fail("GET", "manifests/", "403")
    agent = new_agent()
    server.replies_to_lose["/agent/v1/datasets/fetched"] = 1
    server.give(reading(tree))
    agent.start()
    assert server.exit_of().exit_code == 0, agent.said()
    assert "it is being copied" in agent.said()
    assert len({told.transfer for told in trees.fetched}) == 1 < len(trees.fetched)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda body: body[:-1] + bytes([body[-1] ^ 1]), "has other bytes in storage than were registered"),
        (lambda body: body[:-1], "bytes instead of"),
        (lambda body: None, "404"),
    ],
    ids=["flipped", "shorter", "missing"],
)
@pytest.mark.parametrize("which", ["pack", "part"])
def test_what_is_damaged_in_storage_never_starts_a_rank(
    new_agent: NewAgent,
    server: ServerDouble,
    storage: StorageDouble,
    trees: TreesDouble,
    spoil: Callable[[bytes], bytes | None],
    why: str,
    which: str,
) -> None:
    tree = trees.add(files(big=OBJECT_BYTES + 1))
    part = next(one for one in tree.objects if (one.size == 1) == (which == "part"))
    key = object_key(part.name)
    body = spoil(storage.objects.pop(key))
    if body is not None:
        storage.objects[key] = body
    agent = new_agent()
    server.give(reading(tree))
    agent.start()
    ended = server.exit_of(timeout_s=60)
    assert ended.exit_code is None and why in (ended.reason or "") and "--resend" in (ended.reason or "")
    assert not cached(agent, tree).exists() and trees.fetched == []


def test_a_manifest_with_other_bytes_is_not_believed(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, trees: TreesDouble
) -> None:
    tree = trees.add({"a.txt": b"x"})
    storage.objects[manifest_key(tree.digest)] = storage.objects[manifest_key(tree.digest)].replace(b"a.txt", b"b.txt")
    agent = new_agent()
    server.give(reading(tree))
    agent.start()
    assert "manifest" in (server.exit_of().reason or "")


def test_a_dataset_that_was_removed_fails_the_rank_at_once(
    new_agent: NewAgent, server: ServerDouble, trees: TreesDouble
) -> None:
    tree = trees.add({"a.txt": b"x"})
    trees.trees.clear()
    agent = new_agent()
    server.give(reading(tree))
    agent.start()
    assert "the dataset was removed" in (server.exit_of().reason or "")


def test_a_damaged_tree_on_the_node_is_brought_anew(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, trees: TreesDouble
) -> None:
    tree = trees.add(files())
    agent = new_agent()
    server.give(reading(tree))
    agent.start()
    assert server.exit_of().exit_code == 0
    victim = cached(agent, tree) / "deep/er/b.bin"
    victim.chmod(0o644)
    victim.write_bytes(b"short")
    server.give(reading(tree, attempt_id="att-2"))
    assert server.exit_of("att-2").exit_code == 0
    assert victim.stat().st_size == 3 << 20 and "damaged" in agent.said()


# --- room -----------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """256 MiB are kept free: 20 are left for datasets."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=276m", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_without_room_the_reason_says_so(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, trees: TreesDouble, small_disk: Path
) -> None:
    tree = trees.add({"a.txt": b"x" * (30 << 20)})
    agent = new_agent()
    agent.boot(servers=[server.url], cache=str(small_disk))
    server.give(reading(tree))
    agent.start()
    reason = server.exit_of().reason or ""
    assert "no room for dataset images" in reason and "larger disk" in reason
    assert storage.count("GET", OBJECTS) == 0


def test_a_disk_that_fills_up_meanwhile_fails_the_rank_and_leaves_no_tree(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, trees: TreesDouble, small_disk: Path
) -> None:
    tree = trees.add({f"f{n}": random.Random(n).randbytes(4 << 20) for n in range(4)})
    storage.fail("GET", OBJECTS, "held", 4)
    agent = new_agent()
    agent.boot(servers=[server.url], cache=str(small_disk))
    server.give(reading(tree, script="true"))
    agent.start()
    storage.wait_for(lambda: storage.count("held") >= 2)
    with (small_disk / "ballast").open("wb", buffering=0) as ballast, contextlib.suppress(OSError):
        while True:
            ballast.write(b"\0" * (1 << 20))
    storage.release()
    reason = server.exit_of().reason or ""
    assert "no room for dataset images" in reason and "disk is full" in reason
    (small_disk / "ballast").unlink()
    server.give(reading(tree, script='ls "$DATASET"', attempt_id="att-2"))
    assert server.exit_of("att-2").exit_code == 0 and server.lines(attempt_id="att-2") == ["f0", "f1", "f2", "f3"]


def test_what_was_longest_not_used_makes_room_and_what_is_used_stays(
    new_agent: NewAgent, server: ServerDouble, trees: TreesDouble, small_disk: Path
) -> None:
    old, used, new = (trees.add({"a.txt": bytes([n]) * (8 << 20)}) for n in (1, 2, 3))
    agent = new_agent()
    agent.boot(servers=[server.url], cache=str(small_disk))
    server.give(reading(old, script="true", attempt_id="att-0"))
    agent.start()
    assert server.exit_of("att-0").exit_code == 0, agent.said()
    stays = reading(used, script="sleep 600", attempt_id="att-1")
    server.give(stays)
    server.wait_for(lambda: "started" in server.states.get(("att-1", 0), []), what=agent.said())
    server.give(stays, reading(new, script="true", attempt_id="att-2"))
    assert server.exit_of("att-2").exit_code == 0, agent.said()
    there = {path.name for path in (small_disk / "datasets").iterdir() if not path.name.startswith(".")}
    assert there == {used.digest, new.digest}
