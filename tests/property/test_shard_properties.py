"""Whatever happens in whichever order: every item is in exactly one shard, and every shard gets exactly one output."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from crucible.core import shards as core
from crucible.core.shards import Result, Verdict
from crucible.model.attempt import Outcome
from crucible.model.ids import AttemptId, JobId
from crucible.model.shards import Desk, Held, Shard, Shards, ShardState, Turn

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JOB = JobId("j1")
SPEC = Shards(count=1, lease=timedelta(seconds=60), reissue_after=2.0)
ENDS = [Outcome.LOST, Outcome.FAILED, Outcome.SUCCEEDED, Outcome.CANCELLED]


@given(items=st.integers(1, 5000), size=st.integers(1, 700), named=st.booleans())
def test_every_item_is_in_exactly_one_shard_and_so_is_every_byte(items: int, size: int, named: bool) -> None:
    ends = [3 * n + 3 for n in range(items)] if named else []
    cut = list(core.cut(JOB, items, size, ends))
    assert [n for one in cut for n in range(one.first, one.first + one.items)] == list(range(items))
    assert [one.number for one in cut] == list(range(len(cut)))
    assert all(1 <= one.items <= size for one in cut)
    if named:
        assert [(one.start, one.end) for one in cut] == [(3 * o.first, 3 * (o.first + o.items)) for o in cut]


@given(items=st.integers(1, 10**8), workers=st.none() | st.integers(1, 10**5), count=st.booleans())
def test_no_job_has_more_shards_than_there_may_be(items: int, workers: int | None, count: bool) -> None:
    spec = Shards(count=items) if count else Shards(glob="*", workers=workers)
    assert 1 <= -(-items // core.size_of(spec, items, None)) <= core.MOST_SHARDS


@dataclass
class Worker:
    """An attempt: alive until `outcome`. Remembers every lease that it was ever given."""

    id: AttemptId
    outcome: Outcome | None = None
    leases: list[Shard] = field(default_factory=list)
    questions: int = 0


class Batch(RuleBasedStateMachine):
    """Rows as a store keeps them, workers that die, lose answers, dawdle and commit late or twice."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.rows = list(core.cut(JOB, 12, 3))
        self.workers: list[Worker] = []
        self.outputs: dict[int, list[str]] = {one.number: [] for one in self.rows}

    @property
    def alive(self) -> list[Worker]:
        return [one for one in self.workers if one.outcome is None]

    @rule()
    def join(self) -> None:
        self.workers.append(Worker(AttemptId(f"a{len(self.workers)}")))

    @rule(seconds=st.sampled_from([0.1, 3.0, 20.0, 61.0]))
    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    @precondition(lambda self: self.alive)
    @rule(data=st.data(), answer_is_lost=st.booleans())
    def ask(self, data: st.DataObject, answer_is_lost: bool) -> None:
        worker = data.draw(st.sampled_from(self.alive))
        turn = self.lease(worker)
        if turn.given is not None and not answer_is_lost:
            worker.leases.append(turn.given)
            worker.questions += 1  # the next question is a new one

    def lease(self, worker: Worker) -> Turn:
        turn = core.next_shard(self.desk(worker), SPEC, worker.id, f"q{worker.questions}", self.now)
        for after in (*turn.dropped, *([turn.given] if turn.given else [])):
            before = self.rows[after.number]
            assert before.state is not ShardState.DONE, "what is done is never given out or dropped"
            self.rows[after.number] = after
        for dropped in turn.dropped:
            self.outputs[dropped.number].append("dropped")
        return turn

    def desk(self, worker: Worker) -> Desk:
        leased = [one for one in self.rows if one.state is ShardState.LEASED]
        mine = [one for one in leased if one.attempt_id == worker.id]
        again = next((one for one in mine if one.asked == f"q{worker.questions}"), None)
        waiting = next((one for one in self.rows if one.state is ShardState.WAITING), None)
        if again or waiting:
            return Desk(again=again, waiting=waiting, own=len(mine))
        outcomes = {one.id: one.outcome for one in self.workers}
        held = tuple(Held(one, outcomes[one.attempt_id], None) for one in leased if one.attempt_id is not None)
        recent = tuple(one.seconds for one in self.rows if one.state is ShardState.DONE and one.seconds)
        return Desk(held=held, recent=recent, own=len(mine))

    @precondition(lambda self: any(one.leases for one in self.alive))
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        """Of any lease that it ever had, again and again."""
        worker = data.draw(st.sampled_from([one for one in self.alive if one.leases]))
        self.finish(worker, data.draw(st.sampled_from(worker.leases)))

    def finish(self, worker: Worker, lease: Shard) -> None:
        row, output = self.rows[lease.number], core.output_key(JOB, lease.number, lease.fence, worker.id)
        verdict = core.judged(row, worker.id, lease.fence)
        assert verdict is not Verdict.FOREIGN, "whoever was given a lease may say what came of it"
        if verdict is Verdict.ACCEPTED:
            result = Result(output=output, size_bytes=1, sha256="", failed=0, errors=(), seconds=1.0)
            self.rows[lease.number] = core.committed(row, worker.id, lease.fence, result, self.now)
            self.outputs[lease.number].append(output)
        elif verdict is Verdict.REPEATED:
            assert self.rows[lease.number].output == output

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from(self.alive))
        for lease in worker.leases:
            row = self.rows[lease.number]
            self.rows[lease.number] = core.renewed(row, worker.id, lease.fence, SPEC.lease, self.now)

    @precondition(lambda self: self.alive)
    @rule(data=st.data(), outcome=st.sampled_from(ENDS))
    def die(self, data: st.DataObject, outcome: Outcome) -> None:
        data.draw(st.sampled_from(self.alive)).outcome = outcome

    @invariant()
    def an_output_is_committed_once_and_never_changes(self) -> None:
        for row in self.rows:
            made = self.outputs[row.number]
            assert len(made) == (1 if row.state is ShardState.DONE else 0)
            assert not made or made[0] in (row.output, "dropped")

    def teardown(self) -> None:
        """One worker that stays finishes whatever the others left."""
        last = Worker(AttemptId("last"))
        for one in self.workers:
            one.outcome = one.outcome or Outcome.LOST
        self.workers.append(last)
        for _ in range(50):
            turn = self.lease(last)
            if turn.given is None:
                break
            last.questions += 1
            self.finish(last, turn.given)
        assert all(row.state is ShardState.DONE for row in self.rows)
        self.an_output_is_committed_once_and_never_changes()


TestBatch = Batch.TestCase
TestBatch.settings = settings(max_examples=200, stateful_step_count=60, deadline=None)


@given(st.lists(st.sampled_from(ENDS), max_size=20))
def test_a_shard_is_given_up_only_for_what_its_programs_did(outcomes: list[Outcome]) -> None:
    row = core.leased(next(core.cut(JOB, 1, 1)), core.Asker(AttemptId("a"), "q", NOW, SPEC.lease))
    own = 0
    for number, outcome in enumerate(outcomes):
        own += outcome in (Outcome.FAILED, Outcome.SUCCEEDED)
        turn = core.next_shard(Desk(held=(Held(row, outcome),)), SPEC, AttemptId(f"b{number}"), "q", NOW)
        assert (turn.given is None) == (own >= core.TRIES)
        if turn.given is None:
            return
        row = replace(turn.given)
