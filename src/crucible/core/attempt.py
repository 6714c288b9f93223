"""How an attempt moves: barrier, start together, stop together. One rank's failure is everybody's."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import reduce
from typing import assert_never

from crucible.model.attempt import (
    Attempt,
    AttemptCreated,
    AttemptEnded,
    AttemptEvent,
    AttemptGrown,
    AttemptPhase,
    AttemptStarted,
    AttemptStopping,
    CheckpointBegan,
    CheckpointCommitted,
    MemberJoined,
    MemberLost,
    Outcome,
    Rank,
    RankExited,
    RanksAssigned,
    RankStarted,
    RankState,
)
from crucible.model.ids import Digest, LeaseId, NodeId
from crucible.model.policy import Policy

P = AttemptPhase


# --- observations ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GangReady:
    """Every lease has a node, and nothing of an earlier attempt can still be alive."""

    ranks: tuple[Rank, ...]
    master_addr: str
    master_port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankReported:
    """A node's own words about one rank; may be repeated, late, or of an older generation."""

    rank: int
    generation: int
    state: RankState
    exit_code: int | None = None
    signal: int | None = None
    reason: str | None = None
    timed_out: bool = False
    evicted: bool = False
    last_lines: tuple[str, ...] = ()
    is_checkpointing: bool = False
    outputs: Digest | None = None  # the tree that it left, whole in storage


@dataclass(frozen=True, slots=True)
class CheckpointSaved:
    step: int


@dataclass(frozen=True, slots=True)
class StopWanted:
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class MachineLost:
    """`is_certain`: the machine has ended, so its ranks have too. Otherwise it is only silent."""

    node_id: NodeId | None
    reason: str
    is_certain: bool
    lease_id: LeaseId | None = None


@dataclass(frozen=True, slots=True)
class MemberReady:
    """Elastic: a machine that was ordered later has a node."""

    ranks: tuple[Rank, ...]


@dataclass(frozen=True, slots=True)
class TimePassed:
    """Nothing was seen; only the clock moved."""


Observation = GangReady | RankReported | CheckpointSaved | StopWanted | MachineLost | MemberReady | TimePassed


@dataclass(frozen=True, slots=True)
class Limits:
    """How long this attempt may take, from the spec and the policy."""

    timeout: timedelta | None
    policy: Policy
    least: int | None = None  # elastic: it goes on with so many machines; None: with all or none


# --- decide ---------------------------------------------------------------------------------------


def decide(attempt: Attempt, seen: Observation, now: datetime, limits: Limits) -> tuple[AttemptEvent, ...]:
    """The facts that `seen` proves about `attempt`."""
    if attempt.phase is P.ENDED:
        return ()
    match seen:
        case GangReady():
            return assigned(attempt, seen, now, limits)
        case RankReported():
            return reported(attempt, seen, now, limits)
        case CheckpointSaved(step):
            return (CheckpointCommitted(now, step),)
        case StopWanted(outcome, reason):
            return stopped(attempt, outcome, reason, now, limits)
        case MachineLost():
            return left(attempt, seen, now, limits) or lost(attempt, seen, now, limits)
        case MemberReady(ranks):
            return (MemberJoined(now, ranks),) if takes_members(attempt) else ()
        case TimePassed():
            return expired(attempt, now, limits) if now >= attempt.deadline_at else ()
        case _:
            assert_never(seen)


def assigned(attempt: Attempt, gang: GangReady, now: datetime, limits: Limits) -> tuple[AttemptEvent, ...]:
    if attempt.phase is not P.PROVISIONING:
        return ()
    deadline = now + limits.policy.start_limit
    return (RanksAssigned(now, attempt.generation + 1, gang.ranks, gang.master_addr, gang.master_port, deadline),)


def reported(attempt: Attempt, seen: RankReported, now: datetime, limits: Limits) -> tuple[AttemptEvent, ...]:
    rank = next((r for r in attempt.ranks if r.rank == seen.rank), None)
    if rank is None or seen.generation != attempt.generation or rank.state is RankState.EXITED:
        return ()
    events: list[AttemptEvent] = []
    if rank.state is RankState.ASSIGNED and seen.state is not RankState.ASSIGNED:
        events.append(RankStarted(now, seen.rank, now))
    if seen.state is RankState.EXITED:
        ended_by = (seen.exit_code, seen.signal, seen.reason)
        events.append(RankExited(now, seen.rank, *ended_by, now, seen.evicted, seen.outputs))
    if seen.evicted and not can_do_without(attempt, rank.node_id, limits):
        events += excused(attempt, seen.reason or f"the machine of rank {seen.rank} is going", now)
    after = reduce(evolve, events, attempt)
    return (*events, *together(after, seen, now, limits))


def together(attempt: Attempt, seen: RankReported, now: datetime, limits: Limits) -> tuple[AttemptEvent, ...]:
    """What one rank's news means for all of them."""
    if all(r.state is RankState.EXITED for r in attempt.ranks):
        return (ended(attempt, seen, now),)
    if seen.evicted and can_do_without(attempt, node_of(attempt, seen.rank), limits):
        return ()
    if seen.state is RankState.EXITED and (seen.exit_code != 0 or seen.evicted):
        return stopped(attempt, blame(seen), exit_reason(seen), now, limits)
    if seen.evicted:  # all of them save what they have while there is time
        return stopped(attempt, Outcome.LOST, seen.reason or f"the machine of rank {seen.rank} is going", now, limits)
    if attempt.phase is P.STARTING and all(r.state is not RankState.ASSIGNED for r in attempt.ranks):
        return (AttemptStarted(now, now + run_limit(limits)),)
    return checkpointing(attempt, seen, now, limits)


def checkpointing(attempt: Attempt, seen: RankReported, now: datetime, limits: Limits) -> tuple[AttemptEvent, ...]:
    if attempt.phase is P.STOPPING and seen.state is RankState.STARTED and seen.is_checkpointing:
        return prolonged(attempt, now, limits)
    if attempt.phase is not P.RUNNING or seen.state is not RankState.STARTED or seen.rank != 0:
        return ()
    if seen.is_checkpointing and not attempt.is_checkpointing:
        return (CheckpointBegan(now),)
    if attempt.is_checkpointing and not seen.is_checkpointing:
        return (CheckpointCommitted(now, None),)
    return ()


def prolonged(attempt: Attempt, now: datetime, limits: Limits) -> tuple[AttemptEvent, ...]:
    """What a rank saved when it was told to stop is on its way to storage. The time is given once."""
    if attempt.is_checkpointing or attempt.stop_outcome is None:
        return ()
    later = now + limits.policy.save_limit
    return AttemptStopping(now, attempt.stop_outcome, attempt.reason or "", later), CheckpointBegan(now)


def ended(attempt: Attempt, last: RankReported, now: datetime) -> AttemptEnded:
    if attempt.stop_outcome is not None:
        return AttemptEnded(now, attempt.stop_outcome, attempt.reason)
    if has_succeeded(attempt) and not last.evicted:
        return AttemptEnded(now, Outcome.SUCCEEDED, None)
    return AttemptEnded(now, blame(last), exit_reason(last))


def has_succeeded(attempt: Attempt) -> bool:
    """Whoever stayed to the end came to it; members that an elastic attempt lost on its way do not count."""
    stayed = [r for r in attempt.ranks if not r.is_evicted]
    return bool(stayed) and all(r.succeeded for r in stayed)


def blame(seen: RankReported) -> Outcome:
    """Whose doing the end of a rank was. One that went with its machine may have stopped in good order: that is no
    success, its work is not done."""
    if seen.evicted:
        return Outcome.LOST
    return Outcome.TIMED_OUT if seen.timed_out else Outcome.FAILED


def stopped(attempt: Attempt, outcome: Outcome, reason: str, now: datetime, limits: Limits) -> tuple[AttemptEvent, ...]:
    match attempt.phase:
        case P.PROVISIONING:
            return (AttemptEnded(now, outcome, reason),)
        case P.STARTING | P.RUNNING:
            wait = grace_of(outcome, limits.policy) + limits.policy.stop_margin
            return (AttemptStopping(now, outcome, reason, now + wait),)
        case _:
            return ()


def left(attempt: Attempt, seen: MachineLost, now: datetime, limits: Limits) -> tuple[AttemptEvent, ...]:
    """A member that an elastic attempt can do without; nothing if it cannot. What is silent may still run: the others
    have parted from it, and its lease is given back."""
    if seen.lease_id is None or not can_do_without(attempt, seen.node_id, limits):
        return ()
    mine = [r for r in attempt.ranks if r.node_id == seen.node_id] if seen.node_id is not None else []
    if mine and all(r.state is RankState.EXITED and not r.is_evicted for r in mine):
        return ()
    gone = tuple(r.rank for r in mine if r.state is not RankState.EXITED)
    parted = MemberLost(now, seen.lease_id, gone, seen.reason)
    after = evolve(attempt, parted)
    if any(r.state is not RankState.EXITED for r in after.ranks):
        return (parted,)
    return parted, AttemptEnded(now, Outcome.SUCCEEDED if has_succeeded(after) else Outcome.LOST, seen.reason)


def takes_members(attempt: Attempt) -> bool:
    """Nobody joins when the first have come to their end."""
    return attempt.phase is P.RUNNING and not any(r.succeeded for r in attempt.ranks)


def can_do_without(attempt: Attempt, node_id: NodeId | None, limits: Limits) -> bool:
    """Whether enough members stay. The first node holds what the others meet at: without it nobody goes on."""
    if limits.least is None or attempt.phase is not P.RUNNING:
        return False
    if node_id is None:
        return True  # it was ordered and never came
    staying = {r.node_id for r in attempt.ranks if is_staying(r) and r.node_id != node_id}
    return node_of(attempt, 0) != node_id and len(staying) >= limits.least


def node_of(attempt: Attempt, rank: int) -> NodeId:
    return next(r.node_id for r in attempt.ranks if r.rank == rank)


def is_staying(rank: Rank) -> bool:
    return rank.state is not RankState.EXITED or (rank.succeeded and not rank.is_evicted)


def stop_grace(attempt: Attempt, policy: Policy) -> timedelta:
    """How long its ranks may take to end."""
    return grace_of(attempt.stop_outcome, policy)


def grace_of(outcome: Outcome | None, policy: Policy) -> timedelta:
    """Peers of a rank that failed have nothing to wait for: they stop at once, and all within ten seconds."""
    return policy.failure_grace if outcome is Outcome.FAILED else policy.stop_grace


def lost(attempt: Attempt, seen: MachineLost, now: datetime, limits: Limits) -> tuple[AttemptEvent, ...]:
    """A machine that ended took its ranks along; a silent one may still run them: they stay unaccounted for."""
    events: list[AttemptEvent] = []
    if attempt.ranks and seen.node_id is None and seen.lease_id is not None:
        return ()  # it was to join, and nobody has waited for it
    if seen.node_id is not None:
        dead = [r for r in attempt.ranks if r.node_id == seen.node_id and r.state is not RankState.EXITED]
        if attempt.ranks and not dead:
            return ()
        if seen.is_certain:
            events += [RankExited(now, r.rank, None, None, seen.reason, now) for r in dead]
    events += excused(attempt, seen.reason, now)
    events += stopped(attempt, Outcome.LOST, seen.reason, now, limits)
    after = reduce(evolve, events, attempt)
    if after.phase is P.STOPPING and all(r.state is RankState.EXITED for r in after.ranks):
        events.append(AttemptEnded(now, after.stop_outcome or Outcome.LOST, after.reason))
    return tuple(events)


def excused(attempt: Attempt, reason: str, now: datetime) -> tuple[AttemptEvent, ...]:
    """Ranks whose peer went with its machine fail at once, and are heard before the machine is missed: what looked like
    the program's failure was none."""
    if attempt.phase is not P.STOPPING or attempt.stop_outcome is not Outcome.FAILED:
        return ()
    return (AttemptStopping(now, Outcome.LOST, f"{reason}; then {attempt.reason}", attempt.deadline_at),)


def expired(attempt: Attempt, now: datetime, limits: Limits) -> tuple[AttemptEvent, ...]:
    """Every phase has a deadline, and every deadline a consequence."""
    match attempt.phase:
        case P.PROVISIONING:
            return (AttemptEnded(now, Outcome.LOST, "the machines were not ready in time"),)
        case P.STARTING:
            return stopped(attempt, Outcome.LOST, "the ranks did not start in time", now, limits)
        case P.RUNNING if attempt.is_checkpointing and now < attempt.deadline_at + limits.policy.save_limit:
            return ()  # the node has kept the timeout; what the program left is on its way to storage
        case P.RUNNING:
            reason = f"ran longer than its timeout of {run_limit(limits)}"
            return stopped(attempt, Outcome.TIMED_OUT, reason, now, limits)
        case P.STOPPING:
            return (AttemptEnded(now, attempt.stop_outcome or Outcome.LOST, attempt.reason),)
        case _:
            return ()


def run_limit(limits: Limits) -> timedelta:
    if limits.timeout is None:
        return limits.policy.run_limit
    return limits.timeout + limits.policy.timeout_margin


def exit_reason(seen: RankReported) -> str:
    """For a person: which rank, how it ended, and its last words."""
    if seen.reason:
        how = seen.reason
    elif seen.signal is not None:
        how = f"was killed by signal {seen.signal}"
    else:
        how = f"exited with code {seen.exit_code}"
    words = "; last lines: " + " | ".join(seen.last_lines[-3:]) if seen.last_lines else ""
    return f"rank {seen.rank} {how}{words}"


# --- evolve ---------------------------------------------------------------------------------------


def evolve(attempt: Attempt, event: AttemptEvent) -> Attempt:
    """Fold one fact into the state."""
    attempt = replace(attempt, version=attempt.version + 1)
    match event:
        case AttemptCreated():
            return attempt
        case RanksAssigned():
            return replace(
                attempt,
                phase=P.STARTING,
                generation=event.generation,
                ranks=event.ranks,
                master_addr=event.master_addr,
                master_port=event.master_port,
                deadline_at=event.deadline_at,
            )
        case RankStarted(rank=rank, started_at=at):
            return with_rank(attempt, rank, state=RankState.STARTED, started_at=at)
        case RankExited():
            return with_rank(
                attempt,
                event.rank,
                state=RankState.EXITED,
                exit_code=event.exit_code,
                signal=event.signal,
                reason=event.reason,
                is_evicted=event.is_evicted,
                ended_at=event.ended_at,
                outputs=event.outputs,
            )
        case AttemptStarted(at=at, deadline_at=deadline_at):
            return replace(attempt, phase=P.RUNNING, started_at=at, deadline_at=deadline_at)
        case CheckpointBegan():
            return replace(attempt, is_checkpointing=True)
        case CheckpointCommitted(step=step):
            saved = max((each for each in (attempt.saved_step, step) if each is not None), default=None)
            return replace(
                attempt, is_checkpointing=attempt.is_checkpointing and attempt.phase is P.STOPPING, saved_step=saved
            )
        case AttemptStopping():
            return replace(
                attempt,
                phase=P.STOPPING,
                is_checkpointing=False,
                stop_outcome=event.outcome,
                reason=event.reason,
                deadline_at=event.deadline_at,
            )
        case AttemptGrown(leases=leases):
            return replace(attempt, leases=(*attempt.leases, *leases))
        case MemberJoined(ranks=ranks):
            return replace(attempt, ranks=(*attempt.ranks, *ranks))
        case MemberLost():
            attempt = replace(attempt, leases=tuple(each for each in attempt.leases if each != event.lease_id))
            return reduce(lambda one, rank: with_rank(one, rank, **gone_with(event)), event.ranks, attempt)
        case AttemptEnded(at=at, outcome=outcome, reason=reason):
            return replace(attempt, phase=P.ENDED, is_checkpointing=False, outcome=outcome, reason=reason, ended_at=at)
        case _:
            assert_never(event)


def gone_with(event: MemberLost) -> dict[str, object]:
    return {"state": RankState.EXITED, "is_evicted": True, "reason": event.reason, "ended_at": event.at}


def with_rank(attempt: Attempt, rank: int, **changes: object) -> Attempt:
    return replace(
        attempt,
        ranks=tuple(replace(r, **changes) if r.rank == rank else r for r in attempt.ranks),  # type: ignore[arg-type]
    )
