"""What must be known before an order can be written down: image, subnet, security group, what a type can do. Answers
are kept for minutes; a group of ours that is missing is made. It chooses nothing that the order has chosen."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar, cast

from crucible.model.errors import OrderRejected
from crucible.providers.aws import tags as tagging
from crucible.providers.aws.account import Calls
from crucible.providers.aws.errors import MEANINGS, PROVIDER
from crucible.providers.aws.settings import AwsSettings

T = TypeVar("T")

# Images are renewed daily, networks are changed by people: neither may be remembered for long.
KEEP_S = 300.0
# A type is what it is.
KEEP_TYPE_S = 3600.0
# A new group is there at once for its maker, and a moment later for everybody.
GROUP_WAIT = {"Delay": 1, "MaxAttempts": 10}
ANYWHERE = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """What an instance type can do."""

    arch: str  # "x86_64", "arm64"
    efa_interfaces: int  # 0: no fast fabric
    is_clustered: bool  # may be placed in a cluster group


@dataclass(frozen=True, slots=True)
class Image:
    id: str
    root_device: str
    disk_gib: int  # the least that it needs


@dataclass(frozen=True, slots=True)
class Subnet:
    id: str
    vpc: str
    zone: str  # "us-east-1a"
    zone_id: str  # "use1-az4"


class Lookups:
    """All of it blocks: called in threads, several at a time."""

    def __init__(self, calls: Calls, deployment: str, settings: AwsSettings) -> None:
        self._calls = calls
        self._deployment = deployment
        self._settings = settings
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, ...], tuple[float, Any]] = {}

    def forget(self) -> None:
        """An order was refused: what it was made of may be gone."""
        with self._lock:
            self._kept.clear()

    def kind(self, instance_type: str) -> Kind:
        return self._once(("kind", instance_type), lambda: self._kind(instance_type), KEEP_TYPE_S)

    def image(self, arch: str, has_gpus: bool) -> Image:
        return self._once(("image", arch, str(has_gpus)), lambda: self._image(arch, has_gpus))

    def subnet(self, zone: str) -> Subnet | None:
        """None: EC2 may choose, in the default VPC."""
        if zone == ANYWHERE and not self._settings.subnets:
            return None
        found = [subnet for subnet in self.subnets() if zone in (ANYWHERE, subnet.zone, subnet.zone_id)]
        if not found:
            reject(f"no subnet in zone {zone or self._calls.region}", self._calls.region, subnet_fix(self._settings))
        return found[0]

    def subnets(self) -> Sequence[Subnet]:
        return self._once(("subnets",), self._subnets)

    def groups(self, vpc: str | None, is_gang: bool) -> tuple[str, ...]:
        """Security groups. Machines of a gang must hear each other; a single machine hears nobody."""
        return self._once(("groups", vpc or "", str(is_gang)), lambda: self._groups(vpc, is_gang))

    def placement_group(self, zone: str) -> str:
        """One for each zone, used by every gang there: it costs nothing, and none is left behind."""
        return self._once(("placement", zone), lambda: self._placement_group(zone))

    def _once(self, key: tuple[str, ...], look: Callable[[], T], keep_s: float = KEEP_S) -> T:
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and kept[0] > time.monotonic():
            return cast(T, kept[1])
        found = look()
        with self._lock:
            self._kept[key] = time.monotonic() + keep_s, found
        return found

    # --- types and images -----------------------------------------------------------------------------

    def _kind(self, instance_type: str) -> Kind:
        ec2 = self._calls.client()
        with rejecting(ec2, f"AWS does not know the type {instance_type}", self._calls.region):
            (found,) = ec2.describe_instance_types(InstanceTypes=[instance_type])["InstanceTypes"]
        network = found.get("NetworkInfo", {})
        archs = found.get("ProcessorInfo", {}).get("SupportedArchitectures", ["x86_64"])
        has_efa = network.get("EfaSupported", False)
        return Kind(
            arch="x86_64" if "x86_64" in archs else "arm64",
            efa_interfaces=network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 1) if has_efa else 0,
            is_clustered="cluster" in found.get("PlacementGroupInfo", {}).get("SupportedStrategies", ()),
        )

    def _image(self, arch: str, has_gpus: bool) -> Image:
        ec2, region = self._calls.client(), self._calls.region
        image = self._settings.image(region) or self.named_image(arch, has_gpus)
        with rejecting(ec2, f"the image {image} cannot be used", region):
            images = ec2.describe_images(ImageIds=[image])["Images"]
        if not images:
            reject(f"there is no image {image}", region, "set CRUCIBLE_AWS_IMAGE to one that this account may use")
        root = images[0].get("RootDeviceName", "/dev/xvda")
        disks = {disk["DeviceName"]: disk.get("Ebs", {}) for disk in images[0].get("BlockDeviceMappings", ())}
        return Image(image, root, int(disks.get(root, {}).get("VolumeSize", 0)))

    def named_image(self, arch: str, has_gpus: bool) -> str:
        """What the SSM parameter says now."""
        settings, ssm = self._settings, self._calls.client("ssm")
        name = (settings.gpu_image_parameter if has_gpus else settings.cpu_image_parameter).replace("{arch}", arch)
        fix = "set CRUCIBLE_AWS_IMAGE, CRUCIBLE_AWS_IMAGE_PARAMETER or CRUCIBLE_AWS_CPU_IMAGE_PARAMETER"
        with rejecting(ssm, f"the parameter {name} names no image", self._calls.region, fix):
            return str(ssm.get_parameter(Name=name)["Parameter"]["Value"])

    # --- networks -----------------------------------------------------------------------------------------

    def _subnets(self) -> Sequence[Subnet]:
        """The operator's of this region, or those of the default VPC. In a fixed order."""
        wanted = self._settings.subnets
        chosen = (
            {"Name": "subnet-id", "Values": list(wanted)} if wanted else {"Name": "default-for-az", "Values": ["true"]}
        )
        pages = (
            self._calls.client()
            .get_paginator("describe_subnets")
            .paginate(Filters=[chosen, {"Name": "state", "Values": ["available"]}])
        )
        found = [
            Subnet(one["SubnetId"], one["VpcId"], one["AvailabilityZone"], one.get("AvailabilityZoneId", ""))
            for page in pages
            for one in page["Subnets"]
        ]
        return sorted(found, key=lambda subnet: wanted.index(subnet.id) if wanted else subnet.id)

    def _groups(self, vpc: str | None, is_gang: bool) -> tuple[str, ...]:
        vpc = vpc or self.default_vpc()
        if self._settings.security_groups:
            return self._chosen_groups(vpc)
        name = f"crucible-{self._deployment}" + ("-gang" if is_gang else "")
        group = self._found_group(name, vpc) or self._made_group(name, vpc)
        if is_gang:  # each time: whoever made the group may have died before
            self._let_each_other_in(group)
        return (group,)

    def _chosen_groups(self, vpc: str) -> tuple[str, ...]:
        wanted = list(self._settings.security_groups)
        filters = [{"Name": "group-id", "Values": wanted}, {"Name": "vpc-id", "Values": [vpc]}]
        found = {
            one["GroupId"] for one in self._calls.client().describe_security_groups(Filters=filters)["SecurityGroups"]
        }
        if not found:
            reject(f"none of the security groups {', '.join(wanted)} is in {vpc}", self._calls.region)
        return tuple(group for group in wanted if group in found)

    def default_vpc(self) -> str:
        vpcs = self._calls.client().describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"]
        if not vpcs:
            reject("there is no default VPC", self._calls.region, subnet_fix(self._settings))
        return str(vpcs[0]["VpcId"])

    def _found_group(self, name: str, vpc: str) -> str | None:
        filters = [{"Name": "group-name", "Values": [name]}, {"Name": "vpc-id", "Values": [vpc]}]
        found = self._calls.client().describe_security_groups(Filters=filters)["SecurityGroups"]
        return str(found[0]["GroupId"]) if found else None

    def _made_group(self, name: str, vpc: str) -> str:
        """Egress is open, as Amazon makes it; nothing comes in from outside."""
        ec2 = self._calls.client()
        try:
            group = ec2.create_security_group(
                GroupName=name,
                VpcId=vpc,
                Description="Machines of Crucible: nothing comes in from outside",
                TagSpecifications=tagging.specifications(
                    {tagging.DEPLOYMENT: self._deployment, tagging.NAME: name}, ["security-group"]
                ),
            )["GroupId"]
        except ec2.exceptions.ClientError as error:
            other = self._found_group(name, vpc) if code(error) == "InvalidGroup.Duplicate" else None
            if other is None:
                raise
            group = other
        ec2.get_waiter("security_group_exists").wait(GroupIds=[group], WaiterConfig=GROUP_WAIT)
        return str(group)

    def _let_each_other_in(self, group: str) -> None:
        ec2 = self._calls.client()
        everything = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
        try:
            ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[everything])
        except ec2.exceptions.ClientError as error:
            if code(error) != "InvalidPermission.Duplicate":
                raise

    def _placement_group(self, zone: str) -> str:
        ec2, name = self._calls.client(), f"crucible-{self._deployment}-{zone}"
        tags = {tagging.DEPLOYMENT: self._deployment, tagging.NAME: name}
        try:
            ec2.create_placement_group(
                GroupName=name,
                Strategy="cluster",
                TagSpecifications=tagging.specifications(tags, ["placement-group"]),
            )
        except ec2.exceptions.ClientError as error:
            if code(error) != "InvalidPlacementGroup.Duplicate":
                raise
        return name


@contextmanager
def rejecting(client: Any, what: str, region: str, fix: str = "") -> Iterator[None]:
    """What Amazon calls invalid will not become valid by asking again."""
    try:
        yield
    except client.exceptions.ClientError as error:
        if not is_invalid(code(error)):
            raise
        reject(f"{what} ({code(error)})", region, fix)


def is_invalid(said: str) -> bool:
    return said not in MEANINGS and said.startswith(("Invalid", "Parameter"))


def code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def subnet_fix(settings: AwsSettings) -> str:
    if settings.subnets:
        return "name one of this zone in CRUCIBLE_AWS_SUBNETS"
    return "aws ec2 create-default-vpc, or name subnets in CRUCIBLE_AWS_SUBNETS"


def reject(what: str, region: str, fix: str = "") -> NoReturn:
    details: Mapping[str, Any] = {"fix": fix} if fix else {}
    raise OrderRejected(
        f"AWS {region}: {what}" + (f"; {fix}" if fix else ""), provider=PROVIDER, region=region, **details
    )
