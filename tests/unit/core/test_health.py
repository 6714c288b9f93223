"""Every finding opens when something lasts, says what to do, and closes when it is over."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.core.health import closed, health_of, look, notice_of, settle
from crucible.core.signs import RankPace, Signs, TaskSigns, loss_of
from crucible.core.task_signs import lags, patience
from crucible.model.health import Finding, FindingCode, Health, HeldNode, Memory, TaskMemory
from crucible.model.ids import JobId, NodeId, TaskId
from crucible.model.notice import NoticeKind, Severity
from crucible.model.policy import HealthLimits
from crucible.model.units import MicroUsd
from crucible.testing.specimens import a_job

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
LIMITS = HealthLimits()
JOB = JobId("j1")
EVERY = LIMITS.every
MINUTE = timedelta(minutes=1)
GIB = float(1 << 30)


def a_task(**fields: Any) -> TaskSigns:
    given: dict[str, Any] = {"task_id": "t1", "index": 0, "attempt": 0, "is_running": True, "started_at": START}
    return TaskSigns(**{**given, **fields})


def a_node(rank: int = 0, heard_at: datetime | None = None, gpus: int = 1, **usage: float) -> HeldNode:
    return HeldNode(
        node_id=NodeId(f"n{rank}"),
        job_id=JOB,
        task_id=TaskId("t1"),
        index=rank,
        rank=rank,
        gpus=gpus,
        devices=(),
        heard_at=heard_at,
        usage=usage,
    )


class Watch:
    """Looks again and again, as the engine does."""

    def __init__(self, limits: HealthLimits = LIMITS) -> None:
        self.limits = limits
        self.now = START
        self.memory = Memory()
        self.open: tuple[Finding, ...] = ()
        self.history: list[Finding] = []

    def see(
        self, *tasks: TaskSigns, nodes: tuple[HeldNode, ...] = (), for_: timedelta = EVERY, **signs: Any
    ) -> "Watch":
        until = self.now + for_
        while self.now < until:
            self.now += EVERY
            told = Signs(tasks=tasks, nodes=[replace(one, heard_at=one.heard_at or self.now) for one in nodes], **signs)
            codes = [one.code for one in self.open]
            memory, found = look(self.memory, told, self.limits, self.now, codes)
            settled = settle(JOB, memory, self.open, found, self.limits, self.now)
            self.memory, self.open = settled.memory, settled.open
            self.history += settled.news
        return self

    def steps(self, count: int, each: timedelta, **fields: Any) -> "Watch":
        """Progress, told at each look."""
        for step in range(1, count + 1):
            self.see(a_task(step=step, told_at=self.now + each, **fields), for_=each)
        return self

    @property
    def codes(self) -> list[FindingCode]:
        return [one.code for one in self.open]

    def only(self, code: FindingCode) -> Finding:
        assert self.codes == [code]
        return self.open[0]


def test_a_job_that_goes_on_has_nothing_wrong_with_it() -> None:
    watch = Watch().steps(40, MINUTE, loss=1.0)
    assert watch.history == []


# --- progress ------------------------------------------------------------------------------------------------------


def test_no_progress_opens_after_ten_usual_steps_and_closes_with_the_next() -> None:
    watch = Watch().steps(12, 2 * MINUTE)
    still = a_task(step=12, told_at=watch.now)
    watch.see(still, for_=19 * MINUTE)
    assert watch.codes == []
    watch.see(still, for_=2 * MINUTE)
    found = watch.only(FindingCode.NO_PROGRESS)
    assert found.severity is Severity.CRITICAL
    assert found.words == "no progress since 2026-01-01 12:24:00 UTC, at step 12"
    assert "crucible logs" in found.advice
    watch.see(a_task(step=13, told_at=watch.now + EVERY), for_=2 * MINUTE)
    assert watch.codes == [] and watch.history[-1].closed_at is not None


def test_quick_steps_still_get_the_floor() -> None:
    watch = Watch().steps(20, EVERY)
    watch.see(a_task(step=20, told_at=watch.now), for_=LIMITS.stall - MINUTE)
    assert watch.codes == []
    watch.see(a_task(step=20, told_at=watch.now), for_=2 * MINUTE)
    assert watch.codes == [FindingCode.NO_PROGRESS]


def test_time_that_a_checkpoint_takes_does_not_count() -> None:
    watch = Watch().steps(5, MINUTE)
    saving = a_task(step=5, told_at=watch.now, is_saving=True)
    watch.see(saving, for_=60 * MINUTE)
    watch.see(replace(saving, is_saving=False), for_=9 * MINUTE)
    assert watch.codes == []
    watch.see(replace(saving, is_saving=False), for_=2 * MINUTE)
    assert watch.codes == [FindingCode.NO_PROGRESS]


def test_time_before_the_ranks_run_does_not_count() -> None:
    watch = Watch().see(a_task(is_running=False, started_at=None), for_=5 * 60 * MINUTE)
    assert watch.codes == []


def test_a_job_that_never_told_of_progress_is_not_judged_by_it() -> None:
    assert Watch().see(a_task(), for_=5 * 60 * MINUTE).codes == []


def test_metrics_without_a_step_that_moves_are_no_progress() -> None:
    watch = Watch().steps(5, MINUTE)
    for _ in range(60):
        watch.see(a_task(step=5, told_at=watch.now, loss=1.0))
    assert watch.codes == [FindingCode.NO_PROGRESS]


def test_the_first_step_of_an_attempt_may_take_longer() -> None:
    assert patience(TaskMemory(), LIMITS) == LIMITS.first_stall
    assert patience(TaskMemory(step=1.0, pace=(600.0,) * 5), LIMITS) == timedelta(seconds=6000)


def test_a_new_attempt_begins_anew() -> None:
    watch = Watch().steps(5, MINUTE)
    watch.see(a_task(step=5, told_at=watch.now), for_=12 * MINUTE)
    assert watch.codes == [FindingCode.NO_PROGRESS]
    again = a_task(attempt=1, started_at=watch.now)
    watch.see(again, for_=2 * MINUTE)
    assert watch.codes == []


def test_of_many_tasks_those_that_stand_still_are_named() -> None:
    watch = Watch()
    tasks = [a_task(task_id=f"t{n}", index=n, step=3, told_at=START + EVERY) for n in range(6)]
    watch.see(*tasks, for_=12 * MINUTE)
    assert "tasks 0, 1, 2 and 3 more" in watch.only(FindingCode.NO_PROGRESS).words


# --- loss ----------------------------------------------------------------------------------------------------------


def test_a_loss_that_is_no_number_opens_after_two_reports_and_closes_when_it_is_one_again() -> None:
    watch = Watch()
    for loss in (1.0, math.nan):
        watch.see(a_task(step=1, told_at=watch.now, loss=loss), for_=2 * EVERY)
    assert watch.codes == []  # one may be an accident
    for _ in range(2):
        watch.see(a_task(step=2, told_at=watch.now, loss=math.inf), for_=2 * EVERY)
    found = watch.only(FindingCode.LOSS_NOT_A_NUMBER)
    assert found.severity is Severity.CRITICAL and "resume" in found.advice
    for _ in range(6):
        watch.see(a_task(step=3, told_at=watch.now, loss=1.0))
    assert watch.codes == []


def test_a_loss_far_above_where_it_began_has_diverged_until_it_comes_down() -> None:
    watch = Watch()
    for loss in [8.0] * 5 + [4.0] * 10 + [20.0] * 8:
        watch.see(a_task(step=1, told_at=watch.now, loss=loss))
    assert watch.codes == []
    for _ in range(8):
        watch.see(a_task(step=1, told_at=watch.now, loss=30.0))
    assert watch.only(FindingCode.LOSS_DIVERGED).severity is Severity.WARNING
    for _ in range(8):
        watch.see(a_task(step=1, told_at=watch.now, loss=5.0))
    assert watch.codes == []


def test_a_loss_that_only_wavers_has_not_diverged() -> None:
    watch = Watch()
    for n in range(200):
        watch.see(a_task(step=n, told_at=watch.now, loss=1.0 + math.sin(n)))
    assert watch.history == []


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["lr", "loss", "val_loss"], "loss"),
        (["val/loss", "train/loss"], "train/loss"),
        (["loss_scale", "grad_norm"], None),
        (["glossary"], None),
    ],
)
def test_the_loss_is_found_by_its_name(names: list[str], chosen: str | None) -> None:
    found = loss_of(dict.fromkeys(names, 1.0))
    assert (None if found is None else found[0]) == chosen


# --- machines ------------------------------------------------------------------------------------------------------

BUSY = {"gpu0_percent": 90.0, "gpu0_memory_mib": 1000.0, "gpu0_memory_total_mib": 80_000.0}


def test_gpus_that_do_nothing_open_after_ten_minutes_and_close_when_they_work() -> None:
    watch, idle = Watch(), a_node(gpu0_percent=2.0)
    watch.see(a_task(), nodes=(idle,), for_=9 * MINUTE, per_hour=MicroUsd(2_500_000))
    assert watch.codes == []
    watch.see(a_task(), nodes=(idle,), for_=2 * MINUTE, per_hour=MicroUsd(2_500_000))
    found = watch.only(FindingCode.GPUS_IDLE)
    assert found.severity is Severity.CRITICAL and found.words == "1 of 1 GPUs do nothing, though they are held"
    assert found.details["per_hour_usd"] == 2.5
    watch.see(a_task(), nodes=(a_node(gpu0_percent=7.0),), for_=2 * MINUTE)
    assert watch.codes == [FindingCode.GPUS_IDLE]  # not busy enough yet
    watch.see(a_task(), nodes=(a_node(**BUSY),), for_=2 * MINUTE)
    assert watch.codes == []


def test_of_several_ranks_the_one_whose_gpu_does_nothing_is_named() -> None:
    nodes = (a_node(0, **BUSY), a_node(1, gpu0_percent=0.0), a_node(2, **BUSY))
    found = Watch().see(a_task(), nodes=nodes, for_=11 * MINUTE).only(FindingCode.GPUS_IDLE)
    assert (
        found.severity is Severity.WARNING and found.words == "1 of 3 GPUs of rank 1 do nothing, though they are held"
    )


def test_gpus_of_others_on_the_same_machine_are_not_judged() -> None:
    node = replace(a_node(gpu0_percent=95.0, gpu1_percent=0.0), devices=("0",))
    assert Watch().see(a_task(), nodes=(node,), for_=30 * MINUTE).codes == []
    without = a_node(gpus=0, gpu0_percent=0.0)
    assert Watch().see(a_task(), nodes=(without,), for_=30 * MINUTE).codes == []


def test_gpus_that_wait_for_setup_or_a_checkpoint_are_not_idle() -> None:
    idle = a_node(gpu0_percent=0.0)
    assert Watch().see(a_task(is_running=False), nodes=(idle,), for_=30 * MINUTE).codes == []
    assert Watch().see(a_task(is_saving=True), nodes=(idle,), for_=30 * MINUTE).codes == []


def full(share: float) -> HeldNode:
    return a_node(gpu0_percent=90.0, gpu0_memory_mib=share * 80_000, gpu0_memory_total_mib=80_000.0)


def test_full_gpu_memory_is_only_said() -> None:
    watch = Watch().see(a_task(), nodes=(full(0.98),), for_=2 * EVERY)
    assert watch.only(FindingCode.GPU_MEMORY_FULL).severity is Severity.INFO
    assert health_of(watch.open, Signs(tasks=[a_task()], nodes=[full(0.98)])) == (Health.OK, None)
    watch.see(a_task(), nodes=(full(0.94),), for_=5 * MINUTE)
    assert watch.codes == [FindingCode.GPU_MEMORY_FULL]
    watch.see(a_task(), nodes=(full(0.5),), for_=2 * MINUTE)
    assert watch.codes == []


def paces(*seconds: float) -> tuple[RankPace, ...]:
    return tuple(RankPace(rank, tuple((step * each, step) for step in range(10))) for rank, each in enumerate(seconds))


def test_a_rank_much_slower_than_the_others_opens_and_closes() -> None:
    watch = Watch().see(a_task(ranks=paces(1.0, 1.0, 2.0, 1.0)), for_=2 * EVERY)
    found = watch.only(FindingCode.STRAGGLER)
    assert found.words == "much slower than the others: rank 2" and found.details["ranks"] == [2]
    watch.see(a_task(ranks=paces(1.0, 1.0, 1.3, 1.0)), for_=3 * MINUTE)
    assert watch.codes == [FindingCode.STRAGGLER]
    watch.see(a_task(ranks=paces(1.0, 1.0, 1.1, 1.0)), for_=2 * MINUTE)
    assert watch.codes == []


def test_a_rank_alone_or_with_few_points_lags_behind_nobody() -> None:
    assert lags(paces(1.0)) == {} == lags((RankPace(0, ((0.0, 0), (1.0, 1))), *paces(1.0)))


def test_a_silent_node_opens_before_it_counts_as_lost() -> None:
    watch = Watch()
    heard = watch.now
    watch.see(a_task(), nodes=(a_node(heard_at=heard),), for_=45 * timedelta(seconds=1))
    found = watch.only(FindingCode.NODE_SILENT)
    assert "rank 0" in found.words and "50 s" in found.advice
    watch.see(a_task(), nodes=(a_node(),), for_=2 * MINUTE)
    assert watch.codes == []


def test_a_wrong_clock_opens_and_closes_below_half_of_it() -> None:
    watch = Watch().see(a_task(), nodes=(a_node(clock_ahead_s=-90.0),), for_=2 * EVERY)
    assert watch.only(FindingCode.CLOCK_SKEWED).details["ahead_s"] == {"n0": -90.0}
    watch.see(a_task(), nodes=(a_node(clock_ahead_s=-40.0),), for_=3 * MINUTE)
    assert watch.codes == [FindingCode.CLOCK_SKEWED]
    watch.see(a_task(), nodes=(a_node(clock_ahead_s=1.0),), for_=2 * MINUTE)
    assert watch.codes == []


def test_a_full_disk_opens_and_closes() -> None:
    watch = Watch().see(a_task(), nodes=(a_node(disk_used_bytes=96 * GIB, disk_total_bytes=100 * GIB),), for_=2 * EVERY)
    assert watch.only(FindingCode.DISK_FULL).severity is Severity.WARNING
    watch.see(a_task(), nodes=(a_node(disk_used_bytes=50 * GIB, disk_total_bytes=100 * GIB),), for_=2 * MINUTE)
    assert watch.codes == []


# --- checkpoints and restarts --------------------------------------------------------------------------------------


def test_a_checkpoint_that_does_not_come_opens_with_what_is_at_risk_and_closes_when_it_comes() -> None:
    watch = Watch()
    for n in range(3):
        watch.see(a_task(saved_at=START + n * 20 * MINUTE), for_=20 * MINUTE)
    last = START + 40 * MINUTE
    watch.see(a_task(saved_at=last), for_=30 * MINUTE, per_hour=MicroUsd(10_000_000))
    assert watch.codes == []
    watch.see(a_task(saved_at=last), for_=15 * MINUTE, per_hour=MicroUsd(10_000_000))
    found = watch.only(FindingCode.CHECKPOINT_OVERDUE)
    assert 10.0 < found.details["at_risk_usd"] < 10.2 and "12:40:00" in found.words
    watch.see(a_task(saved_at=watch.now), for_=2 * MINUTE)
    assert watch.codes == []


def test_a_job_that_was_asked_to_save_and_never_did_is_overdue_too() -> None:
    asked = a_task(save_every=timedelta(minutes=20))
    assert Watch().see(asked, for_=59 * MINUTE).codes == []
    assert Watch().see(asked, for_=62 * MINUTE).codes == [FindingCode.CHECKPOINT_OVERDUE]
    assert Watch().see(a_task(), for_=10 * 60 * MINUTE).codes == []  # nobody expects one


def test_starts_over_and_over_open_and_close_an_hour_later() -> None:
    watch = Watch()
    for attempt in range(4):
        watch.see(a_task(attempt=attempt, started_at=watch.now), for_=5 * MINUTE)
    assert watch.only(FindingCode.RESTART_LOOP).severity is Severity.CRITICAL
    watch.see(a_task(attempt=3, started_at=START), for_=62 * MINUTE)
    assert watch.codes == []


# --- findings as such ----------------------------------------------------------------------------------------------


def test_what_is_seen_once_opens_nothing_and_what_is_missing_once_closes_nothing() -> None:
    watch = Watch().see(a_task(), nodes=(full(0.98),)).see(a_task(), nodes=(full(0.1),))
    assert watch.history == []
    watch.see(a_task(), nodes=(full(0.98),), for_=2 * EVERY).see(a_task(), nodes=(full(0.1),))
    assert watch.codes == [FindingCode.GPU_MEMORY_FULL]
    watch.see(a_task(), nodes=(full(0.98),)).see(a_task(), nodes=(full(0.1),), for_=3 * EVERY)
    assert watch.codes == [FindingCode.GPU_MEMORY_FULL]


def test_the_health_is_the_worst_that_is_open() -> None:
    def found(severity: Severity) -> Finding:
        return Finding(
            job_id=JOB, code=FindingCode.DISK_FULL, opened_at=START, severity=severity, words="w", advice="a"
        )

    runs = Signs(tasks=[a_task(told_at=START)])
    assert health_of([], runs) == (Health.OK, None)
    assert health_of([found(Severity.INFO), found(Severity.WARNING)], runs)[0] is Health.WARNING
    assert health_of([found(Severity.WARNING), found(Severity.CRITICAL)], runs)[0] is Health.CRITICAL
    assert health_of([], Signs(tasks=[a_task()]))[0] is Health.UNKNOWN
    assert health_of([], Signs()) == (Health.UNKNOWN, "nothing of it runs")


def test_a_finding_is_told_once_with_what_to_do_unless_it_is_only_said() -> None:
    finding = Watch().see(a_task(), nodes=(full(0.98),), for_=2 * EVERY).open[0]
    assert notice_of(finding, a_job()) is None
    loud = replace(finding, severity=Severity.CRITICAL)
    notice = notice_of(loud, a_job())
    assert notice is not None and notice.kind is NoticeKind.STALL and notice.user_id == "ann"
    assert loud.advice in notice.text and notice.job_id == "j1" and notice == notice_of(loud, a_job())
    assert closed([finding], START)[0].closed_at == START


NUMBERS = st.none() | st.floats(allow_nan=True, allow_infinity=True)
USAGE = st.dictionaries(
    st.sampled_from(
        ["gpu0_percent", "gpu0_memory_mib", "gpu0_memory_total_mib", "clock_ahead_s", "disk_used_bytes", "gpu_percent"]
    ),
    st.floats(-1e12, 1e12),
)


@st.composite
def stories(draw: st.DrawFn) -> list[tuple[int, Signs]]:
    return [
        (
            draw(st.integers(0, 10_000)),
            Signs(
                tasks=[
                    a_task(
                        attempt=draw(st.integers(0, 2)),
                        is_running=draw(st.booleans()),
                        is_saving=draw(st.booleans()),
                        started_at=draw(st.none() | st.just(START)),
                        told_at=draw(st.none() | st.integers(0, 10_000).map(lambda s: START + timedelta(seconds=s))),
                        step=draw(st.none() | st.integers(-5, 5)),
                        fraction=draw(st.none() | st.floats(0, 1)),
                        loss=draw(NUMBERS),
                    )
                ],
                nodes=[a_node(heard_at=START, **draw(USAGE))],
                per_hour=MicroUsd(draw(st.integers(0, 10**9))),
            ),
        )
        for _ in range(draw(st.integers(0, 6)))
    ]


@given(stories())
def test_whatever_is_told_a_look_never_fails_and_each_finding_opens_before_it_closes(
    story: list[tuple[int, Signs]],
) -> None:
    memory, known = Memory(), tuple[Finding, ...]()
    now = START
    for seconds, signs in story:
        now += timedelta(seconds=seconds)
        memory, found = look(memory, signs, LIMITS, now, [one.code for one in known])
        settled = settle(JOB, memory, known, found, LIMITS, now)
        memory = settled.memory
        for one in settled.news:
            assert one.closed_at is None or one.closed_at >= one.opened_at
            assert one.closed_at is None or one.code in {other.code for other in known}
        assert len({one.code for one in settled.open}) == len(settled.open)
        known = settled.open
        assert health_of(known, signs)[0] in Health
