"""Small values of every kind, and a whole family of them in a store, for tests that need something to be there."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any

from crucible.core import attempt as attempts
from crucible.core import job as jobs
from crucible.core import lease as leases
from crucible.core import task as tasks
from crucible.model.account import Project, Team
from crucible.model.attempt import Attempt, AttemptCreated, Rank, RanksAssigned
from crucible.model.change import Change, Entity, Event, born, changed
from crucible.model.errors import Conflict
from crucible.model.ids import AttemptId, JobId, LeaseId, MachineId, NodeId, OfferId, OrderId, TaskId, UserId
from crucible.model.job import Job, JobSubmitted
from crucible.model.lease import (
    Lease,
    LeaseRequested,
    LeaseStarted,
    Node,
    NodeBound,
    NodeEnrolled,
    Order,
    OrderFilled,
    OrderPlaced,
)
from crucible.model.offer import Target
from crucible.model.spec import Framework, JobType, Locality, Mode, Replication
from crucible.model.task import Task, TaskCreated, TaskPlaced
from crucible.model.units import MicroUsd
from crucible.ports.store import Store

NOW = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
TARGET = Target("fake", "nowhere-1", "vm")

EVOLVE: dict[type, Any] = {
    Job: jobs.evolve,
    Task: tasks.evolve,
    Attempt: attempts.evolve,
    Order: leases.evolve_order,
    Lease: leases.evolve,
    Node: leases.evolve_node,
}


def fold(entity: Entity, events: Sequence[Event]) -> Any:
    return reduce(EVOLVE[type(entity)], events, entity)


def step(entity: Any, *events: Event) -> tuple[Any, Change]:
    """`entity` after `events`, and the change to commit."""
    after, (change,) = changed(entity, events, EVOLVE[type(entity)])
    return after, change


# --- one of each ------------------------------------------------------------------------------------------


def a_job(id_: str = "j1", **fields: Any) -> Job:
    given: dict[str, Any] = {
        "id": JobId(id_),
        "user_id": UserId("ann"),
        "team": None,
        "project": None,
        "name": f"train {id_}",
        "job_type": JobType.TRAINING,
        "framework": Framework.PYTORCH_DDP,
        "entrypoint_uri": "train.py",
        "dataset_uri": None,
        "execution_mode": Mode.SINGLE_CLUSTER,
        "gpus": 8,
        "max_gpus_per_node": 4,
        "requires_multi_node": True,
        "gpu_memory_gb": 80.0,
        "cpu_memory_gb": 0.5,
        "storage_gb": 0.0,
        "estimated_hours": None,
        "locality": Locality.PREFER,
        "replication": Replication.ON_DEMAND_CACHE,
        "budget_microusd": MicroUsd(12_345_678),
        "deadline_at": LATER,
        "allow_spot": True,
        "min_reliability": 0.9,
        "performance_weight": 0.25,
        "priority": 0,
        "spec_yaml": "job:\n  command: [train]\n",
        "code_digest": None,
        "origin": None,
        "lineage": JobId(id_),
        "created_at": NOW,
    }
    return Job(**{**given, **fields})


def a_task(job: Job, index: int = 0, **fields: Any) -> Task:
    given: dict[str, Any] = {"id": TaskId(f"{job.id}-t{index}"), "job_id": job.id, "index": index, "created_at": NOW}
    return Task(**{**given, **fields})


def an_order(task: Task, number: int = 0, count: int = 1, **fields: Any) -> Order:
    given: dict[str, Any] = {
        "id": OrderId(f"{task.id}-o{number}"),
        "job_id": task.job_id,
        "task_id": task.id,
        "target": TARGET,
        "offer": OfferId("fake/h100"),
        "zone": "nowhere-1a",
        "instance_type": "h100x4",
        "count": count,
        "gpus": 4,
        "is_spot": True,
        "price_per_hour": MicroUsd(4_500_000),
        "body": {"image": "ubuntu", "tags": {"order": [1, 2.5, None, True]}},
        "created_at": NOW,
        "deadline_at": LATER,
        "hazard_per_hour": 0.125,
    }
    return Order(**{**given, **fields})


def a_lease(order: Order, index: int = 0, **fields: Any) -> Lease:
    given: dict[str, Any] = {
        "id": LeaseId(f"{order.id}-l{index}"),
        "order_id": order.id,
        "job_id": order.job_id,
        "task_id": order.task_id,
        "target": order.target,
        "index": index,
        "gpus": order.gpus,
        "price_per_hour": order.price_per_hour,
        "created_at": NOW,
        "deadline_at": None,
    }
    return Lease(**{**given, **fields})


def a_node(lease: Lease, **fields: Any) -> Node:
    given: dict[str, Any] = {
        "id": NodeId(f"{lease.id}-n"),
        "lease_id": lease.id,
        "task_id": lease.task_id,
        "machine_id": MachineId(f"m-{lease.id}"),
        "agent_id": "agent",
        "address": f"10.0.0.{lease.index + 1}",
        "rendezvous_port": 29500,
        "facts": {"cpus": 8, "gpus": [{"index": 0, "name": "H100"}]},
        "enrolled_at": NOW,
    }
    return Node(**{**given, **fields})


def an_attempt(task: Task, held: Sequence[Lease] = (), **fields: Any) -> Attempt:
    given: dict[str, Any] = {
        "id": AttemptId(f"{task.id}-a{task.attempts}"),
        "task_id": task.id,
        "job_id": task.job_id,
        "number": task.attempts,
        "leases": tuple(lease.id for lease in held),
        "created_at": NOW,
        "deadline_at": LATER,
        "resume_step": 2**40,
        "saved_step": 2**40 + 1,
        "mean_life_s": 14400.5,
    }
    return Attempt(**{**given, **fields})


# --- a family in a store --------------------------------------------------------------------------------------


async def submitted(store: Store, id_: str = "j1", tasks: int = 1, **fields: Any) -> tuple[Job, tuple[Task, ...]]:
    """A team and project that it names are made with it."""
    job = a_job(id_, **fields)
    await founded(store, job)
    made = tuple(a_task(job, index) for index in range(tasks))
    changes = [born(job, JobSubmitted(job.created_at)), *(born(task, TaskCreated(NOW)) for task in made)]
    await store.submit(changes, idempotency_key=None, user_id=job.user_id)
    return job, made


async def founded(store: Store, job: Job) -> None:
    if job.team is not None:
        with suppress(Conflict):
            await store.add_team(Team(name=job.team, created_at=NOW, created_by=job.user_id))
    if job.project is not None and job.team is not None:
        with suppress(Conflict):
            new = Project(name=job.project, team=job.team, created_at=NOW, created_by=job.user_id)
            await store.add_project(new)


@dataclass(frozen=True)
class Family:
    job: Job
    task: Task
    attempt: Attempt
    order: Order
    leases: tuple[Lease, ...]
    nodes: tuple[Node, ...]


async def running(store: Store, id_: str = "j1", nodes: int = 2, **fields: Any) -> Family:
    """A job whose task has been placed on `nodes` machines with one rank each, told to start."""
    job, (waiting, *_) = await submitted(store, id_, **fields)
    order = an_order(waiting, waiting.attempts, count=nodes)
    wanted = [a_lease(order, index) for index in range(nodes)]
    fresh = an_attempt(waiting, wanted)
    task, placed = step(waiting, TaskPlaced(NOW, fresh.id, LATER))
    requests = [born(lease, LeaseRequested(NOW)) for lease in wanted]
    placement = [born(fresh, AttemptCreated(NOW)), born(order, OrderPlaced(NOW)), *requests, placed]
    await store.commit(placement, label="place")

    order, filled = step(order, OrderFilled(NOW))
    enrolled = [a_node(lease) for lease in wanted]
    bound = [
        step(lease, LeaseStarted(NOW, node.machine_id, ("0", "1"), None), NodeBound(NOW, node.id))
        for lease, node in zip(wanted, enrolled, strict=True)
    ]
    attempt, assigned = step(fresh, RanksAssigned(NOW, 1, one_rank_each(enrolled), "10.0.0.1", 29500, LATER))
    arrivals = [born(node, NodeEnrolled(NOW)) for node in enrolled]
    await store.commit([filled, *(change for _, change in bound), *arrivals, assigned], label="start")
    return Family(job, task, attempt, order, tuple(lease for lease, _ in bound), tuple(enrolled))


def one_rank_each(nodes: Sequence[Node]) -> tuple[Rank, ...]:
    return tuple(
        Rank(rank=number, node_id=node.id, node_rank=number, local_rank=0, devices=("0", "1"))
        for number, node in enumerate(nodes)
    )
