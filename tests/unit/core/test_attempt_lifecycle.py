from datetime import timedelta
from functools import reduce

import pytest

from crucible.core import attempt as attempts
from crucible.core.attempt import CheckpointSaved, GangReady, Limits, MachineLost, RankReported, StopWanted, TimePassed
from crucible.model.attempt import Attempt, AttemptPhase, Outcome, Rank, RankState
from crucible.model.ids import NodeId
from making import NOW, POLICY, an_attempt

LIMITS = Limits(None, POLICY)
P = AttemptPhase


def after(attempt: Attempt, *seen: attempts.Observation, at=NOW, limits: Limits = LIMITS) -> Attempt:
    for observation in seen:
        attempt = reduce(attempts.evolve, attempts.decide(attempt, observation, at, limits), attempt)
    return attempt


def started(rank: int) -> RankReported:
    return RankReported(rank=rank, generation=1, state=RankState.STARTED)


def exited(rank: int, code: int | None = 0, **more: object) -> RankReported:
    return RankReported(rank=rank, generation=1, state=RankState.EXITED, exit_code=code, **more)  # type: ignore[arg-type]


def test_a_gang_runs_only_when_every_rank_has_started() -> None:
    one = after(an_attempt(2), started(0))
    assert one.phase is P.STARTING
    assert after(one, started(1)).phase is P.RUNNING


def test_it_succeeds_when_every_rank_exited_with_zero() -> None:
    done = after(an_attempt(2), started(0), started(1), exited(1), exited(0))
    assert (done.phase, done.outcome) == (P.ENDED, Outcome.SUCCEEDED)


def test_one_rank_that_fails_stops_them_all_and_is_named_in_the_reason() -> None:
    stopping = after(an_attempt(3), *(started(i) for i in range(3)), exited(2, 3, last_lines=("boom",)))
    assert stopping.phase is P.STOPPING
    done = after(stopping, exited(0, None, signal=15), exited(1, 0))
    assert done.outcome is Outcome.FAILED
    assert "rank 2 exited with code 3" in (done.reason or "") and "boom" in (done.reason or "")


def test_a_report_of_an_older_generation_or_repeated_changes_nothing() -> None:
    running = after(an_attempt(1), started(0))
    old = RankReported(rank=0, generation=0, state=RankState.EXITED, exit_code=1)
    assert after(running, old, started(0), started(0)) == running


def test_cancel_before_the_barrier_ends_it_at_once_and_after_it_stops_the_ranks() -> None:
    wish = StopWanted(Outcome.CANCELLED, "cancelled")
    assert after(an_attempt(), wish).outcome is Outcome.CANCELLED
    stopping = after(an_attempt(1), started(0), wish)
    assert stopping.phase is P.STOPPING
    assert after(stopping, exited(0, 0)).outcome is Outcome.CANCELLED


def test_ranks_of_a_machine_that_ended_are_over_and_the_others_are_stopped() -> None:
    running = after(an_attempt(2), started(0), started(1))
    stopping = after(running, MachineLost(NodeId("n1"), "reclaimed", is_certain=True))
    assert [r.state for r in stopping.ranks] == [RankState.STARTED, RankState.EXITED]
    assert after(stopping, exited(0, None, signal=15)).outcome is Outcome.LOST


@pytest.mark.parametrize("is_certain", [True, False])
def test_a_rank_that_failed_because_its_peers_machine_went_is_nobodys_failure(is_certain: bool) -> None:
    """The peer notices the broken connection at once; the seller says a moment later why."""
    failing = after(an_attempt(2), started(0), started(1), exited(0, 1))
    assert failing.stop_outcome is Outcome.FAILED
    excused = after(failing, MachineLost(NodeId("n1"), "reclaimed", is_certain=is_certain))
    assert excused.stop_outcome is Outcome.LOST
    assert excused.reason == "reclaimed; then rank 0 exited with code 1"
    assert after(excused, MachineLost(NodeId("n1"), "gone", is_certain=True)).outcome is Outcome.LOST


def test_a_peer_that_was_evicted_excuses_those_who_failed_before_it_was_heard() -> None:
    failing = after(an_attempt(2), started(0), started(1), exited(0, 1))
    assert after(failing, exited(1, 143, evicted=True, reason="taken back")).outcome is Outcome.LOST


def test_a_machine_that_is_lost_after_its_own_ranks_had_ended_excuses_nobody() -> None:
    failing = after(an_attempt(2), started(0), started(1), exited(1, 1))
    assert after(failing, MachineLost(NodeId("n1"), "reclaimed", is_certain=True)) == failing
    assert after(failing, exited(0, None, signal=15)).outcome is Outcome.FAILED


def test_a_silent_machine_may_still_run_its_ranks() -> None:
    running = after(an_attempt(1), started(0))
    stopping = after(running, MachineLost(NodeId("n0"), "silent", is_certain=False))
    assert stopping.phase is P.STOPPING
    assert stopping.ranks[0].state is RankState.STARTED
    assert after(stopping, MachineLost(NodeId("n0"), "gone", is_certain=True)).outcome is Outcome.LOST


@pytest.mark.parametrize(
    ("phase", "outcome"),
    [(P.PROVISIONING, Outcome.LOST), (P.STOPPING, Outcome.CANCELLED)],
)
def test_a_phase_that_outlives_its_deadline_ends(phase: AttemptPhase, outcome: Outcome) -> None:
    attempt = an_attempt(1 if phase is P.STOPPING else 0, phase=phase, stop_outcome=Outcome.CANCELLED)
    late = attempt.deadline_at
    assert after(attempt, TimePassed(), at=late - timedelta(seconds=1)) == attempt
    assert after(attempt, TimePassed(), at=late).outcome is outcome


def test_a_timeout_that_the_node_has_kept_waits_for_what_the_program_left() -> None:
    limits = Limits(timedelta(minutes=5), POLICY)
    running = after(an_attempt(1), started(0), limits=limits)
    storing = after(running, RankReported(rank=0, generation=1, state=RankState.STARTED, is_checkpointing=True))
    late = running.deadline_at
    assert after(running, TimePassed(), at=late, limits=limits).phase is P.STOPPING
    assert after(storing, TimePassed(), at=late, limits=limits) == storing
    assert after(storing, exited(0), at=late, limits=limits).outcome is Outcome.SUCCEEDED
    assert after(storing, TimePassed(), at=late + POLICY.save_limit, limits=limits).phase is P.STOPPING


def test_the_server_enforces_a_timeout_only_after_the_node_had_its_chance() -> None:
    limits = Limits(timedelta(minutes=1), POLICY)
    running = after(an_attempt(1), started(0), limits=limits)
    assert after(running, TimePassed(), at=NOW + timedelta(seconds=90), limits=limits) == running
    stopped = after(running, TimePassed(), at=NOW + timedelta(seconds=120), limits=limits)
    assert stopped.stop_outcome is Outcome.TIMED_OUT


def test_a_rank_that_says_it_timed_out_ends_the_attempt_as_timed_out() -> None:
    done = after(an_attempt(1), started(0), exited(0, None, signal=9, timed_out=True, reason="timed out after 60 s"))
    assert (done.outcome, done.reason) == (Outcome.TIMED_OUT, "rank 0 timed out after 60 s")


def test_a_checkpoint_is_a_phase_of_its_own_and_ends() -> None:
    running = after(an_attempt(1), started(0))
    began = after(running, RankReported(rank=0, generation=1, state=RankState.STARTED, is_checkpointing=True))
    assert began.is_checkpointing
    assert not after(began, CheckpointSaved(100)).is_checkpointing
    assert not after(began, started(0)).is_checkpointing


def test_an_ended_attempt_is_deaf() -> None:
    done = after(an_attempt(1), started(0), exited(0))
    assert after(done, StopWanted(Outcome.CANCELLED, "late"), exited(0, 1), TimePassed()) == done


def test_ranks_are_assigned_once() -> None:
    rank = Rank(rank=0, node_id=NodeId("n0"), node_rank=0, local_rank=0, devices=())
    gang = GangReady((rank,), "10.0.0.1", 29500)
    starting = after(an_attempt(), gang)
    assert (starting.phase, starting.generation) == (P.STARTING, 1)
    assert after(starting, gang) == starting


def test_a_rank_that_went_with_its_machine_is_nobodys_failure_and_no_success() -> None:
    for code, signal in ((0, None), (None, 15)):
        gone = after(an_attempt(1), started(0), exited(0, code, signal=signal, evicted=True))
        assert gone.outcome is Outcome.LOST
    stopping = after(an_attempt(2), started(0), started(1), exited(1, 0, evicted=True))
    assert stopping.stop_outcome is Outcome.LOST


def test_the_whole_gang_saves_as_soon_as_one_machine_is_told_to_go() -> None:
    running = after(an_attempt(2), started(0), started(1))
    why = "the provider takes the machine back at 2026-01-01T00:02:00Z"
    notice = RankReported(rank=1, generation=1, state=RankState.STARTED, reason=why, evicted=True)
    stopping = after(running, notice)
    assert (stopping.phase, stopping.stop_outcome, stopping.reason) == (P.STOPPING, Outcome.LOST, why)
    assert after(stopping, notice) == stopping
    assert after(stopping, exited(0, 0), exited(1, 0, evicted=True)).outcome is Outcome.LOST


def test_what_a_stopped_rank_saved_is_given_time_to_be_stored_but_once() -> None:
    stopping = after(an_attempt(1), started(0), StopWanted(Outcome.HELD, "held"))
    saving = RankReported(rank=0, generation=1, state=RankState.STARTED, is_checkpointing=True)
    longer = after(stopping, saving)
    assert longer.deadline_at == NOW + POLICY.save_limit > stopping.deadline_at
    assert (longer.phase, longer.stop_outcome, longer.reason) == (P.STOPPING, Outcome.HELD, "held")
    later = NOW + timedelta(minutes=5)
    assert after(longer, CheckpointSaved(7), saving, at=later).deadline_at == longer.deadline_at
    assert after(longer, TimePassed(), at=longer.deadline_at).outcome is Outcome.HELD


def test_an_attempt_remembers_the_newest_checkpoint_that_it_committed() -> None:
    running = after(an_attempt(1), started(0))
    assert running.saved_step is None
    assert after(running, CheckpointSaved(20), CheckpointSaved(10)).saved_step == 20
