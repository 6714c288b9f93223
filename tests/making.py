"""Small values for tests of the core."""

from datetime import UTC, datetime, timedelta

from crucible.model.attempt import Attempt, AttemptPhase, Rank, RankState
from crucible.model.ids import AttemptId, JobId, LeaseId, MachineId, NodeId, OfferId, OrderId, TaskId, UserId
from crucible.model.job import Job
from crucible.model.lease import Lease, LeasePhase, Node, Order, SellerFacts
from crucible.model.offer import Offer, Target
from crucible.model.policy import Policy
from crucible.model.spec import Framework, JobType, Locality, Mode, Replication
from crucible.model.task import Task
from crucible.model.units import MicroUsd

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = Policy()
FACTS = SellerFacts(idempotent_create=True, visibility=timedelta(seconds=30), boot_time=timedelta(seconds=60))
NO_TOKEN = SellerFacts(idempotent_create=False, visibility=timedelta(seconds=30), boot_time=timedelta(seconds=60))
TARGET = Target("fake", "nowhere-1", "vm")


def a_job(**changes: object) -> Job:
    fields: dict[str, object] = dict(
        id=JobId("j"), user_id=UserId("u"), team=None, project=None, name="n", job_type=JobType.TRAINING,
        framework=Framework.PLAIN, entrypoint_uri=None, dataset_uri=None, execution_mode=Mode.SINGLE_CLUSTER, gpus=0,
        max_gpus_per_node=None, requires_multi_node=False, gpu_memory_gb=0, cpu_memory_gb=0, storage_gb=0,
        estimated_hours=None, locality=Locality.PREFER, replication=Replication.NONE, budget_microusd=None,
        deadline_at=None, allow_spot=False, min_reliability=0, performance_weight=0, priority=0, spec_yaml="",
        code_digest=None, origin=None, lineage=JobId("j"), created_at=NOW,
    )  # fmt: skip
    return Job(**{**fields, **changes})  # type: ignore[arg-type]


def a_task(**changes: object) -> Task:
    fields: dict[str, object] = dict(id=TaskId("t"), job_id=JobId("j"), index=0, created_at=NOW)
    return Task(**{**fields, **changes})  # type: ignore[arg-type]


def an_attempt(ranks: int = 0, state: RankState = RankState.ASSIGNED, **changes: object) -> Attempt:
    fields: dict[str, object] = dict(
        id=AttemptId("a"), task_id=TaskId("t"), job_id=JobId("j"), number=0, created_at=NOW,
        leases=tuple(LeaseId(f"l{i}") for i in range(max(1, ranks))), deadline_at=NOW + timedelta(minutes=10),
        ranks=tuple(
            Rank(rank=i, node_id=NodeId(f"n{i}"), node_rank=i, local_rank=0, devices=(), state=state)
            for i in range(ranks)
        ),
        generation=1 if ranks else 0,
        phase=AttemptPhase.STARTING if ranks else AttemptPhase.PROVISIONING,
    )  # fmt: skip
    return Attempt(**{**fields, **changes})  # type: ignore[arg-type]


def an_order(**changes: object) -> Order:
    fields: dict[str, object] = dict(
        id=OrderId("o"), job_id=JobId("j"), task_id=TaskId("t"), target=TARGET, offer=OfferId("x"), zone="",
        instance_type="x", count=1, gpus=0, is_spot=False, price_per_hour=MicroUsd(0), body={}, created_at=NOW,
        deadline_at=NOW + timedelta(minutes=10),
    )  # fmt: skip
    return Order(**{**fields, **changes})  # type: ignore[arg-type]


def a_lease(index: int = 0, *, active: bool = False, **changes: object) -> Lease:
    fields: dict[str, object] = dict(
        id=LeaseId(f"l{index}"), order_id=OrderId("o"), job_id=JobId("j"), task_id=TaskId("t"), target=TARGET,
        index=index, gpus=0, price_per_hour=MicroUsd(0), created_at=NOW, deadline_at=None,
    )  # fmt: skip
    if active:
        fields |= dict(phase=LeasePhase.ACTIVE, machine_id=MachineId(f"m{index}"), node_id=NodeId(f"n{index}"))
    return Lease(**{**fields, **changes})  # type: ignore[arg-type]


def a_node(index: int = 0) -> Node:
    return Node(
        id=NodeId(f"n{index}"), lease_id=LeaseId(f"l{index}"), task_id=TaskId("t"), machine_id=MachineId(f"m{index}"),
        agent_id="agent", address=f"10.0.0.{index + 1}", rendezvous_port=29500 + index, enrolled_at=NOW,
    )  # fmt: skip


def an_offer(gpus: int, *, price: int = 0, free: int | None = 8, **changes: object) -> Offer:
    fields: dict[str, object] = dict(
        id=OfferId(f"x/{gpus}/{price}"), target=TARGET, instance_type=f"x{gpus}", gpu="H100" if gpus else None,
        gpus=gpus, gpu_memory_gib=80, cpus=8, memory_gib=64, price_per_hour=MicroUsd(price), stock="x", free_gpus=free,
    )  # fmt: skip
    return Offer(**{**fields, **changes})  # type: ignore[arg-type]
