"""What agents ask for: enrolment binds a machine to its lease; work is a long poll over what the node should run."""

import base64
import hashlib
import zlib
from collections import Counter
from collections.abc import Callable, Sequence

from crucible.core import lease as leases
from crucible.core.checkpoint import Whole
from crucible.engine.checkpoints import Checkpoints
from crucible.engine.context import Context
from crucible.engine.dataset_nodes import DatasetNodes
from crucible.engine.outputs import Outputs
from crucible.engine.reports import Reports, Succeed
from crucible.engine.secrets import Secrets
from crucible.engine.stored import Place
from crucible.engine.work import work_of, work_version
from crucible.model.attempt import Attempt
from crucible.model.change import born, changed
from crucible.model.channel import Channel
from crucible.model.encoding import encode
from crucible.model.errors import Busy, Forbidden, NotFound, StaleVersion
from crucible.model.ids import AttemptId, MachineId, NodeId, OrderId
from crucible.model.job import Job
from crucible.model.lease import Lease, LeasePhase, Node, NodeEnrolled, Order, SellerFacts
from crucible.model.tree import TaskTree
from crucible.wire import agent as wire
from crucible.wire import datasets as trees
from crucible.wire import outputs as left

TRIES = 10
MAX_WAIT_S = 60.0
SERVERS_CACHE_S = 5.0
# How long a change made by another server may go unnoticed.
LOOK_AGAIN_S = 2.0
# An agent that broke off on purpose is back sooner.
ASKS_AGAIN_S = 0.5
USABLE = (LeasePhase.REQUESTED, LeasePhase.ACTIVE)


class Gateway:
    def __init__(
        self,
        context: Context,
        checkpoints: Checkpoints,
        datasets: DatasetNodes,
        outputs: Outputs,
        secrets: Secrets,
        want_place: Callable[[], None],
        succession: Succeed,
    ) -> None:
        """`want_place` hears that there is room for a task."""
        self._context = context
        self._checkpoints = checkpoints
        self._datasets = datasets
        self._outputs = outputs
        self._secrets = secrets
        self._want_place = want_place
        self._reports = Reports(context, checkpoints, outputs, secrets.hidden, want_place, succession)
        self._asking: Counter[NodeId] = Counter()  # questions for work that wait here
        self._servers_known: tuple[float, list[str]] | None = None

    # --- enrolment --------------------------------------------------------------------------------

    async def enrol(self, token: str, message: wire.Enrol) -> wire.Enrolled:
        order_id = self._context.keys.order_of(token)
        if order_id != message.order_id:
            raise Forbidden("the token belongs to another order")
        for _ in range(TRIES):
            try:
                return await self._enrol(order_id, message)
            except StaleVersion:
                continue
        raise StaleVersion("the lease is changing too quickly; ask again")

    async def _enrol(self, order_id: OrderId, message: wire.Enrol) -> wire.Enrolled:
        context = self._context
        order, held = await context.store.order(order_id)
        lease, facts = lease_for(held, MachineId(message.machine_id)), context.seller(order.target).facts
        if lease.node_id is not None:
            node = await context.store.node(lease.node_id)
            if node.agent_id != message.agent_id:
                raise Forbidden("another agent has enrolled this machine")
            return await self._enrolled(node, facts)
        node = self._new_node(order, lease, message)
        now, seen = context.clock.now(), leases.Enrolled(node.id)
        bound = changed(lease, leases.decide(lease, seen, now, context.policy, facts), leases.evolve)[1]
        await context.store.commit([born(node, NodeEnrolled(now)), *bound], label="enrol")
        self._reports.heard(node.id)
        context.tell(order.job_id, order.task_id, bound)
        self._want_place()
        return await self._enrolled(node, facts)

    def _new_node(self, order: Order, lease: Lease, message: wire.Enrol) -> Node:
        return Node(
            id=NodeId(self._context.ids.new("node")),
            lease_id=lease.id,
            task_id=order.task_id,
            machine_id=MachineId(message.machine_id),
            agent_id=message.agent_id,
            address=message.address,
            rendezvous_port=message.rendezvous_port,
            facts={**message.facts, "agent_version": message.agent_version},
            enrolled_at=self._context.clock.now(),
        )

    async def _enrolled(self, node: Node, facts: SellerFacts) -> wire.Enrolled:
        return wire.Enrolled(
            node_id=node.id,
            node_key=self._context.keys.node(node.id),
            report_every_s=self._context.policy.report_every.total_seconds(),
            servers=await self._servers(),
            orphan_after_s=facts.orphan_after.total_seconds(),
        )

    async def _servers(self) -> list[str]:
        """This one first, then the others that share the database."""
        now = self._context.clock.monotonic()
        if self._servers_known is None or now - self._servers_known[0] > SERVERS_CACHE_S:
            others = [url for url in await self._context.store.servers() if url != self._context.url]
            self._servers_known = (now, [self._context.url, *others])
        return self._servers_known[1]

    # --- work and reports -------------------------------------------------------------------------

    async def work(self, key: str, seen: str | None, wait_s: float) -> wire.WorkReply:
        """At once if the node's work differs from what it has seen, else after news or the time."""
        node_id = await self.authenticate(key)
        self._asking[node_id] += 1
        try:
            return await self._work(node_id, seen, wait_s)
        finally:
            self._asking[node_id] -= 1
            if not self._asking[node_id]:
                del self._asking[node_id]

    @property
    def waiting(self) -> int:
        """Questions for work that have no answer yet."""
        return self._asking.total()

    @property
    def connected(self) -> int:
        """Nodes whose agents wait here."""
        return len(self._asking)

    async def hung_up(self, key: str) -> None:
        """Who breaks off while it waits for work asks again at once, or its machine is gone: then the seller knows."""
        context, node_id = self._context, await self.authenticate(key)
        await context.clock.sleep(ASKS_AGAIN_S)
        if node_id not in self._asking:
            target = (await context.store.node_work(node_id)).lease.target
            context.look_at(target.provider, target.region)

    async def _work(self, node_id: NodeId, seen: str | None, wait_s: float) -> wire.WorkReply:
        context = self._context
        until = context.clock.monotonic() + min(wait_s, MAX_WAIT_S) * patience_of(node_id)
        while True:
            counter = context.hub.counter(node_id)
            glance = await context.store.node_glance(node_id)
            if glance.phase is LeasePhase.CLOSED:
                raise NotFound("this node's lease is closed")
            wishes = await context.store.channels(node_id, context.clock.now())
            version = work_version(glance) + marked(wishes)
            if version != seen:
                return await self._told(node_id, wishes)
            left = until - context.clock.monotonic()
            if left <= 0 or context.is_stopping:
                return wire.WorkReply(version=version, unchanged=True, servers=await self._servers())
            is_alone = len(await self._servers()) == 1
            await context.hub.wait(node_id, counter, left if is_alone else min(left, LOOK_AGAIN_S))

    async def _told(self, node_id: NodeId, wishes: Sequence[Channel]) -> wire.WorkReply:
        """As it is now, which may be later than whatever made us look."""
        known = await self._context.store.node_work(node_id)
        self._reports.expect(known)
        work = work_of(self._context, known, await self._checkpoints.carries(known.job))
        told = {"version": work.version + marked(wishes), "channels": encode(wishes), "servers": await self._servers()}
        return wire.WorkReply.model_validate({**encode(work), **told})

    async def report(self, key: str, report: wire.Report) -> wire.ReportReply:
        acks = await self._reports.take(await self.authenticate(key), report)
        return wire.ReportReply(acks=acks, servers=await self._servers())

    async def slot(self, key: str, asked: wire.SlotRequest) -> wire.SlotReply:
        return await self._checkpoints.slot(await self.authenticate(key), asked)

    async def candidate(self, key: str, asked: wire.CandidateRequest) -> wire.CandidateReply:
        return await self._checkpoints.candidate(await self.authenticate(key), asked)

    async def tree(self, key: str, asked: trees.TreeRequest) -> trees.TreeReply:
        return await self._datasets.tree(await self.authenticate(key), asked)

    async def fetched(self, key: str, asked: trees.TreeFetched) -> trees.TreeNoted:
        return await self._datasets.fetched(await self.authenticate(key), asked)

    async def output(self, key: str, asked: left.OutputAsked) -> left.OutputReply:
        return await self._outputs.upload(await self.authenticate(key), asked)

    async def whole(self, key: str, asked: left.OutputWhole) -> left.OutputFound:
        return await self._outputs.whole(await self.authenticate(key), asked)

    async def secrets(self, key: str, asked: wire.SecretsAsked) -> wire.SecretsReply:
        found = await self._secrets.deliver(await self.authenticate(key), asked.attempt_id)
        values = {name: base64.b64encode(value.reveal()).decode() for name, value in found.items()}
        return wire.SecretsReply(items=[wire.SecretValue(name=name, value=value) for name, value in values.items()])

    async def last_words(self, tree: TaskTree) -> bool:
        """Of ranks whose machines are gone. True: something is known now that was not before."""
        return await self._reports.last_words(tree)

    async def record(self, job: Job, attempt: Attempt, place: Place, whole: Whole) -> None:
        await self._reports.record(job, attempt, place, whole)

    async def flush(self) -> None:
        await self._reports.flush()

    # --- who is asking ----------------------------------------------------------------------------

    async def admit(self, token: str) -> OrderId:
        """The order that a machine was bought with, as long as somebody wants its machines."""
        order_id = self._context.keys.order_of(token)
        _, held = await self._context.store.order(order_id)
        if not any(lease.phase in USABLE for lease in held):
            raise NotFound("the machines of this order are not wanted any more")
        return order_id

    async def authenticate(self, key: str) -> NodeId:
        return self._context.keys.node_of(key)

    async def attempt_principal(self, token: str) -> AttemptId:
        """An attempt's token dies with the attempt."""
        attempt = await self._context.store.attempt(self._context.keys.attempt_of(token))
        if attempt.outcome is not None:
            raise NotFound("the attempt is over")
        return attempt.id


def patience_of(node_id: NodeId) -> float:
    """From three quarters to all of the time that an agent would wait, for each node its own: the nodes of a large gang
    ask for the first time in one moment, and should not do so for ever."""
    return 1 - zlib.crc32(node_id.encode()) / (1 << 34)


def marked(wishes: Sequence[Channel]) -> str:
    """What people's wishes add to the version of a node's work: an agent hears of each, and of its going."""
    if not wishes:
        return ""
    return "+" + hashlib.sha256(" ".join(wish.id for wish in wishes).encode()).hexdigest()[:12]


def lease_for(held: Sequence[Lease], machine: MachineId) -> Lease:
    """The lease of this machine. Raises Busy before the seller's answer is known: a guess could bind the agent to the
    lease of its sibling."""
    usable = [lease for lease in held if lease.phase in USABLE]
    for lease in usable:
        if lease.machine_id == machine:
            return lease
    if any(lease.machine_id is None for lease in usable):
        raise Busy("the seller has not said yet which machine is whose; ask again")
    raise NotFound("no lease waits for this machine")
