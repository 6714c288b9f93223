"""What is seen of a job at one look, and what is remembered from look to look. What nobody tells is not judged: silence
about progress is no stall, and a GPU that nobody measures is not idle."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from crucible.model.health import FindingCode, HeldNode, Memory, TaskMemory
from crucible.model.notice import Severity
from crucible.model.policy import HealthLimits
from crucible.model.units import NOTHING, MicroUsd

# What is remembered of a task: enough for a median that one odd step does not move.
PACE_MARKS, STARTS, SAVES, LOSSES = 32, 16, 8, 5
# Ranks, tasks or nodes that one sentence names.
NAMED = 3
_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class RankPace:
    """Steps of one rank, the newest, with their times."""

    rank: int
    steps: tuple[tuple[float, int], ...]  # seconds, step


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSigns:
    task_id: str
    index: int
    attempt: int  # its number
    is_running: bool  # every rank has started
    is_saving: bool = False
    started_at: datetime | None = None
    told_at: datetime | None = None  # the newest progress or metric
    step: int | None = None
    total_steps: int | None = None
    fraction: float | None = None
    loss: float | None = None  # None: none is told; NaN where it is no number
    loss_name: str = "loss"
    saved_at: datetime | None = None  # its newest checkpoint
    save_every: timedelta | None = None  # as its spec asks
    ranks: tuple[RankPace, ...] = ()

    @property
    def reached(self) -> float | None:
        return self.step if self.step is not None else self.fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """Everything that is known of a job at one moment."""

    tasks: Sequence[TaskSigns] = ()  # that run, or some of them
    nodes: Sequence[HeldNode] = ()
    per_hour: MicroUsd = NOTHING
    gpus: int = 0
    silence: timedelta = timedelta(seconds=50)  # after which a node counts as lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    code: FindingCode
    severity: Severity
    words: str
    advice: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Look:
    signs: Signs
    memory: Memory  # with what this look has seen
    limits: HealthLimits
    now: datetime
    is_open: frozenset[FindingCode]

    def limit(self, code: FindingCode, opens: float, keeps: float) -> float:
        return keeps if code in self.is_open else opens

    @property
    def running(self) -> list[tuple[TaskSigns, TaskMemory]]:
        return [(task, self.memory.tasks[task.task_id]) for task in self.signs.tasks if task.is_running]


def is_judged(signs: Signs) -> bool:
    """Whether anything at all is told that a job could be judged by."""
    return any(task.told_at is not None for task in signs.tasks) or any(node.usage for node in signs.nodes)


def loss_of(metrics: Mapping[str, float], objective: str | None = None) -> tuple[str, float] | None:
    """The metric that says how training goes: the objective of a search, else what is called a loss."""
    if objective is not None and objective in metrics and "loss" in objective.lower():
        return objective, metrics[objective]
    called = [name for name in metrics if _is_loss(name)]
    best = min(called, key=lambda name: (name != "loss", "train" not in name, len(name), name), default=None)
    return None if best is None else (best, metrics[best])


def _is_loss(name: str) -> bool:
    words = name.lower().replace("/", "_").replace(".", "_").replace("-", "_").split("_")
    return "loss" in words and "scale" not in words


# --- what is remembered --------------------------------------------------------------------------------------------


def remembered(memory: Memory, signs: Signs, limits: HealthLimits, now: datetime) -> Memory:
    """Tasks and GPUs that are not seen any more are forgotten."""
    tasks = {one.task_id: task_memory(memory.tasks.get(one.task_id, TaskMemory()), one, now) for one in signs.tasks}
    return replace(memory, tasks=tasks, idle=_idle(memory.idle, signs, limits, now))


def task_memory(known: TaskMemory, task: TaskSigns, now: datetime) -> TaskMemory:
    if task.attempt != known.attempt:
        starts = (*known.starts, task.started_at or now)[-STARTS:]
        known = TaskMemory(
            attempt=task.attempt, starts=starts, saves=known.saves, pace=known.pace, loss_best=known.loss_best
        )
        known = replace(known, moved_at=task.started_at)
    if known.moved_at is None or task.is_saving or not task.is_running:
        known = replace(known, moved_at=now if task.is_saving or not task.is_running else task.started_at or now)
    if task.saved_at is not None and task.saved_at not in known.saves:
        known = replace(known, saves=(*known.saves, task.saved_at)[-SAVES:])
    return _reported(known, task) if task.told_at is not None and task.told_at != known.at else known


def _reported(known: TaskMemory, task: TaskSigns) -> TaskMemory:
    return replace(_moved(_with_loss(known, task), task), at=task.told_at)


def _moved(known: TaskMemory, task: TaskSigns) -> TaskMemory:
    assert task.told_at is not None
    if task.reached is None:
        return known
    if known.step is not None and task.reached <= known.step:
        return known
    pace, moved_at = known.pace, known.moved_at
    if known.step is not None and moved_at is not None and task.told_at > moved_at:
        each = (task.told_at - moved_at).total_seconds() / (task.reached - known.step)
        pace = (*pace, each)[-PACE_MARKS:]
    latest = task.told_at if moved_at is None else max(moved_at, task.told_at)
    return replace(known, step=float(task.reached), moved_at=latest, pace=pace)


def _with_loss(known: TaskMemory, task: TaskSigns) -> TaskMemory:
    if task.loss is None:
        return known
    if not math.isfinite(task.loss):
        return replace(known, not_numbers=known.not_numbers + 1)
    losses = (*known.losses, task.loss)[-LOSSES:]
    known = replace(known, losses=losses, not_numbers=0)
    if len(losses) < LOSSES:
        return known
    middle = median(losses)
    best = middle if known.loss_best is None else min(known.loss_best, middle)
    return replace(known, loss_began=middle if known.loss_began is None else known.loss_began, loss_best=best)


def _idle(known: Mapping[str, datetime], signs: Signs, limits: HealthLimits, now: datetime) -> dict[str, datetime]:
    if not any(task.is_running and not task.is_saving for task in signs.tasks):
        return {}
    found = {}
    for key, percent in gpu_use(signs.nodes):
        limit = limits.busy_percent if key in known else limits.idle_percent
        if percent < limit:
            found[key] = known.get(key, now)
    return found


def seconds_per_step(memory: TaskMemory) -> float | None:
    return median(memory.pace) if memory.pace else None


def gpu_use(nodes: Sequence[HeldNode]) -> Iterator[tuple[str, float]]:
    for node in nodes:
        if node.gpus > 0:
            for gpu in gpus_of(node):
                percent = node.usage.get(f"gpu{gpu}_percent")
                if percent is not None:
                    yield f"{node.node_id}/{gpu}", percent


def gpus_of(node: HeldNode) -> list[str]:
    """Of the whole machine those that were handed out, where they are known by their number."""
    told = [name[3:-8] for name in node.usage if name.startswith("gpu") and name.endswith("_percent")]
    own = [device for device in node.devices if device.isdigit()]
    return [gpu for gpu in told if gpu in own] if own and len(own) == len(node.devices) else told


# --- words ---------------------------------------------------------------------------------------------------------


def some(what: str, numbers: Sequence[int]) -> str:
    named = ", ".join(str(number) for number in sorted(set(numbers))[:NAMED])
    more = len(set(numbers)) - NAMED
    return f"{what}{'' if len(set(numbers)) == 1 else 's'} {named}" + (f" and {more} more" if more > 0 else "")


def some_nodes(nodes: Sequence[HeldNode]) -> str:
    ranks = [node.rank for node in nodes if node.rank is not None]
    return some("rank", ranks) if len(ranks) == len(nodes) else some("machine", [node.index for node in nodes])


def clock(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")


def long(time: timedelta) -> str:
    hours = time / _HOUR
    return "an hour" if hours == 1 else f"{hours:g} hours" if hours > 1 else f"{time.total_seconds() / 60:g} minutes"
