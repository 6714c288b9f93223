"""What is missing in an account before machines can be bought in a region, and how to mend it. It changes nothing,
never raises, and is done in bounded time."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from crucible.model.errors import CredentialsRejected, ProviderError
from crucible.providers.aws import quotas
from crucible.providers.aws import tags as tagging
from crucible.providers.aws.account import Calls
from crucible.providers.aws.errors import code_of
from crucible.providers.aws.lookups import Image, Lookups, Subnet
from crucible.providers.aws.reach import FIX, unreachable
from crucible.providers.aws.spot_prices import PRODUCT

T = TypeVar("T")

TIMEOUT_S = 30.0
# Small, and sold almost everywhere: what is asked is whether we may, not whether there is one.
PROBE_TYPE = "g4dn.xlarge"
DRY_RUN_PASSED = "DryRunOperation"
# What a place says that has none of it: not a matter of rights.
NOT_HERE = ("Unsupported", "InsufficientInstanceCapacity")

LOG_IN = "aws sso login or aws configure, or set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
POLICY = "give it the policy of docs/aws.md"


async def examined(calls: Calls, lookups: Lookups, deployment: str, server_url: str) -> Mapping[str, Any]:
    checkup = Checkup(calls, lookups, deployment, server_url)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await checkup.run()
    except TimeoutError:
        checkup.problem(f"AWS did not answer everything within {TIMEOUT_S:g} s", "check the network, then try again")
        checkup.is_down = True
    return checkup.report()


class Checkup:
    """What is found is kept as it is found: what took too long does not hide the rest."""

    def __init__(self, calls: Calls, lookups: Lookups, deployment: str, server_url: str) -> None:
        self._calls = calls
        self._lookups = lookups
        self._deployment = deployment
        self._server_url = server_url
        self._problems: list[dict[str, str]] = []
        self._facts: dict[str, Any] = {}
        self.is_down = False

    def problem(self, problem: str, fix: str) -> None:
        self._problems.append({"problem": problem, "fix": fix})

    def report(self) -> Mapping[str, Any]:
        status = "down" if self.is_down else "degraded" if self._problems else "healthy"
        return {"status": status, "region": self._calls.region, **self._facts, "problems": list(self._problems)}

    async def run(self) -> None:
        if not await self._identity():
            self.is_down = True
            return
        why_not = unreachable(self._server_url, self._calls.client().meta.endpoint_url)
        if why_not is not None:
            self.problem(why_not, FIX)
        image = await self._found(lambda: self._lookups.image("x86_64", has_gpus=True), "the image of GPU machines")
        subnet = await self._subnets()
        if image is not None:
            self._facts["image"] = image.id
            await self._may_buy(image, subnet)
        await self._may_look()
        await self._quotas()

    async def _identity(self) -> bool:
        try:
            caller = await self._calls.look(lambda: self._calls.client("sts").get_caller_identity())
        except CredentialsRejected as error:
            self.problem(f"AWS does not accept the credentials: {error.message}", LOG_IN)
            return False
        except ProviderError as error:
            self.problem(error.message, "check the network, AWS_ENDPOINT_URL and that the region exists")
            return False
        self._facts |= {"account": caller["Account"], "identity": caller["Arn"]}
        return True

    async def _subnets(self) -> Subnet | None:
        subnets = await self._found(self._lookups.subnets, "subnets")
        if subnets is None:
            return None
        self._facts["zones"] = sorted({subnet.zone_id or subnet.zone for subnet in subnets})
        if not subnets:
            self.problem(
                f"no subnet of {self._calls.region} can be used",
                f"aws ec2 create-default-vpc --region {self._calls.region}, or set CRUCIBLE_AWS_SUBNETS",
            )
            return None
        return subnets[0]

    async def _may_buy(self, image: Image, subnet: Subnet | None) -> None:
        tags = {tagging.DEPLOYMENT: self._deployment}
        request: dict[str, Any] = {
            "ImageId": image.id,
            "InstanceType": PROBE_TYPE,
            "MinCount": 1,
            "MaxCount": 1,
            "TagSpecifications": tagging.specifications(tags, ["instance", "volume"]),
            "DryRun": True,
        }
        if subnet is not None:
            request["SubnetId"] = subnet.id
        try:
            await self._calls.look(lambda: self._calls.client().run_instances(**request))
        except ProviderError as error:
            if code_of(error) not in (DRY_RUN_PASSED, *NOT_HERE):
                self.problem(f"machines cannot be bought: {error.message}", POLICY)

    async def _may_look(self) -> None:
        ec2, ours = self._calls.client, [tagging.deployment_filter(self._deployment)]
        await self._found(lambda: ec2().describe_instances(Filters=ours), "machines")
        await self._found(lambda: ec2().describe_volumes(Filters=ours), "disks")
        await self._found(lambda: ec2().describe_addresses(Filters=ours), "addresses")
        await self._found(
            lambda: ec2().describe_spot_price_history(
                InstanceTypes=[PROBE_TYPE], ProductDescriptions=[PRODUCT], MaxResults=5
            ),
            "spot prices",
        )

    async def _quotas(self) -> None:
        found = await self._found(lambda: quotas.vcpus(self._calls.client("service-quotas")), "quotas")
        if found is None:
            return
        self._facts["vcpu_quotas"] = dict(found)
        if not any(found.values()):
            codes = ", ".join(f"{quota.code} ({quota.name}: {quota.example})" for quota in quotas.FOR_GPUS)
            self.problem(
                f"the account may run no GPU machine in {self._calls.region}: every quota is 0 vCPUs",
                f"ask for more in the Service Quotas console: {codes}",
            )

    async def _found(self, look: Callable[[], T], what: str) -> T | None:
        try:
            return await self._calls.look(look)
        except ProviderError as error:
            self.problem(f"{what} cannot be read: {error.message}", str(error.details.get("fix") or POLICY))
            return None
