"""What a rank resumes from: the newest checkpoint in storage whose every byte is right, wherever it was saved."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from agent_process import AgentProcess
from carried import sha256, stored, touch, training
from crucible.wire.agent import RankWork
from doubles.agent_server import ServerDouble
from doubles.storage import StorageDouble

NewAgent = Callable[..., AgentProcess]
SAY = "found = resumed(); print('resumed', found and found[0], flush=True)"


def saved(server: ServerDouble, storage: StorageDouble, agent: AgentProcess, *statements: str) -> None:
    """Runs an attempt on a node that then goes away."""
    server.give(training(*statements, attempt_id="att-0"))
    agent.start()
    assert server.exit_of("att-0").exit_code == 0
    agent.kill()


def again(**options: Any) -> RankWork:
    return training(SAY, "print(found)", attempt_id="att-2", number=1, **options)


def lines(server: ServerDouble, stream: str = "out") -> list[str]:
    return server.lines(stream, "att-2")


def resume(server: ServerDouble, agent: AgentProcess, **options: Any) -> list[str]:
    server.give(again(**options))
    agent.start()
    assert server.exit_of("att-2").exit_code == 0
    return lines(server)


def spoil(storage: StorageDouble, step: int, how: Callable[[bytes], bytes | None]) -> None:
    """Changes the largest object that the checkpoint of `step` alone has."""
    for key in storage.names("manifests/"):
        manifest = json.loads(storage.objects[key])
        if manifest["step"] == step:
            own = [each["key"] for each in manifest["objects"] if manifest["slot"] in each["key"]]
            largest = max(own, key=lambda each: len(storage.objects[each]))
            body = how(storage.objects.pop(largest))
            if body is not None:
                storage.objects[largest] = body


def test_a_checkpoint_comes_to_another_node_byte_for_byte(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble
) -> None:
    saved(server, storage, new_agent(), "save(7, {'big': 3 << 20, 'deep/small': b'small', 'empty': b''})")
    said, files = resume(server, new_agent())
    assert said == "resumed 7"
    there = stored(storage)[7]
    names = {"big": there["big"], "small": b"small", "empty": b""}
    assert eval(files) == (7, sorted((name, sha256(body)) for name, body in names.items()))
    assert any("step 7 came from storage" in line for line in lines(server, "sys"))


def test_shards_come_back_together(new_agent: NewAgent, server: ServerDouble, storage: StorageDouble) -> None:
    first = new_agent()
    ranks = [
        training(
            f"save(40, {{'shard-{rank}': b'{rank}'}}, sharded=True)",
            attempt_id="att-0",
            rank=rank,
            env={"RANK": str(rank), "WORLD_SIZE": "2"},
        )
        for rank in (0, 1)
    ]
    server.give(*ranks)
    first.start()
    assert [server.exit_of("att-0", rank).exit_code for rank in (0, 1)] == [0, 0]
    first.kill()
    said, files = resume(server, new_agent(), env={"RANK": "0", "WORLD_SIZE": "2", "NNODES": "2"})
    assert said == "resumed 40" and eval(files)[1] == [("shard-0", sha256(b"0")), ("shard-1", sha256(b"1"))]


def test_a_script_that_saves_the_same_again_sends_nothing(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble
) -> None:
    saved(server, storage, new_agent(), "save(7, {'frozen': b'f' * (2 << 20), 'head': b'7'})")
    server.give(training("save(8, {'frozen': b'f' * (2 << 20), 'head': b'8'})", attempt_id="att-2", number=1))
    new_agent().start()
    assert server.exit_of("att-2").exit_code == 0
    assert stored(storage)[8]["head"] == b"8"
    assert sorted(len(storage.objects[key]) for key in storage.names("parts/")) == [1, 1, 2 << 20]


@pytest.mark.parametrize(
    ("how", "why"),
    [
        (lambda body: body[:-1] + bytes([body[-1] ^ 1]), "has other bytes than were saved"),
        (lambda body: body[:-1], "bytes instead of"),
        (lambda body: body + b"x", "bytes instead of"),
        (lambda body: b"", "bytes instead of"),
        (lambda body: None, "is missing (HTTP 404"),
    ],
    ids=["flipped", "truncated", "longer", "empty", "missing"],
)
def test_a_corrupt_checkpoint_gives_way_to_the_next_older_one(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, how: Callable[[bytes], bytes | None], why: str
) -> None:
    saves = [f"save({step}, {{'a': b'{step}' * 1000, 'b': os.urandom(1 << 20)}}); wait('{step}')" for step in (1, 2)]
    first = new_agent()
    server.give(training(*saves, attempt_id="att-0"))
    first.start()
    for step in (1, 2):
        server.wait_for(lambda step=step: len(server.checkpoints) == step)
        touch(first.rank_folder("att-0"), str(step))
    assert server.exit_of("att-0").exit_code == 0
    first.kill()
    spoil(storage, 2, how)
    assert resume(server, new_agent())[0] == "resumed 1"
    assert any("step 2 in storage is not usable" in line and why in line for line in lines(server, "sys"))
    assert [asked.skip for asked in server.candidates] == [0, 0, 1]


def test_with_nothing_usable_a_rank_starts_from_nothing(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble
) -> None:
    saved(server, storage, new_agent(), "save(1, {'a': b'a'})")
    spoil(storage, 1, lambda body: None)
    assert resume(server, new_agent())[0] == "resumed None"


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_a_read_that_fails_is_repeated_and_never_judged(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, knows_ranges: bool
) -> None:
    saved(server, storage, new_agent(), "save(1, {'a': 2 << 20, 'b': b'b'})")
    storage.knows_ranges = knows_ranges
    for kind in ("cut", "500", "lost"):
        storage.fail("GET", "parts/", kind, times=2)
    assert resume(server, new_agent())[0] == "resumed 1"
    assert {asked.skip for asked in server.candidates} == {0}


def test_new_signatures_are_asked_for_when_storage_takes_no_more(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble
) -> None:
    saved(server, storage, new_agent(), "save(1, {'a': 1 << 20, 'b': b'b'})")
    storage.fail("GET", "parts/", "403", times=1)
    assert resume(server, new_agent())[0] == "resumed 1"
    assert [asked.skip for asked in server.candidates] == [0, 0, 0]


def test_a_server_that_is_away_is_asked_until_it_returns(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble
) -> None:
    saved(server, storage, new_agent(), "save(1, {'a': b'a'})")
    second = new_agent()
    server.refusals["/agent/v1/storage/candidate"] = 500
    server.give(again())
    second.start()
    server.wait_for(lambda: sum(path.endswith("candidate") for path, _ in server.requests) > 3)
    server.refusals.clear()
    assert server.exit_of("att-2").exit_code == 0
    assert lines(server)[0] == "resumed 1"


def test_a_rank_that_is_stopped_while_it_waits_for_its_checkpoint_ends(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble
) -> None:
    server.refusals["/agent/v1/storage/candidate"] = 503
    server.give(training("print('never')"))
    agent.start()
    server.wait_for(lambda: any(path.endswith("candidate") for path, _ in server.requests))
    server.give(training("print('never')", stop=True, stop_reason="cancelled by ada"))
    assert server.exit_of().reason == "stopped before it started: cancelled by ada"
    assert server.lines() == []


def test_the_next_attempt_on_the_same_node_fetches_nothing(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble
) -> None:
    server.give(training("save(1, {'a': b'a'})", attempt_id="att-0"))
    agent.start()
    assert server.exit_of("att-0").exit_code == 0
    server.give(again())
    assert server.exit_of("att-2").exit_code == 0
    assert lines(server)[0] == "resumed 1" and storage.count("GET") == 0


def test_what_only_one_node_of_a_gang_has_is_not_resumed_from(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble
) -> None:
    env = {"NNODES": "2"}
    server.give(training("save(1, {'a': b'a'})", "wait('go')", "save(2, {'a': b'b'})", attempt_id="att-0", env=env))
    agent.start()
    server.wait_for(lambda: server.checkpoints)
    storage.fail("PUT", "parts/", "405", times=100)
    touch(agent.rank_folder("att-0"), "go")
    assert server.exit_of("att-0").exit_code == 0
    assert (agent.folder / "checkpoints/task-1/step-000000002/manifest.json").exists()
    server.give(again(env=env))
    assert server.exit_of("att-2").exit_code == 0
    assert lines(server)[0] == "resumed 1"


def test_what_a_node_on_its_own_has_is_resumed_from_though_it_never_got_to_storage(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble
) -> None:
    storage.fail("PUT", "parts/", "405", times=100)
    server.give(training("save(2, {'a': b'b'})", attempt_id="att-0"))
    agent.start()
    assert server.exit_of("att-0").exit_code == 0
    server.give(again())
    assert server.exit_of("att-2").exit_code == 0
    assert lines(server)[0] == "resumed 2"


def test_a_disk_that_is_too_small_is_the_reason_and_nothing_is_fetched(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble
) -> None:
    saved(server, storage, new_agent(), "save(1, {'a': b'a'})")
    enlarge(storage, 64 << 40)
    second = new_agent()
    server.give(again())
    second.start()
    report = server.exit_of("att-2")
    assert report.reason is not None and report.exit_code is None
    assert report.reason.startswith(f"the checkpoint of step 1 has {64 << 40} bytes, but the node's disk has ")
    assert report.reason.endswith("free: ask for a larger disk")
    assert storage.count("GET") == 0


def enlarge(storage: StorageDouble, size: int) -> None:
    """The only checkpoint claims to have one file of that size."""
    (key,) = storage.names("manifests/")
    manifest = json.loads(storage.objects[key])
    node = json.loads(manifest["manifest"])
    node |= {"piece_bytes": 1 << 30, "parts": [{"name": "a", "size": size, "pieces": ["ab" * 32] * (size >> 30)}]}
    holds = [[0, piece] for piece in range(size >> 30)]
    manifest |= {"manifest": signed(node), "objects": [{**manifest["objects"][0], "size": size, "holds": holds}]}
    storage.objects[key] = signed(manifest).encode()


def signed(body: dict[str, Any]) -> str:
    del body["digest"]
    body["digest"] = sha256(canonical(body).encode())
    return canonical(body)


def canonical(body: dict[str, Any]) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


def test_the_folder_of_another_task_goes(agent: AgentProcess, server: ServerDouble, storage: StorageDouble) -> None:
    server.give(training("save(1, {'a': b'a'})", attempt_id="att-0"))
    agent.start()
    assert server.exit_of("att-0").exit_code == 0
    server.give()
    server.wait_for(lambda: not (agent.folder / "attempts/att-0").exists())
    server.give(training("print('hello')", attempt_id="att-2", task_id="task-2"))
    assert server.exit_of("att-2").exit_code == 0
    assert [each.name for each in (agent.folder / "checkpoints").iterdir()] == ["task-2"]
