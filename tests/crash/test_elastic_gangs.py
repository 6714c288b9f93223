"""An elastic job loses machines to kill -9 and goes on in the same attempt, first with fewer, then with others."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.harness import World, world
from crash.server_process import until
from crucible.providers.local import processes

# Says who it is, and ends when it is told to: members of a real framework do as much.
MEMBER = """
import json, os, pathlib, sys, time
notes = pathlib.Path(sys.argv[1])
said = {"rank": int(os.environ["RANK"]), "attempt": os.environ["CRUCIBLE_ATTEMPT"], "pid": os.getpid()}
(notes / f"{said['rank']}.part").write_text(json.dumps(said))
(notes / f"{said['rank']}.part").rename(notes / f"{said['rank']}.json")
while not (notes / "done").exists():
    time.sleep(0.05)
"""


class Gang:
    def __init__(self, made: World, notes: Path, **execution: int) -> None:
        notes.mkdir()
        self._made, self._notes = made, notes
        spec = {
            "framework": "pytorch",
            "command": ["python", "-c", MEMBER, str(notes)],
            "resources": {"nodes": execution.pop("nodes")},
            "execution": execution,
        }
        with made.client() as client:
            self.job_id = client.submit("elastic", json.dumps({"job": spec}))["id"]

    def members(self) -> dict[int, int]:
        """Ranks that have begun, with their processes."""
        said = [json.loads(path.read_text()) for path in self._notes.glob("*.json")]
        return {one["rank"]: one["pid"] for one in said}

    def wait_for(self, *ranks: int) -> None:
        until(f"ranks {ranks} have begun", lambda: set(ranks) <= set(self.members()))
        until("the job runs", lambda: self.job()["status"] == "running")

    def kill_machine(self, rank: int) -> None:
        machine = processes.mark_of(self.members()[rank])
        assert machine is not None
        for pid in processes.carriers([machine])[machine]:
            processes.signal_carrier(pid, machine, signal.SIGKILL)

    def finish(self) -> None:
        (self._notes / "done").touch()
        until("the job is over", lambda: self.job()["status"] == "completed")

    def job(self) -> dict:
        with self._made.client() as client:
            return dict(client.job(self.job_id))

    def attempts(self) -> list[dict]:
        with self._made.client() as client:
            return [dict(one) for one in client.attempts(self.job_id)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("elastic")) as one:
        one.server.start().wait_ready()
        yield one


def test_a_lost_member_is_replaced_while_the_others_go_on(made: World, tmp_path: Path) -> None:
    gang = Gang(made, tmp_path / "notes", nodes=3, min_nodes=1, max_nodes=3)
    gang.wait_for(0, 1, 2)
    first = gang.members()
    gang.kill_machine(2)
    gang.wait_for(3)
    assert {rank: gang.members()[rank] for rank in (0, 1)} == {rank: first[rank] for rank in (0, 1)}
    gang.finish()
    (attempt,) = gang.attempts()
    assert attempt["outcome"] == "succeeded"


def test_it_grows_to_its_most_and_shrinks_to_its_least(made: World, tmp_path: Path) -> None:
    gang = Gang(made, tmp_path / "notes", nodes=1, min_nodes=1, max_nodes=2)
    gang.wait_for(0, 1)
    gang.kill_machine(1)
    gang.wait_for(2)
    gang.finish()
    assert len(gang.attempts()) == 1


def test_without_its_first_machine_it_begins_again(made: World, tmp_path: Path) -> None:
    gang = Gang(made, tmp_path / "notes", nodes=2, min_nodes=1, max_nodes=2)
    gang.wait_for(0, 1)
    for path in (tmp_path / "notes").glob("1.json"):
        path.unlink()
    gang.kill_machine(0)
    gang.wait_for(1)
    gang.finish()
    assert [one["outcome"] for one in gang.attempts()] == ["lost", "succeeded"]


def test_a_server_that_dies_meanwhile_finds_the_gap(made: World, tmp_path: Path) -> None:
    gang = Gang(made, tmp_path / "notes", nodes=2, min_nodes=1, max_nodes=2)
    gang.wait_for(0, 1)
    made.server.kill()
    gang.kill_machine(1)
    made.server.start().wait_ready()
    gang.wait_for(2)
    gang.finish()
    assert len(gang.attempts()) == 1


def test_a_rigid_gang_keeps_its_healthy_machines_when_one_dies(made: World, tmp_path: Path) -> None:
    gang = Gang(made, tmp_path / "notes", nodes=3)
    gang.wait_for(0, 1, 2)
    machines = {processes.mark_of(pid) for pid in gang.members().values()}
    victim = processes.mark_of(gang.members()[1])
    gang.kill_machine(1)
    until("a second attempt began", lambda: len(gang.attempts()) == 2 and gang.job()["status"] == "running")
    until("it runs whole", lambda: len({processes.mark_of(pid) for pid in gang.members().values()} - {None}) == 3)
    now = {processes.mark_of(pid) for pid in gang.members().values()}
    assert victim not in now and len(now & machines) == 2
    gang.finish()
    assert [one["outcome"] for one in gang.attempts()] == ["lost", "succeeded"]
