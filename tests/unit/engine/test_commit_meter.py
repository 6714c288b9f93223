"""What commits are counted as."""

from dataclasses import replace
from datetime import timedelta

from crucible.core import attempt as attempts
from crucible.core import lease as leases
from crucible.engine.commit_meter import CommitMeter
from crucible.exporting.prometheus import PrometheusMeter
from crucible.model.attempt import AttemptStarted, CheckpointBegan, CheckpointCommitted
from crucible.model.change import Change, born, changed
from crucible.model.ids import AttemptId, Digest, JobId, MachineId, NodeId
from crucible.model.job import JobSubmitted
from crucible.model.lease import LeaseClosed, LeaseClosing, LeaseStarted, NodeBound
from crucible.model.record import Checkpoint
from making import NOW, a_job, a_lease, an_attempt

LATER = NOW + timedelta(seconds=40)


def figures(meter: CommitMeter) -> dict[str, float]:
    lines = meter.meter.text()[0].decode().splitlines()
    return {name: float(number) for name, _, number in (line.rpartition(" ") for line in lines if line[0] != "#")}


def meter() -> CommitMeter:
    made = CommitMeter(PrometheusMeter())
    made.expect([("fake", "nowhere-1")])
    return made


def of_lease(*events: object) -> tuple[Change, ...]:
    return changed(a_lease(), events, leases.evolve)[1]


def test_a_launch_is_measured_from_the_order_to_the_agent() -> None:
    counted = meter()
    started = LeaseStarted(NOW, MachineId("m"), (), None)
    counted.committed(of_lease(started, NodeBound(LATER, NodeId("n"))), ())
    assert figures(counted)['crucible_launch_seconds_sum{provider="fake"}'] == 40


def test_a_machine_is_taken_once_though_two_events_say_so() -> None:
    counted = meter()
    (closing,) = of_lease(
        LeaseStarted(NOW, MachineId("m"), (), None), LeaseClosing(NOW, "taken", LATER, was_taken=True)
    )
    counted.committed([closing], ())
    closed = changed(closing.after, [LeaseClosed(LATER, "taken", was_taken=True)], leases.evolve)[1]  # type: ignore[type-var]
    counted.committed(closed, ())
    assert figures(counted)['crucible_preemptions_total{provider="fake",region="nowhere-1"}'] == 1


def test_a_checkpoint_is_counted_with_its_bytes_and_its_time() -> None:
    counted = meter()
    running = an_attempt(ranks=1)
    began = changed(running, [CheckpointBegan(NOW)], attempts.evolve)
    counted.committed(began[1], ())
    saved = Checkpoint(
        lineage=JobId("j"), job_id=JobId("j"), attempt_id=AttemptId("a"), step=1, uri="file:///x", size_bytes=1000,
        manifest_sha256=Digest("0"), created_at=LATER,
    )  # fmt: skip
    counted.committed(changed(began[0], [CheckpointCommitted(LATER, 1)], attempts.evolve)[1], [saved])
    found = figures(counted)
    assert (found["crucible_checkpoints_total"], found["crucible_checkpoint_bytes_total"]) == (1, 1000)
    assert (found["crucible_checkpoint_seconds_count"], found["crucible_checkpoint_seconds_sum"]) == (1, 40)


def test_only_attempts_after_the_first_are_looked_at_for_a_recovery() -> None:
    counted = meter()
    for number in (0, 1):
        attempt = replace(an_attempt(ranks=1), number=number)
        counted.committed(changed(attempt, [AttemptStarted(NOW, LATER)], attempts.evolve)[1], ())
    assert [attempt.number for attempt in counted.started_again] == [1]


def test_writes_wait_between_their_beginning_and_their_end() -> None:
    counted = meter()
    counted.began()
    counted.began()
    counted.ended(0.5)
    assert counted.writes_waiting == 1
    assert figures(counted)["crucible_database_write_seconds_sum"] == 0.5


def test_a_submitted_job_is_counted() -> None:
    counted = meter()
    counted.committed([born(a_job(), JobSubmitted(NOW))], ())
    assert figures(counted)["crucible_jobs_submitted_total"] == 1
