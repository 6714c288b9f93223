"""The images that the Lab pretends to have, and the SSM parameters that lead to them. Whatever an image is called, a
machine here runs its user-data on this computer."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from crucible.lab.aws.absence import absent
from crucible.lab.aws.call import Call, Handler
from crucible.lab.aws.errors import AwsError
from crucible.lab.aws.listing import Listing
from crucible.lab.aws.names import derived

AMAZON, CANONICAL, DEBIAN = "137112412989", "099720109477", "136693071363"
_MADE = "2026-10-30"
_VERSION = 42  # of every parameter
RESOLVE = "resolve:ssm:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    parameter: str  # the path in SSM that leads to it
    name: str
    description: str
    owner: str
    alias: str | None
    architecture: str
    gib: int
    root: str = "/dev/sda1"

    def id(self, region: str) -> str:
        return derived("ami", region, self.parameter)


def _deep_learning(architecture: str, slug: str, title: str, gib: int) -> Image:
    return Image(
        parameter=f"/aws/service/deeplearning/ami/{architecture}/{slug}/latest/ami-id",
        name=f"{title} {_MADE.replace('-', '')}",
        description=f"Supported EC2 instances: GPU instances. {title}.",
        owner="898082745236",
        alias="amazon",
        architecture=architecture,
        gib=gib,
        root="/dev/xvda" if "amazon-linux" in slug else "/dev/sda1",
    )


def _amazon_linux(architecture: str) -> Image:
    name = f"al2023-ami-2023.9.20261030.0-kernel-6.1-{architecture}"
    return Image(
        parameter=f"/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-{architecture}",
        name=name,
        description=f"Amazon Linux 2023 AMI 2023.9.20261030.0 {architecture} HVM kernel-6.1",
        owner=AMAZON,
        alias="amazon",
        architecture=architecture,
        gib=8,
        root="/dev/xvda",
    )


def _debian(architecture: str, release: int) -> Image:
    short = {"x86_64": "amd64", "arm64": "arm64"}[architecture]
    return Image(
        parameter=f"/aws/service/debian/release/{release}/latest/{short}",
        name=f"debian-{release}-{short}-{_MADE.replace('-', '')}",
        description=f"Debian {release} ({_MADE})",
        owner=DEBIAN,
        alias=None,
        architecture=architecture,
        gib=8,
        root="/dev/xvda",
    )


def _ubuntu(architecture: str, release: str) -> Image:
    short = {"x86_64": "amd64", "arm64": "arm64"}[architecture]
    return Image(
        parameter=f"/aws/service/canonical/ubuntu/server/{release}/stable/current/{short}/hvm/ebs-gp3/ami-id",
        name=f"ubuntu/images/hvm-ssd-gp3/ubuntu-{release}-{short}-server-{_MADE.replace('-', '')}",
        description=f"Canonical, Ubuntu, {release}, {short} image",
        owner=CANONICAL,
        alias=None,
        architecture=architecture,
        gib=8,
    )


_DRIVER = "Deep Learning Base OSS Nvidia Driver"
IMAGES = (
    *(
        image
        for architecture in ("x86_64", "arm64")
        for image in (
            _deep_learning(
                architecture, "base-oss-nvidia-driver-gpu-ubuntu-22.04", f"{_DRIVER} GPU AMI (Ubuntu 22.04)", 75
            ),
            _deep_learning(
                architecture, "base-oss-nvidia-driver-gpu-ubuntu-24.04", f"{_DRIVER} GPU AMI (Ubuntu 24.04)", 75
            ),
            _deep_learning(
                architecture, "base-oss-nvidia-driver-gpu-amazon-linux-2023", f"{_DRIVER} AMI (Amazon Linux 2023)", 75
            ),
            _amazon_linux(architecture),
            _debian(architecture, 12),
            _debian(architecture, 13),
            _ubuntu(architecture, "22.04"),
            _ubuntu(architecture, "24.04"),
        )
    ),
)
_BY_PARAMETER = {image.parameter: image for image in IMAGES}


def find(region: str, id: str) -> Image:
    for image in IMAGES:
        if image.id(region) == id:
            return image
    raise absent("ami", id)


def named(region: str, text: str) -> Image:
    """As RunInstances takes it: an id, or resolve:ssm: with the public parameter that holds one."""
    if not text.startswith(RESOLVE):
        return find(region, text)
    path, _, version = text.removeprefix(RESOLVE).partition(":")
    image = _BY_PARAMETER.get(path)
    if image is None or version not in ("", str(_VERSION)):
        raise AwsError("InvalidParameterValue", f"Invalid systems manager parameter: {text}")
    return image


def describe_images(call: Call) -> dict[str, Any]:
    wanted = call.values.get("ImageIds")
    found = [find(call.region, id) for id in wanted] if wanted else list(IMAGES)
    owners = call.values.get("Owners")
    if owners:
        found = [image for image in found if image.owner in owners or image.alias in owners]
    listing = _listing(call.region)
    shown, token = listing.page(listing.matching(found, call.values.get("Filters", [])), call.values, "ImageIds")
    return {"Images": [_shown(image, call.region) for image in shown]} | ({"NextToken": token} if token else {})


def get_parameter(call: Call) -> dict[str, Any]:
    name = call.values["Name"]
    found = _parameter(call, name)
    if found is None:
        raise AwsError("ParameterNotFound", f"Parameter {name} not found.")
    return {"Parameter": found}


def get_parameters(call: Call) -> dict[str, Any]:
    names = call.values["Names"]
    found = {name: _parameter(call, name) for name in names}
    return {
        "Parameters": [parameter for parameter in found.values() if parameter is not None],
        "InvalidParameters": [name for name, parameter in found.items() if parameter is None],
    }


def _parameter(call: Call, name: str) -> dict[str, Any] | None:
    """A version or label may follow the name."""
    path, _, selector = name.partition(":")
    image = _BY_PARAMETER.get(path)
    if image is None or selector not in ("", str(_VERSION)):
        return None
    return {
        "Name": path,
        "Type": "String",
        "Value": image.id(call.region),
        "Version": _VERSION,
        "LastModifiedDate": datetime.fromisoformat(_MADE).replace(tzinfo=UTC),
        "ARN": f"arn:aws:ssm:{call.region}::parameter{path}",
        "DataType": "aws:ec2:image",
    } | ({"Selector": f":{selector}"} if selector else {})


def _listing(region: str) -> Listing[Image]:
    return Listing(
        key=lambda image: image.id(region),
        filters={
            "image-id": lambda image: [image.id(region)],
            "name": lambda image: [image.name],
            "description": lambda image: [image.description],
            "architecture": lambda image: [image.architecture],
            "owner-id": lambda image: [image.owner],
            "owner-alias": lambda image: [image.alias],
            "state": lambda image: ["available"],
            "image-type": lambda image: ["machine"],
            "is-public": lambda image: ["true"],
            "root-device-type": lambda image: ["ebs"],
            "virtualization-type": lambda image: ["hvm"],
            "ena-support": lambda image: ["true"],
        },
        tags=lambda image: {},
        smallest_page=1,
    )


def _shown(image: Image, region: str) -> dict[str, Any]:
    disk = {
        "DeleteOnTermination": True,
        "SnapshotId": derived("snap", region, image.parameter),
        "VolumeSize": image.gib,
        "VolumeType": "gp3",
        "Encrypted": False,
    }
    return {
        "Architecture": image.architecture,
        "CreationDate": f"{_MADE}T00:00:00.000Z",
        "ImageId": image.id(region),
        "ImageLocation": f"{image.alias or image.owner}/{image.name}",
        "ImageType": "machine",
        "Public": True,
        "OwnerId": image.owner,
        "PlatformDetails": "Linux/UNIX",
        "UsageOperation": "RunInstances",
        "State": "available",
        "BlockDeviceMappings": [{"DeviceName": image.root, "Ebs": disk}],
        "Description": image.description,
        "EnaSupport": True,
        "Hypervisor": "xen",
        "Name": image.name,
        "RootDeviceName": image.root,
        "RootDeviceType": "ebs",
        "VirtualizationType": "hvm",
        "BootMode": "uefi" if image.architecture == "arm64" else "uefi-preferred",
    } | ({"ImageOwnerAlias": image.alias} if image.alias else {})


EC2_OPERATIONS: dict[str, Handler] = {"DescribeImages": describe_images}
SSM_OPERATIONS: dict[str, Handler] = {"GetParameter": get_parameter, "GetParameters": get_parameters}
