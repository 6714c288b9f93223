"""A real Slurm that forgets what has ended, and the accounts that do not: slurmdbd, asked by sacct and by slurmrestd."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from crucible.model.lease import Machine, MachineState, Order
from crucible.ports.remote import Done
from crucible.providers.slurm import SlurmCluster
from crucible.providers.slurm.cli import CLERK, CliDoor
from crucible.providers.slurm.here import HereRemote
from crucible.testing.seller_contract import BOOT, all_become, gone, listed_of, order_of, prepared, state_is, until
from slurm_world import CLUSTER, RestWorld, SlurmSite, SlurmWorld


class Counting(HereRemote):
    """How often the accounts were asked."""

    asked = 0

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 30.0) -> Done:
        self.asked += CLERK in argv
        return await super().run(argv, stdin=stdin, timeout_s=timeout_s)


async def bought(world: SlurmWorld, seller: SlurmCluster, which: str, count: int = 1) -> Order:
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
    """Comments are not stored there, as is usual: the command that submitted a job says whose it is, and its steps say
    when each machine ended."""
    site, world = accounting_site, SlurmWorld(accounting_site, tmp_path)

    async def scenario() -> None:
        remote = Counting(site.environ)
        seller = SlurmCluster(
            world.cluster_settings(), CliDoor(CLUSTER, remote, sys.executable), deployment=world.deployment
        )
        gang, single = await bought(world, seller, "gpu/a100/1", 2), await bought(world, seller, "gpu/h100/1")
        jobs = {order.id: job_of(site, order) for order in (gang, single)}
        first, second = await listed_of(seller, gang)
        await seller.delete(first.id)
        await until(lambda: state_is(seller, first.id, MachineState.GONE))
        (early,) = [one for one in await listed_of(seller, gang) if one.id == first.id]
        assert remote.asked == 1, "when the server started, and never since: all that it knew was listed"
        site.call("scancel", jobs[single.id])
        await asyncio.sleep(2)  # the machines of one gang end at different times
        world.crash(second.id)
        await asyncio.to_thread(site.forgets)
        for one in (seller, world.open()):
            listed = {machine.id: machine for machine in await one.machines()}
            assert all(machine.state is MachineState.GONE for machine in listed.values()) and len(listed) == 3
            (alone,) = [machine for machine in listed.values() if machine.order_id == single.id]
            assert life(alone) == site.life_of(jobs[single.id]) and "(CANCELLED)" in (alone.reason or "")
            assert life(listed[second.id]) == site.life_of(jobs[gang.id])
            assert "its job ended" in (listed[second.id].reason or "")
            assert abs(life(listed[first.id])[1] - life(early)[1]) <= 1 < life(listed[second.id])[1] - life(early)[1]
            assert "its step ended" in (listed[first.id].reason or "")
        assert remote.asked == 2
        fresh = world.open()
        again = await fresh.create(single, BOOT)
        assert [machine.state for machine in again] == [MachineState.GONE] and not site.jobs(), "it is not bought twice"
        assert (await fresh.health())["accounting"] == "answers"
        await unread(world)

    asyncio.run(scenario())


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


def test_slurmrestd_tells_what_the_accounts_know(accounting_site: SlurmSite, tmp_path: Path) -> None:
    site = accounting_site
    site.store_comments()
    worlds = [RestWorld(site, tmp_path, login=None, url=site.rest_url, independent=many) for many in (False, True)]

    async def scenario() -> None:
        sellers = [world.open() for world in worlds]
        gang, array = (
            await bought(worlds[0], sellers[0], "gpu/a100/1"),
            await bought(worlds[1], sellers[1], "gpu/h100/1"),
        )
        jobs = [job_of(site, order) for order in (gang, array)]
        (dies,) = await sellers[0].machines()
        worlds[0].crash(dies.id)
        await sellers[1].delete((await sellers[1].machines())[0].id)
        await gone(sellers[1], array)
        await asyncio.to_thread(site.forgets)
        for world, job, word in zip(worlds, jobs, ("(FAILED)", "(CANCELLED)"), strict=True):
            (machine,) = await world.open().machines()
            assert machine.state is MachineState.GONE and word in (machine.reason or "")
            assert life(machine) == site.life_of(job)
        assert (await sellers[0].health())["accounting"] == "answers"

    asyncio.run(scenario())
