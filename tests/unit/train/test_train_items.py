"""What a script sees of its items: every one of them once, results in order, failures apart, whatever happens."""

import json
import os
import random
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crucible import train
from crucible.train import shard_link, shard_work
from doubles.shard_server import TOKEN, ShardServer

NAMES = {"kind": "names", "base": "", "path": "", "list": None}


@pytest.fixture
def run_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "token").write_text(TOKEN)
    monkeypatch.setenv("CRUCIBLE_RUN_DIR", str(tmp_path))
    monkeypatch.setenv("CRUCIBLE_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("CRUCIBLE_SHARDS", "1")
    return tmp_path


@pytest.fixture
def serve(run_dir: Path) -> Iterator[Callable[..., ShardServer]]:
    servers: list[ShardServer] = []

    def start(*cuts: tuple[int, int], **more: Any) -> ShardServer:
        servers.append(ShardServer(run_dir=run_dir, cuts=cuts, **more).start())
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def settled() -> Iterator[train.Item]:
    """Every item, with its index as its result."""
    for item in train.items():
        item.done(item.index)
        yield item


def lines(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.splitlines()]


def test_every_item_is_handed_out_once_and_results_are_committed_in_order(serve: Callable[..., ShardServer]) -> None:
    server = serve((0, 3), (3, 2))
    seen = []
    for item in train.items():
        seen.append(item.value)
        item.done(item.value * 10)
    assert seen == [0, 1, 2, 3, 4]
    assert lines(server.output()) == [{"index": n, "result": 10 * n} for n in range(5)]
    assert sorted(server.commits) == [0, 1] and server.commits[0]["failed"] == 0
    assert not list(Path(os.environ["CRUCIBLE_RUN_DIR"]).glob("shard-*")), "what was sent is not kept"


def test_results_that_come_in_another_order_are_written_in_the_order_of_the_items(
    serve: Callable[..., ShardServer],
) -> None:
    server = serve((0, 6))
    for batch in train.batches(4):
        for item in reversed(batch):
            item.done(item.index)
    assert [one["result"] for one in lines(server.output())] == [0, 1, 2, 3, 4, 5]


def test_a_batch_may_be_finished_after_the_loop(serve: Callable[..., ShardServer]) -> None:
    server = serve((0, 3), (3, 3))
    batch: list[train.Item] = []
    for item in train.items():
        batch.append(item)
        if len(batch) == 4:
            for each in batch:
                each.done("quick")
            batch = []
    assert sorted(server.commits) == [0], "the second waits for its last items"
    for each in batch:
        each.done("late")
    assert [one["result"] for one in lines(server.output())] == ["quick"] * 4 + ["late"] * 2


def test_results_may_be_text_bytes_and_whatever_json_knows(serve: Callable[..., ShardServer]) -> None:
    class Array:
        def tolist(self) -> list[int]:
            return [1, 2]

    server = serve((0, 4))
    results = iter(["größe\n", b"\xff\x00", {"a": [1.5, None]}, Array()])
    for item in train.items():
        item.done(next(results))
    said = lines(server.output())
    assert [one.get("result", one.get("base64")) for one in said] == ["größe\n", "/wA=", {"a": [1.5, None]}, [1, 2]]


def test_an_exception_fails_its_item_alone(serve: Callable[..., ShardServer]) -> None:
    server = serve((0, 4), text=b"a\nb\nc\nd\n", source=NAMES)
    server.objects["list"] = b"a\nb\nc\nd\n"
    for item in train.items():
        with item:
            if item.value == "b":
                raise ValueError("blurred")
            if item.value == "c":
                continue
            item.done(object() if item.value == "d" else item.value)
    assert lines(server.output()) == [{"index": 0, "item": "a", "result": "a"}]
    said = server.errors()
    assert said[0] == {"index": 1, "item": "b", "reason": "ValueError: blurred"}
    assert said[1]["reason"] == "left without a result" and "object has no JSON" in said[2]["reason"]
    assert server.commits[0]["failed"] == 3 and server.commits[0]["errors"][0] == said[0]


def test_a_result_is_given_once(serve: Callable[..., ShardServer]) -> None:
    serve((0, 1))
    for item in train.items():
        item.failed("no")
        with pytest.raises(RuntimeError, match="item 0 has its result already"):
            item.done(1)


def test_large_outputs_are_sent_in_parts(serve: Callable[..., ShardServer]) -> None:
    server = serve((0, 50), part_bytes=1000)
    for item in train.items():
        item.done("x" * 100)
    assert len(lines(server.output())) == 50
    sizes = [len(server.objects[f"0-{part}"]) for part in range(-(-server.commits[0]["size"] // 1000))]
    assert len(sizes) > 5 and set(sizes[:-1]) == {1000}


def test_lines_of_a_file_are_read_where_they_are(
    serve: Callable[..., ShardServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = b"one\r\n\ntwo \xff\nthree\n"
    (tmp_path / "prompts").write_bytes(text)
    monkeypatch.setenv("CRUCIBLE_DATASET", str(tmp_path))
    source = {"kind": "lines", "base": "dataset", "path": "prompts", "list": None}
    server = serve((0, 2), (2, 2), text=text, source=source)
    assert [item.value for item in settled()] == ["one", "", "two \ufffd", "three"]
    assert "item" not in lines(server.output())[0]


def test_a_file_of_the_dataset_has_a_path(serve: Callable[..., ShardServer], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRUCIBLE_DATASET", "/data")
    text = b"x/a.jpg\n"
    server = serve((0, 1), text=text, source={"kind": "files", "base": "dataset", "path": "", "list": None})
    server.objects["list"] = text
    for item in train.items():
        assert (item.value, item.path) == ("x/a.jpg", "/data/x/a.jpg")
        item.done()


def test_an_object_is_brought_when_it_is_asked_for(serve: Callable[..., ShardServer]) -> None:
    text = b"s3://b/a.wav\ns3://b/b.wav\n"
    server = serve((0, 2), text=text, source={"kind": "objects", "base": "", "path": "", "list": None})
    server.objects |= {"list": text, "object-a.wav": b"AAA", "object-b.wav": b"BBB"}
    for item in train.items():
        item.done(Path(item.path).read_text() if item.index else None)
    assert lines(server.output())[1] == {"index": 1, "item": "s3://b/b.wav", "result": "BBB"}
    assert sum(verb == "objects" for verb, _ in server.asked) == 1


# --- trouble ----------------------------------------------------------------------------------------------------


def test_lost_answers_and_failures_of_the_server_cost_nothing(serve: Callable[..., ShardServer]) -> None:
    server = serve((0, 2), (2, 2), (4, 2))
    chance = random.Random(1)
    server.trouble = lambda method, path: chance.choice([0, 500, None, None])
    seen = [item.index for item in settled()]
    assert seen == [0, 1, 2, 3, 4, 5]
    assert [one["index"] for one in lines(server.output())] == seen


def test_a_server_that_comes_back_elsewhere_is_found(serve: Callable[..., ShardServer]) -> None:
    server = serve((0, 2), (2, 2))
    seen = []
    for item in train.items():
        seen.append(item.index)
        if item.index == 1:
            server.move()
        item.done(item.index)
    assert seen == [0, 1, 2, 3] and len(lines(server.output())) == 4


def test_a_shard_that_somebody_else_finished_is_dropped(serve: Callable[..., ShardServer]) -> None:
    server = serve((0, 1000), (1000, 2), lease_s=0.3)
    seen = []
    for item in train.items():
        seen.append(item.index)
        if item.index == 0:
            server.unwanted.add(0)
            wait_until_dropped(item)
        item.done(item.index)
    assert len(seen) < 500 and seen[-2:] == [1000, 1001]
    assert sorted(server.commits) == [1]


def test_leases_are_renewed_while_items_are_worked_on(serve: Callable[..., ShardServer]) -> None:
    server = serve((0, 1), lease_s=0.3)
    for item in train.items():
        wait_until(lambda: sum(verb == "renew" for verb, _ in server.asked) >= 2)
        item.done()
    assert sorted(server.commits) == [0]


def test_an_attempt_that_is_over_ends_the_loop(serve: Callable[..., ShardServer]) -> None:
    server = serve((0, 1), (1, 1))
    seen = []
    for item in train.items():
        seen.append(item.index)
        server.is_over = True
        item.done()
    assert seen == [0] and not server.commits


def test_without_a_job_there_are_no_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CRUCIBLE_SHARDS", raising=False)
    monkeypatch.delenv("CRUCIBLE_ITEMS", raising=False)
    with pytest.raises(RuntimeError, match="run it as a job with `shards:`"):
        next(train.items())
    with pytest.raises(ValueError, match="at least one item"):
        next(train.batches(0))


def wait_until_dropped(item: train.Item) -> None:
    wait_until(lambda: not item._work.is_wanted)


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# --- programs of their own --------------------------------------------------------------------------------------


def program(text: str, **env: str) -> "subprocess.CompletedProcess[bytes]":
    source = str(Path(shard_link.__file__).parents[2])
    given = {**os.environ, "PYTHONPATH": source, **env}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)], capture_output=True, env=given, timeout=60, check=False
    )


def test_at_home_items_are_the_lines_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a\nb\nc\n")
    script = """
        from crucible import train
        for item in train.items():
            with item:
                if item.value == "b":
                    raise KeyError("no b")
                item.done(item.value.upper())
    """
    done = program(script, CRUCIBLE_ITEMS=str(tmp_path / "in"))
    assert lines(done.stdout) == [
        {"index": 0, "item": "a", "result": "A"},
        {"index": 2, "item": "c", "result": "C"},
    ]
    assert b"no b" in done.stderr and done.returncode == 0


def test_items_that_a_program_forgot_have_failed_when_it_ends(serve: Callable[..., ShardServer]) -> None:
    server = serve((0, 2), (2, 2))
    script = """
        from crucible import train
        kept = [item for item in train.items()]
        for item in kept[:3]:
            item.done("ok")
    """
    done = program(script)
    assert done.returncode == 0, done.stderr
    assert len(lines(server.output())) == 3
    assert server.errors() == [{"index": 3, "reason": "left without a result"}]


def test_a_program_that_breaks_says_nothing_of_its_items(serve: Callable[..., ShardServer]) -> None:
    server = serve((0, 1), (1, 1))
    script = """
        from crucible import train
        for item in train.items():
            if item.index:
                raise MemoryError("too large")
            item.done()
    """
    assert program(script).returncode == 1
    assert sorted(server.commits) == [0] and server.commits[0]["failed"] == 0


def test_what_leaves_the_program_is_not_a_failure_of_an_item(serve: Callable[..., ShardServer]) -> None:
    server = serve((0, 2))
    script = """
        import sys
        from crucible import train
        for item in train.items():
            with item:
                sys.exit(3)
    """
    assert program(script).returncode == 3
    assert not server.commits


def test_a_stop_ends_the_loop_and_commits_what_is_whole(serve: Callable[..., ShardServer]) -> None:
    server = serve((0, 2), (2, 2))
    script = """
        import os, signal
        from crucible import train
        for item in train.items():
            item.done()
            if item.index == 2:
                os.kill(os.getpid(), signal.SIGTERM)
        print("ended")
    """
    assert program(script).stdout == b"ended\n"
    assert sorted(server.commits) == [0], "half a shard is somebody else's"


def test_a_shard_with_forgotten_items_is_not_waited_for_for_ever(serve: Callable[..., ShardServer]) -> None:
    server = serve(*((n, 1) for n in range(8)))
    script = """
        from crucible import train
        kept = []
        for item in train.items():
            kept.append(item) if item.index % 2 else item.done()
            assert len([one for one in kept if not one.is_settled]) <= 4
    """
    done = program(script)
    assert done.returncode == 0, done.stderr
    assert sorted(server.commits) == list(range(8))
    assert [one["index"] for one in server.errors()] == [1, 3, 5, 7]


def test_a_forked_child_commits_nothing(serve: Callable[..., ShardServer]) -> None:
    server = serve((0, 2))
    script = """
        import os, sys
        from crucible import train
        for item in train.items():
            if item.index == 0:
                child = os.fork()
                if child == 0:
                    sys.exit(0)
                assert os.waitpid(child, 0)[1] == 0
            item.done(os.getpid())
    """
    done = program(script)
    assert done.returncode == 0, done.stderr
    assert len({one["result"] for one in lines(server.output())}) == 1 and len(server.commits) == 1


# --- commands ---------------------------------------------------------------------------------------------------


def command(*argv: str, **env: str) -> "subprocess.CompletedProcess[bytes]":
    source = str(Path(shard_link.__file__).parents[2])
    given = {**os.environ, "PYTHONPATH": source, **env}
    runner = [sys.executable, "-m", "crucible.train.shard_command", "--", *argv]
    return subprocess.run(runner, capture_output=True, env=given, timeout=60, check=False)


def test_a_command_is_run_once_for_each_shard(serve: Callable[..., ShardServer]) -> None:
    server = serve((0, 2), (2, 1))
    done = command(
        "/bin/sh", "-c", 'echo "$CRUCIBLE_SHARD $(cat $CRUCIBLE_ITEMS | tr "\\n" ,)" > $CRUCIBLE_OUTPUT_FILE'
    )
    assert done.returncode == 0, done.stderr
    assert server.output() == b"0 0,1,\n1 2,\n"


def test_a_command_that_fails_is_run_again_and_then_its_items_have_failed(
    serve: Callable[..., ShardServer], tmp_path: Path
) -> None:
    server = serve((0, 2), (2, 1))
    text = 'echo run >> "$1"; test "$CRUCIBLE_SHARD" = 1 || { echo "no weights" >&2; exit 7; }'
    done = command("/bin/sh", "-c", text, "sh", str(tmp_path / "runs"))
    assert done.returncode == 0 and b"try 3 of 3" in done.stderr
    assert (tmp_path / "runs").read_text().count("run") == 4
    assert server.commits[0]["reason"] == "exit code 7\nno weights" and "reason" not in server.commits[1]


def test_a_command_may_say_which_items_failed(serve: Callable[..., ShardServer]) -> None:
    server = serve((0, 3))
    text = 'echo \'{"index": 1, "reason": "bad"}\' > $CRUCIBLE_ERRORS_FILE; echo nonsense >> $CRUCIBLE_ERRORS_FILE'
    assert command("/bin/sh", "-c", text).returncode == 0
    assert server.commits[0]["failed"] == 1 and server.errors() == [{"index": 1, "reason": "bad"}]


def test_a_script_with_items_runs_as_a_command_too(serve: Callable[..., ShardServer], tmp_path: Path) -> None:
    server = serve((0, 2), (2, 2))
    script = "from crucible import train\nfor item in train.items():\n    item.done(item.value + 1)\n"
    (tmp_path / "infer.py").write_text(script)
    assert command(sys.executable, str(tmp_path / "infer.py")).returncode == 0
    assert lines(server.output()) == [{"index": n, "result": n + 1} for n in range(4)]


def test_a_command_that_is_not_there_fails_its_items(serve: Callable[..., ShardServer]) -> None:
    server = serve((0, 1))
    assert command("/no/such/program").returncode == 0
    assert "could not start /no/such/program" in server.commits[0]["reason"]
    assert command().returncode == 2


def test_a_link_knows_what_an_answer_means() -> None:
    assert shard_link._meaning(200, {"a": 1}) == {"a": 1}
    with pytest.raises(shard_link.Over):
        shard_link._meaning(410, {"error": "gone"})
    for status, code in ((500, ""), (429, "busy"), (401, ""), (409, "stale_version"), (301, "")):
        with pytest.raises(shard_link.Unreachable):
            shard_link._meaning(status, {"error": code})
    with pytest.raises(shard_link.Refused) as refused:
        shard_link._meaning(409, {"error": "conflict", "message": "not there"})
    assert refused.value.code == "conflict"


def test_a_text_that_is_too_short_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"one\n")
    with (tmp_path / "short").open("rb") as file, pytest.raises(shard_link.Over):
        list(shard_work.lines_of(file, 10))
