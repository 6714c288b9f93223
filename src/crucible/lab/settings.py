"""What a Lab is started with, and the keys of the one account in it."""

import secrets
import string
from dataclasses import dataclass, field
from pathlib import Path

HOME = "CRUCIBLE_LAB_HOME"
GUESTS = "guests"  # the folder of machines, below the home
REGIONS = ("us-east-1", "us-west-2", "eu-west-1")
# Machines of a cloud boot in half a minute; whoever tries something out has no half minute.
BOOT_SCALE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    home: Path
    port: int = 0  # 0: the last one, or any that is free
    speed: float = 1.0  # of the world's clock
    seed: int = 0
    boot_scale: float = BOOT_SCALE  # of the times that machines need to boot and to stop
    hazard: float = 1.0  # how often spot machines are taken, as a multiple of what the catalog says
    regions: tuple[str, ...] = REGIONS
    scenario: Path | None = None
    data: Path | None = None  # recorded prices


@dataclass(frozen=True, slots=True, kw_only=True)
class LabAccount:
    id: str
    access_key: str
    secret_key: str = field(repr=False)


def new_account() -> LabAccount:
    """Keys in the vendor's form, made anew for each Lab and worth nothing anywhere else."""
    letters = string.ascii_uppercase + "234567"
    return LabAccount(
        id="".join(secrets.choice(string.digits) for _ in range(12)),
        access_key="AKIALAB" + "".join(secrets.choice(letters) for _ in range(13)),
        secret_key=secrets.token_urlsafe(30),
    )
