"""What must be true after every step of the lifecycle machine, each with a name. An invariant yields what breaks it."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise

from crucible.core.job import TRANSITIONS
from crucible.model.attempt import Attempt, AttemptPhase, Outcome, RankState
from crucible.model.change import Entity
from crucible.model.ids import MachineId
from crucible.model.job import Desired, Job, JobStatus, JobStatusChanged
from crucible.model.lease import Lease, LeasePhase, Node, NodePhase, Order, OrderPhase
from crucible.model.task import Task, TaskPhase
from property.lifecycle_world import LifeWorld
from property.shop import GPUS

Broken = Iterator[str]
Invariant = Callable[[LifeWorld], Broken]


def is_over(row: Entity) -> bool:
    match row:
        case Job():
            return row.status.is_terminal
        case Task():
            return row.phase.is_terminal
        case Attempt():
            return row.phase is AttemptPhase.ENDED
        case Order():
            return row.is_settled
        case Lease():
            return row.phase is LeasePhase.CLOSED
        case Node():
            return row.phase is NodePhase.RETIRED


# --- money ------------------------------------------------------------------------------------------------


def nothing_is_bought_or_deleted_out_of_turn(world: LifeWorld) -> Broken:
    """The intent is there before the effect, whole; only what is given back is deleted: the shop looks at each call."""
    yield from world.broken


def every_call_of_an_order_is_the_same_call(world: LifeWorld) -> Broken:
    said: dict[str, set[str]] = defaultdict(set)
    for order_id, body in world.shop.calls:
        said[order_id].add(body)
    yield from (f"{order_id} was asked for in {len(each)} ways" for order_id, each in said.items() if len(each) > 1)


def no_more_machines_than_ordered(world: LifeWorld) -> Broken:
    """A listing that hid a machine for longer than it may can make us buy another; then the sweep removes one."""
    alive = Counter(thing.order_id for thing in world.shop.alive())
    for order_id, count in alive.items():
        order = world.seen.rows.get((Order, order_id))
        if not isinstance(order, Order):
            yield f"{count} machines of {order_id} live, and no such order was written down"
        elif count > order.count and order_id not in world.shop.hidden:
            yield f"{count} machines of {order_id} live, {order.count} were ordered"


def a_lease_is_closed_only_when_its_machine_is_gone(world: LifeWorld) -> Broken:
    for lease in world.seen.all(Lease):
        machine = world.shop.things.get(lease.machine_id) if lease.machine_id else None
        if lease.phase is LeasePhase.CLOSED and machine is not None and machine.is_alive:
            yield f"{lease.id} is closed ({lease.reason}), and {machine.id} lives"


def a_machine_has_one_lease(world: LifeWorld) -> Broken:
    held = Counter(lease.machine_id for lease in world.seen.all(Lease) if lease.machine_id is not None)
    yield from (f"{machine} is held by {count} leases" for machine, count in held.items() if count > 1)


def a_refused_order_leaves_no_machine_in_use(world: LifeWorld) -> Broken:
    """One that was given up may keep what had come before: of two machines one, where the other died on its way."""
    for lease in world.seen.all(Lease):
        order = world.seen.rows[Order, lease.order_id]
        phase = order.phase if isinstance(order, Order) else None
        waits = lease.phase is LeasePhase.REQUESTED and phase in (OrderPhase.REFUSED, OrderPhase.ABANDONED)
        if waits or (lease.phase is LeasePhase.ACTIVE and phase is OrderPhase.REFUSED):
            yield f"{lease.order_id} is {phase}, and {lease.id} is {lease.phase}"


def what_is_free_is_derived(world: LifeWorld) -> Broken:
    """What is offered is what the shop has less what is on its way, worked out anew from the rows."""
    coming = sum(le.gpus for le in world.seen.all(Lease) if not is_over(le) and le.machine_id is None)
    free = max(0, GPUS - world.shop.used() - coming)
    for offer in world.do(world.offers) or ():
        if offer.free_gpus != free:
            yield f"{offer.id} offers {offer.free_gpus} GPUs, {free} are free"


def what_is_charged_is_never_changed(world: LifeWorld) -> Broken:
    yield from world.seen.rewritten


def every_posting_comes_to_nothing(world: LifeWorld) -> Broken:
    for posting in world.seen.postings.values():
        if sum(entry.amount for entry in posting.entries) != 0:
            yield f"{posting} does not come to nothing"


def a_machine_is_charged_without_gap_or_overlap(world: LifeWorld) -> Broken:
    for (machine, kind), stretches in world.seen.money().items():
        if stretches[0].from_at != world.shop.things[MachineId(machine)].born_at:
            yield f"{kind} of {machine} is charged from {stretches[0].from_at} on"
        yield from (f"{kind} of {machine}: {a} then {b}" for a, b in pairwise(stretches) if a.to_at != b.from_at)


def what_ended_is_charged_to_the_last_micro_dollar(world: LifeWorld) -> Broken:
    """Once the end has been told; of what the shop has forgotten meanwhile only an estimate can be had."""
    charged: Counter[str] = Counter()
    for posting in world.seen.postings.values():
        machine = posting.id.split("/")[2]
        charged[machine] += sum(e.amount for e in posting.entries if e.account.startswith("job:"))
    for machine in world.told_ends:
        if charged[machine] != (owed := world.shop.things[machine].costs()):
            yield f"{machine} costs {owed}, charged are {charged[machine]}: {world.shop.things[machine]}"


# --- work -------------------------------------------------------------------------------------------------


def no_rank_runs_twice(world: LifeWorld) -> Broken:
    copies: dict[tuple[str, int], list[str]] = defaultdict(list)
    for agent in world.agents.values():
        for rank in agent.running:
            copies[rank.launch.task_id, rank.launch.rank].append(rank.launch.attempt_id)
    yield from (f"rank {place} runs {len(each)} times: {each}" for place, each in copies.items() if len(each) > 1)


def a_task_has_one_live_attempt(world: LifeWorld) -> Broken:
    live: dict[str, list[str]] = defaultdict(list)
    for attempt in world.seen.all(Attempt):
        if not is_over(attempt):
            live[attempt.task_id].append(attempt.id)
    for task in world.seen.all(Task):
        if live[task.id] != [task.attempt_id] and live[task.id]:
            yield f"{task.id} is at {task.attempt_id}, alive are {live[task.id]}"


def attempts_are_numbered_without_a_gap(world: LifeWorld) -> Broken:
    numbers: dict[str, list[int]] = defaultdict(list)
    for attempt in world.seen.all(Attempt):
        numbers[attempt.task_id].append(attempt.number)
    for task in world.seen.all(Task):
        if sorted(numbers[task.id]) != list(range(task.attempts)):
            yield f"{task.id} has had {task.attempts} attempts: {numbers[task.id]}"


def a_gang_starts_whole(world: LifeWorld) -> Broken:
    for attempt in world.seen.all(Attempt):
        is_elastic = world.is_elastic(attempt.job_id)
        if attempt.ranks and not is_elastic and len({rank.node_id for rank in attempt.ranks}) != len(attempt.leases):
            yield f"{attempt.id} was started on {len(attempt.ranks)} of {len(attempt.leases)} machines"


def members_of_an_elastic_attempt_are_told_apart(world: LifeWorld) -> Broken:
    """Whoever joins has a number of its own, and stands on a machine of the attempt as long as it runs."""
    for attempt in world.seen.all(Attempt):
        if [rank.rank for rank in attempt.ranks] != list(range(len(attempt.ranks))):
            yield f"{attempt.id} has ranks {[rank.rank for rank in attempt.ranks]}"
        nodes = {lease.node_id for lease in world.seen.all(Lease) if lease.id in attempt.leases}
        at_work = {rank.node_id for rank in attempt.ranks if rank.state is not RankState.EXITED}
        if attempt.phase is AttemptPhase.RUNNING and not at_work <= nodes:
            yield f"{attempt.id} has members on {at_work - nodes}, whose leases are not its own"


def a_success_is_never_run_again(world: LifeWorld) -> Broken:
    for attempt in world.seen.all(Attempt):
        task = world.seen.rows[Task, attempt.task_id]
        if attempt.outcome is Outcome.SUCCEEDED and isinstance(task, Task) and task.attempts != attempt.number + 1:
            yield f"{task.id} succeeded with attempt {attempt.number} of {task.attempts}"


def only_the_programs_own_failures_count(world: LifeWorld) -> Broken:
    """A machine that was lost, taken or never came costs no retry and fails no job."""
    for task in world.seen.all(Task):
        by_user = sum(task_id == task.id for task_id, _ in world.failed_by_user)
        if task.failures > by_user:
            yield f"{task.id} counts {task.failures} failures, its program failed {by_user} times"
        if task.phase is TaskPhase.FAILED and by_user <= world.limits.get(task.job_id, 0):
            yield f"{task.id} failed ({task.reason}) after {by_user} failures of its program"


def success_is_every_ranks(world: LifeWorld) -> Broken:
    for task in world.seen.all(Task):
        if task.phase is TaskPhase.SUCCEEDED and not any(
            (len(codes) == world.worlds[name] or (world.is_elastic(task.job_id) and codes)) and not any(codes.values())
            for name, codes in world.exits.items()
            if name[0] == task.id
        ):
            yield f"{task.id} succeeded, and no attempt of it came to its end"


def a_cancelled_job_ends_so(world: LifeWorld) -> Broken:
    for job in world.seen.all(Job):
        if job.desired is Desired.CANCEL and job.status is JobStatus.FAILED:
            yield f"{job.id} was cancelled and ended {job.status}: {job.reason}"


# --- rows -------------------------------------------------------------------------------------------------


def terminal_is_for_ever(world: LifeWorld) -> Broken:
    for key, row in world.seen.rows.items():
        first = world.ended.setdefault(key, row) if is_over(row) or key in world.ended else row
        if first != row:
            yield f"{key[1]} was over and has changed from {first} to {row}"


def a_row_is_the_fold_of_its_log(world: LifeWorld) -> Broken:
    for key, row in world.seen.rows.items():
        if world.seen.folded[key] != row or row.version != len(world.seen.log[key]):
            yield f"{key[1]} is {row}, its log says {world.seen.folded[key]}"


def a_job_takes_legal_steps(world: LifeWorld) -> Broken:
    for (kind, job_id), log in world.seen.log.items():
        if kind is Job:
            way = [JobStatus.PENDING, *(event.status for event in log if isinstance(event, JobStatusChanged))]
            yield from (f"{job_id} went from {a} to {b}" for a, b in pairwise(way) if b not in TRANSITIONS[a])


def a_node_is_its_machine(world: LifeWorld) -> Broken:
    """A node is known by its key: whoever talks for it is the agent of its lease's machine."""
    for node in world.seen.all(Node):
        lease = world.seen.rows[Lease, node.lease_id]
        if isinstance(lease, Lease) and (lease.node_id, lease.machine_id) != (node.id, node.machine_id):
            yield f"{node.id} on {node.machine_id} belongs to {lease}"


def somebody_looks_after_every_open_row(world: LifeWorld) -> Broken:
    """With a deadline, or in a listing that is gone through again and again."""
    due, waiting, stranded = world.do(world.looked_after)
    holding = {lease.task_id for lease in world.seen.all(Lease) if not is_over(lease)}
    held = {job.id for job in world.seen.all(Job) if job.desired is Desired.HOLD}  # by a person, who may release it
    for task in world.seen.all(Task):
        is_held = task.job_id in held and task.phase is TaskPhase.WAITING
        if not is_over(task) and not is_held and task.id not in {*due.tasks, *waiting, *stranded, *holding}:
            yield f"nobody looks after {task.id}: {task}"
    for job in world.seen.all(Job):
        unfinished = any(task.job_id == job.id and not is_over(task) for task in world.seen.all(Task))
        if not is_over(job) and not unfinished and job.id not in due.jobs:
            yield f"nobody looks after {job.id}: {job}"
    for lease in world.seen.all(Lease):
        if lease.phase is LeasePhase.CLOSING and lease.deadline_at is None:
            yield f"{lease.id} is to be given back, and nobody knows when"


INVARIANTS: tuple[Invariant, ...] = (
    nothing_is_bought_or_deleted_out_of_turn,
    every_call_of_an_order_is_the_same_call,
    no_more_machines_than_ordered,
    a_lease_is_closed_only_when_its_machine_is_gone,
    a_machine_has_one_lease,
    a_refused_order_leaves_no_machine_in_use,
    what_is_free_is_derived,
    what_is_charged_is_never_changed,
    every_posting_comes_to_nothing,
    a_machine_is_charged_without_gap_or_overlap,
    what_ended_is_charged_to_the_last_micro_dollar,
    no_rank_runs_twice,
    a_task_has_one_live_attempt,
    attempts_are_numbered_without_a_gap,
    a_gang_starts_whole,
    members_of_an_elastic_attempt_are_told_apart,
    a_success_is_never_run_again,
    only_the_programs_own_failures_count,
    success_is_every_ranks,
    a_cancelled_job_ends_so,
    terminal_is_for_ever,
    a_row_is_the_fold_of_its_log,
    a_job_takes_legal_steps,
    a_node_is_its_machine,
    somebody_looks_after_every_open_row,
)


def broken_by(world: LifeWorld) -> list[str]:
    return [f"{one.__name__}: {what}" for one in INVARIANTS for what in one(world)]
