"""What paid time was used for: every second has one reason, and the money follows."""

from dataclasses import replace
from datetime import timedelta

from crucible.core.uses import Life, Span, Stint, Use, by_use, epoch_s, lives, stints, weights_of
from crucible.model.attempt import Attempt, Rank, RankState
from crucible.model.ids import AttemptId, JobId, LeaseId, MachineId, NodeId, OrderId, TaskId
from crucible.model.lease import Lease
from crucible.model.ledger import ChargeKind, Rate, Usage
from crucible.model.offer import Target
from crucible.model.units import MicroUsd
from crucible.testing.specimens import NOW

START = NOW.replace(microsecond=0)
S = timedelta(seconds=1)
HERE = Target("aws", "us-east-1", "vm")
RATE = Rate(ChargeKind.COMPUTE, MicroUsd(3_600_000), 3600)  # a tenth of a cent per second


def a_lease(number: int = 0, gpus: int = 4) -> Lease:
    return Lease(
        id=LeaseId(f"l{number}"),
        order_id=OrderId("o"),
        job_id=JobId("j"),
        task_id=TaskId("t"),
        target=HERE,
        index=number,
        gpus=gpus,
        price_per_hour=RATE.amount,
        created_at=START,
        deadline_at=None,
        machine_id=MachineId(f"m{number}"),
        node_id=NodeId(f"n{number}"),
    )


def a_rank(number: int, started: int | None, ended: int | None = None, devices: int = 4, node: int = 0) -> Rank:
    return Rank(
        rank=number,
        node_id=NodeId(f"n{node}"),
        node_rank=node,
        local_rank=0,
        devices=tuple(map(str, range(devices))),
        state=RankState.STARTED if ended is None else RankState.EXITED,
        started_at=None if started is None else START + started * S,
        ended_at=None if ended is None else START + ended * S,
    )


def an_attempt(*ranks: Rank, created: int = 0, ended: int | None = None, leases: int = 1, number: int = 0) -> Attempt:
    return Attempt(
        id=AttemptId(f"a{number}"),
        task_id=TaskId("t"),
        job_id=JobId("j"),
        number=number,
        leases=tuple(LeaseId(f"l{one}") for one in range(leases)),
        created_at=START + created * S,
        deadline_at=START,
        ranks=ranks,
        ended_at=None if ended is None else START + ended * S,
    )


def a_stretch(seconds: int, lease: str | None = "l0") -> Usage:
    return Usage(
        provider="aws",
        region="us-east-1",
        machine_id=MachineId("m0"),
        order_id=OrderId("o"),
        job_id=JobId("j"),
        lease_id=None if lease is None else LeaseId(lease),
        rate=RATE,
        from_at=START,
        to_at=START + seconds * S,
        amount=MicroUsd(seconds * 1000),
    )


def test_a_machine_goes_from_boot_to_give_back_and_every_second_has_its_reason() -> None:
    attempt = an_attempt(a_rank(0, 160, 900), ended=930)
    found = lives([a_lease()], {NodeId("n0"): START + 100 * S}, [attempt], START + 1000 * S)
    assert by_use([a_stretch(1000)], found, START + 1000 * S) == {
        Use.USEFUL: 740_000,
        Use.UPLOAD: 30_000,
        Use.SETUP: 60_000,
        Use.BOOT: 100_000,
        Use.GIVE_BACK: 70_000,
    }


def test_the_first_machine_of_a_gang_waits_for_the_last() -> None:
    ranks = a_rank(0, 400, 900), a_rank(1, 400, 900, node=1)
    enrolled = {NodeId("n0"): START + 100 * S, NodeId("n1"): START + 300 * S}
    found = lives([a_lease(), a_lease(1)], enrolled, [an_attempt(*ranks, ended=900, leases=2)], START + 1000 * S)
    first, second = (weights_of(found[LeaseId(name)], a_stretch(900, name), START + 900 * S) for name in ("l0", "l1"))
    assert (first[Use.BOOT], first[Use.GANG], first[Use.SETUP], first[Use.USEFUL]) == (400, 800, 400, 2000)
    assert Use.GANG not in second and second[Use.BOOT] == 1200


def test_gpus_that_no_rank_uses_are_spare_while_others_are() -> None:
    found = lives(
        [a_lease()],
        {NodeId("n0"): START},
        [
            an_attempt(a_rank(0, 0, 600, devices=1), ended=600),
            an_attempt(a_rank(0, 0, 300, devices=2), ended=300, number=1),
        ],
        START + 600 * S,
    )
    assert by_use([a_stretch(600)], found, START + 600 * S) == {Use.USEFUL: 300_000, Use.SPARE: 300_000}


def test_between_two_attempts_a_machine_waits() -> None:
    attempts = [
        an_attempt(a_rank(0, 10, 100), ended=100),
        an_attempt(a_rank(0, 200, 300), created=190, ended=300, number=1),
    ]
    found = lives([a_lease()], {NodeId("n0"): START}, attempts, START + 300 * S)
    weights = weights_of(found[LeaseId("l0")], a_stretch(300), START + 300 * S)
    assert weights == {Use.SETUP: 80, Use.USEFUL: 760, Use.WAITING: 360}


def test_what_nobody_holds_is_told_apart_and_what_took_no_time_is_given_back() -> None:
    now = START + 60 * S
    assert by_use([a_stretch(60, None)], {}, now) == {Use.UNHELD: 60_000}
    empty = replace(a_stretch(0), amount=MicroUsd(-5))
    assert by_use([empty], {LeaseId("l0"): Life(gpus=8)}, now) == {Use.GIVE_BACK: -5}


def test_ranks_that_share_a_device_do_not_count_twice() -> None:
    both = (Span(0, 10, Use.USEFUL, 1), Span(0, 10, Use.USEFUL, 1), Span(5, None, Use.USEFUL, 0))
    assert list(stints(Life(gpus=1, spans=both), 0, 20)) == [
        Stint(0, 5, Use.USEFUL, 1),
        Stint(5, 10, Use.USEFUL, 1),
        Stint(10, 20, Use.USEFUL, 1),
    ]


def test_a_member_that_an_elastic_gang_lost_was_useful_until_then() -> None:
    lost = a_rank(1, 100, 500, node=1)
    attempt = an_attempt(a_rank(0, 100), lost, leases=1)  # its second lease is forgotten
    enrolled = {NodeId("n0"): START, NodeId("n1"): START}
    found = lives([a_lease(), a_lease(1)], enrolled, [attempt], START + 600 * S)
    assert weights_of(found[LeaseId("l1")], a_stretch(500, "l1"), START)[Use.USEFUL] == 4 * 400
    assert epoch_s(START) % 60 == 0
