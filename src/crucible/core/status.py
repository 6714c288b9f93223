"""A job as anybody asks for it: the same fields whatever runs it, and wherever. What nobody knows is None, and
`unknown` says why. Pure: from what is stored and heard."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import fmean, median, quantiles

from crucible.core.costs import Basis, Remaining
from crucible.core.node_signs import disk_use, gpu_memory
from crucible.core.signs import gpus_of
from crucible.core.task_signs import at_risk
from crucible.model.health import Finding, Health, HeldNode, JobHealth, TaskMemory
from crucible.model.job import Job
from crucible.model.record import Progress
from crucible.model.units import NOTHING, MicroUsd

# How far the slow steps are believed to stretch the rest.
MOST_DOUBT = 3.0
# Figures of a node that has said nothing for so long are not those of now.
STALE = timedelta(minutes=2)
# Moves before the spread of a pace says something.
LEAST_MOVES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressNow:
    step: int | None = None
    total_steps: int | None = None
    fraction: float | None = None
    steps_per_s: float | None = None
    at: datetime | None = None  # when it was last told


@dataclass(frozen=True, slots=True, kw_only=True)
class Eta:
    """When it is likely to be done; nine of ten times by `latest_at`."""

    basis: Basis
    at: datetime
    latest_at: datetime
    seconds: float
    seconds_high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CostNow:
    so_far: MicroUsd = NOTHING
    per_hour: MicroUsd = NOTHING
    remaining: MicroUsd | None = None
    remaining_high: MicroUsd | None = None
    at_risk: MicroUsd | None = None  # what was paid for work that no checkpoint has


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Of all machines that told it; `worst` is the rank, or the machine, that stands out."""

    mean: float
    low: float
    high: float
    worst_rank: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilisation:
    """Shares are from 0 to 1."""

    machines: int = 0  # held now
    heard: int = 0  # of them, lately
    gpus: int = 0  # measured
    cpu: Figure | None = None
    memory: Figure | None = None
    gpu: Figure | None = None
    gpu_memory: Figure | None = None
    disk: Figure | None = None
    network_received_bytes_per_s: Figure | None = None
    network_sent_bytes_per_s: Figure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    job: Job
    at: datetime
    progress: ProgressNow
    eta: Eta | None
    cost: CostNow
    health: Health
    findings: tuple[Finding, ...]
    utilisation: Utilisation
    unknown: Mapping[str, str] = field(default_factory=dict)  # what is None -> why


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is stored of a job."""

    job: Job
    told: Progress | None = None  # the newest of its tasks
    share: float | None = None  # done, of all tasks, shards or steps together; None: the only task says it
    health: JobHealth | None = None
    findings: Sequence[Finding] = ()
    nodes: Sequence[HeldNode] = ()
    so_far: MicroUsd = NOTHING
    per_hour: MicroUsd = NOTHING
    remaining: Remaining | None = None
    unsaved_since: datetime | None = None  # the newest checkpoint, or the start, of work that runs


def status_of(known: Known, now: datetime) -> Status:
    pace = pace_of(known.health)
    progress = progress_now(known, pace)
    use = utilisation(known.nodes, now)
    eta = None if known.job.status.is_terminal else eta_of(known.remaining, pace, now)
    health, why = health_now(known)
    return Status(
        job=known.job,
        at=now,
        progress=progress,
        eta=eta,
        cost=cost_now(known, eta, now),
        health=health,
        findings=() if known.job.status.is_terminal else tuple(known.findings),
        utilisation=use,
        unknown=unknown(known, progress, eta, use, why),
    )


# --- progress and its end ------------------------------------------------------------------------------------------


def pace_of(health: JobHealth | None) -> tuple[float, ...]:
    """Seconds per step of the only task."""
    tasks: list[TaskMemory] = [] if health is None else list(health.memory.tasks.values())
    return tasks[0].pace if len(tasks) == 1 else ()


def progress_now(known: Known, pace: Sequence[float]) -> ProgressNow:
    told = known.told
    if told is None or known.share is not None:
        return ProgressNow(fraction=_share(known.share), at=None if told is None else told.at)
    rate = 1 / median(pace) if pace and told.step is not None and median(pace) > 0 else None
    return ProgressNow(
        step=told.step, total_steps=told.total_steps, fraction=_share(told.fraction), steps_per_s=rate, at=told.at
    )


def _share(value: float | None) -> float | None:
    return None if value is None else min(max(value, 0.0), 1.0)


def eta_of(rest: Remaining | None, pace: Sequence[float], now: datetime) -> Eta | None:
    if rest is None:
        return None
    high = max(rest.hours_high, rest.hours * doubt(pace)) if rest.basis is Basis.PROGRESS else rest.hours_high
    soon, late = timedelta(hours=_hours(rest.hours)), timedelta(hours=_hours(max(high, rest.hours)))
    return Eta(
        basis=rest.basis,
        at=now + soon,
        latest_at=now + late,
        seconds=soon.total_seconds(),
        seconds_high=late.total_seconds(),
    )


def _hours(value: float) -> float:
    """A date must be able to hold it: nothing here lasts a century."""
    return min(max(value, 0.0), 24.0 * 36_500)


def doubt(pace: Sequence[float]) -> float:
    """How much longer its slow steps take than the usual ones."""
    if len(pace) < LEAST_MOVES or median(pace) <= 0:
        return 1.0
    return min(max(quantiles(pace, n=10)[-1] / median(pace), 1.0), MOST_DOUBT)


def cost_now(known: Known, eta: Eta | None, now: datetime) -> CostNow:
    rest = known.remaining if eta is not None else None
    high = None if rest is None else rest.high
    if rest is not None and eta is not None and eta.seconds > 0:
        high = MicroUsd(max(rest.high, round(rest.likely * eta.seconds_high / eta.seconds)))
    since = known.unsaved_since
    return CostNow(
        so_far=known.so_far,
        per_hour=known.per_hour,
        remaining=None if rest is None else rest.likely,
        remaining_high=high,
        at_risk=None if since is None else at_risk(known.per_hour, since, now),
    )


# --- health and use ------------------------------------------------------------------------------------------------


def health_now(known: Known) -> tuple[Health, str | None]:
    if known.job.status.is_terminal:
        return Health.UNKNOWN, "it is over"
    if known.health is None:
        return Health.UNKNOWN, "it was not looked at yet"
    return known.health.status, known.health.why


def utilisation(nodes: Sequence[HeldNode], now: datetime) -> Utilisation:
    heard = [one for one in nodes if one.usage and one.heard_at is not None and now - one.heard_at <= STALE]

    def figure(of: Callable[[HeldNode], Sequence[float]], *, is_high_bad: bool = False) -> Figure | None:
        return figure_of([(one.rank, value) for one in heard for value in of(one)], is_high_bad=is_high_bad)

    return Utilisation(
        machines=len(nodes),
        heard=len(heard),
        gpus=sum(len(gpus_of(one)) for one in heard if one.gpus),
        cpu=figure(lambda one: _told(one, "cpu_percent", 0.01)),
        memory=figure(_memory, is_high_bad=True),
        gpu=figure(_gpu),
        gpu_memory=figure(lambda one: list(gpu_memory(one)) if one.gpus else [], is_high_bad=True),
        disk=figure(lambda one: [] if disk_use(one) is None else [disk_use(one) or 0.0], is_high_bad=True),
        network_received_bytes_per_s=figure(lambda one: _told(one, "network_received_bytes_per_s")),
        network_sent_bytes_per_s=figure(lambda one: _told(one, "network_sent_bytes_per_s")),
    )


def figure_of(told: Sequence[tuple[int | None, float]], *, is_high_bad: bool) -> Figure | None:
    if not told:
        return None
    values = [value for _, value in told]
    worst = (max if is_high_bad else min)(told, key=lambda one: one[1])
    return Figure(mean=fmean(values), low=min(values), high=max(values), worst_rank=worst[0])


def _told(node: HeldNode, name: str, factor: float = 1.0) -> Sequence[float]:
    value = node.usage.get(name)
    return [] if value is None else [value * factor]


def _memory(node: HeldNode) -> Sequence[float]:
    used, total = node.usage.get("memory_used_bytes"), node.usage.get("memory_total_bytes")
    return [used / total] if used is not None and total else []


def _gpu(node: HeldNode) -> Sequence[float]:
    return [node.usage[f"gpu{gpu}_percent"] / 100 for gpu in gpus_of(node)] if node.gpus else []


def unknown(
    known: Known, progress: ProgressNow, eta: Eta | None, use: Utilisation, health_why: str | None
) -> dict[str, str]:
    """Why each thing that is None is None."""
    job = known.job
    is_over = job.status.is_terminal
    why: dict[str, str | None] = {
        "progress": None if progress.fraction is not None or progress.step is not None else _no_progress(known),
        "eta": None
        if eta is not None
        else "it is over"
        if is_over
        else "there is neither an estimate nor progress yet",
        "health": health_why,
        "utilisation": None if use.heard else _no_use(use, is_over=is_over),
        "gpu": None if use.gpu is not None else _no_gpu(job, use),
    }
    return {name: words for name, words in why.items() if words is not None}


def _no_progress(known: Known) -> str:
    if known.job.started_at is None:
        return "it has not started"
    return "its program tells none: train.progress(step, total), or progress.pattern in the spec"


def _no_use(use: Utilisation, *, is_over: bool) -> str:
    if is_over:
        return "it is over"
    return "it holds no machine" if not use.machines else "its machines have told no figures lately"


def _no_gpu(job: Job, use: Utilisation) -> str:
    if not job.gpus:
        return "it asked for no GPUs"
    return "it holds no machine" if not use.machines else "no GPU was measured: nvidia-smi is missing there, or silent"
