"""Jobs of Slurm as machines, nodes as offers, Slurm's words as errors."""

from dataclasses import replace
from datetime import timedelta

import pytest

from crucible.model.errors import CredentialsRejected, OrderRejected, OutcomeUnknown, ProviderError, QuotaReached
from crucible.model.lease import Machine, MachineState
from crucible.providers.slurm.cli import devices_of, fields, gpus_of, node_of, seconds_of
from crucible.providers.slurm.door import Job, Partition
from crucible.providers.slurm.errors import meant
from crucible.providers.slurm.hostlist import expand
from crucible.providers.slurm.listing import machines, purchases
from crucible.providers.slurm.settings import ClusterSettings
from crucible.providers.slurm.stock import offers_of

JOB = Job(
    id=7, element=None, name="crucible-o1", comment="crucible d o1 g2 0+100 1+101", state="RUNNING", nodes="n[1-2]",
    started_at=100,
)  # fmt: skip
NODE = (
    "NodeName=n1 CPUAlloc=2 CPUTot=8 Gres=gpu:a100:4(S:0-1) GresUsed=gpu:a100:1(IDX:2) RealMemory=64000 AllocMem=1000 "
    "State=MIXED Partitions=gpu,long"
)


def listed(*jobs: Job, queues: bool = True) -> list[Machine]:
    return [one for bought in purchases(jobs, "d", queues=queues) for one in machines(bought, {})]


@pytest.mark.parametrize(
    ("change", "state", "reason"),
    [
        ({"state": "PENDING", "reason": "Priority", "nodes": ""}, MachineState.STARTING, "queue (Priority)"),
        ({"comment": "crucible d o1 g2"}, MachineState.STARTING, None),
        ({}, MachineState.RUNNING, None),
        ({"state": "SUSPENDED"}, MachineState.RUNNING, None),
        ({"state": "COMPLETING"}, MachineState.STOPPING, None),
        ({"state": "NODE_FAIL"}, MachineState.GONE, "NODE_FAIL"),
        ({"state": "TIMEOUT"}, MachineState.GONE, "time_limit"),
        ({"state": "CANCELLED"}, MachineState.GONE, "CANCELLED"),
        ({"state": "FAILED", "exit_status": 3 << 8}, MachineState.GONE, "with exit code 3"),
        ({"state": "FAILED", "exit_status": 9}, MachineState.GONE, "by signal 9"),
        ({"restarts": 1}, MachineState.GONE, "runs once"),
    ],
)
def test_a_machine_is_what_its_job_is(change: dict[str, object], state: MachineState, reason: str | None) -> None:
    for machine in listed(replace(JOB, **change)):  # type: ignore[arg-type]
        assert machine.state is state
        assert (machine.reason is None) if reason is None else reason in (machine.reason or "")


def test_only_preemption_is_a_machine_that_was_taken() -> None:
    assert all(machine.was_taken for machine in listed(replace(JOB, state="PREEMPTED")))
    assert not any(machine.was_taken for machine in listed(replace(JOB, state="NODE_FAIL")))


def test_a_step_that_ended_ends_its_machine_alone() -> None:
    first, second = listed(replace(JOB, comment=JOB.comment + " 0-150=137"))
    assert (first.state, second.state) == (MachineState.GONE, MachineState.RUNNING)
    assert first.ended_at is not None and first.ended_at.timestamp() == 150 and "137" in (first.reason or "")


def test_of_two_jobs_of_one_order_the_older_is_meant() -> None:
    younger = replace(JOB, id=8, state="PENDING", nodes="", comment="crucible d o1 g2")
    assert listed(younger, JOB) == listed(JOB)


def test_what_is_not_ours_or_was_never_accepted_is_not_listed() -> None:
    others = ("", "hello", "crucible other o1 g2", "crucible d o1 x2", "crucible d o1 g2 0+junk")
    assert listed(*(replace(JOB, comment=comment) for comment in others[:4])) == []
    assert listed(replace(JOB, state="FAILED", nodes="")) == []
    withdrawn = replace(JOB, state="CANCELLED", nodes="")
    assert listed(withdrawn, queues=False) == [] and len(listed(withdrawn)) == 2


def test_names_are_spelled_out() -> None:
    assert expand("n[1-2,07],login,r[1-2]c") == ("n1", "n2", "n07", "login", "r1c", "r2c")
    assert expand("") == ()
    assert devices_of("Nodes=n[1-2] CPU_IDs=0 Mem=1 GRES=gpu:a100:2(IDX:0,3)") == {"n1": ("0", "3"), "n2": ("0", "3")}


def test_a_node_is_offered_by_its_free_and_its_whole_gpus() -> None:
    node = node_of(fields(NODE))
    assert (dict(node.gpus), dict(node.free_gpus), node.free_cpus) == ({"a100": 4}, {"a100": 3}, 6)
    gpu = [Partition(name="gpu", is_up=True)]
    settings = ClusterSettings(name="c", login="here", cost_per_gpu_hour=2.0)
    offers = {offer.id: offer for offer in offers_of(settings, gpu, [node])}
    assert sorted(offers) == ["slurm/c/gpu/a100/1", *(f"slurm/c/gpu/a100/{n}" for n in (2, 3, 4)), "slurm/c/gpu/cpu/0"]
    whole = offers["slurm/c/gpu/a100/4"]
    assert (whole.free_machines, whole.all_machines, whole.cpus, whole.gpu_memory_gib) == (1, 1, 8, 40)
    assert whole.price_per_hour == 8_000_000
    assert {offer.counted for offer in offers.values() if offer.gpus} == {(4, 3)}
    now = offers_of(replace(settings, queue_limit=timedelta(0)), gpu, [node])
    assert {offer.gpus: offer.free_machines for offer in now} == {0: 1, 1: 1, 2: 1, 3: 1, 4: 0}
    assert offers_of(settings, gpu, [replace(node, state="IDLE+DRAIN")]) == []
    assert offers_of(settings, [replace(gpu[0], is_up=False)], [node]) == []


def test_times_and_resources_are_read_as_slurm_writes_them() -> None:
    assert (seconds_of("2-03:00:00"), seconds_of("00:30:00"), seconds_of("UNLIMITED")) == (183_600, 1800, None)
    assert gpus_of("gpu:2,gpu:tesla_v100:1(S:0),shard:8") == {"": 2, "tesla_v100": 1}
    assert gpus_of("(null)") == {}


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Batch job submission failed: Requested node configuration is not available", OrderRejected),
        ("Batch job submission failed: Invalid generic resource (gres) specification", OrderRejected),
        ("Batch job submission failed: Access/permission denied", CredentialsRejected),
        ("Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)", QuotaReached),
        ("Batch job submission failed: Socket timed out on send/recv operation", OutcomeUnknown),
        ("Batch job submission failed: Unable to contact slurm controller (connect failure)", ProviderError),
    ],
)
def test_slurms_words_become_what_to_do_next(said: str, kind: type[ProviderError]) -> None:
    error = meant(f"sbatch: error: {said}", "lake", is_purchase=True)
    assert type(error) is kind and said in error.message and "lake" in error.message
