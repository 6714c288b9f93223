"""How a job is: every look gathers signs of trouble; a sign that lasts opens a finding, and one that stays away closes
it. What opens is stricter than what keeps open, so that nothing flickers."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from crucible.core import node_signs, task_signs
from crucible.core.signs import Look, Sign, Signs, is_judged, remembered
from crucible.model.health import Finding, FindingCode, Health, Memory
from crucible.model.ids import JobId
from crucible.model.job import Job
from crucible.model.notice import Notice, NoticeKind, Severity, notice_key
from crucible.model.policy import HealthLimits

DETECTORS: tuple[Callable[[Look], Iterator[Sign]], ...] = (
    task_signs.no_progress,
    task_signs.loss_not_a_number,
    task_signs.loss_diverged,
    node_signs.gpus_idle,
    node_signs.gpu_memory_full,
    task_signs.straggler,
    node_signs.node_silent,
    node_signs.clock_skewed,
    task_signs.checkpoint_overdue,
    node_signs.disk_full,
    task_signs.restart_loop,
)


def look(
    memory: Memory, signs: Signs, limits: HealthLimits, now: datetime, is_open: Collection[FindingCode] = ()
) -> tuple[Memory, tuple[Sign, ...]]:
    """What is remembered now, and every sign of trouble."""
    after = remembered(memory, signs, limits, now)
    seen = Look(signs, after, limits, now, frozenset(is_open))
    return after, tuple(sign for detect in DETECTORS for sign in detect(seen))


@dataclass(frozen=True, slots=True)
class Settled:
    """What has become of the findings of a job. `news` are to be written: opened, in other words, or closed."""

    memory: Memory
    open: tuple[Finding, ...]
    opened: tuple[Finding, ...]
    news: tuple[Finding, ...]


def settle(
    job_id: JobId, memory: Memory, known: Sequence[Finding], signs: Sequence[Sign], limits: HealthLimits, now: datetime
) -> Settled:
    """`known` are open."""
    by_code = {sign.code: sign for sign in signs}
    kept, closed, absent = _kept(memory, known, by_code, limits, now)
    new = [sign for sign in signs if sign.code not in {one.code for one in known}]
    seen = {str(sign.code): memory.seen.get(sign.code, 0) + 1 for sign in new}
    opened = tuple(_opened(job_id, sign, now) for sign in new if seen[sign.code] >= limits.looks)
    for one in opened:
        del seen[one.code]
    changed = tuple(one for one in kept if one not in known)
    after = replace(memory, seen=seen, absent=absent)
    return Settled(after, (*kept, *opened), opened, (*opened, *changed, *closed))


def _kept(
    memory: Memory,
    known: Sequence[Finding],
    signs: dict[FindingCode, Sign],
    limits: HealthLimits,
    now: datetime,
) -> tuple[list[Finding], list[Finding], dict[str, datetime]]:
    kept, closed, absent = [], [], {}
    for one in known:
        sign = signs.get(one.code)
        if sign is not None:
            kept.append(replace(one, severity=sign.severity, words=sign.words, advice=sign.advice))
            continue
        since = memory.absent.get(one.code, now)
        if now - since >= limits.close_after:
            closed.append(replace(one, closed_at=now))
        else:
            kept.append(one)
            absent[str(one.code)] = since
    return kept, closed, absent


def _opened(job_id: JobId, sign: Sign, now: datetime) -> Finding:
    return Finding(
        job_id=job_id,
        code=sign.code,
        opened_at=now,
        severity=sign.severity,
        words=sign.words,
        advice=sign.advice,
        details=sign.details,
    )


def closed(known: Sequence[Finding], now: datetime) -> tuple[Finding, ...]:
    """Of a job that does not run any more."""
    return tuple(replace(one, closed_at=now) for one in known)


def health_of(known: Sequence[Finding], signs: Signs) -> tuple[Health, str | None]:
    """The worst of what is open, and why nobody knows where nothing is told."""
    worst = {one.severity for one in known}
    if Severity.CRITICAL in worst:
        return Health.CRITICAL, None
    if Severity.WARNING in worst:
        return Health.WARNING, None
    if not any(task.is_running for task in signs.tasks):
        return Health.UNKNOWN, "nothing of it runs"
    if not is_judged(signs):
        return Health.UNKNOWN, "neither progress nor metrics nor figures of its machines have been heard"
    return Health.OK, None


def worst(told: Collection[Health]) -> Health:
    """Of several together; what is unknown counts only where nothing is known."""
    order = (Health.CRITICAL, Health.WARNING, Health.OK)
    return next((one for one in order if one in told), Health.UNKNOWN)


def notice_of(finding: Finding, job: Job) -> Notice | None:
    """What is only said is nobody's alarm."""
    if finding.severity is Severity.INFO:
        return None
    return Notice(
        key=notice_key(f"stall:{job.id}:{finding.code}", finding.opened_at.isoformat()),
        at=finding.opened_at,
        kind=NoticeKind.STALL,
        severity=finding.severity,
        title=f"{job.name}: {finding.words}",
        text=f"{finding.words}. {finding.advice}.",
        team=job.team,
        project=job.project,
        user_id=job.user_id,
        job_id=job.id,
        details={"code": finding.code, **finding.details},
    )
