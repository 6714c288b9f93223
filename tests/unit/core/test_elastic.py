"""Members of an elastic attempt come and go; everybody else's attempts live and die together."""

from dataclasses import replace
from datetime import timedelta

import pytest

from crucible.core import attempt as attempts
from crucible.core.step import View, advance
from crucible.model.attempt import Attempt, AttemptGrown, AttemptPhase, Outcome, RankState
from crucible.model.ids import LeaseId, NodeId
from crucible.model.lease import Lease, LeasePhase
from crucible.model.spec import Execution, Framework, JobSpec, Resources
from crucible.model.task import TaskPhase
from crucible.model.tree import TaskTree
from making import FACTS, NOW, POLICY, a_job, a_lease, a_node, a_task, an_attempt

SPEC = JobSpec(
    entrypoint="train.py",
    framework=Framework.PYTORCH_DDP,
    resources=Resources(nodes=3),
    execution=Execution(min_nodes=1, max_nodes=4),
)
RIGID = replace(SPEC, execution=Execution())
LIMITS = attempts.Limits(None, POLICY, least=1)


def running(members: int = 3) -> Attempt:
    started = an_attempt(ranks=members, state=RankState.STARTED)
    return replace(started, phase=AttemptPhase.RUNNING, deadline_at=NOW + timedelta(days=1))


def a_tree(attempt: Attempt, leases: tuple[Lease, ...], nodes: int) -> TaskTree:
    return TaskTree(
        job=a_job(),
        task=a_task(attempt_id=attempt.id, phase=TaskPhase.RUNNING, attempts=1, deadline_at=attempt.deadline_at),
        attempt=attempt,
        orders=(),
        leases=leases,
        nodes=tuple(a_node(i) for i in range(nodes)),
        heard={a_node(i).id: NOW for i in range(nodes)},
    )


def look(tree: TaskTree, spec: JobSpec = SPEC) -> TaskTree:
    for change in advance(tree, View(spec, FACTS, POLICY, NOW, NOW)):
        if isinstance(change.after, Attempt):
            tree = replace(tree, attempt=change.after)
        if isinstance(change.after, Lease):
            leases = tuple(change.after if le.id == change.after.id else le for le in tree.leases)
            tree = replace(tree, leases=leases)
    return tree


def after(attempt: Attempt, *seen: attempts.Observation, limits: attempts.Limits = LIMITS) -> Attempt:
    for one in seen:
        for event in attempts.decide(attempt, one, NOW, limits):
            attempt = attempts.evolve(attempt, event)
    return attempt


def loss(number: int, *, is_certain: bool = True) -> attempts.MachineLost:
    return attempts.MachineLost(NodeId(f"n{number}"), "its link was cut", is_certain, LeaseId(f"l{number}"))


def exited(rank: int, code: int = 0, **more: object) -> attempts.RankReported:
    fields: dict[str, object] = dict(rank=rank, generation=1, state=RankState.EXITED, exit_code=code)
    return attempts.RankReported(**{**fields, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize("is_certain", [True, False])
def test_the_others_go_on_without_a_member_that_is_gone(is_certain: bool) -> None:
    left = after(running(), loss(2, is_certain=is_certain))
    assert left.phase is AttemptPhase.RUNNING
    assert left.leases == ("l0", "l1")
    assert (left.ranks[2].state, left.ranks[2].is_evicted) == (RankState.EXITED, True)
    assert after(left, exited(0), exited(1)).outcome is Outcome.SUCCEEDED


def test_a_rigid_attempt_ends_with_its_first_machine() -> None:
    rigid = attempts.Limits(None, POLICY)
    assert after(running(), loss(2), limits=rigid).stop_outcome is Outcome.LOST


def test_below_its_least_size_an_elastic_attempt_ends_too() -> None:
    two = attempts.Limits(None, POLICY, least=2)
    one_left = after(running(), loss(2), limits=two)
    assert one_left.phase is AttemptPhase.RUNNING
    assert after(one_left, loss(1), limits=two).stop_outcome is Outcome.LOST


def test_nobody_goes_on_without_the_node_that_they_meet_at() -> None:
    assert after(running(), loss(0)).stop_outcome is Outcome.LOST


def test_before_all_have_started_a_loss_is_everybodys() -> None:
    starting = an_attempt(ranks=3)
    assert after(starting, loss(2)).stop_outcome is Outcome.LOST


def test_a_member_whose_machine_is_taken_back_leaves_alone() -> None:
    going = attempts.RankReported(rank=1, generation=1, state=RankState.STARTED, evicted=True, reason="taken back")
    told = after(running(), going)
    assert told.phase is AttemptPhase.RUNNING
    gone = after(told, exited(1, 0, evicted=True, reason="taken back"))
    assert gone.phase is AttemptPhase.RUNNING and gone.ranks[1].is_evicted
    assert after(gone, exited(0), exited(2)).outcome is Outcome.SUCCEEDED


def test_a_member_that_fails_is_everybodys_failure() -> None:
    assert after(running(), exited(1, 3)).stop_outcome is Outcome.FAILED


def test_when_the_others_are_done_the_loss_of_the_last_is_the_end() -> None:
    done = after(running(), exited(0), exited(1), loss(2, is_certain=False))
    assert (done.phase, done.outcome) == (AttemptPhase.ENDED, Outcome.SUCCEEDED)


def test_nobody_joins_when_the_first_are_done() -> None:
    done = after(running(2), exited(1))
    assert after(done, attempts.MemberReady((replace(done.ranks[0], rank=2),))) == done


def test_when_all_that_stayed_were_taken_nothing_has_succeeded() -> None:
    last = after(running(2), exited(1, 0, evicted=True), exited(0, 0, evicted=True))
    assert last.outcome is Outcome.LOST


def test_a_machine_that_was_ordered_later_joins_with_the_next_number() -> None:
    attempt = after(running(2))
    grown = attempts.evolve(attempt, AttemptGrown(NOW, (LeaseId("l2"),)))
    tree = look(a_tree(grown, tuple(a_lease(i, active=True) for i in range(3)), nodes=3))
    assert tree.attempt is not None
    joined = tree.attempt.ranks[2]
    assert (joined.rank, joined.node_rank, joined.node_id, joined.state) == (2, 2, "n2", RankState.ASSIGNED)
    assert tree.attempt.phase is AttemptPhase.RUNNING and tree.attempt.generation == 1
    assert look(tree) == tree, "it joins once"


def test_the_lease_of_a_lost_member_is_given_back_and_the_others_are_kept() -> None:
    leases = (a_lease(0, active=True), a_lease(1, active=True), replace(a_lease(2, active=True), missing_since=NOW))
    tree = a_tree(running(), leases, nodes=3)
    silent = replace(tree, heard={**tree.heard, a_node(2).id: NOW - POLICY.silence * 2})
    silent = replace(silent, nodes=tuple(replace(n, enrolled_at=NOW - POLICY.silence * 2) for n in silent.nodes))
    view = View(SPEC, FACTS, POLICY, NOW, NOW - POLICY.silence * 2)
    changes = {change.after.id: change.after for change in advance(silent, view)}
    attempt = changes["a"]
    assert isinstance(attempt, Attempt) and attempt.leases == ("l0", "l1")
    lost = changes["l2"]
    assert isinstance(lost, Lease) and (lost.phase, lost.reason) == (LeasePhase.CLOSING, "the node fell silent")
    assert "l0" not in changes and "l1" not in changes


def test_a_machine_that_was_to_join_and_never_came_is_forgotten() -> None:
    grown = attempts.evolve(running(2), AttemptGrown(NOW, (LeaseId("l2"),)))
    refused = replace(a_lease(2), phase=LeasePhase.CLOSED, reason="no room")
    tree = look(a_tree(grown, (a_lease(0, active=True), a_lease(1, active=True), refused), nodes=2))
    assert tree.attempt is not None
    assert (tree.attempt.phase, tree.attempt.leases) == (AttemptPhase.RUNNING, ("l0", "l1"))


def test_a_stopping_attempt_takes_nobody_in() -> None:
    stopping = after(running(2), attempts.StopWanted(Outcome.CANCELLED, "cancelled"))
    grown = attempts.evolve(stopping, AttemptGrown(NOW, (LeaseId("l2"),)))
    tree = look(a_tree(grown, tuple(a_lease(i, active=True) for i in range(3)), nodes=3))
    assert tree.attempt is not None and len(tree.attempt.ranks) == 2


def test_a_rigid_job_takes_nobody_in() -> None:
    grown = attempts.evolve(running(2), AttemptGrown(NOW, (LeaseId("l2"),)))
    tree = look(a_tree(grown, tuple(a_lease(i, active=True) for i in range(3)), nodes=3), RIGID)
    assert tree.attempt is not None and len(tree.attempt.ranks) == 2
