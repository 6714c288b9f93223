"""What an operator may choose about machines in AWS. All of it has a default that works in an account with a default
VPC; nothing secret is kept here."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from crucible.model.errors import InvalidRequest

PREFIX = "CRUCIBLE_AWS_"

# {arch} is x86_64 or arm64. Both images have a Python that runs the first program of a machine.
GPU_IMAGE = "/aws/service/deeplearning/ami/{arch}/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"
CPU_IMAGE = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-{arch}"

# Micro-dollars per GiB and month of 730 hours, as in us-east-1.
DISK_PRICES = {
    "gp3": 80_000,
    "gp2": 100_000,
    "io1": 125_000,
    "io2": 125_000,
    "st1": 45_000,
    "sc1": 15_000,
    "standard": 50_000,
}
# The system needs some; EC2 sells no larger root disk of these types.
LEAST_DISK_GIB, MOST_DISK_GIB = 8, 16_384
LEAST_BOOT_S, MOST_BOOT_S = 5, 7200

_IMAGE = re.compile(r"ami-[0-9a-f]{8,17}")
_RESERVATION = re.compile(r"none|open|cr-[0-9a-f]{8,17}")
_SUBNET = re.compile(r"subnet-[0-9a-f]{8,17}")
_GROUP = re.compile(r"sg-[0-9a-f]{8,17}")
_REGION = re.compile(r"[a-z]{2,4}(-[a-z]+)+-\d")
_WORDS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}

EVERYWHERE = "*"
NO_RESERVATION = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsSettings:
    images: Mapping[str, str] = field(default_factory=dict)  # region or "*" -> AMI; else what the parameters name
    gpu_image_parameter: str = GPU_IMAGE  # of SSM
    cpu_image_parameter: str = CPU_IMAGE
    subnets: tuple[str, ...] = ()  # of any regions; empty: those of the default VPC
    security_groups: tuple[str, ...] = ()  # of any regions; empty: our own are made
    has_public_address: bool = True
    disk_gib: int = 100
    disk_type: str = "gp3"
    key_name: str | None = None  # a key pair of the account, for people who log in
    reservations: Mapping[str, str] = field(default_factory=dict)  # region or "*" -> "none", "open" or an id
    uses_placement_groups: bool = True
    boot_limit_s: int = 600  # from the purchase until the agent must have reported
    purchases_per_s: int = 2  # calls of RunInstances, in a region
    endpoint_url: str | None = None  # None: Amazon's, or what AWS_ENDPOINT_URL says

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "AwsSettings":
        """Raises InvalidRequest for a word that cannot be meant."""
        given = {
            name.removeprefix(PREFIX): value.strip()
            for name, value in environ.items()
            if name.startswith(PREFIX) and value.strip()
        }
        return cls(
            images=by_region("IMAGE", given, _IMAGE),
            gpu_image_parameter=given.get("IMAGE_PARAMETER", GPU_IMAGE),
            cpu_image_parameter=given.get("CPU_IMAGE_PARAMETER", CPU_IMAGE),
            subnets=ids("SUBNETS", given, _SUBNET),
            security_groups=ids("SECURITY_GROUPS", given, _GROUP),
            has_public_address=answer("PUBLIC_ADDRESS", given, True),
            disk_gib=whole("DISK_GIB", given, 100, LEAST_DISK_GIB, MOST_DISK_GIB),
            disk_type=disk_type("DISK_TYPE", given, "gp3"),
            key_name=given.get("KEY_NAME"),
            reservations=by_region("CAPACITY_RESERVATION", given, _RESERVATION),
            uses_placement_groups=answer("PLACEMENT_GROUPS", given, True),
            purchases_per_s=whole("PURCHASES_PER_S", given, 2, 1, 100),
            boot_limit_s=whole("BOOT_LIMIT_S", given, 600, LEAST_BOOT_S, MOST_BOOT_S),
        )

    def image(self, region: str) -> str | None:
        return self.images.get(region) or self.images.get(EVERYWHERE)

    def reservation(self, region: str) -> str:
        return self.reservations.get(region) or self.reservations.get(EVERYWHERE, NO_RESERVATION)


def is_region(word: str) -> bool:
    return _REGION.fullmatch(word) is not None


def by_region(name: str, given: Mapping[str, str], form: re.Pattern[str]) -> dict[str, str]:
    """ "us-east-1=…,us-west-2=…"; a word without a region is for every region that is not named."""
    found: dict[str, str] = {}
    for word in words(given.get(name, "")):
        region, _, value = word.rpartition("=")
        if not form.fullmatch(value) or (region and not _REGION.fullmatch(region)):
            refuse(name, word, f"[region=]{form.pattern}")
        found[region or EVERYWHERE] = value
    return found


def ids(name: str, given: Mapping[str, str], form: re.Pattern[str]) -> tuple[str, ...]:
    found = words(given.get(name, ""))
    for word in found:
        if not form.fullmatch(word):
            refuse(name, word, form.pattern)
    return tuple(found)


def answer(name: str, given: Mapping[str, str], default: bool) -> bool:
    word = given.get(name)
    if word is None:
        return default
    if word.lower() not in _WORDS:
        refuse(name, word, "yes or no")
    return _WORDS[word.lower()]


def whole(name: str, given: Mapping[str, str], default: int, least: int, most: int) -> int:
    word = given.get(name)
    if word is None:
        return default
    if not word.isdecimal() or not least <= int(word) <= most:
        refuse(name, word, f"a whole number from {least} to {most}")
    return int(word)


def disk_type(name: str, given: Mapping[str, str], default: str) -> str:
    word = given.get(name, default)
    if word not in DISK_PRICES:
        refuse(name, word, ", ".join(DISK_PRICES))
    return word


def words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def refuse(name: str, word: str, wanted: str) -> NoReturn:
    raise InvalidRequest(f"{PREFIX}{name}: {word!r} is not {wanted}")
