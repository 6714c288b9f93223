"""Whatever is seen, in whatever order: plans are safe, steps are legal, everything converges, terminal is for ever."""

from datetime import timedelta
from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from crucible.core import attempt as attempts
from crucible.core import job as jobs
from crucible.core import lease as leases
from crucible.core.attempt import CheckpointSaved, GangReady, Limits, MachineLost, RankReported, StopWanted, TimePassed
from crucible.core.check import check_plan
from crucible.core.cycle import Want, plan
from crucible.model.attempt import AttemptPhase, Outcome, Rank, RankState
from crucible.model.ids import LeaseId, MachineId, NodeId, OrderId, TaskId
from crucible.model.job import Desired, JobStatusChanged
from crucible.model.lease import LeasePhase, Machine, MachineState
from crucible.model.spec import JobSpec, Resources
from crucible.model.task import TaskPhase
from crucible.model.tree import Tally
from making import FACTS, NOW, POLICY, a_job, a_lease, an_attempt, an_offer

LIMITS = Limits(timedelta(minutes=5), POLICY)

resources = st.builds(
    Resources,
    gpus=st.integers(0, 12),
    max_gpus_per_node=st.none() | st.integers(1, 8),
    gpu_memory_gib=st.sampled_from([0.0, 40.0, 80.0, 141.0]),
    gpu_types=st.sampled_from([(), ("H100",), ("A100",)]),
)
wants = st.lists(resources, max_size=6).map(
    lambda found: [
        Want(TaskId(f"t{i}"), JobSpec(command=("x",), resources=r), (LeaseId(f"l{i}"),) if i % 2 else ())
        for i, r in enumerate(found)
    ]
)
offers = st.lists(st.builds(an_offer, st.integers(0, 8), price=st.integers(0, 5), free=st.just(9)), max_size=8)


@given(wants, offers, st.randoms(use_true_random=False))
def test_every_plan_is_safe_and_does_not_depend_on_the_order_of_offers(wants, offers, rng) -> None:
    unique = list({offer.id: offer for offer in offers}.values())
    made = plan(wants, unique)
    check_plan(made, wants, unique)
    shuffled = list(unique)
    rng.shuffle(shuffled)
    assert plan(wants, shuffled).placements == made.placements


tallies = st.builds(
    Tally,
    st.dictionaries(st.sampled_from(list(TaskPhase)), st.integers(0, 3), min_size=1),
    st.none() | st.just("because"),
    st.booleans(),
)


@given(st.lists(st.tuples(tallies, st.sampled_from(list(Desired))), max_size=8))
def test_a_job_takes_only_legal_steps_and_its_end_is_final(seen) -> None:
    job = a_job()
    for tally, desired in seen:
        before = job
        job = reduce(jobs.evolve, events := jobs.decide(jobs.replace(job, desired=desired), tally, NOW), job)
        if before.status.is_terminal:
            assert events == ()
        status = before.status
        for event in events:
            if isinstance(event, JobStatusChanged):
                assert event.status in jobs.TRANSITIONS[status]
                status = event.status


RANKS = 3
rank_numbers = st.integers(0, RANKS - 1)
gang = GangReady(
    tuple(Rank(rank=i, node_id=NodeId(f"n{i}"), node_rank=i, local_rank=0, devices=()) for i in range(RANKS)),
    "10.0.0.1",
    29500,
)
observations = st.one_of(
    st.just(gang),
    st.builds(
        RankReported,
        rank=rank_numbers,
        generation=st.sampled_from([0, 1]),
        state=st.sampled_from([RankState.STARTED, RankState.EXITED]),
        exit_code=st.sampled_from([0, 0, 1, None]),
        signal=st.none() | st.just(9),
        timed_out=st.booleans(),
        is_checkpointing=st.booleans(),
    ),
    st.builds(CheckpointSaved, st.integers(0, 9)),
    st.builds(StopWanted, st.sampled_from([Outcome.CANCELLED, Outcome.HELD]), st.just("wished")),
    st.builds(MachineLost, rank_numbers.map(lambda i: NodeId(f"n{i}")), st.just("lost"), st.booleans()),
    st.just(TimePassed()),
)


@given(st.lists(st.tuples(observations, st.integers(0, 400)), max_size=30))
def test_an_attempt_always_ends_and_its_end_is_final(seen) -> None:
    attempt, now, log = an_attempt(leases=tuple(LeaseId(f"l{i}") for i in range(RANKS))), NOW, []
    born = attempt
    for observation, seconds in [*seen, *[(TimePassed(), 10**8)] * 4]:
        now += timedelta(seconds=seconds)
        events = attempts.decide(attempt, observation, now, LIMITS)
        assert attempt.phase is not AttemptPhase.ENDED or events == ()
        attempt = reduce(attempts.evolve, events, attempt)
        log += events
        if attempt.phase not in (AttemptPhase.ENDED, AttemptPhase.PROVISIONING) and attempt.stop_outcome is None:
            assert all(r.exit_code == 0 for r in attempt.ranks if r.state is RankState.EXITED)
    assert attempt.phase is AttemptPhase.ENDED
    assert attempt.outcome is not None
    if attempt.outcome is Outcome.SUCCEEDED:
        assert attempt.ranks and all(r.succeeded for r in attempt.ranks)
    assert reduce(attempts.evolve, log, born) == attempt


def machine(state: MachineState) -> Machine:
    return Machine(id=MachineId("m0"), order_id=OrderId("o"), index=0, state=state, devices=("0",))


lease_observations = st.one_of(
    st.builds(leases.Found, st.sampled_from([machine(s) for s in MachineState if s is not MachineState.GONE])),
    st.just(leases.Absent()),
    st.just(leases.Refused("no")),
    st.just(leases.Enrolled(NodeId("n0"))),
    st.just(leases.CloseWanted("done")),
    st.builds(leases.DeleteCalled, st.none() | st.just("500")),
    st.just(leases.TimePassed()),
)


@given(st.lists(st.tuples(lease_observations, st.integers(0, 200)), max_size=30))
def test_a_lease_is_open_until_its_machine_is_surely_gone(seen) -> None:
    lease, now, last_found = a_lease(gpus=1), NOW, None
    for observation, seconds in seen:
        now += timedelta(seconds=seconds)
        after = reduce(leases.evolve, leases.decide(lease, observation, now, POLICY, FACTS), lease)
        if isinstance(observation, leases.Found):
            last_found = now
        if after.phase is LeasePhase.CLOSED and lease.phase is not LeasePhase.CLOSED and last_found is not None:
            assert now - last_found >= POLICY.absence_grace + FACTS.visibility or lease.machine_id is None
        assert lease.phase is not LeasePhase.CLOSED or after == lease
        lease = after
    gone = leases.decide(lease, leases.Found(machine(MachineState.GONE)), now, POLICY, FACTS)
    assert reduce(leases.evolve, gone, lease).phase is LeasePhase.CLOSED
