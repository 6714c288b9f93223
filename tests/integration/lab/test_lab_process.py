"""The Lab as a process: it starts once, ends cleanly, and killed with -9 it leaves nothing running."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_process import is_alive
from crucible.lab.running import LabFailed, LocalLab
from lab_process import RunningLab

from .conftest import amazon, ask, eventually, processes_of

STRAY = "#!/bin/sh\n(setsid sh -c 'trap \"\" TERM; echo stray; sleep 1000' &)\nsleep 1000\n"


def launched(lab: RunningLab, count: int = 1) -> list[str]:
    with amazon(lab) as ec2:
        image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
        said = ec2.run_instances(
            ImageId=image, InstanceType="g4dn.xlarge", MinCount=count, MaxCount=count, UserData=STRAY
        )
    return [machine["InstanceId"] for machine in said["Instances"]]


def state(ec2: Any, machine: str) -> str:
    said = ec2.describe_instances(InstanceIds=[machine])
    return str(said["Reservations"][0]["Instances"][0]["State"]["Name"])


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    with RunningLab(tmp_path_factory.mktemp("lab"), speed=10) as running:
        yield running


def test_a_machine_bought_with_an_unmodified_client_runs_and_ends(lab: RunningLab) -> None:
    (machine,) = launched(lab)
    eventually(lambda: "stray" in lab.control.console(machine), "its output")
    assert processes_of(machine)
    with amazon(lab) as ec2:
        ec2.terminate_instances(InstanceIds=[machine])
        eventually(lambda: state(ec2, machine) == "terminated", "its end")
    assert processes_of(machine) == [], "whoever is told that it ended finds nothing of it"


def test_the_keys_are_the_owners_alone(lab: RunningLab) -> None:
    for name in ("lab.json", "lab.log"):
        assert (lab.home / name).stat().st_mode & 0o077 == 0, name
    assert lab.home.stat().st_mode & 0o077 == 0
    assert lab.running.secret_key not in lab.log()
    assert lab.running.secret_key not in repr(lab.running)
    command = Path(f"/proc/{lab.pid}/cmdline").read_bytes()
    assert lab.running.secret_key.encode() not in command
    assert lab.running.token.encode() not in command


def test_a_second_lab_in_the_same_folder_is_the_first(lab: RunningLab) -> None:
    running, is_new = LocalLab(lab.home).start(["--seed", "7"])
    assert not is_new
    assert running.pid == lab.pid


def test_killed_with_9_it_leaves_nothing_and_stopped_neither(tmp_path: Path) -> None:
    lab = RunningLab(tmp_path)
    with lab:
        machines = launched(lab, 3)
        eventually(lambda: all("stray" in lab.control.console(machine) for machine in machines), "their output")
        pids = [pid for machine in machines for pid in processes_of(machine)]
        assert len(pids) >= 9
        url = lab.url
        os.kill(lab.pid, signal.SIGKILL)
        eventually(lambda: not any(map(is_alive, pids)), "the end of what it ran")
        os.waitpid(lab.pid, 0)
        assert LocalLab(lab.home).running() is None, "its file is there, but it is not"
        lab.start()
        assert lab.url == url
        assert lab.control.status()["machines"] == []
        stops_with_every_machine(lab)


def stops_with_every_machine(lab: RunningLab) -> None:
    machines = launched(lab, 5)
    eventually(lambda: all("stray" in lab.control.console(machine) for machine in machines), "their output")
    assert lab.log().count("Traceback") == 0
    local = LocalLab(lab.home)
    assert local.stop() is not None
    assert [pid for machine in machines for pid in processes_of(machine)] == []
    assert not (lab.home / "lab.json").exists()
    assert local.stop() is None


def test_where_the_kernel_does_not_help_a_guardian_does(tmp_path: Path) -> None:
    """A Lab that finds no unshare, killed with -9."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("nice", "sh", "sleep", "setsid", "env"):
        (tools / name).symlink_to(f"/usr/bin/{name}")
    program = (
        "import sys, pathlib\n"
        "from crucible.lab import daemon\n"
        "from crucible.lab.settings import Settings\n"
        f"daemon.run(Settings(home=pathlib.Path({str(tmp_path / 'lab')!r}), boot_scale=0.01, regions=('us-east-1',)))\n"
    )
    argv = [sys.executable, "-c", program, "crucible.lab"]
    with subprocess.Popen(argv, env={"PATH": str(tools), "HOME": str(tmp_path)}, cwd=tmp_path) as process:
        local = LocalLab(tmp_path / "lab")
        lab = RunningLab(tmp_path)
        try:
            eventually(local.running, "the Lab")
            lab._running = local.running()
            status = ask(lab.url, "GET", "/_lab/status", {"Authorization": f"Bearer {lab.running.token}"})[1]
            assert b"plain processes" in status
            (machine,) = launched(lab)
            eventually(lambda: len(processes_of(machine)) >= 3, "its processes")
            pids = processes_of(machine)
        finally:
            process.kill()
    eventually(lambda: not any(map(is_alive, pids)), "the end of what it ran")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--regions", "mars-1"], "the catalog knows no region 'mars-1'"),
        (["--port", "TAKEN"], "cannot listen on 127.0.0.1"),
        (["--scenario", "SCENARIO"], "kind: 'nonsense' is no kind of fault"),
    ],
)
def test_a_lab_that_cannot_start_says_why(tmp_path: Path, options: list[str], words: str) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("faults:\n  - kind: nonsense\n")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        given = {"TAKEN": str(taken.getsockname()[1]), "SCENARIO": str(scenario)}
        with pytest.raises(LabFailed) as refused:
            LocalLab(tmp_path / "lab").start([given.get(word, word) for word in options])
    assert words in refused.value.message
    assert "Traceback" not in refused.value.message
    assert LocalLab(tmp_path / "lab").running() is None
