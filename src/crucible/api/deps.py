"""What the API is made of: ports, the engine's three faces, and a few settings."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crucible.api.limits import RateLimits
from crucible.core.offers import OfferTable
from crucible.engine.alerts import AlertDesk
from crucible.engine.audits import Audits
from crucible.engine.budget_desk import BudgetDesk
from crucible.engine.channels import Channels
from crucible.engine.checkpoint_desk import CheckpointDesk
from crucible.engine.cost_desk import CostDesk
from crucible.engine.datasets import Datasets
from crucible.engine.gateway import Gateway
from crucible.engine.gauges import Gauges
from crucible.engine.hub import Hub
from crucible.engine.outputs import Outputs
from crucible.engine.people import People
from crucible.engine.prices import PriceRefresher
from crucible.engine.privacy import Privacy
from crucible.engine.recommendations import Recommender
from crucible.engine.retention import Retention
from crucible.engine.savings import Savings
from crucible.engine.secret_keys import SecretKeys
from crucible.engine.secrets import Secrets
from crucible.engine.service import Service
from crucible.engine.shard_outputs import ShardOutputs
from crucible.engine.shards import ShardDesk
from crucible.engine.sign_in import SignIn
from crucible.engine.status import StatusDesk
from crucible.engine.system import SystemDesk
from crucible.engine.teams import Teams
from crucible.engine.templates import Templates
from crucible.engine.trial_desk import TrialDesk
from crucible.model.storage import PIECE_BYTES
from crucible.ports.blobs import Blobs
from crucible.ports.clock import Clock
from crucible.ports.hosts import HostDesk
from crucible.ports.lab import LabDoor
from crucible.ports.objects import Method, Objects
from crucible.ports.store import Store
from crucible.ports.streams import Streams
from crucible.wire.agent import MAX_REPORT_BYTES
from crucible.wire.recommendations import MAX_CODE_BYTES
from crucible.wire.rest import MAX_BODY_BYTES, MAX_PACKAGE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    version: str
    allowed_hosts: tuple[str, ...] = ()  # names that a Host header may carry besides localhost and addresses
    providers: tuple[str, ...] = ("local",)  # whose nodes are listed
    is_https: bool = False  # people reach it by https: browsers shall never try anything else
    page: Path | None = None  # where the page lies that was built for browsers
    label: str | None = None  # a word that the page shows beside its name
    rate_limits: RateLimits = RateLimits()  # noqa: RUF009 - frozen
    max_body_bytes: int = MAX_BODY_BYTES
    max_report_bytes: int = MAX_REPORT_BYTES
    max_package_bytes: int = MAX_PACKAGE_BYTES
    max_code_bytes: int = MAX_CODE_BYTES  # to be read for a recommendation
    max_object_bytes: int = PIECE_BYTES + (1 << 20)  # a piece, or a manifest that names very many


@dataclass(frozen=True, slots=True, kw_only=True)
class Deps:
    store: Store
    streams: Streams
    blobs: Blobs
    agents: Blobs  # the programs of machines elsewhere, by their digest
    service: Service
    people: People
    teams: Teams
    audits: Audits
    sign_in: SignIn
    retention: Retention
    privacy: Privacy
    gateway: Gateway
    channels: Channels
    checkpoints: CheckpointDesk
    datasets: Datasets
    templates: Templates
    secrets: Secrets
    secret_keys: SecretKeys
    budgets: BudgetDesk
    trials: TrialDesk
    statuses: StatusDesk
    system: SystemDesk
    outputs: Outputs
    shards: ShardDesk
    shard_outputs: ShardOutputs
    gauges: Gauges
    hub: Hub
    clock: Clock
    settings: ApiSettings
    signed: Callable[[Method, str], tuple[Objects, str]]  # what the token of an object's address leads to
    prices: PriceRefresher
    table: Callable[[], Awaitable[OfferTable]]  # everything on sale now
    recommender: Recommender
    costs: CostDesk
    savings: Savings
    enabled: Collection[str]  # providers that can be bought from
    enabled_places: Collection[str]  # the same as "aws/us-east-1"
    # By provider, one of each place that it sells in: a status and every problem in a sentence, for the operator.
    healths: Mapping[str, Sequence[Callable[[], Awaitable[Mapping[str, Any]]]]]
    alerts: AlertDesk | None = None
    hosts: HostDesk | None = None  # where own hosts are kept
    hosts_changed: Callable[[], None] = lambda: None  # there may be room for what waits
    lab: LabDoor | None = None  # where this server buys, if that is a Lab
