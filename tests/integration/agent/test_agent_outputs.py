"""What a rank leaves in $CRUCIBLE_OUTPUT is in storage, whole, before the server hears of its exit; and what a job is
given of earlier work is on the node before its ranks start."""

import hashlib
import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_process import AgentProcess, rank_work
from crucible.core.datasets import object_key
from crucible.model.dataset_tree import OBJECT_BYTES
from crucible.wire.agent import DatasetWork, OutputWork, RankWork
from doubles.agent_server import ServerDouble
from doubles.outputs import OutputsDouble
from doubles.storage import StorageDouble
from doubles.trees import TreesDouble

NewAgent = Callable[..., AgentProcess]
LIMITS = OutputWork(max_bytes=1 << 40, max_files=100_000, within_s=600.0)
OBJECTS, MANIFESTS = "objects/", "manifests/"
ASK, WHOLE = "/agent/v1/outputs", "/agent/v1/outputs/whole"


def leaving(script: str, *, limits: OutputWork | None = LIMITS, **options: Any) -> RankWork:
    return rank_work("/bin/sh", "-c", f'cd "$CRUCIBLE_OUTPUT" && {script}', output=limits, **options)


def writing(code: str, **options: Any) -> RankWork:
    head = "import os, pathlib; out = pathlib.Path(os.environ['CRUCIBLE_OUTPUT']); "
    return rank_work("python", "-c", head + code, output=LIMITS, **options)


# --- what is left -----------------------------------------------------------------------------------------------


def test_what_a_rank_leaves_is_stored_before_its_exit_is_told(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, outputs: OutputsDouble
) -> None:
    big = random.Random(1).randbytes(OBJECT_BYTES + 7)
    agent = new_agent()
    server.give(
        writing(
            "import random; (out / 'deep/er').mkdir(parents=True); (out / 'empty folder').mkdir();"
            "(out / 'a.txt').write_text('hello'); (out / 'deep/er/same').write_text('hello');"
            "(out / 'big').write_bytes(random.Random(1).randbytes((64 << 20) + 7)); (out / 'nothing').touch();"
            "(out / 'deep/link').symlink_to('../a.txt'); (out / 'run.sh').write_text('#!');"
            "(out / 'run.sh').chmod(0o755)"
        )
    )
    agent.start()
    ended = server.exit_of(timeout_s=60)
    assert ended.exit_code == 0 and ended.outputs is not None, agent.said()
    assert outputs.confirmed == [ended.outputs]
    assert outputs.files(ended.outputs) == {
        "a.txt": b"hello",
        "big": big,
        "deep/er/same": b"hello",
        "deep/link": b"../a.txt",
        "nothing": b"",
        "run.sh": b"#!",
    }
    assert [entry.path for entry in outputs.tree(ended.outputs).entries if entry.is_program] == ["run.sh"]
    keys = [key for method, key, _ in storage.requests if method == "PUT"]
    assert keys[-1] == f"{MANIFESTS}{ended.outputs}" and len(keys) == len(set(keys))
    assert server.has_line(f"left 6 files behind ({len(big) + 5 + 5 + 2} bytes): {ended.outputs[:12]}", "sys")


def test_an_empty_folder_costs_no_request(new_agent: NewAgent, server: ServerDouble, outputs: OutputsDouble) -> None:
    agent = new_agent()
    server.give(leaving("true"), leaving("mkdir -p a/b", attempt_id="att-2"))
    agent.start()
    assert server.exit_of().outputs is None
    assert server.exit_of("att-2").outputs is None and server.exit_of("att-2").exit_code == 0
    assert outputs.asked == []


@pytest.mark.parametrize(
    ("script", "code"), [("echo half > a; exit 3", 3), ("echo half > a; kill -9 $$", None)], ids=["failed", "killed"]
)
def test_whoever_does_not_end_well_leaves_nothing(
    new_agent: NewAgent, server: ServerDouble, outputs: OutputsDouble, script: str, code: int | None
) -> None:
    agent = new_agent()
    server.give(leaving(script))
    agent.start()
    ended = server.exit_of()
    assert (ended.exit_code, ended.outputs) == (code, None) and outputs.asked == []


def test_other_ranks_have_no_such_folder(new_agent: NewAgent, server: ServerDouble, outputs: OutputsDouble) -> None:
    agent = new_agent()
    server.give(rank_work("/bin/sh", "-c", 'test -z "$CRUCIBLE_OUTPUT"', rank=1))
    agent.start()
    assert server.exit_of(rank=1).exit_code == 0, server.lines(None, rank=1)


STOPPABLE = (
    "import signal, sys, time; (out / 'a').write_text('x');"
    "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); print('ready', flush=True); time.sleep(600)"
)


@pytest.mark.parametrize("is_pruned", [True, False], ids=["pruned", "cancelled"])
def test_of_those_that_are_told_to_stop_only_a_pruned_one_leaves_something(
    new_agent: NewAgent, server: ServerDouble, outputs: OutputsDouble, is_pruned: bool
) -> None:
    agent = new_agent()
    work = writing(STOPPABLE)
    server.give(work)
    agent.start()
    server.wait_for(lambda: server.has_line("ready"))
    server.give(work.model_copy(update={"stop": True, "stop_reason": "enough", "keeps_outputs": is_pruned}))
    ended = server.exit_of()
    assert ended.exit_code == 0 and (ended.outputs is not None) == is_pruned == bool(outputs.asked)


def test_ten_thousand_small_files_are_a_few_objects(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, outputs: OutputsDouble
) -> None:
    agent = new_agent()
    server.give(writing("[(out / f'f{n:05}').write_text(str(n) * 20) for n in range(10_000)]"))
    agent.start()
    ended = server.exit_of(timeout_s=60)
    assert ended.outputs is not None, ended.reason
    files = outputs.files(ended.outputs)
    assert len(files) == 10_000 and files["f00042"] == b"42" * 20
    assert storage.count("PUT", OBJECTS) < 100


def test_names_may_be_anything_that_is_utf8(new_agent: NewAgent, server: ServerDouble, outputs: OutputsDouble) -> None:
    names = ["new\nline", "\u2028 sep", "tab\t", "ümläut/\U0001f525", "-rf", " ", "a'b\"c", "%2e%2e", "..."]
    agent = new_agent()
    body = f"[((out / n).parent.mkdir(exist_ok=True), (out / n).write_text(n)) for n in {names!r}]"
    server.give(writing(body))
    agent.start()
    ended = server.exit_of()
    assert ended.outputs is not None, ended.reason
    assert outputs.files(ended.outputs) == {name: name.encode() for name in names}


# --- what cannot be stored --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("(out / 'x').symlink_to('/etc/passwd')", "the link 'x' leads to '/etc/passwd', out of the folder"),
        ("(out / 'x').symlink_to('../token')", "out of the folder"),
        ("(out / 'd').symlink_to('.'); (out / 'x').symlink_to('d/../../token')", "out of the folder"),
        ("os.mkfifo(out / 'x')", "'x' is neither a file, a folder nor a link"),
        ("open(os.fsencode(out) + b'/\\xff', 'w').close()", "no UTF-8"),
        ("[(out / str(n)).touch() for n in range(6)]", "more than 5 files"),
        ("(out / 'x').write_bytes(b'0' * 101)", "more than 100 bytes"),
    ],
    ids=["absolute", "relative", "through a link", "pipe", "not UTF-8", "too many", "too large"],
)
def test_what_cannot_be_stored_fails_the_rank_and_says_why(
    new_agent: NewAgent, server: ServerDouble, outputs: OutputsDouble, code: str, why: str
) -> None:
    agent = new_agent()
    limits = OutputWork(max_bytes=100, max_files=5, within_s=600.0)
    work = writing(code)
    launch = work.launch.model_copy(update={"output": limits})
    server.give(work.model_copy(update={"launch": launch}))
    agent.start()
    ended = server.exit_of()
    assert ended.exit_code is None and ended.outputs is None and outputs.asked == []
    assert (ended.reason or "").startswith("could not store the outputs: ") and why in (ended.reason or "")
    assert server.has_line("could not store the outputs", "sys")


def test_a_full_storage_fails_the_rank(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, outputs: OutputsDouble
) -> None:
    storage.fail("PUT", OBJECTS, "507", 99)
    agent = new_agent()
    server.give(leaving("echo hello > a"))
    agent.start()
    ended = server.exit_of()
    assert ended.exit_code is None and "could not store the outputs: storage refuses them: HTTP 507" in (
        ended.reason or ""
    )
    assert storage.names(MANIFESTS) == []


def test_a_server_that_refuses_them_fails_the_rank(
    new_agent: NewAgent, server: ServerDouble, outputs: OutputsDouble
) -> None:
    server.refusals[ASK] = 422
    agent = new_agent()
    server.give(leaving("echo hello > a"))
    agent.start()
    assert "the server does not take them: HTTP 422: a fault of the test" in (server.exit_of().reason or "")


# --- trouble that passes ----------------------------------------------------------------------------------------


def test_broken_lines_expired_signatures_and_lost_replies_are_waited_out(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, outputs: OutputsDouble
) -> None:
    storage.fail("PUT", OBJECTS, "cut", 2)
    storage.fail("PUT", OBJECTS, "503", 2)
    storage.fail("PUT", OBJECTS, "lost")
    storage.fail("PUT", OBJECTS, "403")
    storage.fail("PUT", MANIFESTS, "403")
    server.replies_to_lose |= {ASK: 1, WHOLE: 1}
    agent = new_agent()
    server.give(writing("[(out / str(n)).write_bytes(bytes([n]) * (1 << 20)) for n in range(8)]"))
    agent.start()
    ended = server.exit_of(timeout_s=60)
    assert ended.exit_code == 0 and ended.outputs is not None, agent.said()
    assert len(outputs.files(ended.outputs)) == 8


def test_what_the_server_misses_is_sent_again(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, outputs: OutputsDouble
) -> None:
    kept = outputs.whole

    def lose_some(asked: Any) -> tuple[int, bytes]:
        if not outputs.confirmed and len(outputs.asked) < 4:
            storage.objects.pop(storage.names(OBJECTS)[0])
        return kept(asked)

    outputs.whole = lose_some  # type: ignore[method-assign]
    agent = new_agent()
    server.give(leaving("echo hello > a"))
    agent.start()
    ended = server.exit_of()
    assert ended.outputs is not None and outputs.files(ended.outputs) == {"a": b"hello\n"}


def many(count: int = 8) -> RankWork:
    return writing(
        f"import random; [(out / str(n)).write_bytes(random.Random(n).randbytes(1 << 20)) for n in range({count})]"
    )


def test_an_agent_that_is_killed_half_way_goes_on(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, outputs: OutputsDouble
) -> None:
    agent = new_agent()
    storage.fail("PUT", OBJECTS, "held", 2)
    server.give(many())
    agent.start()
    storage.wait_for(lambda: storage.count("held") == 2 and storage.count("PUT", OBJECTS) >= 2)
    agent.kill()
    assert server.ranks["att-1", 0].state == "started"
    storage.release()
    storage.wait_for(lambda: storage.connections == 0)  # what was on its way has arrived, or will not
    before, stored = len(storage.requests), set(storage.names(OBJECTS))
    agent.start()
    ended = server.exit_of()
    assert ended.exit_code == 0 and ended.outputs is not None, agent.said()
    sent = {key for _, key, _ in storage.requests[before:] if key.startswith(OBJECTS)}
    assert len(outputs.files(ended.outputs)) == 8 and len(stored) >= 4 and not sent & stored


def test_an_agent_that_is_killed_after_it_need_not_store_it_again(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, outputs: OutputsDouble
) -> None:
    agent = new_agent()
    server.give(leaving("echo hello > a"))
    server.refusals["/agent/v1/report"] = 503
    agent.start()
    server.wait_for(lambda: (agent.rank_folder() / "outputs.json").exists())
    agent.kill()
    del server.refusals["/agent/v1/report"]
    asked = len(outputs.asked)
    agent.start()
    assert server.exit_of().outputs == outputs.confirmed[0] and len(outputs.asked) == asked


def test_a_server_that_is_away_during_the_upload_costs_nothing(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, outputs: OutputsDouble
) -> None:
    agent = new_agent()
    storage.fail("PUT", OBJECTS, "held", 1)
    server.give(many())
    agent.start()
    storage.wait_for(lambda: storage.count("held"))
    server.stop()
    storage.expire()  # what it had signed is worth nothing any more
    storage.release()
    storage.wait_for(lambda: any(status == 403 for _, _, status in storage.requests))
    server.start()
    agent.point_at(server)
    ended = server.exit_of(timeout_s=60)
    assert ended.exit_code == 0 and ended.outputs is not None, agent.said()
    assert len(outputs.files(ended.outputs)) == 8


def test_a_tree_that_changes_while_it_is_sent_is_read_again(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, outputs: OutputsDouble
) -> None:
    agent = new_agent()
    storage.fail("PUT", OBJECTS, "503", 1)
    server.give(many(2))
    agent.start()
    folder = agent.rank_folder() / "output"

    def change() -> None:
        storage.wait_for(lambda: any(status == 503 for _, _, status in storage.requests))
        for name in ("0", "1"):
            (folder / name).write_bytes(b"other" * 300_000)

    changer = threading.Thread(target=change)
    changer.start()
    ended = server.exit_of(timeout_s=60)
    changer.join()
    assert ended.outputs is not None, ended.reason
    stored, there = outputs.files(ended.outputs), {path.name: path.read_bytes() for path in folder.iterdir()}
    assert stored == there, [hashlib.sha256(body).hexdigest() for body in stored.values()]


def test_a_tree_that_never_rests_fails_the_rank(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, outputs: OutputsDouble, tmp_path: Path
) -> None:
    agent = new_agent()
    over = threading.Event()
    server.give(leaving("echo hello > a"))
    storage.fail("PUT", OBJECTS, "503", 10_000)

    def write_on() -> None:
        path = agent.rank_folder() / "output/a"
        while not over.wait(0.002):
            if path.exists():
                with path.open("r+b") as file:
                    file.write(os.urandom(100))

    writer = threading.Thread(target=write_on)
    writer.start()
    agent.start()
    try:
        reason = server.exit_of(timeout_s=60).reason or ""
    finally:
        over.set()
        writer.join()
    assert reason.startswith("could not store the outputs: 'a' ")


def test_a_cancel_during_the_upload_ends_it(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, outputs: OutputsDouble
) -> None:
    agent = new_agent()
    storage.fail("PUT", OBJECTS, "503", 10_000)
    work = leaving("echo hello > a")
    server.give(work)
    agent.start()
    storage.wait_for(lambda: any(status == 503 for _, _, status in storage.requests))
    server.give(work.model_copy(update={"stop": True, "stop_reason": "cancelled"}))
    ended = server.exit_of()
    assert (ended.exit_code, ended.outputs) == (0, None) and storage.names(MANIFESTS) == []


def test_a_rank_that_stores_for_long_says_so(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, outputs: OutputsDouble
) -> None:
    agent = new_agent()
    storage.fail("PUT", OBJECTS, "held", 1)
    server.give(leaving("echo hello > a"))
    agent.start()
    server.wait_for(lambda: ("att-1", 0) in server.ranks and server.ranks["att-1", 0].is_checkpointing, 30)
    storage.release()
    ended = server.exit_of()
    assert ended.outputs is not None and not ended.is_checkpointing


# --- what is given ----------------------------------------------------------------------------------------------


def test_inputs_are_folders_by_their_names(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, trees: TreesDouble, outputs: OutputsDouble
) -> None:
    weights, words = trees.add({"w.bin": b"\1" * 3000}), trees.add({"deep/a.txt": b"hello\n"})
    given = [
        DatasetWork(name=name, digest=tree.digest)
        for name, tree in (("weights", weights), ("words", words), ("again", weights))
    ]
    show = (
        'cd "$CRUCIBLE_INPUTS" && ls && wc -c < weights/w.bin && cat words/deep/a.txt && cmp again/w.bin weights/w.bin'
    )
    dataset = DatasetWork(name="images", digest=words.digest)
    agent = new_agent()
    server.give(rank_work("/bin/sh", "-c", f'{show} && cat "$DATASET/deep/a.txt"', inputs=given, dataset=dataset))
    agent.start()
    assert server.exit_of().exit_code == 0, server.lines(None)
    assert server.lines() == ["again", "weights", "words", "3000", "hello", "hello"]
    assert storage.count("GET", OBJECTS) == 2
    assert server.has_line("input weights came from storage (3000 bytes)", "sys")
    assert {told.digest for told in trees.fetched} == {weights.digest, words.digest}
    victim = agent.rank_folder() / "inputs/weights/w.bin"
    assert victim.stat().st_mode & 0o222 == 0


def test_an_input_that_cannot_be_had_fails_the_rank(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, trees: TreesDouble
) -> None:
    tree = trees.add({"a.txt": b"x"})
    storage.objects.pop(object_key(tree.objects[0].name))
    agent = new_agent()
    server.give(rank_work("true", inputs=[DatasetWork(name="weights", digest=tree.digest)]))
    agent.start()
    assert "input weights" in (server.exit_of(timeout_s=60).reason or "")


def test_what_one_job_left_is_the_input_of_the_next(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble, trees: TreesDouble, outputs: OutputsDouble
) -> None:
    agent = new_agent()
    server.give(leaving("mkdir m && echo 42 > m/answer && ln -s m/answer latest"))
    agent.start()
    digest = server.exit_of().outputs
    assert digest is not None
    trees.trees[digest] = outputs.tree(digest)
    given = [DatasetWork(name="model", digest=digest)]
    server.give(rank_work("/bin/sh", "-c", 'cat "$CRUCIBLE_INPUTS/model/latest"', inputs=given, attempt_id="att-2"))
    assert server.exit_of("att-2").exit_code == 0 and server.lines(attempt_id="att-2") == ["42"]


def test_the_exit_of_a_rank_without_outputs_is_told_as_soon_as_ever(
    new_agent: NewAgent, server: ServerDouble, outputs: OutputsDouble
) -> None:
    """A folder that nobody used costs no more than noise: compared within one agent, the best of several."""
    agent = new_agent().start()

    def seconds(number: int, limits: OutputWork | None) -> float:
        attempt = f"att-{number}"
        server.give(rank_work("true", attempt_id=attempt, output=limits))
        began = time.monotonic()
        assert server.exit_of(attempt).exit_code == 0, agent.said()
        return time.monotonic() - began

    seconds(0, None)
    both = [(seconds(1 + 2 * n, None), seconds(2 + 2 * n, LIMITS)) for n in range(7)]
    plain, with_folder = (min(times) for times in zip(*both, strict=True))
    assert with_folder - plain < 0.05
