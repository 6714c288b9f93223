"""Signs of trouble with the work itself: no progress, a loss that is no number or runs away, a rank that lags behind,
work that is not saved, starts over and over."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

from crucible.core.signs import LOSSES, Look, RankPace, Sign, TaskSigns, clock, long, seconds_per_step, some
from crucible.model.health import FindingCode, TaskMemory
from crucible.model.notice import Severity
from crucible.model.policy import HealthLimits
from crucible.model.units import MicroUsd, usd

# Points of a rank before its pace says something.
STRAGGLER_POINTS = 5
# A loss has diverged when it is this many times as high as where it began.
DIVERGED = 3.0
NAN_LOOKS = 2
_HOUR = timedelta(hours=1)


def no_progress(seen: Look) -> Iterator[Sign]:
    stalled = []
    for task, memory in seen.running:
        if memory.moved_at is None or task.reached is None or task.is_saving:
            continue
        if seen.now - memory.moved_at > patience(memory, seen.limits):
            stalled.append((task, memory.moved_at))
    if stalled:
        first, since = min(stalled, key=lambda one: one[1])
        where = f"at step {first.step}" if first.step is not None else f"at {first.fraction:.0%}"
        who = "" if len(seen.signs.tasks) == 1 else f" of {some('task', [task.index for task, _ in stalled])}"
        yield Sign(
            code=FindingCode.NO_PROGRESS,
            severity=Severity.CRITICAL,
            words=f"no progress{who} since {clock(since)}, {where}",
            advice="see what it does: crucible logs --tail 50, crucible ssh; crucible hold and release start it anew",
            details={"since": since.isoformat(), "tasks": [task.index for task, _ in stalled[:100]]},
        )


def patience(memory: TaskMemory, limits: HealthLimits) -> timedelta:
    """How long a task may stand still."""
    if memory.step is None:
        return limits.first_stall
    usual = seconds_per_step(memory)
    return limits.stall if usual is None else max(limits.stall, timedelta(seconds=limits.slow_steps * usual))


def loss_not_a_number(seen: Look) -> Iterator[Sign]:
    bad = [task for task, memory in seen.running if memory.not_numbers >= NAN_LOOKS]
    if bad:
        first = bad[0]
        at = "" if first.step is None else f" at step {first.step}"
        who = "" if len(seen.signs.tasks) == 1 else f" of {some('task', [task.index for task in bad])}"
        yield Sign(
            code=FindingCode.LOSS_NOT_A_NUMBER,
            severity=Severity.CRITICAL,
            words=f"{first.loss_name}{who} is not a number",
            advice="stop it, lower the learning rate or mend the data, and resume from a checkpoint before that",
            details={
                "metric": first.loss_name,
                "seen": f"{first.loss_name}{at}",
                "tasks": [t.index for t in bad[:100]],
            },
        )


def loss_diverged(seen: Look) -> Iterator[Sign]:
    bad = [(task, memory) for task, memory in seen.running if has_diverged(memory)]
    if bad:
        task, memory = bad[0]
        yield Sign(
            code=FindingCode.LOSS_DIVERGED,
            severity=Severity.WARNING,
            words=f"{task.loss_name} has gone up far beyond where it began ({memory.loss_began:.4g})",
            advice="lower the learning rate, clip gradients, and resume from a checkpoint before that",
            details={"metric": task.loss_name, "best": memory.loss_best, "tasks": [one.index for one, _ in bad[:100]]},
        )


def has_diverged(memory: TaskMemory) -> bool:
    """It came down, and all of the last ones are far above where it came from."""
    began, best = memory.loss_began, memory.loss_best
    if began is None or best is None or len(memory.losses) < LOSSES:
        return False
    return min(memory.losses) > max(2 * began - best, DIVERGED * abs(began)) and began > best


def straggler(seen: Look) -> Iterator[Sign]:
    factor = seen.limit(FindingCode.STRAGGLER, seen.limits.straggle, seen.limits.straggle_again)
    for task, _ in seen.running:
        slow = [rank for rank, times in lags(task.ranks).items() if times >= factor]
        if slow:
            yield Sign(
                code=FindingCode.STRAGGLER,
                severity=Severity.WARNING,
                words=f"much slower than the others: {some('rank', slow)}",
                advice="look at that machine: crucible metrics --usage --rank N, crucible ssh --rank N",
                details={"ranks": slow[:100]},
            )
            return


def lags(ranks: Sequence[RankPace]) -> dict[int, float]:
    """Of each rank how many times as long it takes for a step as the others' median."""
    each = {one.rank: found for one in ranks if (found := _step_s(one)) is not None and found > 0}
    if len(each) < 2:
        return {}
    return {
        rank: found / median(other for of, other in each.items() if of != rank) for rank, found in sorted(each.items())
    }


def _step_s(one: RankPace) -> float | None:
    if len(one.steps) < STRAGGLER_POINTS:
        return None
    (first_s, first), (last_s, last) = one.steps[0], one.steps[-1]
    return (last_s - first_s) / (last - first) if last > first and last_s > first_s else None


def checkpoint_overdue(seen: Look) -> Iterator[Sign]:
    late = [(task, since) for task, memory in seen.running if (since := unsaved_since(task, memory, seen))]
    if late:
        since = min(one for _, one in late)
        risk = at_risk(seen.signs.per_hour, since, seen.now)
        yield Sign(
            code=FindingCode.CHECKPOINT_OVERDUE,
            severity=Severity.WARNING,
            words=f"no checkpoint since {clock(since)}: all work since then would be lost",
            advice="does it still save? crucible checkpoints, crucible logs; train.should_checkpoint() says when to",
            details={
                "since": since.isoformat(),
                "at_risk_usd": usd(risk),
                "tasks": [one.index for one, _ in late[:100]],
            },
        )


def unsaved_since(task: TaskSigns, memory: TaskMemory, seen: Look) -> datetime | None:
    """Since when nothing was saved, if that is longer than this task usually takes, or was asked to take."""
    usual = save_interval(memory.saves) or task.save_every
    since = max([at for at in (task.saved_at, task.started_at) if at is not None], default=None)
    if usual is None or since is None or task.is_saving:
        return None
    limit = max(seen.limits.save_floor, seen.limits.saves_missed * usual)
    return since if seen.now - since > limit else None


def save_interval(saves: Sequence[datetime]) -> timedelta | None:
    if len(saves) < 2:
        return None
    return timedelta(seconds=median((later - earlier).total_seconds() for earlier, later in pairwise(saves)))


def at_risk(per_hour: MicroUsd, since: datetime, now: datetime) -> MicroUsd:
    return MicroUsd(round(per_hour * (max(now - since, timedelta()) / _HOUR)))


def restart_loop(seen: Look) -> Iterator[Sign]:
    since = seen.now - seen.limits.restart_window
    counts = {one.index: sum(at >= since for at in _starts(seen, one)) for one in seen.signs.tasks}
    bad = [index for index, count in counts.items() if count >= seen.limits.restarts]
    if bad:
        who = "it" if len(counts) == 1 else some("task", bad)
        yield Sign(
            code=FindingCode.RESTART_LOOP,
            severity=Severity.CRITICAL,
            words=f"{who} was started {seen.limits.restarts} times or more within {long(seen.limits.restart_window)}",
            advice="each start is paid for: crucible why, crucible events; hold it until the cause is known",
            details={"tasks": bad[:100]},
        )


def _starts(seen: Look, task: TaskSigns) -> tuple[datetime, ...]:
    return seen.memory.tasks[task.task_id].starts
