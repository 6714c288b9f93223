"""EC2 as a seller, against the Lab: the contract of all sellers, and what is only here."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from aws_world import PLENTY, REGION, RESTLESS, RESTLESS_ZONE, AwsWorld, Book, account, an_order
from crucible.model.errors import (
    NoCapacity,
    OrderRejected,
)
from crucible.model.lease import Boot, MachineState
from crucible.model.offer import Market
from crucible.model.quota import Measure
from crucible.ports.prices import Prices
from crucible.providers.aws import AwsPrices
from crucible.testing.prices_contract import PricesContract
from crucible.testing.seller_abilities import (
    BillsContract,
    ExaminesContract,
    PreparesContract,
    QuotasContract,
    ReapsContract,
    RemembersContract,
)
from crucible.testing.seller_contract import (
    BOOT,
    SellerContract,
    all_become,
    gone,
    listed_of,
    order_of,
    small_offer,
    state_is,
    until,
)
from lab_process import RunningLab


@pytest.fixture
def world(aws_world: AwsWorld) -> AwsWorld:
    return aws_world


CALM = (PLENTY, "p5.48xlarge")  # whose prices stay the same for a while


class TestAws(
    SellerContract,
    PreparesContract,
    BillsContract,
    ReapsContract,
    RemembersContract,
    ExaminesContract,
    QuotasContract,
):
    @pytest.fixture
    def world(self, aws_world: AwsWorld) -> AwsWorld:
        return aws_world


class TestAwsPrices(PricesContract):
    @pytest.fixture
    def source(self, aws_lab: RunningLab) -> Iterator[Prices]:
        prices = AwsPrices(REGION, account=account(aws_lab.running), types=CALM)
        yield prices
        prices.close()

    @pytest.fixture
    def broken(self, aws_lab: RunningLab) -> Iterator[Prices]:
        prices = AwsPrices(REGION, account=account(aws_lab.running, "http://127.0.0.1:9"))
        yield prices
        prices.close()

    async def test_on_demand_holds_in_every_zone_and_spot_in_its_own(self, source: Prices) -> None:
        told = {(p.market, p.zone): p.price for p in await source.prices() if p.instance_type == PLENTY}
        assert told[Market.ON_DEMAND, "*"] == 526_000
        assert told[Market.SPOT, "use1-az4"] and told[Market.SPOT, "use1-az4"] < 526_000


# --- whose machines ----------------------------------------------------------------------------------


def test_two_deployments_of_one_account_do_not_see_each_other(aws_lab: RunningLab, world: AwsWorld) -> None:
    async def scenario() -> None:
        order = await an_order(world, world.open())
        await world.open().create(order, BOOT)
        assert await AwsWorld(aws_lab).open().machines() == []
        assert len(await world.open().machines()) == 1

    asyncio.run(scenario())


def test_an_order_may_name_its_zone_by_name_or_by_id(world: AwsWorld) -> None:
    async def scenario() -> None:
        seller = world.open()
        for zone in ("use1-az4", "us-east-1d"):
            await seller.create(await an_order(world, seller, zone=zone), BOOT)
        bought = world.ec2.describe_instances(
            Filters=[{"Name": "tag:crucible:deployment", "Values": [world.deployment]}]
        )
        zones = {i["Placement"]["AvailabilityZone"] for r in bought["Reservations"] for i in r["Instances"]}
        assert zones == {"us-east-1d"}

    asyncio.run(scenario())


def test_a_zone_without_a_subnet_is_rejected_with_what_to_do(world: AwsWorld) -> None:
    async def scenario() -> None:
        with pytest.raises(OrderRejected, match="CRUCIBLE_AWS_SUBNETS"):
            await an_order(world, world.open(), zone="use1-az99")
        with pytest.raises(OrderRejected, match="does not know the type"):
            await an_order(world, world.open(), instance_type="p99.huge")
        with pytest.raises(OrderRejected, match="CRUCIBLE_AWS_IMAGE"):
            await an_order(world, world.open(gpu_image_parameter="/no/such/{arch}"))

    asyncio.run(scenario())


def test_a_gang_shares_a_placement_group_and_a_fast_fabric_and_leaves_nothing_behind(world: AwsWorld) -> None:
    async def scenario() -> None:
        seller = world.open()
        gang = {"instance_type": "p5.48xlarge", "gpus": 8, "zone": "use1-az4", "count": 2}
        orders = [await an_order(world, seller, **gang) for _ in range(2)]
        (interface,) = orders[0].body["request"]["NetworkInterfaces"]
        assert interface["InterfaceType"] == "efa"
        group = orders[0].body["request"]["Placement"]["GroupName"]
        assert orders[1].body["request"]["Placement"]["GroupName"] == group, "one for all gangs of a zone"
        assert len(await seller.create(orders[0], BOOT)) == 2
        groups = world.ec2.describe_security_groups(GroupIds=interface["Groups"])["SecurityGroups"]
        (rule,) = groups[0]["IpPermissions"]
        assert [pair["GroupId"] for pair in rule["UserIdGroupPairs"]] == interface["Groups"]
        assert rule.get("IpRanges", []) == [], "nothing comes in from outside"

    asyncio.run(scenario())


def test_groups_that_two_servers_make_at_once_are_made_once(world: AwsWorld) -> None:
    async def scenario() -> None:
        order = replace(order_of(await small_offer(world), count=2), zone="use1-az4")
        bodies = await asyncio.gather(*(world.open().prepare(order) for _ in range(4)))
        assert all(body == bodies[0] for body in bodies)

    asyncio.run(scenario())


# --- what is charged ----------------------------------------------------------------------------------


def test_what_the_listing_tells_comes_to_what_amazon_bills(world: AwsWorld) -> None:
    """To the micro-dollar, with spot prices that move while the machines live, and however often anybody looks."""

    async def scenario() -> None:
        seller = world.open()
        restless = {"instance_type": RESTLESS, "zone": RESTLESS_ZONE, "is_spot": True, "price_per_hour": 1}
        steady = await an_order(world, seller)
        orders = [steady, *[await an_order(world, seller, **restless) for _ in range(3)]]
        machines = [(await seller.create(order, BOOT))[0] for order in orders]
        books = {order.id: Book(order) for order in orders}

        async def many_changes() -> bool:
            listed = {machine.order_id: machine for machine in await seller.machines()}
            for order in orders[:3]:
                books[order.id].enter(listed[order.id])
            return len(listed[orders[1].id].prices) > 3

        await until(many_changes)
        world.lab.control.preempt(machines[1].id, notice_s=0)
        for machine in (machines[0], *machines[2:]):
            await seller.delete(machine.id)
        for order in orders:
            await gone(seller, order)
        for machine in await seller.machines():
            books[machine.order_id].enter(machine)
        lines = world.lab.control.bill()["lines"]
        for order, machine in zip(orders, machines, strict=True):
            billed = sum(line["microusd"] for line in lines if machine.id in (line["resource"], line["note"]))
            assert books[order.id].total == billed > 0
        assert books[orders[1].id].compute == 0, "taken in its first hour"

    asyncio.run(scenario())


def test_a_reserved_machine_costs_nothing_beside_its_reservation(world: AwsWorld) -> None:
    held = world.ec2.create_capacity_reservation(
        InstanceType=PLENTY,
        InstancePlatform="Linux/UNIX",
        AvailabilityZone="us-east-1d",
        InstanceCount=1,
        InstanceMatchCriteria="targeted",
    )["CapacityReservation"]["CapacityReservationId"]

    async def scenario() -> None:
        seller = world.open(reservations={REGION: held})
        order = await an_order(world, seller, zone="use1-az4")
        await seller.create(order, BOOT)
        (machine,) = await listed_of(seller, order)
        assert [price.price_per_hour for price in machine.prices] == [0]
        assert machine.extras, "its disk and its address are charged"
        second = await an_order(world, seller, zone="use1-az4")
        with pytest.raises(NoCapacity):
            await seller.create(second, BOOT)

    asyncio.run(scenario())
    world.ec2.cancel_capacity_reservation(CapacityReservationId=held)


def test_a_spot_machine_that_is_taken_says_so(world: AwsWorld) -> None:
    async def scenario() -> None:
        seller = world.open()
        order = await an_order(world, seller, is_spot=True, zone="use1-az4")
        (machine,) = await seller.create(order, BOOT)
        await all_become(seller, order, MachineState.RUNNING)
        (alive,) = await listed_of(seller, order)
        assert [price.at for price in alive.prices][:1] == [alive.started_at] and alive.prices[0].price_per_hour > 0
        world.lab.control.preempt(machine.id, notice_s=0)
        await until(lambda: state_is(seller, machine.id, MachineState.GONE))
        (taken,) = await listed_of(seller, order)
        assert taken.was_taken and "took" in (taken.reason or "")
        assert taken.prices == alive.prices and taken.ended_at is not None

    asyncio.run(scenario())


def test_a_machine_that_switches_itself_off_is_over(world: AwsWorld) -> None:
    """Its first program finds no agent to be had, says so, and powers off."""

    async def scenario() -> None:
        seller = world.open()
        order = await an_order(world, seller)
        # The Lab itself: it answers, and hands out no agent.
        (machine,) = await seller.create(order, Boot((world.lab.url,), "t", agent_sha256="0" * 64))
        await until(lambda: state_is(seller, machine.id, MachineState.GONE))
        (ended,) = await listed_of(seller, order)
        assert ended.reason == "it switched itself off" and not ended.was_taken
        assert "crucible: boot failed: no server hands out the agent" in (await seller.last_words(machine.id) or "")

    asyncio.run(scenario())


def test_vcpus_are_told_by_family_and_market(world: AwsWorld) -> None:
    told = asyncio.run(world.open().quotas())
    assert {one.measure for one in told} == {Measure.CPUS}
    for market in (Market.ON_DEMAND, Market.SPOT):
        mine = [one for one in told if one.market is market]
        for name, count in (("p5.48xlarge", 1), (PLENTY, 1), ("m7i.large", 1), ("trn1.2xlarge", 0)):
            assert sum(one.holds_for("aws", REGION, market, name) for one in mine) == count
