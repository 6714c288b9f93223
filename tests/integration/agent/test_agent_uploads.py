"""What ranks save gets to storage whatever happens on the way: whole, and before anybody hears that they ended."""

import json

import pytest

from agent_process import AgentProcess
from carried import sha256, stored, touch, training, until
from doubles.agent_server import ServerDouble
from doubles.storage import StorageDouble

LARGE = 3 << 20


def test_what_is_saved_gets_to_storage_byte_for_byte(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble
) -> None:
    files = f"{{'weights.bin': {LARGE}, 'deep/er/state': b'state', 'empty': b''}}"
    server.give(training(f"save(300, {files}, metadata={{'loss': 0.5}})"))
    agent.start()
    assert server.exit_of().exit_code == 0
    ((step, found),) = stored(storage).items()
    assert step == 300 and found.keys() == {"weights.bin", "deep/er/state", "empty"}
    assert len(found["weights.bin"]) == LARGE and found["deep/er/state"] == b"state" and found["empty"] == b""
    (report,) = server.checkpoints
    (key,) = storage.names("manifests/")
    assert report.uri == f"s3://bucket/lineage/task/{key}" and report.slot is not None and report.slot in key
    assert report.manifest_sha256 == sha256(storage.objects[key])
    assert (report.step, report.shard, report.shards, report.metadata) == (300, 0, 1, {"loss": 0.5})
    assert report.size_bytes == sum(map(len, found.values()))


def test_small_files_share_objects(agent: AgentProcess, server: ServerDouble, storage: StorageDouble) -> None:
    server.give(training("save(1, {'%04d' % i: 4096 for i in range(300)} | {'large': 2 << 20})"))
    agent.start()
    assert server.exit_of().exit_code == 0
    assert len(stored(storage)[1]) == 301
    sizes = sorted(len(storage.objects[key]) for key in storage.names("parts/"))
    assert sizes == [300 * 4096, 2 << 20]


def test_what_the_last_checkpoint_has_is_not_sent_again(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble
) -> None:
    server.give(
        training(
            "frozen = os.urandom(2 << 20)",
            "save(1, {'frozen': frozen, 'head': b'1'})",
            "wait('go')",
            "save(2, {'frozen': frozen, 'head': b'2'})",
        )
    )
    agent.start()
    server.wait_for(lambda: len(server.checkpoints) == 1)
    touch(agent.rank_folder(), "go")
    assert server.exit_of().exit_code == 0
    both = stored(storage)
    assert both[1]["frozen"] == both[2]["frozen"] and both[2]["head"] == b"2"
    assert sorted(len(storage.objects[key]) for key in storage.names("parts/")) == [1, 1, 2 << 20]


def test_ranks_save_their_shards_side_by_side(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble
) -> None:
    ranks = [
        training(
            f"save(40, {{'shard-{rank}': b'of rank {rank}'}}, sharded=True)",
            rank=rank,
            env={"RANK": str(rank), "WORLD_SIZE": "2"},
        )
        for rank in (0, 1)
    ]
    server.give(*ranks)
    agent.start()
    assert [server.exit_of(rank=rank).exit_code for rank in (0, 1)] == [0, 0]
    assert stored(storage) == {40: {"shard-0": b"of rank 0", "shard-1": b"of rank 1"}}
    assert sorted((one.rank, one.shard, one.shards) for one in server.checkpoints) == [(0, 0, 2), (1, 1, 2)]


@pytest.mark.parametrize("key", ["parts/", "manifests/"])
def test_trouble_on_the_way_costs_time_only(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble, key: str
) -> None:
    for kind in ("cut", "lost", "500", "429"):
        storage.fail("PUT", key, kind)
    server.give(training(f"save(5, {{'weights': {LARGE}, 'small': b'x'}})"))
    agent.start()
    assert server.exit_of().exit_code == 0
    assert stored(storage)[5]["small"] == b"x"
    assert [one.step for one in server.checkpoints] == [5]


def test_signatures_that_expired_are_renewed(agent: AgentProcess, server: ServerDouble, storage: StorageDouble) -> None:
    server.give(training("wait('go')", "save(5, {'weights': b'w'})"))
    agent.start()
    server.wait_for(lambda: server.slots)
    storage.expire()
    touch(agent.rank_folder(), "go")
    assert server.exit_of().exit_code == 0
    assert stored(storage)[5] == {"weights": b"w"}
    assert any(asked.slot is not None for asked in server.slots)


def test_a_slot_in_hand_is_renewed_at_half_of_its_life(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble
) -> None:
    server.signatures_live_s = 0.6
    server.give(training("wait('go')"))
    agent.start()
    server.wait_for(lambda: len({asked.slot for asked in server.slots}) == 2 and len(server.slots) > 3)
    assert [asked.slot for asked in server.slots].count(None) == 1
    touch(agent.rank_folder(), "go")
    assert server.exit_of().exit_code == 0


def test_a_large_checkpoint_asks_for_more_parts(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble
) -> None:
    server.give(training("save(5, {'%02d' % i: 1 << 20 for i in range(20)})", "wait('go')"))
    agent.start()
    server.wait_for(lambda: server.checkpoints)
    assert len(stored(storage)[5]) == 20
    assert (16, 4) in [(asked.first, asked.count) for asked in server.slots]
    # And the next one will find a quarter more.
    server.wait_for(lambda: (16, 9) in [(asked.first, asked.count) for asked in server.slots])
    touch(agent.rank_folder(), "go")
    assert server.exit_of().exit_code == 0


@pytest.mark.parametrize(("status", "tries"), [("507", 3), ("405", 1), ("403", 4)])
def test_a_storage_that_refuses_is_named_in_the_log_and_the_next_checkpoint_is_tried(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble, status: str, tries: int
) -> None:
    storage.fail("PUT", "parts/", status, times=tries)
    server.give(training("save(5, {'weights': b'w'})", "wait('go')", "save(6, {'weights': b'v'})"))
    agent.start()
    server.wait_for(lambda: server.has_line("step 5 did not get to storage", "sys"))
    assert storage.names("manifests/") == []
    touch(agent.rank_folder(), "go")
    assert server.exit_of().exit_code == 0
    assert server.has_line(f"storage refuses it: HTTP {status} (AFaultOfTheTest)", "sys")
    assert list(stored(storage)) == [6]
    assert [one.step for one in server.checkpoints] == [6]


def test_a_failure_after_the_exit_is_in_the_log_too(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble
) -> None:
    storage.fail("PUT", "parts/", "held")
    storage.fail("PUT", "parts/", "405", times=10)
    server.give(training("save(5, {'weights': b'w'})"))
    agent.start()
    until(lambda: (agent.rank_folder() / "result.json").exists())
    storage.faults.insert(0, storage.faults.pop())
    storage.expire()
    storage.release()
    assert server.exit_of().exit_code == 0
    assert "did not get to storage" in server.lines("sys")[-1]


def test_the_exit_is_told_when_what_was_saved_is_stored(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble
) -> None:
    storage.fail("PUT", "parts/", "held")
    server.give(training("save(5, {'weights': 100_000})"))
    agent.start()
    until(lambda: (agent.rank_folder() / "result.json").exists())
    count = len(server.reports)
    server.wait_for(lambda: len(server.reports) > count + 1)
    assert server.ranks["att-1", 0].state == "started" and server.checkpoints == []
    usage = server.reports[-1].usage
    assert usage["checkpoint_upload_total_bytes"] == 100_000 >= usage["checkpoint_upload_bytes"]
    storage.release()
    assert server.exit_of().exit_code == 0
    assert list(stored(storage)) == [5] and [one.step for one in server.checkpoints] == [5]
    assert "checkpoint_upload_bytes" not in server.reports[-1].usage


def test_a_script_that_removes_a_checkpoint_does_not_take_it_from_its_upload(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble
) -> None:
    storage.fail("PUT", "parts/", "held")
    server.give(training(f"save(5, {{'weights': {LARGE}}})", "wait('go')", "shutil.rmtree(store / 'step-000000005')"))
    agent.start()
    storage.wait_for(lambda: storage.count("held"))
    touch(agent.rank_folder(), "go")
    until(lambda: (agent.rank_folder() / "result.json").exists())
    storage.release()
    assert server.exit_of().exit_code == 0
    assert len(stored(storage)[5]["weights"]) == LARGE
    assert not list((agent.folder / "uploads").iterdir())


def test_an_upload_that_falls_behind_goes_on_with_the_newest(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble
) -> None:
    storage.fail("PUT", "parts/", "held")
    server.give(training("save(1, {'w': b'1'})", "wait('go')", *[f"save({i}, {{'w': b'{i}'}})" for i in (2, 3, 4)]))
    agent.start()
    storage.wait_for(lambda: storage.count("held"))
    touch(agent.rank_folder(), "go")
    until(lambda: (agent.rank_folder() / "result.json").exists())
    storage.release()
    assert server.exit_of().exit_code == 0
    assert sorted(stored(storage)) == [1, 4]


def test_a_killed_agent_goes_on_where_it_was(agent: AgentProcess, server: ServerDouble, storage: StorageDouble) -> None:
    server.give(training("save(5, {'a': 2 << 20, 'b': 1 << 20})", "wait('go')"))
    storage.fail("PUT", "manifests/", "held")
    agent.start()
    storage.wait_for(lambda: storage.count("held"))
    agent.kill()
    sent = storage.count("PUT", "parts/")
    storage.expire()
    storage.release()
    agent.start()
    server.wait_for(lambda: server.checkpoints)
    assert len(stored(storage)[5]) == 2
    assert storage.count("PUT", "parts/") == sent == 2
    agent.kill()
    agent.start()
    touch(agent.rank_folder(), "go")
    assert server.exit_of().exit_code == 0
    assert len(storage.names("manifests/")) == 1


def test_how_a_rank_ended_is_left_in_storage_when_no_server_hears_it(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble
) -> None:
    server.give(training("wait('go')"))
    agent.start()
    server.wait_for(lambda: server.slots)
    server.stop()
    touch(agent.rank_folder(), "go")
    storage.wait_for(lambda: "results/att-1-0.json" in storage.objects)
    word = json.loads(storage.objects["results/att-1-0.json"])
    assert (word["attempt_id"], word["rank"], word["state"], word["exit_code"]) == ("att-1", 0, "exited", 0)
    server.start()
    agent.point_at(server)
    assert server.exit_of().exit_code == 0


def test_a_rank_that_is_no_longer_wanted_leaves_no_upload(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble
) -> None:
    storage.fail("PUT", "parts/", "held")
    server.give(training("save(5, {'weights': b'w'})", "wait('go')"))
    agent.start()
    storage.wait_for(lambda: storage.count("held"))
    server.give()
    assert server.exit_of().exit_code is None
    storage.release()
    until(lambda: not list((agent.folder / "uploads").iterdir()))
    assert server.checkpoints == []


def test_what_is_carried_is_seen_however_much_else_waits_for_a_server(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble
) -> None:
    values = "{'%0100d' % i: 0.5 for i in range(900)}"
    line = f"json.dumps({{'type': 'metrics', 't': 1, 'step': 1, 'values': {values}}})"
    flood = f"import json; (here / 'events.jsonl').open('a').write(({line} + chr(10)) * 120)"
    server.give(training("wait('go')", flood, "save(5, {'weights': b'w'})", "wait('end')"))
    agent.start()
    server.wait_for(lambda: server.slots)
    server.takes_records = False
    touch(agent.rank_folder(), "go")
    storage.wait_for(lambda: storage.names("manifests/"))
    server.takes_records = True
    touch(agent.rank_folder(), "end")
    assert server.exit_of().exit_code == 0
