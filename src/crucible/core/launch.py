"""What each rank runs: argv and environment, from the spec and the gang. Strings of the user become arguments and
variables; no shell of ours ever reads them."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import assert_never

from crucible.core import datasets, outputs, sweep
from crucible.core.launchers import horovod, tensorflow, torchrun
from crucible.core.launchers.batch import worker
from crucible.core.launchers.member import Member, Start, program
from crucible.model.attempt import Attempt, Rank
from crucible.model.job import Job
from crucible.model.launch import Container, Launch
from crucible.model.lease import Lease, Node
from crucible.model.policy import Policy
from crucible.model.spec import Framework, JobSpec
from crucible.model.task import Task

# Each of their ranks is a process of the user's; the others have one rank for each node, whose launcher starts the
# processes.
_PLAIN = frozenset({Framework.PLAIN, Framework.TENSORFLOW})


def ranks_per_node(spec: JobSpec) -> int:
    return spec.execution.processes_per_node or 1 if spec.framework in _PLAIN else 1


def assign_ranks(leases: Sequence[Lease], nodes: Sequence[Node], processes_per_node: int) -> tuple[Rank, ...]:
    """Ranks in the order of the leases; a node's devices are dealt out evenly to its processes."""
    by_lease = {node.lease_id: node for node in nodes}
    ranks: list[Rank] = []
    for node_rank, lease in enumerate(leases):
        for local_rank in range(processes_per_node):
            ranks.append(
                Rank(
                    rank=len(ranks),
                    node_id=by_lease[lease.id].id,
                    node_rank=node_rank,
                    local_rank=local_rank,
                    devices=share(lease.devices, local_rank, processes_per_node),
                    address=by_lease[lease.id].address,
                    port=by_lease[lease.id].rendezvous_port,
                )
            )
    return tuple(ranks)


def share(devices: tuple[str, ...], index: int, parts: int) -> tuple[str, ...]:
    """Part `index` of `parts`; the first ones are larger when it does not divide."""
    size, extra = divmod(len(devices), parts)
    start = index * size + min(index, extra)
    return devices[start : start + size + (index < extra)]


def recipe(
    job: Job, task: Task, spec: JobSpec, attempt: Attempt, rank: Rank, checkpoints: str, carries: bool, policy: Policy
) -> Launch:
    """Everything the node needs to run `rank`."""
    spec = given(spec, task)
    started = worker(spec, start(Member(spec, attempt, rank)))
    return Launch(
        job_id=job.id,
        task_id=attempt.task_id,
        attempt_id=attempt.id,
        number=attempt.number,
        generation=attempt.generation,
        rank=rank.rank,
        argv=started.argv,
        env={
            **started.env,
            **spec.env,
            **plugin_environment(job, spec),
            **rank_environment(job, task, spec, attempt, rank),
        },
        devices=rank.devices,
        setup=spec.setup,
        code=job.code_digest,
        checkpoints=checkpoints,
        checkpoint_keep=spec.checkpoint.keep,
        carries_checkpoints=carries,
        timeout_s=seconds(spec.timeout),
        stop_grace_s=policy.stop_grace.total_seconds(),
        progress_pattern=spec.progress.pattern,
        progress_total=spec.progress.total_steps,
        python=spec.python,
        container=container(spec),
        volumes=spec.volumes,
        dataset=datasets.work_of(spec),
        inputs=outputs.inputs_of(job),
        output=outputs.work_of(rank, policy),
        params=task.params,
        secrets=spec.secrets,
    )


def given(spec: JobSpec, task: Task) -> JobSpec:
    """The spec of one task: with what it was given among its arguments or variables."""
    if task.params is None:
        return spec
    if spec.sweep is not None:
        args, env = sweep.delivered(spec.sweep.deliver, task.params)
    elif spec.evaluation is not None:
        args, env = (), {"MODEL": str(task.params["model"]), "EVAL_DATASET": str(task.params["dataset"])}
    else:
        return spec
    command = with_arguments(spec.command, args) if spec.command else ()
    return replace(spec, command=command, args=spec.args if command else (*spec.args, *args), env={**spec.env, **env})


def with_arguments(command: tuple[str, ...], args: tuple[str, ...]) -> tuple[str, ...]:
    """Behind a command; a text that a shell reads gets them as its own: "$@"."""
    if command[:2] != ("/bin/sh", "-c") or not args:
        return (*command, *args)
    return (*command[:2], f'{command[2]} "$@"', "sh", *args)


def container(spec: JobSpec) -> Container | None:
    """What the machine must have is also what the container may use."""
    if spec.image is None:
        return None
    options, need = spec.container, spec.resources
    return Container(
        image=spec.image,
        runtime=options.runtime,
        pull=options.pull,
        auth_file=options.auth_file,
        user=options.user,
        shm_gib=options.shm_gib,
        cpus=need.cpus or None,
        memory_gib=need.cpu_memory_gib or None,
    )


def start(member: Member) -> Start:
    """What the rank runs, by its framework."""
    match member.spec.framework:
        case Framework.PYTORCH | Framework.PYTORCH_DDP:
            return torchrun.start(member)
        case Framework.HOROVOD:
            return horovod.start(member)
        case Framework.HOROVOD_ELASTIC:
            return horovod.start_elastic(member)
        case Framework.TENSORFLOW_MULTIWORKER:
            return tensorflow.start(member)
        case Framework.PLAIN | Framework.TENSORFLOW:
            return Start(program(member.spec))
        case other:
            assert_never(other)


def plugin_environment(job: Job, spec: JobSpec) -> dict[str, str]:
    """Seed 002's contract with a training container."""
    env: dict[str, str] = {"JOB_ID": job.id}
    if spec.model is not None:
        env |= {"MODEL_PLUGIN": spec.model.plugin, "CONFIG": json.dumps(dict(spec.model.config))}
    if spec.data.dataset is not None:
        env["DATASET"] = spec.data.dataset
    return env


def rank_environment(job: Job, task: Task, spec: JobSpec, attempt: Attempt, rank: Rank) -> dict[str, str]:
    present = [r for r in attempt.ranks if not r.is_evicted]  # an elastic attempt may have lost some
    env: dict[str, str] = {
        "RANK": str(rank.rank),
        "WORLD_SIZE": str(len(present)),
        "LOCAL_RANK": str(rank.local_rank),
        "LOCAL_WORLD_SIZE": str(sum(r.node_rank == rank.node_rank for r in present)),
        "NODE_RANK": str(rank.node_rank),
        "NNODES": str(len({r.node_rank for r in present})),
        "MASTER_ADDR": attempt.master_addr or "",
        "MASTER_PORT": str(attempt.master_port or ""),
        "CRUCIBLE_JOB_ID": job.id,
        "CRUCIBLE_JOB_NAME": job.name,
        "CRUCIBLE_TASK_ID": attempt.task_id,
        "CRUCIBLE_TASK_INDEX": str(task.index),
        "CRUCIBLE_ATTEMPT": str(attempt.number),
    }
    if attempt.mean_life_s is not None:
        env["CRUCIBLE_MEAN_LIFE_S"] = f"{attempt.mean_life_s:.0f}"
    if spec.checkpoint.interval is not None:
        env["CRUCIBLE_CHECKPOINT_INTERVAL_S"] = str(spec.checkpoint.interval.total_seconds())
    return env


def seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()
