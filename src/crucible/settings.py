"""What a server is to do, as it was told: checked where it is read, and nothing is opened here."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from crucible.api.limits import RateLimits
from crucible.engine.context import CLAIM_TTL
from crucible.model.dataset import PLACE
from crucible.model.errors import InvalidRequest
from crucible.model.policy import Policy
from crucible.model.storage import Address, parse
from crucible.model.units import GIB
from crucible.notify.smtp import SmtpSettings, settings_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    data_dir: Path
    host: str = "127.0.0.1"
    port: int = 0
    database: str | None = None
    public_url: str | None = None
    label: str | None = None
    local_gpus: int | None = None
    local_gpu_memory: float = 80.0
    allowed_hosts: tuple[str, ...] = ()
    price_files: tuple[Path, ...] = ()
    providers: tuple[str, ...] = ("local",)
    storage: str | None = None
    storage_endpoints: tuple[str, ...] = ()
    region_storages: tuple[str, ...] = ()
    max_output_gib: float = Policy().output_bytes / GIB
    smtp_url: str | None = None
    smtp_from: str | None = None
    smtp_password_file: Path | None = None
    smtp_ca: Path | None = None
    alert_endpoints: tuple[str, ...] = ()
    retention: str = ""
    claim_ttl: timedelta = CLAIM_TTL
    silence: timedelta = Policy().silence
    health_hurry: float = 1.0  # for tests: times of findings are so many times as short
    rate_limits: RateLimits = RateLimits()  # noqa: RUF009 - frozen

    @property
    def storage_root(self) -> Address:
        """Raises InvalidRequest."""
        return parse(self.storage or (self.data_dir / "objects").as_uri())

    @property
    def region_storage(self) -> Mapping[str, Address]:
        """Raises InvalidRequest."""
        found = {}
        for text in self.region_storages:
            place, _, uri = text.partition("=")
            if not re.fullmatch(PLACE, place):
                raise InvalidRequest(f"{text} names no region; write --region-storage aws/us-east-1=s3://bucket/prefix")
            found[place] = parse(uri)
        return found

    @property
    def database_url(self) -> str:
        return self.database or f"sqlite:///{self.data_dir / 'crucible.db'}"


def policy_of(settings: Settings) -> Policy:
    """Nodes report ten times before their silence means anything."""
    usual = Policy()
    margin = usual.fence_margin * (settings.silence / usual.silence)
    return Policy(
        silence=settings.silence,
        report_every=settings.silence / 10,
        fence_margin=margin,
        output_bytes=round(settings.max_output_gib * GIB),
        health=usual.health.hurried(settings.health_hurry),
    )


def smtp_settings(settings: Settings) -> SmtpSettings | None:
    """Raises InvalidRequest. The password stands in no command line, and is said nowhere."""
    if settings.smtp_url is None:
        return None
    path = settings.smtp_password_file
    try:
        password = os.environ.get("CRUCIBLE_SMTP_PASSWORD") if path is None else path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"--smtp-password-file {path} cannot be read: {error}") from None
    return settings_of(settings.smtp_url, settings.smtp_from, password, settings.smtp_ca)


def allowed_hosts(settings: Settings) -> tuple[str, ...]:
    """Names a request may carry: what the operator lists, and the one this server is known by."""
    own = urlsplit(settings.public_url or "").hostname
    return (*settings.allowed_hosts, own) if own else settings.allowed_hosts
