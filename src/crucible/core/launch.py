"""What each rank runs: argv and environment, from the spec and the gang. Strings of the user become arguments and
variables; no shell of ours ever reads them."""

import json
from collections.abc import Sequence
from datetime import timedelta

from crucible.model.attempt import Attempt, Rank
from crucible.model.job import Job
from crucible.model.launch import Launch
from crucible.model.lease import Lease, Node
from crucible.model.policy import Policy
from crucible.model.spec import JobSpec


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
                )
            )
    return tuple(ranks)


def share(devices: tuple[str, ...], index: int, parts: int) -> tuple[str, ...]:
    """Part `index` of `parts`; the first ones are larger when it does not divide."""
    size, extra = divmod(len(devices), parts)
    start = index * size + min(index, extra)
    return devices[start : start + size + (index < extra)]


def recipe(
    job: Job, spec: JobSpec, attempt: Attempt, rank: Rank, checkpoints: str, carries: bool, policy: Policy
) -> Launch:
    """Everything the node needs to run `rank`."""
    return Launch(
        job_id=job.id,
        task_id=attempt.task_id,
        attempt_id=attempt.id,
        number=attempt.number,
        generation=attempt.generation,
        rank=rank.rank,
        argv=command_line(spec),
        env={**spec.env, **plugin_environment(job, spec), **rank_environment(job, spec, attempt, rank)},
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
    )


def command_line(spec: JobSpec) -> tuple[str, ...]:
    if spec.command:
        return (*spec.command, *spec.args)
    if spec.entrypoint is None:
        return ("python", "-m", "crucible.train.run", *spec.args)
    if spec.entrypoint.endswith(".py"):
        return ("python", spec.entrypoint, *spec.args)
    if spec.entrypoint.endswith(".sh"):
        return ("/bin/sh", spec.entrypoint, *spec.args)
    return (f"./{spec.entrypoint}", *spec.args)


def plugin_environment(job: Job, spec: JobSpec) -> dict[str, str]:
    """Seed 002's contract with a training container."""
    env: dict[str, str] = {"JOB_ID": job.id}
    if spec.model is not None:
        env |= {"MODEL_PLUGIN": spec.model.plugin, "CONFIG": json.dumps(dict(spec.model.config))}
    if spec.data.dataset is not None:
        env["DATASET"] = spec.data.dataset
    return env


def rank_environment(job: Job, spec: JobSpec, attempt: Attempt, rank: Rank) -> dict[str, str]:
    nodes = len({r.node_rank for r in attempt.ranks})
    env: dict[str, str] = {
        "RANK": str(rank.rank),
        "WORLD_SIZE": str(len(attempt.ranks)),
        "LOCAL_RANK": str(rank.local_rank),
        "LOCAL_WORLD_SIZE": str(sum(r.node_rank == rank.node_rank for r in attempt.ranks)),
        "NODE_RANK": str(rank.node_rank),
        "NNODES": str(nodes),
        "MASTER_ADDR": attempt.master_addr or "",
        "MASTER_PORT": str(attempt.master_port or ""),
        "CRUCIBLE_JOB_ID": job.id,
        "CRUCIBLE_JOB_NAME": job.name,
        "CRUCIBLE_TASK_ID": attempt.task_id,
        "CRUCIBLE_ATTEMPT": str(attempt.number),
    }
    if attempt.mean_life_s is not None:
        env["CRUCIBLE_MEAN_LIFE_S"] = f"{attempt.mean_life_s:.0f}"
    if spec.checkpoint.interval is not None:
        env["CRUCIBLE_CHECKPOINT_INTERVAL_S"] = str(spec.checkpoint.interval.total_seconds())
    return env


def seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()
