"""A real Slurm as a seller: the contract of all sellers, by the command line and by slurmrestd."""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from crucible.model.errors import (
    CredentialsRejected,
    NoCapacity,
    OrderRejected,
    OutcomeUnknown,
    ProviderError,
    Unreachable,
)
from crucible.model.ids import OfferId
from crucible.model.lease import MachineState, Order
from crucible.ports.remote import Done, Remote
from crucible.providers.slurm import SlurmCluster
from crucible.providers.slurm.cli import CliDoor
from crucible.providers.slurm.here import HereRemote
from crucible.providers.slurm.request import machine_id
from crucible.ssh.login import Login
from crucible.ssh.remote import SshRemote
from crucible.testing.seller_abilities import (
    BillsContract,
    ExaminesContract,
    PreparesContract,
    RemembersContract,
)
from crucible.testing.seller_contract import (
    BOOT,
    SellerContract,
    SellerWorld,
    all_become,
    gone,
    listed_of,
    order_of,
    prepared,
    scarce_offer,
    state_is,
    stock_of,
    until,
)
from slurm_world import CLUSTER, RestWorld, SlurmSite, SlurmWorld, login_node


class TestSlurmArrays(SellerContract, PreparesContract, BillsContract, RemembersContract, ExaminesContract):
    """Machines of one order that are independent: elements of an array."""

    @pytest.fixture
    def world(self, slurm_site: SlurmSite, tmp_path: Path) -> Iterator[SlurmWorld]:
        made = SlurmWorld(slurm_site, tmp_path, independent=True)
        yield made
        made.close()


class TestSlurmGangs(SellerContract, PreparesContract, BillsContract, RemembersContract, ExaminesContract):
    """Machines of one order are one allocation: all of them start at once."""

    @pytest.fixture
    def world(self, slurm_site: SlurmSite, tmp_path: Path) -> Iterator[SlurmWorld]:
        made = SlurmWorld(slurm_site, tmp_path)
        yield made
        made.close()

    def test_the_devices_of_a_dead_machine_are_sold_again(self, world: SellerWorld) -> None:
        """Slurm takes an allocation back as a whole: when the last of its machines has ended."""

        async def scenario() -> None:
            seller = world.open()
            offer = await scarce_offer(world)
            order = await prepared(seller, order_of(offer, count=stock_of(offer)))
            machines = await seller.create(order, BOOT)
            await all_become(seller, order, MachineState.RUNNING)
            world.crash(machines[0].id)
            await until(lambda: state_is(seller, machines[0].id, MachineState.GONE))
            with pytest.raises(NoCapacity):
                await seller.create(await prepared(seller, order_of(offer)), BOOT)
            for machine in machines[1:]:
                await seller.delete(machine.id)
            await gone(seller, order)
            again = await seller.create(await prepared(seller, order_of(offer, count=order.count)), BOOT)
            assert sorted(m.devices for m in again) == sorted(m.devices for m in machines)

        asyncio.run(scenario())


class TestSlurmRest(SellerContract, PreparesContract, BillsContract, ExaminesContract):
    @pytest.fixture
    def world(self, slurm_site: SlurmSite, tmp_path: Path) -> Iterator[SlurmWorld]:
        made = RestWorld(slurm_site, tmp_path, independent=True, login=None, url=slurm_site.rest_url)
        asyncio.run(made.open().machines())
        yield made
        made.close()


# --- what is only here --------------------------------------------------------------------------------------


@pytest.fixture
def world(slurm_site: SlurmSite, tmp_path: Path) -> Iterator[SlurmWorld]:
    made = SlurmWorld(slurm_site, tmp_path)
    yield made
    made.close()


class Lossy:
    """The way to the cluster breaks after a command was carried out, before its answer is heard."""

    name = "a lossy way"

    def __init__(self, way: Remote, loses: str) -> None:
        self._way, self._loses = way, loses

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 30.0) -> Done:
        done = await self._way.run(argv, stdin=stdin, timeout_s=timeout_s)
        if argv[0] == self._loses:
            self._loses = ""
            raise Unreachable("the connection was lost before the answer")
        return done

    async def close(self) -> None:
        pass


async def an_order(seller: SlurmCluster, which: str, count: int = 1) -> Order:
    (offer,) = [one for one in await seller.offers() if one.id == f"slurm/{CLUSTER}/{which}"]
    return await prepared(seller, order_of(offer, count))


def test_a_lost_reply_submits_no_second_job(world: SlurmWorld) -> None:
    async def scenario() -> None:
        door = CliDoor(CLUSTER, Lossy(HereRemote(world.site.environ), "sbatch"), sys.executable)
        seller = SlurmCluster(world.cluster_settings(), door, deployment=world.deployment)
        order = await an_order(seller, "gpu/a100/1", count=2)
        with pytest.raises(OutcomeUnknown):
            await seller.create(order, BOOT)
        assert len(await world.open().create(order, BOOT)) == 2
        assert world.site.jobs_of(world.deployment) == 1

    asyncio.run(scenario())


def test_a_cluster_is_used_over_ssh(world: SlurmWorld, tmp_path: Path) -> None:
    async def scenario(login: Login) -> None:
        seller = over_ssh(world, login)
        order = await an_order(seller, "gpu/a100/1", count=2)
        first, second = await seller.create(order, BOOT)
        await all_become(seller, order, MachineState.RUNNING)
        assert [machine.devices for machine in (first, second)] == [("gpu1/0",), ("gpu2/0",)]
        assert order.id in (await seller.last_words(first.id) or "")
        await seller.delete(first.id)
        await until(lambda: state_is(seller, first.id, MachineState.GONE))
        assert (await seller.health())["status"] == "healthy"
        await seller.close()
        wrong = over_ssh(world, replace(login, identity_file=str(tmp_path / "host")))
        with pytest.raises(CredentialsRejected):
            await wrong.machines()
        away = over_ssh(world, replace(login, port=9))
        assert (await away.health())["status"] == "down"
        for one in (wrong, away):
            await one.close()

    with login_node(world.site, tmp_path) as login:
        asyncio.run(scenario(login))


def over_ssh(world: SlurmWorld, login: Login) -> SlurmCluster:
    door = CliDoor(CLUSTER, SshRemote(login), sys.executable)
    return SlurmCluster(world.cluster_settings(), door, deployment=world.deployment)


def test_an_order_waits_in_the_queue_and_starts_when_there_is_room(world: SlurmWorld) -> None:
    async def scenario() -> None:
        seller = world.open(queue_limit=timedelta(hours=1))
        first, second = [await an_order(seller, "gpu/h100/8") for _ in range(2)]
        await seller.create(first, BOOT)
        await all_become(seller, first, MachineState.RUNNING)
        (waits,) = await seller.create(second, BOOT)
        assert waits.state is MachineState.STARTING and waits.started_at is None
        await until(lambda: says(seller, second, "it waits in Slurm's queue (Resources)"))
        await seller.delete(machine_id(world.deployment, first.id, 0))
        await all_become(seller, second, MachineState.RUNNING)

    asyncio.run(scenario())


def test_who_waits_in_the_queue_can_be_given_back(world: SlurmWorld) -> None:
    async def scenario() -> None:
        seller = world.open(queue_limit=timedelta(hours=1))
        held, order = await an_order(seller, "gpu/a100/4", count=2), await an_order(seller, "gpu/a100/4", count=2)
        await seller.create(held, BOOT)
        for machine in await seller.create(order, BOOT):
            await seller.delete(machine.id)
        await gone(seller, order)
        (reason,) = {machine.reason for machine in await listed_of(seller, order)}
        assert reason == "its job was cancelled (CANCELLED)"
        assert all(machine.started_at is None for machine in await listed_of(seller, order)), "it costs nothing"

    asyncio.run(scenario())


def test_what_slurm_does_not_have_is_rejected_in_its_own_words(world: SlurmWorld) -> None:
    async def scenario() -> None:
        seller = world.open(queue_limit=timedelta(hours=1))
        order = await an_order(seller, "gpu/a100/1")
        wrong = {"gres": "gpu:b200:1", "partition": "nowhere", "memory_mib": 10**9}
        for name, value in wrong.items():
            request = {**order.body["request"], name: value}
            with pytest.raises(OrderRejected, match=r"(?i)invalid|not available|satisfied"):
                await seller.create(replace(order, body={"request": request}), BOOT)
        assert await seller.machines() == []
        with pytest.raises(OrderRejected, match="not offered"):
            await seller.prepare(replace(order, offer=OfferId(f"slurm/{CLUSTER}/gpu/b200/1")))

    asyncio.run(scenario())


def test_a_partition_that_allows_less_time_is_not_offered(world: SlurmWorld) -> None:
    async def scenario() -> None:
        order = await an_order(world.open(), "short/h100/1")
        patient = world.open(time_limit=timedelta(hours=1), partitions=("short",))
        assert await patient.offers() == []
        with pytest.raises(OrderRejected, match="not offered"):
            await patient.prepare(order)
        problems = [one["problem"] for one in (await patient.health())["problems"]]
        assert any("time_limit is 1:00:00" in problem for problem in problems)

    asyncio.run(scenario())


def test_a_controller_that_is_away_refuses_nothing(world: SlurmWorld) -> None:
    async def scenario() -> None:
        order = await an_order(world.open(), "gpu/a100/1")
        with pytest.raises(ProviderError) as caught:
            await world.unreachable().create(order, BOOT)
        assert type(caught.value) is ProviderError, "neither refused nor bought: it is asked again"

    asyncio.run(scenario())


def test_a_job_that_is_requeued_runs_no_second_time(slurm_site: SlurmSite, tmp_path: Path) -> None:
    """slurmrestd cannot forbid it: the program of the job sees to it."""
    world = RestWorld(slurm_site, tmp_path, login=None, url=slurm_site.rest_url)

    async def scenario() -> None:
        seller = world.open()
        order = await an_order(seller, "gpu/h100/1")
        (machine,) = await seller.create(order, BOOT)
        await all_become(seller, order, MachineState.RUNNING)
        (job,) = [one for one in await world.door().jobs() if world.deployment in one.comment]
        world.site.call("scontrol", "requeue", job.handle)
        await until(lambda: state_is(seller, machine.id, MachineState.GONE))
        assert await says(seller, order, "its job was put back into the queue: a machine runs once")
        assert world.site.jobs_of(world.deployment) == 1

    asyncio.run(scenario())
    world.close()


def test_two_deployments_of_one_cluster_do_not_see_each_other(world: SlurmWorld, tmp_path: Path) -> None:
    async def scenario() -> None:
        seller = world.open()
        order = await an_order(seller, "gpu/cpu/0")
        (machine,) = await seller.create(order, BOOT)
        other = SlurmWorld(world.site, tmp_path).open()
        assert await other.machines() == []
        await other.delete(machine.id)
        assert await state_is(seller, machine.id, MachineState.RUNNING) or len(await seller.machines()) == 1

    asyncio.run(scenario())


def test_the_enrolment_token_is_nobody_elses_to_read(world: SlurmWorld) -> None:
    async def scenario() -> None:
        seller = world.open()
        order = await an_order(seller, "gpu/cpu/0")
        await seller.create(order, BOOT)
        await all_become(seller, order, MachineState.RUNNING)
        place = world.folder / world.deployment / "orders" / order.id
        assert BOOT.enrolment_token in (place / "boot.json").read_text()
        assert (place / "boot.json").stat().st_mode & 0o077 == 0
        assert BOOT.enrolment_token not in (place / "program-all.py").read_text()
        assert not [line for line in command_lines() if BOOT.enrolment_token.encode() in line]

    asyncio.run(scenario())


def command_lines() -> Iterator[bytes]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            yield path.read_bytes()


async def says(seller: SlurmCluster, order: Order, reason: str) -> bool:
    return {machine.reason for machine in await listed_of(seller, order)} == {reason}
