"""Machines are real: they run their user-data, and nothing of them is left when they have ended."""

import base64
import gzip
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crucible.lab.console import KEPT_BYTES, MOST_BYTES
from crucible.lab.enclosure import Enclosure
from crucible.world.machine import End, State
from worlds import ME, an_ask

from .conftest import SmallLab, processes_of, small_lab

pytestmark = pytest.mark.anyio

PLAIN = Enclosure((), dies_with_us=False)
# A process that leaves its session and its parent, and does not hear SIGTERM.
STRAY = """
(setsid sh -c 'trap "" TERM; echo stray; while :; do sleep 0.05; done' &)
echo started
sleep 1000
"""


@pytest.fixture(params=["enclosed", "plain"])
async def each_way(
    request: pytest.FixtureRequest, tmp_path: Path, best_enclosure: Enclosure
) -> AsyncIterator[SmallLab]:
    """The best that this computer allows, and what is left where it allows nothing."""
    async with small_lab(tmp_path, best_enclosure if request.param == "enclosed" else PLAIN) as running:
        yield running


async def test_a_machine_runs_its_user_data_and_stays_when_that_ends(each_way: SmallLab) -> None:
    machine = each_way.launch("#!/bin/sh\necho hello from $0\nexit 3\n")
    await each_way.until(lambda: ("user-data-ended", "with exit code 3") in each_way.notes(machine))
    assert "hello from" in each_way.console(machine)
    assert each_way.machine(machine).state is State.RUNNING
    assert processes_of(machine)


async def test_user_data_may_be_python_packed_or_packed_twice(small: SmallLab) -> None:
    script = b"#!/usr/bin/env python3\nimport sys\nprint('python', sys.version_info[0])\n"
    forms = [script, gzip.compress(script), base64.b64encode(script), base64.b64encode(gzip.compress(script))]
    for machine in [small.launch(form) for form in forms]:
        await small.until_printed(machine, "python 3")


async def test_what_is_no_script_is_not_run_and_the_console_says_so(small: SmallLab) -> None:
    machine = small.launch("just words")
    await small.until_printed(machine, "not a script")
    assert "user-data-ended" not in dict(small.notes(machine))


async def test_nothing_is_left_of_a_machine_that_ended(each_way: SmallLab) -> None:
    machine = each_way.launch("#!/bin/sh\n" + STRAY)
    await each_way.until_printed(machine, "stray")
    assert len(processes_of(machine)) >= 3
    each_way.end(machine)
    await each_way.until_gone(machine)
    assert processes_of(machine) == []
    assert "stray" in each_way.console(machine), "what it printed can still be read"
    assert [path.name for path in (each_way.lab.guests.folder / machine).iterdir()] == ["console.log"]


async def test_a_machine_that_is_switched_off_lets_its_programs_end_first(each_way: SmallLab) -> None:
    machine = each_way.launch("#!/bin/sh\ntrap 'echo saved; exit 0' TERM\necho ready\nwhile :; do sleep 0.05; done\n")
    await each_way.until_printed(machine, "ready")
    each_way.end(machine)
    await each_way.until_gone(machine)
    assert "saved" in each_way.console(machine)


async def test_a_machine_that_the_seller_takes_is_gone_at_once(small: SmallLab) -> None:
    machine = small.launch("#!/bin/sh\n" + STRAY)
    await small.until_printed(machine, "stray")
    small.lab.world.end(small.machine(machine).account, machine, small.lab.now(), by=End.SELLER)
    await small.lab.settle()
    assert processes_of(machine) == []


@pytest.mark.parametrize("command", ["shutdown -h now", "poweroff", "systemctl poweroff", "reboot"])
async def test_a_machine_that_switches_itself_off_ends_alone(each_way: SmallLab, command: str) -> None:
    other = each_way.launch("#!/bin/sh\necho other\nsleep 1000\n")
    await each_way.until_printed(other, "other")
    machine = each_way.launch(f"#!/bin/sh\n{command}\nsleep 1000\n")
    await each_way.until_gone(machine)
    assert each_way.machine(machine).end is End.GUEST
    assert processes_of(machine) == []
    assert processes_of(other)


async def test_inside_its_walls_a_machine_cannot_reach_out(small: SmallLab, best_enclosure: Enclosure) -> None:
    """By their full paths, through the kernel, and by killing: it ends itself and nothing else."""
    assert best_enclosure.has_namespace, "this computer allows no namespaces: run the tests where it does"
    script = """#!/usr/bin/env python3
import ctypes, os, subprocess
assert os.getppid() == 1
outside = [name for name in os.listdir("/proc") if name.isdigit() and int(name) > 200]
print("sees", len(outside), "others", flush=True)
for path in ("/sbin/poweroff", "/usr/sbin/shutdown", "/bin/systemctl"):
    if os.path.exists(path):
        print(path, open(path, "rb").read(2), flush=True)
print("reboot", ctypes.CDLL(None, use_errno=True).reboot(0x4321FEDC), flush=True)
"""
    machine = small.launch(script)
    await small.until_gone(machine)
    said = small.console(machine)
    assert "sees 0 others" in said
    assert all("b'#!'" in line for line in said.splitlines() if line.startswith("/"))
    assert "reboot -1" not in said, "the kernel lets it end its own namespace"
    assert ("switched-off", "dead") in small.notes(machine)


async def test_a_machine_knows_nothing_of_this_computers_environment(
    each_way: SmallLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of this computer")
    monkeypatch.setenv("CRUCIBLE_TOKEN", "of this computer")
    machine = each_way.launch("#!/bin/sh\nenv\npwd\necho done\n")
    await each_way.until_printed(machine, "done")
    said = each_way.console(machine)
    assert "of this computer" not in said
    names = {line.partition("=")[0] for line in said.splitlines() if "=" in line}
    assert names <= {
        *("PATH", "HOME", "TMPDIR", "LANG", "PWD", "OLDPWD", "SHLVL", "_"),
        *("CRUCIBLE_NODE_DIR", "CRUCIBLE_MACHINE_ID", "AWS_EC2_METADATA_SERVICE_ENDPOINT"),
    }
    folder = each_way.lab.guests.folder / machine
    assert os.stat(folder).st_mode & 0o777 == 0o700


async def test_a_machine_that_prints_without_end_fills_no_disk(small: SmallLab) -> None:
    machine = small.launch("#!/bin/sh\nyes 0123456789abcdef | head -c 1000000\necho at last\nsleep 1000\n")
    await small.until_printed(machine, "at last")
    assert (small.lab.guests.folder / machine / "console.log").stat().st_size <= MOST_BYTES
    assert len(small.lab.guests.console(machine)) <= KEPT_BYTES


async def test_a_machine_ended_while_it_boots_never_runs(small: SmallLab) -> None:
    machine = small.launch("#!/bin/sh\necho alive\nsleep 1000\n")
    small.end(machine)
    await small.until_gone(machine)
    assert processes_of(machine) == []
    assert small.console(machine) == ""


async def test_machines_ended_while_their_processes_start_leave_none(each_way: SmallLab) -> None:
    machines = [each_way.launch("#!/bin/sh\n" + STRAY) for _ in range(10)]
    await each_way.until(lambda: any(("booted", "") in each_way.notes(machine) for machine in machines))
    for machine in machines:
        each_way.lab.world.end(ME, machine, each_way.lab.now(), by=End.SELLER)
    await each_way.lab.settle()
    assert [pid for machine in machines for pid in processes_of(machine)] == []


async def test_a_machine_whose_boot_and_end_are_seen_together_never_runs(small: SmallLab) -> None:
    (machine,) = small.lab.world.launch(an_ask(user_data=b"#!/bin/sh\necho alive\n"), small.lab.now())
    small.lab.world.end(ME, machine.id, small.lab.now() + 1, by=End.SELLER)
    await small.lab.settle()
    assert [what for what, _ in small.notes(machine.id)] == ["launched", "booted", "ended"]
    other = small.launch("#!/bin/sh\necho other\n")
    await small.until_printed(other, "other")
    assert small.console(machine.id) == ""
    assert processes_of(machine.id) == []


async def test_what_a_machine_printed_is_forgotten_with_it(tmp_path: Path, best_enclosure: Enclosure) -> None:
    async with small_lab(tmp_path, best_enclosure, remember_s=1.0) as running:
        machine = running.launch("#!/bin/sh\necho hello\n")
        await running.until_printed(machine, "hello")
        running.end(machine)
        await running.until(lambda: not (running.lab.guests.folder / machine).exists(), "forgetting")
        assert running.console(machine) == ""


async def test_the_end_of_the_lab_is_the_end_of_its_machines(tmp_path: Path, best_enclosure: Enclosure) -> None:
    async with small_lab(tmp_path, best_enclosure) as running:
        machines = [running.launch("#!/bin/sh\n" + STRAY) for _ in range(10)]
        for machine in machines:
            await running.until_printed(machine, "stray")
    assert [pid for machine in machines for pid in processes_of(machine)] == []
