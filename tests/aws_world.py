"""A Lab as the place where AWS sells: one for a whole module, with a deployment of its own for each test."""

import asyncio
import gzip
import itertools
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import boto3

from crucible.catalog.spot_history import FILE
from crucible.core import ledger
from crucible.lab.history import RECORDED_S
from crucible.lab.running import Running
from crucible.model.ids import MachineId, OfferId, OrderId
from crucible.model.lease import Leftover, LeftoverKind, Machine, MachineState, Order
from crucible.model.ledger import ChargeKind, Posting, Usage
from crucible.model.offer import Offer, Target
from crucible.providers.aws import Account, AwsRegion, AwsSettings
from crucible.providers.aws.region import FACTS
from crucible.testing.seller_contract import SellerWorld, order_of, prepared, small_offer, until
from lab_process import RunningLab

REGION = "us-east-1"
# Of one there is plenty. Of the other the Lab has 32 in each zone; all but these are reserved for somebody else.
PLENTY, SCARCE = "g4dn.xlarge", "p5.4xlarge"
CAPACITY, LEFT = 32, 3
PRICES = {PLENTY: 526_000, SCARCE: 6_880_000}

# One spot market that moves every other second, for an hour from the Lab's start.
RESTLESS, RESTLESS_ZONE = "g6.xlarge", "use1-az4"

_deployments = itertools.count(1)


@cache
def session(running: Running) -> Any:
    """One for a whole Lab: each reads the description of EC2 anew, which takes as long as a test."""
    return boto3.session.Session(
        aws_access_key_id=running.access_key, aws_secret_access_key=running.secret_key, region_name=REGION
    )


@cache
def account(running: Running, url: str | None = None) -> Account:
    """It remembers nothing but clients, so that a process which has just started may share it."""
    return Account(session=lambda: session(running), endpoint_url=url or running.url)


def record_prices(data: Path) -> Path:
    """A record for the Lab to play: its end meets the Lab's start, and then it begins again."""
    began, path = 1_700_000_000, data / FILE
    moments = [*range(began, began + 3600, 2), began + RECORDED_S]
    lines = [f"{at},{RESTLESS},{REGION},{RESTLESS_ZONE},0.{300001 + 7919 * at % 99_991},0.8048" for at in moments]
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress("\n".join(["ts_unix,instance_type,region,az_id,spot_price,od", *lines]).encode()))
    return data


def make_scarce(lab: RunningLab) -> None:
    ec2 = session(lab.running).client("ec2", endpoint_url=lab.url)
    offered = ec2.describe_instance_type_offerings(
        LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": [SCARCE]}]
    )
    zones = sorted(offer["Location"] for offer in offered["InstanceTypeOfferings"])
    for zone in zones:
        ec2.create_capacity_reservation(
            InstanceType=SCARCE,
            InstancePlatform="Linux/UNIX",
            AvailabilityZone=zone,
            InstanceCount=CAPACITY - LEFT if zone == zones[0] else CAPACITY,
            InstanceMatchCriteria="targeted",
        )


class AwsWorld(SellerWorld):
    def __init__(self, lab: RunningLab) -> None:
        self.lab = lab
        self.deployment = f"deployment-{next(_deployments)}"
        self.ec2 = session(lab.running).client("ec2", endpoint_url=lab.url)
        self._opened: list[AwsRegion] = []

    def open(self, *, url: str | None = None, skew: timedelta = timedelta(0), **settings: Any) -> AwsRegion:
        seller = AwsRegion(
            REGION,
            deployment=self.deployment,
            server_url="http://127.0.0.1:1",
            account=account(self.lab.running, url),
            settings=AwsSettings(**settings),
            now=lambda: datetime.now(UTC) + skew,
        )
        self._opened.append(seller)
        return seller

    async def offers(self) -> Sequence[Offer]:
        machines = (await asyncio.to_thread(self.lab.control.status))["machines"]
        held = sum(machine["type"] == SCARCE for machine in machines)
        return [offer(PLENTY, None), offer(SCARCE, LEFT - held)]

    def crash(self, machine: MachineId) -> None:
        """Somebody ends it in the console."""
        self.ec2.terminate_instances(InstanceIds=[machine])

    # --- what sellers may be able to do ---------------------------------------------------------------

    def leave(self) -> Leftover:
        tags = {"crucible:deployment": self.deployment, "crucible:order": "order-left"}
        volume = self._volume(tags)
        return Leftover(kind=LeftoverKind.VOLUME, id=volume, order_id=OrderId("order-left"))

    def leave_foreign(self) -> None:
        self._volume({"crucible:deployment": "another"})
        self._volume({"Name": "data"})

    def later(self) -> AwsRegion:
        return self.open(skew=timedelta(minutes=5))

    def unreachable(self) -> AwsRegion:
        return self.open(url="http://127.0.0.1:9")

    def _volume(self, tags: dict[str, str]) -> str:
        written = [{"Key": key, "Value": value} for key, value in tags.items()]
        made = self.ec2.create_volume(
            AvailabilityZone=f"{REGION}a",
            Size=10,
            VolumeType="gp3",
            TagSpecifications=[{"ResourceType": "volume", "Tags": written}],
        )
        return str(made["VolumeId"])

    def close(self) -> None:
        """Ends what the test bought, so that the next one finds the same stock."""

        async def give_back() -> None:
            seller = self.open()
            for machine in await seller.machines():
                await seller.delete(machine.id)

            async def are_gone() -> bool:
                return all(machine.state is MachineState.GONE for machine in await seller.machines())

            await until(are_gone)

        self.lab.control.clear_faults()
        asyncio.run(give_back())
        for seller in self._opened:
            seller.close()


def offer(instance_type: str, free_gpus: int | None) -> Offer:
    return Offer(
        id=OfferId(f"aws/{REGION}/-/{instance_type}/on-demand"),
        target=Target("aws", REGION, "vm"),
        instance_type=instance_type,
        gpu="T4",
        gpus=1,
        gpu_memory_gib=16,
        cpus=4,
        memory_gib=16,
        price_per_hour=PRICES[instance_type],
        free_gpus=free_gpus,
    )


async def an_order(world: AwsWorld, seller: AwsRegion, count: int = 1, **changes: Any) -> Order:
    order = replace(order_of(await small_offer(world), count=count), **changes)
    return await prepared(seller, order)


class Book:
    """The ledger of one machine."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.usages: dict[Any, Usage] = {}
        self.postings: dict[str, Posting] = {}

    def enter(self, machine: Machine) -> None:
        known = tuple(self.usages.values())
        for one in ledger.account(known, machine, self.order, None, FACTS.terms, datetime.now(UTC)):
            if isinstance(one, Posting):
                self.postings[one.id] = one
            else:
                self.usages[one.rate.kind, one.from_at] = one

    @property
    def total(self) -> int:
        return sum(posting.entries[0].amount for posting in self.postings.values())

    @property
    def compute(self) -> int:
        kinds = [posting for posting in self.postings.values() if posting.kind is ChargeKind.COMPUTE]
        return sum(posting.entries[0].amount for posting in kinds)
