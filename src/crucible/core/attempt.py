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
    AttemptPhase,
    AttemptStarted,
    AttemptStopping,
    CheckpointBegan,
    CheckpointCommitted,
    Outcome,
    Rank,
    RankExited,
    RanksAssigned,
    RankStarted,
    RankState,
)
from crucible.model.ids import NodeId
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


@dataclass(frozen=True, slots=True)
class TimePassed:
    """Nothing was seen; only the clock moved."""


Observation = GangReady | RankReported | CheckpointSaved | StopWanted | MachineLost | TimePassed


@dataclass(frozen=True, slots=True)
class Limits:
    """How long this attempt may take, from the spec and the policy."""

    timeout: timedelta | None
    policy: Policy


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
            return lost(attempt, seen, now, limits)
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
        events.append(RankExited(now, seen.rank, seen.exit_code, seen.signal, seen.reason, now, seen.evicted))
    if seen.evicted:
        events += excused(attempt, seen.reason or f"the machine of rank {seen.rank} is going", now)
    after = reduce(evolve, events, attempt)
    return (*events, *together(after, seen, now, limits))


def together(attempt: Attempt, seen: RankReported, now: datetime, limits: Limits) -> tuple[AttemptEvent, ...]:
    """What one rank's news means for all of them."""
    if all(r.state is RankState.EXITED for r in attempt.ranks):
        return (ended(attempt, seen, now),)
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
    if all(r.succeeded for r in attempt.ranks) and not last.evicted:
        return AttemptEnded(now, Outcome.SUCCEEDED, None)
    return AttemptEnded(now, blame(last), exit_reason(last))


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
            wait = limits.policy.stop_grace + limits.policy.stop_margin
            return (AttemptStopping(now, outcome, reason, now + wait),)
        case _:
            return ()


def lost(attempt: Attempt, seen: MachineLost, now: datetime, limits: Limits) -> tuple[AttemptEvent, ...]:
    """A machine that ended took its ranks along; a silent one may still run them: they stay unaccounted for."""
    events: list[AttemptEvent] = []
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
        case AttemptEnded(at=at, outcome=outcome, reason=reason):
            return replace(attempt, phase=P.ENDED, is_checkpointing=False, outcome=outcome, reason=reason, ended_at=at)
        case _:
            assert_never(event)


def with_rank(attempt: Attempt, rank: int, **changes: object) -> Attempt:
    return replace(
        attempt,
        ranks=tuple(replace(r, **changes) if r.rank == rank else r for r in attempt.ranks),  # type: ignore[arg-type]
    )
