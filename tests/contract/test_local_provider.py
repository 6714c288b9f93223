"""This computer as a seller (D11, E5), with a double of the agent at the process boundary."""

import asyncio
import errno
import json
import os
import random
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from crucible.agent import bundle
from crucible.model.errors import NoCapacity, OrderRejected, RateLimited
from crucible.model.lease import Machine, MachineState
from crucible.providers.local import LocalProvider, processes
from crucible.providers.local import provider as provider_module
from crucible.testing.seller_contract import (
    BOOT,
    SellerContract,
    all_become,
    gone,
    listed_of,
    order_of,
    picture,
    scarce_offer,
    small_offer,
    state_is,
    until,
)
from doubles.docker import FakeDocker
from local_world import AGENT, GPUS, LocalWorld


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LocalWorld]:
    agent = tmp_path / "agent.pyz"
    agent.write_text(AGENT)
    made = LocalWorld(tmp_path / "root", agent)
    yield made
    made.close()


def habits(monkeypatch: pytest.MonkeyPatch, **what: Any) -> None:
    monkeypatch.setenv("DOUBLE_HABITS", json.dumps(what))


def of_process(pid: int, what: str) -> list[bytes]:
    return Path(f"/proc/{pid}/{what}").read_bytes().split(b"\0")


async def bought(seller: LocalProvider, count: int = 1) -> tuple[Any, list[Machine]]:
    order = order_of(await small_offer(seller), count=count)
    return order, list(await seller.create(order, BOOT))


class TestLocalProvider(SellerContract):
    @pytest.fixture
    def world(self, world: LocalWorld) -> LocalWorld:
        return world


class TestLocalProviderWithTheAgent(SellerContract):
    """The real one. There is no server: it keeps asking for one, which is all that a seller's test needs."""

    @pytest.fixture
    def world(self, tmp_path: Path) -> Iterator[LocalWorld]:
        bundle.build(tmp_path / "agent.pyz")
        made = LocalWorld(tmp_path / "root", tmp_path / "agent.pyz")
        yield made
        made.close()


# --- what the agent gets ------------------------------------------------------------------------------


def test_the_agent_finds_everything_it_needs_and_nothing_of_the_server(
    world: LocalWorld, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CRUCIBLE_DATABASE", "postgresql://secret")

    async def scenario() -> None:
        seller = world.open(server_file=tmp_path / "server.json")
        offer = await scarce_offer(seller)
        order = order_of(offer)
        (machine,) = await seller.create(order, BOOT)
        await all_become(seller, order, MachineState.RUNNING)
        folder = world.folder(machine.id)
        assert json.loads((folder / "boot.json").read_text()) == {
            "servers": list(BOOT.servers),
            "server_file": str(tmp_path / "server.json"),
            "cache": str(folder.parents[1] / "cache"),
            "enrolment_token": BOOT.enrolment_token,
            "order_id": order.id,
            "machine_id": machine.id,
            "address": "127.0.0.1",
            "devices": list(machine.devices),
            "power_off": None,
            "cgroup": None,
        }
        assert stat.S_IMODE((folder / "boot.json").stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        pid = int((folder / "lock").read_text())
        ours = [name for name in of_process(pid, "environ") if name.startswith(b"CRUCIBLE_")]
        assert ours == [f"CRUCIBLE_MACHINE_ID={machine.id}".encode()]
        assert BOOT.enrolment_token.encode() not in b" ".join(of_process(pid, "cmdline"))
        assert os.getsid(pid) == pid and os.readlink(f"/proc/{pid}/cwd") == str(folder)

    asyncio.run(scenario())


def test_the_token_is_removed_when_the_machine_is_gone(world: LocalWorld) -> None:
    async def scenario() -> None:
        seller = world.open()
        order, (machine,) = await bought(seller)
        await all_become(seller, order, MachineState.RUNNING)
        world.crash(machine.id)
        await gone(seller, order)
        assert not (world.folder(machine.id) / "boot.json").exists()

    asyncio.run(scenario())


# --- starting once ------------------------------------------------------------------------------------


def test_an_agent_that_is_slow_to_start_is_not_started_again(
    world: LocalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    habits(monkeypatch, slow=0.5)

    async def scenario() -> None:
        seller = world.open()
        order, (machine,) = await bought(seller)
        for _ in range(5):
            (again,) = await world.open().create(order, BOOT)
            assert again.state is MachineState.STARTING
        await all_become(seller, order, MachineState.RUNNING)
        assert len((world.folder(machine.id) / "started").read_text().split()) == 1
        assert len(world.processes()) == 1

    asyncio.run(scenario())


def test_a_machine_whose_agent_died_before_its_lock_is_started_by_the_next_look(
    world: LocalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    habits(monkeypatch, slow=60)

    async def scenario() -> None:
        seller = world.open()
        order, (machine,) = await bought(seller)
        (pid,) = world.processes()
        os.kill(pid, signal.SIGKILL)
        await until(no_processes)
        habits(monkeypatch)
        assert await state_is(world.open(), machine.id, MachineState.STARTING)
        await all_become(seller, order, MachineState.RUNNING)

    async def no_processes() -> bool:
        return not world.processes()

    asyncio.run(scenario())


def test_an_agent_that_never_starts_is_gone_after_the_boot_time_with_what_it_said(world: LocalWorld) -> None:
    world.agent.write_text("import sys; sys.exit('ImportError: no module named crucible')")

    async def scenario() -> None:
        clock = [time.time()]
        seller = world.open(now=lambda: clock[0])
        order, (machine,) = await bought(seller)
        assert await state_is(seller, machine.id, MachineState.STARTING)

        async def printed() -> bool:
            return bool((world.folder(machine.id) / "agent.out").read_text()) and not world.processes()

        await until(printed)
        clock[0] += 31
        (listed,) = await listed_of(seller, order)
        assert listed.state is MachineState.GONE and "no module named crucible" in (listed.reason or "")
        (again,) = await seller.create(order, BOOT)
        assert again.state is MachineState.GONE

    asyncio.run(scenario())


def test_an_agent_that_comes_too_late_is_not_let_in(world: LocalWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    habits(monkeypatch, slow=60)

    async def scenario() -> None:
        clock = [time.time()]
        seller = world.open(now=lambda: clock[0])
        _, (machine,) = await bought(seller)
        clock[0] += 31
        assert await state_is(seller, machine.id, MachineState.GONE)
        assert world.processes() == [] and not (world.folder(machine.id) / "started").exists()

    asyncio.run(scenario())


def test_a_purchase_that_died_between_two_folders_is_begun_again(world: LocalWorld) -> None:
    async def scenario() -> None:
        seller = world.open()
        offer = await scarce_offer(seller)
        order = order_of(offer, count=3)
        kept = await seller.create(order, BOOT)
        await all_become(seller, order, MachineState.RUNNING)
        for machine in kept:
            world.crash(machine.id)
        await gone(seller, order)
        # As a crash would have left it: one folder, one draft, nothing started.
        first, second, third = (world.folder(machine.id) for machine in kept)
        for name in ("lock", "gone.json", "started"):
            (first / name).unlink()
        (first / "boot.json").write_text("{}")
        second.rename(second.with_name(f".new-{second.name}"))
        (third / "machine.json").unlink()
        again = await world.open().create(order, BOOT)
        assert [m.id for m in again] == [m.id for m in kept]
        await all_become(seller, order, MachineState.RUNNING)
        assert sorted(path.name for path in world.root.glob("machines/*")) == sorted(m.id for m in kept)

    asyncio.run(scenario())


def test_the_same_order_with_another_size_is_rejected(world: LocalWorld) -> None:
    async def scenario() -> None:
        seller = world.open()
        order, _ = await bought(seller)
        with pytest.raises(OrderRejected, match="another size"):
            await seller.create(replace(order, count=2), BOOT)

    asyncio.run(scenario())


# --- all or none --------------------------------------------------------------------------------------


def test_if_an_agent_cannot_be_started_nothing_is_left(world: LocalWorld) -> None:
    async def scenario() -> None:
        seller = world.open(python=str(world.root / "no-such-python"))
        before = await picture(seller)
        with pytest.raises(OrderRejected, match="no-such-python"):
            await seller.create(order_of(await scarce_offer(seller), count=2), BOOT)
        assert await picture(seller) == before
        assert list((world.root / "machines").iterdir()) == []

    asyncio.run(scenario())


def test_if_the_second_agent_cannot_be_started_the_first_is_ended(
    world: LocalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = subprocess.Popen, []

    def fails_once(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        if len(calls) == 2:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return real(*args, **kwargs)

    async def scenario() -> None:
        seller = world.open(gpus=GPUS)
        offer = await scarce_offer(seller)
        before = await picture(seller)
        monkeypatch.setattr(processes.subprocess, "Popen", fails_once)
        with pytest.raises(NoCapacity):
            await seller.create(order_of(offer, count=3), BOOT)
        assert len(calls) == 2 and world.processes() == []
        assert await picture(seller) == before

    asyncio.run(scenario())


def test_a_missing_agent_file_is_said_before_anything_is_written(world: LocalWorld) -> None:
    async def scenario() -> None:
        seller = world.open(agent=world.root / "nothing.pyz")
        with pytest.raises(OrderRejected, match=r"nothing\.pyz is missing"):
            await bought(seller)
        assert list((world.root / "machines").iterdir()) == []
        assert (await seller.health())["status"] == "degraded"

    asyncio.run(scenario())


def test_more_machines_than_allowed_are_refused(world: LocalWorld) -> None:
    async def scenario() -> None:
        seller = world.open(max_machines=2)
        await bought(seller)
        with pytest.raises(NoCapacity, match="1 of 2 machines"):
            await bought(seller, count=2)
        await bought(seller)

    asyncio.run(scenario())


# --- ending -------------------------------------------------------------------------------------------


def test_an_agent_that_ignores_sigterm_is_killed_after_the_grace_with_all_it_started(
    world: LocalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    habits(monkeypatch, stubborn=True, child=True)

    async def scenario() -> None:
        clock = [time.time()]
        seller = world.open(now=lambda: clock[0])
        order, (machine,) = await bought(seller)

        async def has_child() -> bool:
            return len(world.processes()) == 2

        await until(has_child)
        await seller.delete(machine.id)
        assert await state_is(seller, machine.id, MachineState.STOPPING)
        await seller.delete(machine.id)
        assert await state_is(seller, machine.id, MachineState.STOPPING), "the grace is not over"
        clock[0] += 16
        await world.open(now=lambda: clock[0]).delete(machine.id)
        await gone(seller, order)
        assert world.processes() == []

    asyncio.run(scenario())


def test_what_a_dead_agent_left_behind_is_killed_before_its_devices_are_sold(
    world: LocalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    habits(monkeypatch, child=True)

    async def scenario() -> None:
        seller = world.open()
        _, (machine,) = await bought(seller)

        async def has_child() -> bool:
            return len(world.processes()) == 2

        await until(has_child)
        world.crash(machine.id)
        await until(lambda: state_is(seller, machine.id, MachineState.GONE))
        assert world.processes() == []

    asyncio.run(scenario())


def test_a_container_of_a_daemon_is_removed_when_its_machine_ends(
    world: LocalWorld, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    docker = FakeDocker(tmp_path / "fake")
    monkeypatch.setenv("PATH", f"{docker.folder}{os.pathsep}{os.environ['PATH']}")

    async def scenario() -> None:
        seller = world.open()
        _, (machine,) = await bought(seller)
        note = world.folder(machine.id) / "attempts" / "att-1" / "container-0.json"
        note.parent.mkdir(parents=True)
        note.write_text(json.dumps({"name": "c", "runtime": "docker", "remove": ["docker", "rm", "--force", "c"]}))
        await until(lambda: state_is(seller, machine.id, MachineState.RUNNING))
        world.crash(machine.id)
        await until(lambda: state_is(seller, machine.id, MachineState.GONE))
        assert docker.calls("rm") == [["rm", "--force", "c"]]
        assert not note.exists()

    asyncio.run(scenario())


def test_machines_end_on_kernels_without_handles_for_processes_too(
    world: LocalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(pid: int) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(processes.os, "pidfd_open", missing)

    async def scenario() -> None:
        seller = world.open(stop_grace=timedelta(0))
        order, (machine,) = await bought(seller)
        await all_become(seller, order, MachineState.RUNNING)
        await seller.delete(machine.id)
        await gone(seller, order)
        assert world.processes() == []

    asyncio.run(scenario())


def test_the_reason_an_agent_gives_is_the_machines_reason(world: LocalWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    habits(monkeypatch, says="no server for 10 minutes", life=0)

    async def scenario() -> None:
        seller = world.open()
        order, _ = await bought(seller)
        await gone(seller, order)
        (listed,) = await listed_of(seller, order)
        assert listed.reason == "no server for 10 minutes"

    asyncio.run(scenario())


def test_a_stranger_with_the_pid_of_a_dead_agent_is_not_touched(world: LocalWorld) -> None:
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])

    async def scenario() -> None:
        seller = world.open(stop_grace=timedelta(0))
        order, (machine,) = await bought(seller)
        await all_become(seller, order, MachineState.RUNNING)
        world.crash(machine.id)
        (world.folder(machine.id) / "lock").write_text(str(stranger.pid))
        await seller.delete(machine.id)
        await gone(seller, order)
        assert not processes.signal_carrier(stranger.pid, machine.id, signal.SIGKILL)
        assert stranger.poll() is None

    try:
        asyncio.run(scenario())
    finally:
        stranger.kill()
        stranger.wait()


def test_ended_machines_are_forgotten_after_an_hour_and_only_then(world: LocalWorld) -> None:
    async def scenario() -> None:
        clock = [time.time()]
        seller = world.open(now=lambda: clock[0])
        order, machines = await bought(seller, count=2)
        await all_become(seller, order, MachineState.RUNNING)
        world.crash(machines[0].id)
        await until(lambda: state_is(seller, machines[0].id, MachineState.GONE))
        clock[0] += 3601
        await seller.machines()
        assert len(await listed_of(seller, order)) == 2, "one of the order still runs"
        world.crash(machines[1].id)
        await gone(seller, order)
        clock[0] += 3500
        assert len(await listed_of(seller, order)) == 2
        clock[0] += 200
        await seller.machines()
        assert await listed_of(seller, order) == [] and list((world.root / "machines").iterdir()) == []

    asyncio.run(scenario())


def test_only_so_many_ended_machines_are_remembered(world: LocalWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_module, "MAX_REMEMBERED", 2)

    async def scenario() -> None:
        seller = world.open()
        orders = []
        for _ in range(4):
            order, (machine,) = await bought(seller)
            await all_become(seller, order, MachineState.RUNNING)
            world.crash(machine.id)
            await gone(seller, order)
            orders.append(order)
        await seller.machines()
        assert {m.order_id for m in await seller.machines()} == {order.id for order in orders[2:]}

    asyncio.run(scenario())


# --- several servers ------------------------------------------------------------------------------------

HOLDER = """
import fcntl, sys, time
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
print(flush=True)
time.sleep(600)
"""


def test_a_server_that_stops_while_it_holds_the_lock_does_not_hang_the_others(
    world: LocalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_module, "LOCK_TIMEOUT_S", 0.1)
    asyncio.run(world.open().machines())
    stopped = subprocess.Popen([sys.executable, "-c", HOLDER, str(world.root / "local.lock")], stdout=subprocess.PIPE)
    assert stopped.stdout is not None
    with stopped:
        stopped.stdout.readline()
        with pytest.raises(RateLimited):
            asyncio.run(world.open().machines())
        stopped.kill()


@pytest.mark.parametrize("seed", range(4))
def test_any_mixture_of_purchases_deaths_and_deletions_keeps_the_books(world: LocalWorld, seed: int) -> None:
    """Two servers at once: no device is sold twice, every order has its machines, and there is nothing without one."""
    chance = random.Random(seed)

    async def act(orders: list[Any]) -> None:
        seller = world.open(stop_grace=timedelta(seconds=0.2))
        listed = list(await seller.machines())
        match chance.choice(["buy", "buy", "again", "delete", "crash", "list"]):
            case "buy":
                order = order_of(await scarce_offer(seller), count=chance.randint(1, 3))
                try:
                    await seller.create(order, BOOT)
                except NoCapacity:
                    return
                orders.append(order)
            case "again" if orders:
                await seller.create(chance.choice(orders), BOOT)
            case "delete" if listed:
                await seller.delete(chance.choice(listed).id)
            case "crash" if listed:
                try:
                    world.crash(chance.choice(listed).id)
                except (OSError, ValueError):
                    pass  # not started yet, or ended

    async def check(orders: list[Any]) -> None:
        seller = world.open()
        machines = await seller.machines()
        live = [m for m in machines if m.state is not MachineState.GONE]
        devices = [device for machine in live for device in machine.devices]
        assert len(devices) == len(set(devices))
        assert {m.order_id for m in machines} == {order.id for order in orders}
        for order in orders:
            assert sorted(m.index for m in machines if m.order_id == order.id) == list(range(order.count))
        assert (await scarce_offer(seller)).free_gpus in range(GPUS - len(devices), GPUS + 1)

    async def scenario() -> None:
        orders: list[Any] = []
        for _ in range(40):
            await asyncio.gather(act(orders), act(orders))
            await check(orders)

    asyncio.run(scenario())
