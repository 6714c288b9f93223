"""One region of EC2 as a seller. It translates: orders into RunInstances, instances into machines, their errors into
ours. It does not retry, choose or know jobs; boto3 works in threads, so one slow region keeps nobody else waiting."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from crucible.core.boot import EC2, script
from crucible.model.errors import OrderRejected, ProviderError
from crucible.model.ids import MachineId
from crucible.model.lease import Boot, Leftover, Machine, Order, SellerFacts
from crucible.model.ledger import Terms
from crucible.model.offer import Offer
from crucible.model.quota import Quota
from crucible.model.units import MicroUsd
from crucible.providers.aws import health, leftovers, listing, quotas
from crucible.providers.aws import tags as tagging
from crucible.providers.aws.account import PURCHASE_TIMEOUT_S, Account, Calls
from crucible.providers.aws.errors import PROVIDER, code_of, translated
from crucible.providers.aws.lookups import Lookups
from crucible.providers.aws.reach import FIX, unreachable
from crucible.providers.aws.request import run_instances
from crucible.providers.aws.settings import AwsSettings
from crucible.providers.aws.spot_prices import PRODUCT, Entry, SpotPrices

FACTS = SellerFacts(
    idempotent_create=True,
    visibility=timedelta(seconds=60),
    boot_time=timedelta(minutes=10),
    powers_off=True,
    poll_every=timedelta(seconds=2),
    orphan_after=timedelta(minutes=15),
    terms=Terms(unit_s=1, minimum_s=60, free_if_taken_within_s=3600),
)

PAGE = 1000
LAST_WORDS = 2048  # characters of a console
ABSENT = ("InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed")


class AwsRegion:
    name = PROVIDER

    def __init__(
        self,
        region: str,
        *,
        deployment: str,
        server_url: str,
        account: Account | None = None,
        settings: AwsSettings | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Regions may share an `account`. Nothing is asked or loaded yet."""
        self.region = region
        self._deployment = deployment
        self._server_url = server_url
        self._settings = settings or AwsSettings()
        self.facts = replace(
            FACTS,
            boot_time=timedelta(seconds=self._settings.boot_limit_s),
            beside_per_hour=beside_per_hour(self._settings),
        )
        self._now = now
        account = account or Account(endpoint_url=self._settings.endpoint_url)
        self._calls = Calls(account, region, self._settings.purchases_per_s)
        self._lookups = Lookups(self._calls, deployment, self._settings)
        self._spot_prices = SpotPrices(self._spot_history, now)

    async def offers(self) -> Sequence[Offer]:
        return ()

    # --- buying ---------------------------------------------------------------------------------------

    async def prepare(self, order: Order) -> Mapping[str, Any]:
        return await self._calls.prepare(lambda: self._prepare(order))

    def _prepare(self, order: Order) -> Mapping[str, Any]:
        why_not = unreachable(self._server_url, self._calls.client().meta.endpoint_url)
        if why_not is not None:
            raise OrderRejected(f"{why_not}; {FIX}", provider=PROVIDER, region=self.region)
        return run_instances(order, self.region, self._deployment, self._settings, self._lookups)

    async def create(self, order: Order, boot: Boot) -> Sequence[Machine]:
        """What the machines cost is left to the listing: it knows the prices."""
        request = order.body.get("request")
        if request is None:
            raise OrderRejected(f"order {order.id} was never prepared", provider=PROVIDER, region=self.region)
        user_data = script(order, boot, EC2)
        try:
            instances = await self._calls.buy(lambda: self._run(order, request, user_data))
        except OrderRejected:
            self._lookups.forget()
            raise
        machines = [listing.machine(instance, order.id) for instance in instances]
        return [
            replace(machine, started_at=None, ended_at=None, prices=(), extras=())
            for machine in sorted(machines, key=lambda machine: machine.index)
        ]

    def _run(self, order: Order, request: Mapping[str, Any], user_data: str) -> Sequence[listing.Instance]:
        ec2 = self._calls.client(timeout_s=PURCHASE_TIMEOUT_S)
        answer = ec2.run_instances(**request, ClientToken=order.id, UserData=user_data)
        instances: Sequence[listing.Instance] = answer["Instances"]
        return instances

    # --- giving back --------------------------------------------------------------------------------------

    async def delete(self, machine: MachineId) -> None:
        if not listing.MACHINE_ID.fullmatch(machine):
            return
        try:
            await self._calls.end(lambda: self._calls.client().terminate_instances(InstanceIds=[machine]))
        except ProviderError as error:
            if code_of(error) not in ABSENT:
                raise

    async def leftovers(self) -> Sequence[Leftover]:
        return await self._calls.look(lambda: leftovers.found(self._calls.client(), self._deployment, self._now()))

    async def remove(self, leftover: Leftover) -> None:
        await self._calls.end(lambda: leftovers.remove(self._calls.client(), leftover))

    # --- looking ------------------------------------------------------------------------------------------

    async def machines(self) -> Sequence[Machine]:
        return await self._calls.look(self._machines)

    async def last_words(self, machine: MachineId) -> str | None:
        if not listing.MACHINE_ID.fullmatch(machine):
            return None
        try:
            answer = await self._calls.look(lambda: self._calls.client().get_console_output(InstanceId=machine))
        except ProviderError as error:
            if code_of(error) not in ABSENT:
                raise
            return None
        text = str(answer.get("Output") or "").replace("\r\n", "\n").strip()
        return text[-LAST_WORDS:] or None

    async def health(self) -> Mapping[str, Any]:
        return await health.examined(self._calls, self._lookups, self._deployment, self._server_url)

    async def quotas(self) -> Sequence[Quota]:
        return await self._calls.look(lambda: quotas.told(self._calls.client("service-quotas"), self.region))

    def close(self) -> None:
        """Threads end with their last call."""
        self._calls.close()

    def _machines(self) -> list[Machine]:
        pages = (
            self._calls.client()
            .get_paginator("describe_instances")
            .paginate(Filters=[tagging.deployment_filter(self._deployment)], PaginationConfig={"PageSize": PAGE})
        )
        found = [one for page in pages for one in listing.instances(page["Reservations"])]
        prices = self._spot_prices.told([instance for _, instance in found])
        return [listing.machine(instance, order, prices.get(instance["InstanceId"], ())) for order, instance in found]

    def _spot_history(self, types: Sequence[str], zones: Sequence[str], since: datetime) -> list[Entry]:
        with translated(self.region):
            pages = (
                self._calls.client()
                .get_paginator("describe_spot_price_history")
                .paginate(
                    InstanceTypes=list(types),
                    ProductDescriptions=[PRODUCT],
                    Filters=[{"Name": "availability-zone", "Values": list(zones)}],
                    StartTime=since,
                )
            )
            return [entry for page in pages for entry in page["SpotPriceHistory"]]


def beside_per_hour(settings: AwsSettings) -> MicroUsd:
    """The disk and the address of one machine, rounded up."""
    disk, address = tagging.disk_rate(settings.disk_type, settings.disk_gib), tagging.ADDRESS_PER_HOUR
    return MicroUsd(-(-disk.amount * 3600 // disk.per_s) + (address if settings.has_public_address else 0))
