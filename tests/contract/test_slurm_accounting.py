"""A real Slurm that forgets what has ended, and its accounts, which do not: slurmdbd, asked by sacct and slurmrestd."""

import asyncio
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import slurm_world
from crucible.model.lease import Machine, MachineState, Order
from crucible.ports.remote import Done
from crucible.providers.slurm import SlurmCluster
from crucible.providers.slurm.cli import CLERK, CliDoor
from crucible.providers.slurm.here import HereRemote
from crucible.providers.slurm.request import machine_id
from crucible.testing.seller_contract import BOOT, all_become, listed_of, order_of, prepared, state_is, until
from slurm_world import CLUSTER, RestWorld, SlurmSite, SlurmWorld


class Counting(HereRemote):
    """How often the accounts were asked."""

    asked = 0

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 30.0) -> Done:
        self.asked += CLERK in argv
        return await super().run(argv, stdin=stdin, timeout_s=timeout_s)


async def bought(seller: SlurmCluster, which: str, count: int = 1) -> Order:
    (offer,) = [one for one in await seller.offers() if one.id == f"slurm/{CLUSTER}/{which}"]
    order = await prepared(seller, order_of(offer, count))
    await seller.create(order, BOOT)
    await all_become(seller, order, MachineState.RUNNING)
    return order


def job_of(site: SlurmSite, order: Order) -> str:
    return site.call("squeue", "-h", "-r", "-t", "R", "-n", f"crucible-{order.id}", "-o", "%A")


def life(machine: Machine) -> tuple[int, int]:
    assert machine.started_at is not None and machine.ended_at is not None
    return int(machine.started_at.timestamp()), int(machine.ended_at.timestamp())


def test_what_slurmctld_has_forgotten_is_found_in_the_accounts(accounting_site: SlurmSite, tmp_path: Path) -> None:
    """By sacct and by slurmrestd; with comments in the accounts, and without, as is usual: then the command that
    submitted a job says whose it is, or its steps, and these say when each machine ended."""
    site = accounting_site
    world = SlurmWorld(site, tmp_path, cpus_per_gpu=1)
    rest, arrays = [
        RestWorld(site, tmp_path, login=None, url=site.rest_url, independent=is_array, cpus_per_gpu=1)
        for is_array in (False, True)
    ]

    async def scenario() -> None:
        remote = Counting(site.environ)
        door = CliDoor(CLUSTER, remote, sys.executable)
        seller = SlurmCluster(world.cluster_settings(), door, deployment=world.deployment)
        gang, single = await bought(seller, "gpu/a100/1", 2), await bought(seller, "gpu/h100/1")
        by_rest, element = await bought(rest.open(), "gpu/cpu/0"), await bought(arrays.open(), "gpu/cpu/0")
        jobs = {order.id: job_of(site, order) for order in (gang, single, by_rest, element)}
        early = await first_ends(seller, gang)
        assert remote.asked == 1, "when the server started, and never since: all that it knew was listed"
        site.call("scancel", jobs[single.id], jobs[by_rest.id])
        world.crash(machine_id(world.deployment, gang.id, 1))
        await asyncio.to_thread(until_ended, site, 1)
        site.store_comments()
        site.call("scancel", jobs[element.id])
        await asyncio.to_thread(site.forgets)
        for one in (seller, world.open()):
            await until(partial(lists, one, 3))  # the accounts are asked every ten seconds at most
            found = {(machine.order_id, machine.index): machine for machine in await one.machines()}
            told(found[single.id, 0], "(CANCELLED)", site.life_of(jobs[single.id]))
            told(found[gang.id, 1], "its job ended", site.life_of(jobs[gang.id]))
            told(found[gang.id, 0], "its step ended", (site.life_of(jobs[gang.id])[0], life(found[gang.id, 0])[1]))
            assert abs(life(found[gang.id, 0])[1] - life(early)[1]) <= 1 < life(found[gang.id, 1])[1] - life(early)[1]
        assert remote.asked == 2
        for other, order in ((rest, by_rest), (arrays, element)):
            (machine,) = await other.open().machines()
            told(machine, "(CANCELLED)", site.life_of(jobs[order.id]))
        again = await world.open().create(single, BOOT)
        assert [machine.state for machine in again] == [MachineState.GONE] and not site.jobs(), "it is not bought twice"
        for other in (world, rest):
            assert (await other.open().health())["accounting"] == "answers"
        await unread(world)

    asyncio.run(scenario())


async def first_ends(seller: SlurmCluster, gang: Order) -> Machine:
    """Two seconds and more before the other one."""
    (first, _) = await listed_of(seller, gang)
    await seller.delete(first.id)
    await until(lambda: state_is(seller, first.id, MachineState.GONE))
    (ended,) = [one for one in await listed_of(seller, gang) if one.id == first.id]
    await asyncio.sleep(2)
    return ended


async def lists(seller: SlurmCluster, count: int) -> bool:
    return len(await seller.machines()) == count


def until_ended(site: SlurmSite, but: int) -> None:
    slurm_world.until(lambda: len(site.call("squeue", "-h").splitlines()) == but, lambda: site.call("squeue"))


def told(machine: Machine, reason: str, lived: tuple[int, int]) -> None:
    assert (machine.state, life(machine)) == (MachineState.GONE, lived) and reason in (machine.reason or "")


async def unread(world: SlurmWorld) -> None:
    """Accounts that are away keep nobody from listing what slurmctld knows."""
    world.site.stop_accounting()
    try:
        seller = world.open()
        assert await seller.machines() == []
        health = await seller.health()
        assert health["status"] == "healthy" and "cannot be read now" in health["accounting"]
    finally:
        world.site.start_accounting()
    assert len(await world.open().machines()) == 3
