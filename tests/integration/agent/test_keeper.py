"""The keeper of a host, as a program: one request, one answer, and machines that start once whoever dies in between."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crucible.agent import bundle

TOKEN = "enrolment-token-of-a-test"


def old_python() -> str | None:
    """The oldest that is promised, on the path or pyenv's."""
    root = Path(os.environ.get("PYENV_ROOT", str(Path.home() / ".pyenv")))
    found = [*map(str, sorted(root.glob("versions/3.8.*/bin/python3"))), shutil.which("python3.8")]
    return next((path for path in found if path), None)


class Keeper:
    def __init__(self, home: Path, python: str = sys.executable) -> None:
        self.home = home
        self.python = python
        self.pyz = home / "crucible-agent.pyz"
        self.pyz.write_bytes(bundle.portable())

    def say(self, text: bytes) -> dict[str, Any]:
        done = subprocess.run(
            [self.python, str(self.pyz), "--keep"],
            input=text,
            env={"HOME": str(self.home), "PATH": os.defpath},
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        return self.say(json.dumps({"op": op, "deployment": "d1", **fields}).encode())

    def make(self, order: str = "order-1", *, start: bool = False, **changes: Any) -> dict[str, Any]:
        given: dict[str, Any] = {
            "machines": [{"index": 0, "devices": ["GPU-1"]}],
            "exclusive": False,
            "max_machines": 4,
            "boot": {"servers": ["http://127.0.0.1:9"], "enrolment_token": TOKEN, "address": "127.0.0.1"},
        }
        made = self.ask("make", order_id=order, **{**given, **changes})
        return self.ask("start", order_id=order) if start and "ok" in made else made

    def machines(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("list")["ok"]["machines"]
        return found

    def folder(self, machine: str) -> Path:
        return self.home / ".crucible" / "d1" / "machines" / machine

    def processes(self) -> list[int]:
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                words = path.read_bytes()
            except OSError:
                continue
            if b"CRUCIBLE_MACHINE_ID=host-" in words and f"HOME={self.home}".encode() in words:
                found.append(int(path.parent.name))
        return found


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    made = Keeper(tmp_path)
    yield made
    for pid in made.processes():
        os.kill(pid, signal.SIGKILL)


def until(is_so: Callable[[], object]) -> Any:
    deadline = time.monotonic() + 20
    while not (found := is_so()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def running(keeper: Keeper) -> bool:
    return [machine["state"] for machine in keeper.machines()] == ["running"]


def test_a_place_that_was_made_runs_nothing_and_is_not_a_machine_yet(keeper: Keeper) -> None:
    answer = keeper.make()["ok"]
    assert not answer["was_made"] and not answer["was_started"]
    assert keeper.machines() == [] and keeper.processes() == []
    assert keeper.ask("list")["ok"]["taken"] == [{"devices": ["GPU-1"], "exclusive": False}]
    assert keeper.make("order-2")["error"]["code"] == "no_capacity"


def test_what_was_made_starts_once_however_often_it_is_asked_for(keeper: Keeper) -> None:
    keeper.make()
    for _ in range(3):
        keeper.ask("start", order_id="order-1")
    until(lambda: running(keeper))
    assert keeper.make()["ok"]["was_started"]
    assert len(keeper.processes()) == 1


def test_a_start_that_died_half_way_is_completed_by_the_next_look(keeper: Keeper) -> None:
    (machine,) = keeper.make()["ok"]["machines"]
    (keeper.folder(machine["id"]) / "go.json").write_text(json.dumps({"at": time.time()}))
    until(lambda: running(keeper))
    assert len(keeper.processes()) == 1


def test_a_place_that_nobody_used_is_given_up(keeper: Keeper) -> None:
    (machine,) = keeper.make()["ok"]["machines"]
    record = keeper.folder(machine["id"]) / "machine.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "created_at": time.time() - 3600}))
    assert keeper.machines() == [] and not record.exists()
    assert keeper.ask("start", order_id="order-1")["error"]["code"] == "unknown"


def test_debris_of_a_death_between_two_files_is_cleared(keeper: Keeper) -> None:
    (machine,) = keeper.make()["ok"]["machines"]
    folder = keeper.folder(machine["id"])
    shutil.copytree(folder, folder.with_name(".new-host-other"))
    (folder / "machine.json").unlink()
    assert keeper.make(start=True)["ok"]["machines"][0]["id"] == machine["id"]
    assert sorted(path.name for path in folder.parent.iterdir()) == [machine["id"]]
    until(lambda: running(keeper))


def test_an_undone_purchase_leaves_nothing(keeper: Keeper) -> None:
    keeper.make()
    assert keeper.ask("undo", order_id="order-1") == {"ok": {}}
    assert keeper.ask("list")["ok"]["taken"] == []
    keeper.make(start=True)
    keeper.ask("undo", order_id="order-1")
    assert until(lambda: running(keeper)), "what has started stays, unless it is said"
    keeper.ask("undo", order_id="order-1", started=True)
    assert keeper.machines() == [] and keeper.processes() == []


def test_a_dead_agent_is_gone_with_all_it_left_and_its_place_is_free(keeper: Keeper) -> None:
    keeper.make(start=True)
    until(lambda: running(keeper))
    (machine,) = keeper.machines()
    mark = {"CRUCIBLE_MACHINE_ID": machine["id"], "HOME": str(keeper.home), "PATH": os.defpath}
    left = subprocess.Popen(["sleep", "600"], env=mark)
    os.kill(int((keeper.folder(machine["id"]) / "lock").read_text()), signal.SIGKILL)
    (gone,) = keeper.machines()
    assert (gone["state"], gone["reason"]) == ("gone", "its agent ended")
    assert left.wait(10) == -signal.SIGKILL
    assert "ok" in keeper.make("order-2")
    assert keeper.make(start=True)["ok"]["machines"][0]["state"] == "gone", "gone is for ever"


def test_an_agent_that_is_told_to_end_says_so(keeper: Keeper) -> None:
    keeper.make(start=True)
    until(lambda: running(keeper))
    (machine,) = keeper.machines()
    assert keeper.ask("delete", machine_id=machine["id"]) == {"ok": {}}
    gone = until(lambda: [one for one in keeper.machines() if one["state"] == "gone"])
    assert gone[0]["reason"] == "closed before it was enrolled"
    assert not (keeper.folder(machine["id"]) / "boot.json").exists(), "the secret goes with it"


def test_machines_of_one_host_share_a_cache_that_outlives_them(keeper: Keeper) -> None:
    found = []
    for order in ("order-1", "order-2"):
        (machine,) = keeper.make(order, machines=[{"index": 0, "devices": []}])["ok"]["machines"]
        found.append(json.loads((keeper.folder(machine["id"]) / "boot.json").read_text())["cache"])
    assert found == [str(keeper.home / ".crucible" / "d1" / "cache")] * 2


def test_secrets_are_for_the_owner_only_and_in_no_command_line(keeper: Keeper) -> None:
    (machine,) = keeper.make(start=True)["ok"]["machines"]
    until(lambda: running(keeper))
    assert (keeper.folder(machine["id"]) / "boot.json").stat().st_mode & 0o077 == 0
    (pid,) = keeper.processes()
    for what in ("cmdline", "environ"):
        assert TOKEN.encode() not in Path(f"/proc/{pid}/{what}").read_bytes()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b'{"op": "rm", "deployment": "d1"}',
        b'{"op": "list", "deployment": "../etc"}',
        b'{"op": "delete", "deployment": "d1", "machine_id": "../../x"}',
        b'{"op": "make", "deployment": "d1"}',
    ],
)
def test_what_no_server_says_changes_nothing(keeper: Keeper, text: bytes) -> None:
    assert keeper.say(text)["error"]["code"] == "malformed"
    assert keeper.processes() == []


def test_the_keeper_runs_on_the_oldest_python_that_is_promised(tmp_path: Path) -> None:
    python = old_python()
    if python is None:
        pytest.skip("no Python 3.8 here: pyenv install 3.8")
    keeper = Keeper(tmp_path, python)
    facts = keeper.ask("facts")["ok"]
    assert facts["python"].startswith("3.8.") and facts["cpus"] >= 1
    keeper.make(start=True)
    try:
        until(lambda: running(keeper))
    finally:
        keeper.ask("undo", order_id="order-1", started=True)
