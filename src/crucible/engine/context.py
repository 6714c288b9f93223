"""What every part of the engine shares: the ports, the policy, and how to tell the others."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from crucible import spec as specs
from crucible.core.checkpoint import is_carried
from crucible.core.datasets import with_pin
from crucible.core.outputs import with_inputs
from crucible.core.step import View
from crucible.engine.commit_meter import CommitMeter
from crucible.engine.hub import Hub
from crucible.engine.keys import Keys
from crucible.engine.pulse import Pulse
from crucible.engine.vitals import Vitals
from crucible.engine.wakes import Wakes
from crucible.model.change import Change
from crucible.model.errors import InvariantBroken
from crucible.model.ids import JobId, LeaseId, NodeId, TaskId
from crucible.model.job import Job
from crucible.model.lease import Lease, LeasePhase, SellerFacts
from crucible.model.offer import Target
from crucible.model.policy import Policy
from crucible.model.retention import Kept
from crucible.model.spec import JobSpec
from crucible.model.storage import Address, is_object_storage, parse
from crucible.ports.clock import Clock, Ids, Random
from crucible.ports.meter import UNREAD, Meter
from crucible.ports.objects import Storage
from crucible.ports.search import Sampler
from crucible.ports.secrets import NoSealer, Sealer
from crucible.ports.seller import Seller
from crucible.ports.store import Store
from crucible.ports.streams import Streams
from crucible.ports.traces import SpanSink

log = logging.getLogger("crucible.engine")

SPECS_REMEMBERED = 4096
CLAIM_TTL = timedelta(seconds=15)


def listing_of(provider: str, region: str) -> str:
    """What a poller waits for."""
    return f"seller:{provider}/{region}"


@dataclass(kw_only=True)
class Context:
    store: Store
    streams: Streams
    sellers: Mapping[tuple[str, str], Seller]  # by provider and region
    clock: Clock
    ids: Ids
    random: Random
    keys: Keys
    hub: Hub
    wakes: Wakes
    policy: Policy
    server_id: str
    url: str  # where agents reach this server
    agent_sha256: str = ""  # of the agent that this server hands out
    checkpoint_root: str  # URI of a folder under which lineages keep their checkpoints, where machines share files
    storage: Storage
    storage_root: Address  # under which lineages keep what agents carry
    region_storage: Mapping[str, Address] = field(default_factory=dict)  # "provider/region" -> for copies of datasets
    failpoint: Callable[[str], None]
    sampler: Sampler | None = None  # for adaptive searches
    spans: SpanSink | None = None  # where traces of jobs go
    counted: CommitMeter = field(default_factory=lambda: CommitMeter(UNREAD))  # watches the store
    sealer: Sealer = field(default_factory=NoSealer)  # of secrets
    claim_ttl: timedelta = CLAIM_TTL
    keep_days: Mapping[Kept, int] = field(default_factory=dict)  # 0: for ever; where no admin has said otherwise
    is_stopping: bool = False  # long polls end at once
    pulse: Pulse = field(init=False)
    vitals: Vitals = field(init=False)
    last_words: dict[LeaseId, str] = field(init=False, default_factory=dict)  # of machines whose agents are late
    # Whose stored checkpoints want a look: of one task, or of all of a job's.
    untidy: dict[tuple[JobId, int | None], None] = field(init=False, default_factory=dict)
    stirred: dict[JobId, None] = field(init=False, default_factory=dict)  # whose tasks have changed
    heard_at: dict[NodeId, float] = field(init=False, default_factory=dict)  # by this server, monotonic
    _specs: "OrderedDict[JobId, JobSpec]" = field(init=False, default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self.pulse = Pulse(self.clock)
        self.vitals = Vitals(self.clock)

    def spec_of(self, job: Job) -> JobSpec:
        """The parsed spec, with what it meant when it was submitted: the trees of its dataset and inputs, its team.
        None of it changes, so it is parsed once."""
        spec = self._specs.get(job.id)
        if spec is not None:
            return spec
        spec = with_pin(specs.load(job.spec_yaml).spec, job.dataset_uri)
        spec = replace(with_inputs(spec, job.inputs), team=job.team, project=job.project)
        return self.remember_spec(job.id, spec)

    def remember_spec(self, job_id: JobId, spec: JobSpec) -> JobSpec:
        self._specs[job_id] = spec
        if len(self._specs) > SPECS_REMEMBERED:
            self._specs.popitem(last=False)
        return spec

    @property
    def meter(self) -> Meter:
        return self.counted.meter

    @property
    def providers(self) -> frozenset[str]:
        return frozenset(provider for provider, _ in self.sellers)

    @property
    def enabled(self) -> frozenset[str]:
        """Where machines may be bought, as plans are asked for it."""
        return frozenset(f"{provider}/{region}" for provider, region in self.sellers)

    def seller(self, target: Target) -> Seller:
        seller = self.sellers.get((target.provider, target.region))
        if seller is None:
            raise InvariantBroken(f"{target.provider} {target.region} is not configured, but rows name it")
        return seller

    def facts(self, leases: Sequence[Lease]) -> SellerFacts:
        """Of the seller that a task's leases are from; a task never mixes sellers."""
        if leases:
            return self.seller(leases[0].target).facts
        return next(iter(self.sellers.values())).facts

    def view(self, job: Job, leases: Sequence[Lease]) -> View:
        now, said = self.clock.now(), self.last_words
        return View(self.spec_of(job), self.facts(leases), self.policy, now, self.pulse.since, said)

    def folder_of(self, job: Job, task_index: int) -> str:
        """A lineage's checkpoints where machines share files; tasks of one job keep theirs apart."""
        root = self.spec_of(job).checkpoint.dir or f"{self.checkpoint_root}/{job.lineage}"
        return f"{root}/{task_index}"

    def storage_of(self, job: Job, task_index: int) -> Address:
        """The same for what agents carry."""
        place = self.spec_of(job).checkpoint.dir
        is_own = place is not None and is_object_storage(place)
        root = parse(place) if is_own and place else self.storage_root.below(job.lineage)
        return root.below(str(task_index))

    def carries(self, job: Job, has_carried: bool) -> bool:
        """Whether its agents carry checkpoints. All jobs of a server that buys machines without the server's files do,
        and a lineage that once did goes on: it can then move to any machine."""
        shares = all(seller.facts.shares_files for seller in self.sellers.values())
        return is_carried(self.spec_of(job).checkpoint.dir, shares, has_carried)

    def tidy_later(self, job_id: JobId, task_index: int | None = None) -> None:
        self.untidy[job_id, task_index] = None
        self.hub.notify("tidy")

    def is_quiet(self, node_id: NodeId) -> bool:
        """Not heard here for a while: worth a look. Another server may have heard it."""
        heard = self.heard_at.get(node_id)
        return heard is None or self.clock.monotonic() - heard > self.policy.silence.total_seconds() / 2

    def look_at(self, provider: str, region: str) -> None:
        """Something may have happened to a machine there: the seller is asked soon, not at its turn."""
        self.hub.notify(listing_of(provider, region))

    def tell(self, job_id: JobId, task_id: TaskId, changes: Sequence[Change]) -> None:
        """After a commit: wake whoever these changes concern."""
        self.wakes.wake("job", job_id)
        self.wakes.wake("task", task_id)
        for change in changes:
            if isinstance(change.after, Lease):
                self.tell_lease(change.after)
        self.hub.notify(job_id)

    def tell_seated(self, job_id: JobId, changes: Sequence[Change]) -> None:
        """The same for one of very many tasks: its job is looked at soon, together with what happens to the others."""
        self.stirred[job_id] = None
        self.hub.notify("stirred")
        for change in changes:
            if isinstance(change.after, Lease):
                self.tell_lease(change.after)
        self.hub.notify(job_id)

    def tell_lease(self, lease: Lease) -> None:
        if lease.phase in (LeasePhase.REQUESTED, LeasePhase.CLOSING):
            self.wakes.wake("order", lease.order_id)
        if lease.node_id is not None:
            self.hub.notify(lease.node_id)
        self.wakes.wake("task", lease.task_id)
