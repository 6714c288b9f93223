from dataclasses import replace
from datetime import timedelta

from crucible.core.launch import assign_ranks, recipe, share
from crucible.core.launchers.member import program
from crucible.core.step import View, advance, held_leases
from crucible.model.attempt import Attempt, AttemptPhase, Outcome, RankState
from crucible.model.ids import AttemptId, JobId, TaskId
from crucible.model.job import Desired
from crucible.model.lease import Lease, LeasePhase
from crucible.model.record import Progress
from crucible.model.spec import Execution, JobSpec
from crucible.model.sweep import Curve, Objective, Sweep
from crucible.model.task import Task, TaskPhase, Verdict
from crucible.model.tree import TaskTree
from making import FACTS, NOW, POLICY, a_job, a_lease, a_node, a_task, an_attempt, an_order

SPEC = JobSpec(command=("true",))


def a_tree(
    leases: int = 2, *, attempt: Attempt | None = None, desired: Desired = Desired.RUN, **task: object
) -> TaskTree:
    fields: dict[str, object] = dict(attempt_id=AttemptId("a"), phase=TaskPhase.PROVISIONING, attempts=1)
    return TaskTree(
        job=a_job(desired=desired),
        task=a_task(**{**fields, **task}),
        attempt=attempt or an_attempt(leases=tuple(f"l{i}" for i in range(leases))),
        orders=(),
        leases=tuple(a_lease(i, active=True) for i in range(leases)),
        nodes=tuple(a_node(i) for i in range(leases)),
        heard={a_node(i).id: NOW for i in range(leases)},
    )


def look(tree: TaskTree, at=NOW, spec: JobSpec = SPEC) -> TaskTree:
    """The tree after one step."""
    for change in advance(tree, View(spec, FACTS, POLICY, at, NOW)):
        match change.after:
            case Attempt() as attempt:
                tree = replace(tree, attempt=attempt)
            case Task() as task:
                tree = replace(tree, task=task)
            case Lease() as lease:
                tree = replace(tree, leases=tuple(lease if le.id == lease.id else le for le in tree.leases))
    return tree


def running(tree: TaskTree) -> TaskTree:
    assigned = look(tree)
    assert assigned.attempt is not None
    ranks = tuple(replace(r, state=RankState.STARTED) for r in assigned.attempt.ranks)
    attempt = replace(assigned.attempt, ranks=ranks, phase=AttemptPhase.RUNNING, deadline_at=NOW + timedelta(days=1))
    return look(replace(assigned, attempt=attempt))


def test_a_machine_that_goes_is_given_back_and_its_healthy_siblings_are_kept() -> None:
    tree = running(a_tree())
    assert tree.attempt is not None
    why = "the provider takes the machine back at 2026-01-01T00:02:00Z"
    ends = (dict(exit_code=0, reason=why, is_evicted=True), dict(exit_code=None, signal=15, reason="a sibling ended"))
    ranks = tuple(
        replace(rank, state=RankState.EXITED, **end) for rank, end in zip(tree.attempt.ranks, ends, strict=True)
    )
    stopping = replace(tree.attempt, ranks=ranks[:1] + tree.attempt.ranks[1:], phase=AttemptPhase.STOPPING)
    assert look(replace(tree, attempt=stopping)).leases == tree.leases, "its other ranks may still be saving"
    ended = replace(tree.attempt, ranks=ranks, phase=AttemptPhase.ENDED, outcome=Outcome.LOST, reason="rank 0 " + why)
    after = look(replace(tree, attempt=ended))
    assert [(lease.phase, lease.reason) for lease in after.leases] == [
        (LeasePhase.CLOSING, why),
        (LeasePhase.ACTIVE, None),
    ]
    assert after.task.losses == 1 and after.task.failures == 0


def test_the_barrier_opens_when_every_lease_has_a_node() -> None:
    ready = look(a_tree())
    assert ready.attempt is not None and ready.attempt.phase is AttemptPhase.STARTING
    assert [r.node_id for r in ready.attempt.ranks] == ["n0", "n1"]
    assert (ready.attempt.master_addr, ready.attempt.master_port) == ("10.0.0.1", 29500)


def test_the_barrier_waits_for_the_last_node() -> None:
    tree = a_tree()
    waiting = replace(tree, leases=(tree.leases[0], a_lease(1)), nodes=tree.nodes[:1])
    assert look(waiting).attempt == waiting.attempt


def test_the_barrier_waits_until_an_earlier_machine_is_surely_gone() -> None:
    tree = a_tree()
    leaving = replace(a_lease(9, active=True), phase=LeasePhase.CLOSING)
    assert look(replace(tree, leases=(*tree.leases, leaving))).attempt == tree.attempt
    gone = replace(leaving, phase=LeasePhase.CLOSED)
    after = look(replace(tree, leases=(*tree.leases, gone)))
    assert after.attempt is not None and after.attempt.phase is AttemptPhase.STARTING


def test_a_job_runs_when_its_ranks_do() -> None:
    assert running(a_tree()).task.phase is TaskPhase.RUNNING


def test_silence_ends_the_attempt_and_the_lease_but_not_before_its_time() -> None:
    tree = running(a_tree())
    soon, late = NOW + POLICY.silence, NOW + POLICY.silence + timedelta(seconds=1)
    assert look(tree, at=soon).attempt == tree.attempt
    other = replace(tree, heard={**tree.heard, a_node(0).id: late})
    lost = look(other, at=late)
    assert lost.attempt is not None and lost.attempt.stop_outcome is Outcome.LOST
    assert [le.phase for le in lost.leases] == [LeasePhase.ACTIVE, LeasePhase.CLOSING]


def test_silence_while_nobody_listened_is_not_the_nodes() -> None:
    tree = running(a_tree())
    much_later = NOW + timedelta(hours=3)
    view = View(SPEC, FACTS, POLICY, much_later, watching_since=much_later - timedelta(seconds=5))
    assert advance(tree, view) == ()


def test_an_agent_that_nobody_listened_for_is_given_its_time() -> None:
    tree = a_tree()
    started = tuple(replace(le, node_id=None, deadline_at=NOW + FACTS.boot_time) for le in tree.leases)
    waiting = replace(tree, leases=started, nodes=())
    much_later = NOW + timedelta(hours=3)
    for listened, phases in (
        (POLICY.enrol_patience - timedelta(seconds=1), set()),
        (POLICY.enrol_patience, {LeasePhase.CLOSING}),
    ):
        view = View(SPEC, FACTS, POLICY, much_later, watching_since=much_later - listened)
        changes = advance(replace(waiting, attempt=None), view)
        assert {change.after.phase for change in changes if isinstance(change.after, Lease)} == phases


def test_a_failed_attempt_keeps_its_healthy_machines_for_the_next() -> None:
    tree = running(a_tree())
    assert tree.attempt is not None
    ranks = tuple(replace(r, state=RankState.EXITED, exit_code=1) for r in tree.attempt.ranks)
    failed = replace(tree.attempt, phase=AttemptPhase.ENDED, outcome=Outcome.FAILED, reason="boom", ranks=ranks)
    after = look(replace(tree, attempt=failed))
    assert (after.task.phase, after.task.failures) == (TaskPhase.WAITING, 1)
    assert len(held_leases(after)) == 2


def test_machines_with_ranks_that_would_not_stop_are_given_back() -> None:
    tree = running(a_tree())
    assert tree.attempt is not None
    ended = replace(tree.attempt, phase=AttemptPhase.ENDED, outcome=Outcome.FAILED, reason="boom")
    after = look(replace(tree, attempt=ended))
    assert [le.phase for le in after.leases] == [LeasePhase.CLOSING] * 2


def test_the_end_of_a_task_gives_everything_back() -> None:
    tree = running(a_tree())
    assert tree.attempt is not None
    done = replace(tree.attempt, phase=AttemptPhase.ENDED, outcome=Outcome.SUCCEEDED)
    after = look(replace(tree, attempt=done))
    assert after.task.phase is TaskPhase.SUCCEEDED
    assert all(le.phase is LeasePhase.CLOSING for le in after.leases)


def test_a_refused_order_frees_the_task_to_try_elsewhere() -> None:
    tree = a_tree(1)
    refused = replace(tree, leases=(a_lease(0, phase=LeasePhase.CLOSED, reason="sold out"),), nodes=())
    after = look(refused)
    assert after.attempt is not None and after.attempt.outcome is Outcome.UNPLACED
    assert (after.task.phase, after.task.reason, after.task.losses) == (TaskPhase.WAITING, "sold out", 0)


def test_cancel_reaches_a_task_in_every_phase() -> None:
    for tree in (a_tree(), running(a_tree())):
        after = look(replace(tree, job=a_job(desired=Desired.CANCEL)))
        assert after.attempt is not None
        assert after.attempt.phase in (AttemptPhase.STOPPING, AttemptPhase.ENDED)
    waiting = a_tree(0, attempt=None, attempt_id=None, phase=TaskPhase.WAITING, desired=Desired.CANCEL)
    assert look(replace(waiting, attempt=None)).task.phase is TaskPhase.CANCELLED


def test_devices_are_dealt_out_evenly_and_none_twice() -> None:
    devices = ("0", "1", "2", "3", "4")
    parts = [share(devices, i, 3) for i in range(3)]
    assert parts == [("0", "1"), ("2", "3"), ("4",)]
    ranks = assign_ranks([replace(a_lease(0, active=True), devices=devices)], [a_node(0)], 2)
    assert [r.devices for r in ranks] == [("0", "1", "2"), ("3", "4")]


def test_world_size_counts_processes_and_the_users_words_stay_words() -> None:
    spec = JobSpec(command=("echo", "$(touch /tmp/x); `id`"), execution=Execution(processes_per_node=2))
    tree = look(a_tree(), spec=spec)
    assert tree.attempt is not None
    launch = recipe(tree.job, tree.task, spec, tree.attempt, tree.attempt.ranks[3], "file:///c", False, POLICY)
    assert launch.argv == ("echo", "$(touch /tmp/x); `id`")
    assert (launch.env["RANK"], launch.env["WORLD_SIZE"], launch.env["LOCAL_RANK"]) == ("3", "4", "1")
    assert (launch.env["NODE_RANK"], launch.env["NNODES"], launch.env["LOCAL_WORLD_SIZE"]) == ("1", "2", "2")


def test_the_command_line_follows_from_the_entrypoint() -> None:
    assert program(JobSpec(entrypoint="train.py", args=("-x",))) == ("python", "train.py", "-x")
    assert program(JobSpec(entrypoint="run.sh")) == ("/bin/sh", "run.sh")
    assert program(JobSpec(entrypoint="bin/tool")) == ("./bin/tool",)


def test_a_machine_that_the_attempt_does_not_use_is_given_back() -> None:
    """The gang was bought elsewhere: what is left of the old one costs money for nothing."""
    tree = running(a_tree(leases=1))
    after = look(replace(tree, leases=(*tree.leases, a_lease(1, active=True))))
    assert [lease.phase for lease in after.leases] == [LeasePhase.ACTIVE, LeasePhase.CLOSING]
    assert after.leases[1].reason == "the task runs on other machines"


def test_the_barrier_waits_until_every_machine_that_the_gang_left_is_closed() -> None:
    tree = a_tree()
    for phase in (LeasePhase.REQUESTED, LeasePhase.ACTIVE, LeasePhase.CLOSING):
        left = replace(a_lease(9, active=True), phase=phase)
        after = look(replace(tree, leases=(*tree.leases, left)))
        assert after.attempt is not None and after.attempt.phase is AttemptPhase.PROVISIONING, phase
        assert after.leases[-1].phase is LeasePhase.CLOSING


def test_only_a_spot_machine_that_goes_by_its_own_account_was_taken() -> None:
    tree = running(a_tree(1))
    assert tree.attempt is not None
    for is_spot, is_evicted in ((True, True), (True, False), (False, True)):
        rank = replace(tree.attempt.ranks[0], state=RankState.EXITED, exit_code=0, is_evicted=is_evicted)
        outcome = Outcome.LOST if is_evicted else Outcome.SUCCEEDED
        ended = replace(tree.attempt, ranks=(rank,), phase=AttemptPhase.ENDED, outcome=outcome)
        after = look(replace(tree, attempt=ended, orders=(an_order(is_spot=is_spot),)))
        assert after.leases[0].phase is LeasePhase.CLOSING
        assert after.leases[0].was_taken == (is_spot and is_evicted)


def test_a_script_hears_how_long_its_gang_lives() -> None:
    tree = look(a_tree())
    assert tree.attempt is not None
    rank = tree.attempt.ranks[0]
    for mean_life_s, said in ((None, None), (5400.4, "5400")):
        attempt = replace(tree.attempt, mean_life_s=mean_life_s)
        launch = recipe(tree.job, tree.task, SPEC, attempt, rank, "file:///c", False, POLICY)
        assert launch.env.get("CRUCIBLE_MEAN_LIFE_S") == said


# --- trials ---------------------------------------------------------------------------------------

SWEPT = JobSpec(command=("true",), sweep=Sweep(objective=Objective(metric="loss")))


def reported(curve: Curve | None, **metrics: float) -> Progress:
    return Progress(
        task_id=TaskId("t"), job_id=JobId("j"), attempt_id=AttemptId("a"), at=NOW, metrics=metrics, curve=curve
    )


def ended(
    tree: TaskTree, progress: Progress | None, spec: JobSpec = SWEPT, outcome: Outcome = Outcome.SUCCEEDED
) -> Task:
    assert tree.attempt is not None
    attempt = replace(tree.attempt, phase=AttemptPhase.ENDED, outcome=outcome)
    return look(replace(tree, attempt=attempt, progress=progress), spec=spec).task


def test_a_trial_that_ends_leaves_its_value_and_its_last_metrics() -> None:
    task = ended(running(a_tree()), reported(Curve(last=0.5, best=0.1, reports=9), loss=0.5, acc=0.9))
    assert (task.phase, task.value, task.metrics, task.reason) == (
        TaskPhase.SUCCEEDED,
        0.5,
        {"loss": 0.5, "acc": 0.9},
        None,
    )


def test_a_trial_without_a_value_says_why() -> None:
    spoilt = ended(running(a_tree()), reported(Curve(reports=3), loss=float("nan"), acc=0.9))
    assert (spoilt.value, spoilt.metrics, spoilt.reason) == (None, {"acc": 0.9}, "its loss was no finite number")
    silent = ended(running(a_tree()), None)
    assert (silent.phase, silent.value, silent.reason) == (TaskPhase.SUCCEEDED, None, "it reported no loss")


def test_a_trial_that_failed_keeps_its_metrics_and_has_no_value() -> None:
    tree = running(a_tree(failures=9))
    task = ended(tree, reported(Curve(last=0.5, reports=1), loss=0.5), outcome=Outcome.FAILED)
    assert (task.phase, task.value, task.metrics) == (TaskPhase.FAILED, None, {"loss": 0.5})


def test_a_job_without_an_objective_has_metrics_and_no_value() -> None:
    task = ended(running(a_tree()), reported(None, loss=0.5), SPEC)
    assert (task.value, task.metrics, task.reason) == (None, {"loss": 0.5}, None)


def given_up(tree: TaskTree, reason: str) -> TaskTree:
    return replace(tree, task=replace(tree.task, verdict=Verdict.PRUNED, reason=reason))


def test_a_trial_that_is_given_up_is_stopped_and_counts_as_done() -> None:
    tree = look(given_up(running(a_tree()), "stopped early: too bad"))
    assert tree.attempt is not None
    assert (tree.attempt.phase, tree.attempt.stop_outcome) == (AttemptPhase.STOPPING, Outcome.CANCELLED)
    task = ended(tree, reported(Curve(last=0.5, reports=1), loss=0.5), outcome=Outcome.CANCELLED)
    assert (task.phase, task.verdict, task.value) == (TaskPhase.SUCCEEDED, Verdict.PRUNED, 0.5)
    assert task.reason == "stopped early: too bad"


def test_a_trial_that_came_to_its_end_before_it_was_stopped_was_not_stopped() -> None:
    tree = given_up(running(a_tree()), "stopped early")
    task = ended(tree, reported(Curve(last=0.5, reports=1)), outcome=Outcome.SUCCEEDED)
    assert (task.phase, task.verdict, task.value, task.reason) == (TaskPhase.SUCCEEDED, None, 0.5, None)


def test_a_trial_that_is_given_up_and_loses_its_machine_is_not_run_again() -> None:
    tree = given_up(running(a_tree()), "stopped early")
    assert ended(tree, None, outcome=Outcome.LOST).phase is TaskPhase.SUCCEEDED
