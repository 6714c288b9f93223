"""What a rank left, as the agent reads it and waits for it: no links out, no endless patience."""

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from crucible.agent import output_upload
from crucible.agent.output_tree import Changed, OutputTree, Stopped, Unstorable, open_below
from crucible.agent.output_upload import Failed, GivenUp, Patience
from crucible.agent.outputs import Outputs
from crucible.agent.words import Words

LIMITS = {"max_bytes": 1 << 30, "max_files": 100, "within_s": 100.0}


class Heard:
    """Servers that were heard just now, or never."""

    def __init__(self, heard_at: float) -> None:
        self.heard_at = heard_at


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


# --- reading ------------------------------------------------------------------------------------------------------


def read(root: Path, closed: threading.Event | None = None) -> OutputTree:
    return OutputTree(str(root), 100, 1 << 30, closed or threading.Event())


def test_a_folder_that_became_a_link_is_not_entered(tmp_path: Path) -> None:
    """Whoever still writes there must not make the agent read what is not the rank's."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/key").write_text("of the node")
    root = tmp_path / "output"
    root.mkdir()
    (root / "d").symlink_to("../secret")
    with pytest.raises(Changed):
        open_below(str(root), "d/key")
    with pytest.raises(Unstorable, match=r"leads to '\.\./secret', out of the folder"):
        read(root)


def test_a_file_that_became_a_link_is_not_sent(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("of the node")
    root = tmp_path / "output"
    root.mkdir()
    (root / "a").write_text("of the node")
    tree = read(root)
    (root / "a").unlink()
    (root / "a").symlink_to("../key")
    with pytest.raises(Changed):
        tree.body(tree.objects[0]).send(None, False, lambda count: None)  # type: ignore[arg-type]


def test_a_file_of_the_same_size_and_other_content_is_not_sent(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    tree, before = read(tmp_path), (tmp_path / "a").stat()
    (tmp_path / "a").write_text("two")
    os.utime(tmp_path / "a", ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(Changed, match="'a' changed while it was sent"):
        tree.body(tree.objects[0]).send(None, False, lambda count: None)  # type: ignore[arg-type]


def test_reading_stops_when_nobody_wants_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    closed = threading.Event()
    closed.set()
    with pytest.raises(Stopped):
        read(tmp_path, closed)


def test_many_hashers_read_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(20):
        (tmp_path / str(n)).write_bytes(os.urandom(1000))
    alone = read(tmp_path)
    monkeypatch.setattr("crucible.agent.output_tree._ALONE_BYTES", 10)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert read(tmp_path).digest == alone.digest


# --- patience -----------------------------------------------------------------------------------------------------


def test_a_server_that_is_away_costs_no_patience(clock: list[float]) -> None:
    patience = Patience(Heard(0.0), 100.0)  # type: ignore[arg-type]
    clock[0] += 100_000
    patience.check("nobody there")


def test_what_does_not_move_fails_and_what_moves_goes_on_within_its_time(clock: list[float]) -> None:
    servers = Heard(clock[0])
    patience = Patience(servers, 5 * output_upload._PATIENCE_S)  # type: ignore[arg-type]
    for _ in range(4):
        clock[0] += output_upload._PATIENCE_S - 1
        servers.heard_at = clock[0]
        patience.moved(1)
        patience.check()
    clock[0] += output_upload._PATIENCE_S
    servers.heard_at = clock[0]
    with pytest.raises(Failed, match="it took too long: storage is away"):
        patience.check("storage is away")


def test_a_machine_that_goes_waits_only_for_what_moves(clock: list[float]) -> None:
    patience = Patience(Heard(0.0), 100.0)  # type: ignore[arg-type]
    patience.is_hurried = True
    clock[0] += output_upload._HURRIED_S - 1
    patience.moved(1)
    clock[0] += output_upload._HURRIED_S - 1
    patience.check()
    clock[0] += 1
    with pytest.raises(GivenUp):
        patience.check()


# --- what counts --------------------------------------------------------------------------------------------------


def outputs(folder: Path, **launch: Any) -> Outputs:
    (folder / "output").mkdir(exist_ok=True)
    return Outputs(
        str(folder),
        {"attempt_id": "a", "output": LIMITS, **launch},
        Heard(0.0),  # type: ignore[arg-type]
        lambda: None,  # type: ignore[arg-type,return-value]
        Words(str(folder / "agent.log")),
    )


@pytest.mark.parametrize(
    "result",
    [
        {"exit_code": 1},
        {"exit_code": None, "signal": 15},
        {"exit_code": 0, "timed_out": True},
        {"exit_code": 0, "reason": "stopped: cancelled"},
    ],
)
def test_whoever_did_not_end_well_by_itself_leaves_nothing(tmp_path: Path, result: dict[str, Any]) -> None:
    left = outputs(tmp_path)
    (tmp_path / "output/a").write_text("x")
    left.consider(result, is_evicted=False)
    assert left.is_settled and left.digest is None and left.ending(result) == result


def test_an_empty_folder_is_settled_at_once_and_a_rank_without_one_always_is(tmp_path: Path) -> None:
    left = outputs(tmp_path)
    assert not left.is_settled
    left.consider({"exit_code": 0}, is_evicted=False)
    assert left.is_settled and not left.is_slow()
    assert outputs(tmp_path, output=None).is_settled


def test_what_an_earlier_agent_came_to_holds(tmp_path: Path) -> None:
    (tmp_path / "outputs.json").write_text('{"digest": null, "failure": "no room"}')
    left = outputs(tmp_path)
    ending = left.ending({"exit_code": 0})
    assert left.is_settled and ending == {"exit_code": None, "reason": "could not store the outputs: no room"}


def test_a_machine_without_time_is_no_success(tmp_path: Path) -> None:
    left = outputs(tmp_path)
    left._storing = type("Held", (), {"close": lambda self: None})()  # type: ignore[assignment]
    left.give_up()
    assert left.is_given_up and left.is_settled
    assert left.ending({"exit_code": 0})["reason"] == "the machine went before the outputs were stored"
