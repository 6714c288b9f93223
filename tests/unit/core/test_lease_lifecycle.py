from dataclasses import replace
from datetime import timedelta
from functools import reduce

from crucible.core import lease as leases
from crucible.core.lease import (
    Absent,
    Answered,
    CloseWanted,
    DeleteCalled,
    Denied,
    Enrolled,
    Found,
    Listed,
    NotWanted,
    Refused,
    TimePassed,
    Unanswered,
    Unheard,
)
from crucible.model.ids import MachineId, NodeId, OrderId
from crucible.model.lease import Lease, LeasePhase, Machine, MachineState, Order, OrderCalled, OrderPhase
from making import FACTS, NO_TOKEN, NOW, POLICY, a_lease, an_order

L = LeasePhase
FENCED = replace(FACTS, fence=timedelta(minutes=5))


def after(lease: Lease, *seen: leases.Observation, at=NOW) -> Lease:
    for observation in seen:
        lease = reduce(leases.evolve, leases.decide(lease, observation, at, POLICY, FACTS), lease)
    return lease


def ordered(order: Order, *seen: leases.OrderObservation, at=NOW, facts=FACTS) -> Order:
    for observation in seen:
        events = leases.decide_order(order, observation, at, POLICY, facts)
        order = reduce(leases.evolve_order, events, order)
    return order


def machine(state: MachineState = MachineState.RUNNING, devices: tuple[str, ...] = ("0",)) -> Machine:
    return Machine(id=MachineId("m0"), order_id=OrderId("o"), index=0, state=state, devices=devices)


def test_absence_is_a_suspicion_until_it_has_lasted() -> None:
    missing = after(a_lease(active=True), Absent())
    grace = POLICY.absence_grace + FACTS.visibility
    assert missing.phase is L.ACTIVE and missing.missing_since == NOW
    assert after(missing, Absent(), at=NOW + grace - timedelta(seconds=1)).phase is L.ACTIVE
    assert after(missing, Found(machine()), Absent(), at=NOW + grace).phase is L.ACTIVE
    assert after(missing, Absent(), at=NOW + grace).phase is L.CLOSED


def test_two_bad_listings_long_apart_do_not_end_a_machine() -> None:
    missing = after(a_lease(active=True), Absent(1))
    later = NOW + POLICY.absence_grace + FACTS.visibility
    assert after(missing, Absent(2), at=later).phase is L.ACTIVE
    assert after(missing, Absent(3), at=later).phase is L.CLOSED


def test_a_lease_without_a_machine_cannot_miss_it() -> None:
    assert after(a_lease(), Absent(), at=NOW + timedelta(days=1)) == a_lease()


def test_an_order_without_a_call_to_make_follows_from_its_leases() -> None:
    active, asked, closed = a_lease(0, active=True), a_lease(1), after(a_lease(1), Refused("full"))
    assert leases.conclusion((active, asked)) is None
    assert leases.conclusion((active, a_lease(1, active=True))) == Answered(), "a listing has shown every machine"
    assert leases.conclusion((active, closed)) == NotWanted()


def test_a_listed_end_closes_the_lease_whatever_its_phase() -> None:
    gone = Found(machine(MachineState.GONE))
    for lease in (a_lease(), a_lease(active=True), after(a_lease(active=True), CloseWanted("done"))):
        assert after(lease, gone).phase is L.CLOSED


def test_a_machine_whose_agent_never_reports_is_given_back() -> None:
    started = after(a_lease(), Found(machine()))
    late = NOW + FACTS.boot_time
    assert after(started, TimePassed(), at=late - timedelta(seconds=1)).phase is L.ACTIVE
    assert after(started, TimePassed(), at=late).phase is L.CLOSING


def test_deleting_is_tried_for_ever_ever_more_slowly() -> None:
    closing, at = after(a_lease(active=True), CloseWanted("done")), NOW
    pauses = []
    for _ in range(12):
        assert leases.owes_delete(closing, at, POLICY)
        closing = after(closing, DeleteCalled("500"), at=at)
        assert closing.deadline_at is not None
        pauses.append(closing.deadline_at - at)
        at = closing.deadline_at
    assert pauses == sorted(pauses) and pauses[-1] == POLICY.delete_retry_max
    assert closing.phase is L.CLOSING


def test_a_clock_that_is_set_back_puts_no_delete_off() -> None:
    closing = after(after(a_lease(active=True), CloseWanted("done")), DeleteCalled("500"))
    assert not leases.owes_delete(closing, NOW, POLICY)
    assert leases.owes_delete(closing, NOW - timedelta(hours=1), POLICY)


def test_an_unanswered_order_is_not_a_refused_one() -> None:
    unknown = ordered(an_order(), Unanswered("timeout"))
    assert unknown.phase is OrderPhase.UNKNOWN and not unknown.is_settled
    assert ordered(unknown, Answered()).phase is OrderPhase.FILLED
    assert ordered(unknown, Denied("sold out", "no_capacity")).phase is OrderPhase.REFUSED


def test_without_a_token_the_call_is_repeated_only_when_nothing_can_still_appear() -> None:
    unknown = ordered(an_order(), Unanswered("timeout"), facts=NO_TOKEN)
    lease = (a_lease(),)
    assert not leases.owes_create(unknown, lease, NO_TOKEN)
    early, late = NOW + timedelta(seconds=20), NOW + timedelta(seconds=31)
    assert ordered(unknown, Listed(0, early), at=early, facts=NO_TOKEN) == unknown
    reopened = ordered(unknown, Listed(0, late), at=late, facts=NO_TOKEN)
    assert leases.owes_create(reopened, lease, NO_TOKEN)
    assert ordered(unknown, Listed(1, early), at=early, facts=NO_TOKEN).phase is OrderPhase.FILLED


def test_a_caller_that_died_before_the_answer_leaves_an_order_that_is_not_called_again_blindly() -> None:
    called = leases.evolve_order(an_order(), OrderCalled(NOW))
    lease, late = (a_lease(),), NOW + timedelta(seconds=31)
    assert not leases.owes_create(called, lease, NO_TOKEN)
    assert ordered(called, Listed(1, NOW), facts=NO_TOKEN).phase is OrderPhase.FILLED
    assert leases.owes_create(ordered(called, Listed(0, late), at=late, facts=NO_TOKEN), lease, NO_TOKEN)


def test_the_time_in_which_a_machine_may_appear_counts_from_the_end_of_the_call() -> None:
    end = NOW + timedelta(seconds=60)
    unknown = ordered(leases.evolve_order(an_order(), OrderCalled(NOW)), Unanswered("timeout"), at=end, facts=NO_TOKEN)
    soon = end + timedelta(seconds=20)
    assert ordered(unknown, Listed(0, soon), at=soon, facts=NO_TOKEN) == unknown


def test_with_a_token_an_unanswered_call_may_be_repeated_at_once() -> None:
    assert leases.owes_create(ordered(an_order(), Unanswered("timeout")), (a_lease(),), FACTS)


def test_an_order_nobody_wants_is_abandoned_and_its_leases_closed() -> None:
    assert ordered(an_order(), NotWanted()).phase is OrderPhase.ABANDONED
    closing = after(a_lease(), CloseWanted("cancelled"))
    assert after(closing, Refused("no longer wanted")).phase is L.CLOSED


def test_a_refusal_cannot_close_a_lease_that_has_its_machine() -> None:
    active = a_lease(active=True)
    assert after(active, Refused("sold out")) == active


def test_closed_is_for_ever() -> None:
    closed = after(a_lease(active=True), Found(machine(MachineState.GONE)))
    assert after(closed, Found(machine()), CloseWanted("x"), Enrolled(NodeId("n"))) == closed


def test_a_machine_that_its_seller_took_or_that_vanished_was_taken_and_one_we_gave_back_was_not() -> None:
    grace = POLICY.absence_grace + FACTS.visibility
    active = a_lease(active=True)
    assert after(active, Found(replace(machine(MachineState.GONE), was_taken=True))).was_taken
    assert not after(active, Found(machine(MachineState.GONE))).was_taken
    missing = after(active, Absent())
    assert after(missing, Absent(), at=NOW + grace).was_taken
    closing = after(active, CloseWanted("the task succeeded"))
    assert not after(after(closing, Absent()), Absent(), at=NOW + grace).was_taken
    assert after(after(active, CloseWanted("evicted", True)), Found(machine(MachineState.GONE))).was_taken


# --- the fence ------------------------------------------------------------------------------------------


def fenced(lease: Lease, since_s: float, facts=FENCED) -> Lease:
    seen = Unheard(NOW - timedelta(seconds=since_s))
    return reduce(leases.evolve, leases.decide(lease, seen, NOW, POLICY, facts), lease)


def test_a_lease_that_is_given_up_closes_when_its_node_must_have_ended_its_ranks() -> None:
    closing = after(a_lease(active=True), CloseWanted("silent"))
    limit_s = (FENCED.fence + POLICY.stop_grace + POLICY.fence_margin).total_seconds()
    assert fenced(closing, limit_s).phase is L.CLOSING, "not yet"
    closed = fenced(closing, limit_s + 1)
    assert closed.phase is L.CLOSED and closed.reason == "silent" and not closed.was_taken


def test_without_a_fence_only_the_seller_closes_a_lease() -> None:
    closing = after(a_lease(active=True), CloseWanted("silent"))
    assert fenced(closing, 1e6, facts=FACTS).phase is L.CLOSING


def test_a_lease_that_is_still_wanted_is_not_closed_by_silence() -> None:
    """Its task decides first: the node may only be slow."""
    assert fenced(a_lease(active=True), 1e6).phase is L.ACTIVE
