"""What a provider's package gives to a server that enables it: sellers, one for each region, and whoever knows their
prices. It is found by name (`crucible.sellers`) and loaded when it is first asked for."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from crucible.ports.hosts import HostBook, HostDesk
from crucible.ports.prices import Prices
from crucible.ports.seller import Seller


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a provider may know of the server that opens it."""

    deployment: str  # marks everything that is bought, so that it is found again; the same for servers that share a key
    url: str  # where machines are to reach the server
    data_dir: Path  # where it may keep files, under its own name
    agent: Path
    server_file: Path  # where agents on this computer find the server
    now: Callable[[], datetime]
    environ: Mapping[str, str]  # an operator's settings: CRUCIBLE_<PROVIDER>_…
    options: Mapping[str, Any] = field(default_factory=dict)  # of the command line
    hosts: HostBook | None = None  # where own hosts are remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    sellers: Sequence[Seller]
    prices: Sequence[Prices] = ()
    hosts: HostDesk | None = None  # of a provider that keeps own hosts
    close: Callable[[], Awaitable[None]] | None = None  # lets go of what it keeps open


OpenProvider = Callable[[Surroundings], Provider]
