"""Jobs of Slurm as our machines. Pure. Of several jobs with one order's name the oldest is meant: the others were asked
for at the same time, and their first program finds the order taken and ends."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from crucible.model.ids import MachineId, OrderId
from crucible.model.lease import Machine, MachineState
from crucible.providers.slurm.door import Job
from crucible.providers.slurm.hostlist import expand
from crucible.providers.slurm.request import Token, machine_id, read_comment

M = MachineState
WAITING = frozenset({"PENDING", "CONFIGURING", "POWER_UP_NODE", "RESV_DEL_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"})
LIVE = frozenset({"RUNNING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING"})
ENDING = frozenset({"COMPLETING", "STAGE_OUT"})
TAKEN = frozenset({"PREEMPTED"})
REASONS = {
    "BOOT_FAIL": "its node could not be started (BOOT_FAIL)",
    "CANCELLED": "its job was cancelled (CANCELLED)",
    "COMPLETED": "its job ended (COMPLETED)",
    "DEADLINE": "its job could not end before its deadline (DEADLINE)",
    "NODE_FAIL": "its node failed (NODE_FAIL)",
    "OUT_OF_MEMORY": "its job used more memory than it had asked for (OUT_OF_MEMORY)",
    "PREEMPTED": "Slurm gave its place to another job (PREEMPTED)",
    "REVOKED": "another cluster of the federation runs it (REVOKED)",
    "TIMEOUT": "its job reached its time limit (TIMEOUT): give more time_limit",
}

Devices = Mapping[str, Mapping[str, tuple[str, ...]]]  # by job, by node


@dataclass(frozen=True, slots=True)
class Purchase:
    """What came of one order."""

    token: Token
    jobs: tuple[Job, ...]  # one; or the elements of an array

    @property
    def order_id(self) -> OrderId:
        return self.token.order_id

    def job_of(self, index: int) -> Job | None:
        if not self.token.is_array:
            return self.jobs[0]
        return next((job for job in self.jobs if job.element == index), None)


def purchases(jobs: Iterable[Job], deployment: str, *, queues: bool) -> list[Purchase]:
    """One for each order of ours."""
    found: dict[OrderId, dict[int, list[tuple[Job, Token]]]] = {}
    for job in jobs:
        token = read_comment(job.comment)
        is_ours = token is not None and token.deployment == deployment
        if token is not None and is_ours and not is_refused(job) and (queues or not is_withdrawn(job)):
            found.setdefault(token.order_id, {}).setdefault(job.id, []).append((job, token))
    oldest = [by_id[min(by_id)] for by_id in found.values()]
    return [Purchase(pairs[0][1], tuple(job for job, _ in pairs)) for pairs in oldest]


def is_refused(job: Job) -> bool:
    """Slurm keeps a record of what it did not accept."""
    return job.state == "FAILED" and not job.nodes


def is_withdrawn(job: Job) -> bool:
    """Cancelled before it was given a node: where nobody queues, that is how an order is refused."""
    return job.state == "CANCELLED" and not job.nodes


def machines(bought: Purchase, devices: Devices) -> list[Machine]:
    found = [machine(bought, index, devices) for index in range(bought.token.count)]
    return [one for one in found if one is not None]


def machine(bought: Purchase, index: int, devices: Devices) -> Machine | None:
    job = bought.job_of(index)
    token = bought.token if job is None else read_comment(job.comment) or bought.token
    if job is None:
        return None
    state, reason = state_of(job, token, index)
    node = node_of(job, token, index)
    return Machine(
        id=machine_id(token.deployment, token.order_id, index),
        order_id=token.order_id,
        index=index,
        state=state,
        devices=tuple(f"{node}/{number}" for number in devices.get(job.handle, {}).get(node, ())),
        reason=reason,
        started_at=moment(job.started_at) if job.nodes else None,
        ended_at=ended_at(job, token, index) if state is M.GONE and job.nodes else None,
        was_taken=state is M.GONE and job.state in TAKEN,
    )


def state_of(job: Job, token: Token, index: int) -> tuple[MachineState, str | None]:
    if job.restarts:
        return M.GONE, "its job was put back into the queue: a machine runs once"
    ended = token.ended.get(index)
    if ended is not None:
        return M.GONE, f"its step ended {spelled(ended.exit_code)}"
    if job.state in WAITING:
        return M.STARTING, f"it waits in Slurm's queue ({job.reason or 'no reason is given'})"
    if job.state in LIVE:
        return (M.RUNNING if index in token.started else M.STARTING), None
    if job.state in ENDING:
        return M.STOPPING, None
    return M.GONE, why(job)


def why(job: Job) -> str:
    known = REASONS.get(job.state)
    if known is not None:
        return known
    if job.exit_status < 0:
        return f"its job ended, and nobody says with which exit code ({job.state})"
    code = os.waitstatus_to_exitcode(job.exit_status)
    extra = f", {job.reason}" if job.reason not in ("", "None", "NonZeroExitCode") else ""
    return f"its job ended {spelled(code)} ({job.state}{extra})"


def spelled(code: int) -> str:
    return f"by signal {-code}" if code < 0 else f"with exit code {code}"


def node_of(job: Job, token: Token, index: int) -> str:
    names: Sequence[str] = expand(job.nodes)
    place = 0 if token.is_array else index
    return names[place] if place < len(names) else ""


def ended_at(job: Job, token: Token, index: int) -> datetime | None:
    ended = token.ended.get(index)
    seconds = ended.at if ended is not None else job.ended_at
    if seconds is None or job.started_at is None:
        return None
    return moment(max(seconds, job.started_at))


def moment(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def place_of(bought: Iterable[Purchase], machine: MachineId) -> tuple[Purchase, int] | None:
    for one in bought:
        for index in range(one.token.count):
            if machine_id(one.token.deployment, one.order_id, index) == machine:
                return one, index
    return None


def is_over(job: Job) -> bool:
    return job.state not in WAITING | LIVE | ENDING
