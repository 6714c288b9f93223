"""Whatever happens, in whatever order: the row is the fold of its log, and what is stale is never written."""

import asyncio
import json
import types
import typing
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from itertools import count
from typing import Any, Union, get_args, get_origin

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crucible.model.attempt import AttemptEvent, MemberJoined, Rank, RanksAssigned
from crucible.model.change import Change
from crucible.model.encoding import decode_event
from crucible.model.errors import StaleClaim, StaleVersion
from crucible.model.ids import NodeId
from crucible.model.job import JobEvent, JobReasonChanged
from crucible.model.lease import LeaseEvent, NodeEvent, OrderEvent
from crucible.model.task import TaskEvent
from crucible.ports.store import Claim, JobQuery, Store
from crucible.store import open_store
from crucible.store.mapping import clean, micros, moment, to_json
from crucible.testing.specimens import NOW, fold, running, step, submitted

NAMES = count()
MOMENTS = st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
# What a database holds as it is; the rest has its own test below.
WORDS = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20)
SMALL = st.integers(-(2**31), 2**31 - 1)
FINITE = st.floats(allow_nan=False, allow_infinity=False)

UNIONS: dict[str, Any] = {
    "job": JobEvent,
    "task": TaskEvent,
    "attempt": AttemptEvent,
    "order": OrderEvent,
    "lease": LeaseEvent,
    "node": NodeEvent,
}


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a field's type."""
    while hasattr(hint, "__supertype__"):
        hint = hint.__supertype__
    if get_origin(hint) in (Union, types.UnionType):
        return st.one_of(*(st.none() if arg is type(None) else values_of(arg) for arg in get_args(hint)))
    if hint == tuple[Rank, ...]:
        return st.lists(st.sampled_from(["n1", "n2"]), max_size=4).map(ranks_on)
    if get_origin(hint) is tuple:
        return st.lists(values_of(get_args(hint)[0]), max_size=3).map(tuple)
    if get_origin(hint) is Mapping:
        return st.dictionaries(WORDS, WORDS if get_args(hint)[1] is Any else values_of(get_args(hint)[1]), max_size=2)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(hint)
    return {str: WORDS, int: SMALL, float: FINITE, bool: st.booleans(), datetime: MOMENTS}[hint]


def ranks_on(nodes: list[str]) -> tuple[Rank, ...]:
    return tuple(
        Rank(rank=number, node_id=NodeId(node), node_rank=0, local_rank=number, devices=("0",))
        for number, node in enumerate(nodes)
    )


def events_of(union: Any) -> st.SearchStrategy[Any]:
    members = [(member, typing.get_type_hints(member)) for member in get_args(union)]
    return st.one_of(*(st.builds(m, **{f.name: values_of(hints[f.name]) for f in fields(m)}) for m, hints in members))


STEPS = st.lists(
    st.one_of(
        *(
            st.tuples(st.just(kind), st.lists(events_of(union), min_size=1, max_size=3), st.booleans())
            for kind, union in UNIONS.items()
        )
    ),
    max_size=25,
)


def terminal_status(entity: Any) -> Any:
    """What can never change again, if it has come so far."""
    status = getattr(entity, "status", None) or getattr(entity, "phase", None)
    return status if getattr(status, "is_terminal", status == "ended") else None


class Replay:
    """One job's family; events happen to its members, and after each the store is asked."""

    def __init__(self, store: Store, family: Any) -> None:
        self._store = store
        self._born = {"job": family.job, "task": family.task, "attempt": family.attempt, "order": family.order}
        self._born |= {"lease": family.leases[0], "node": family.nodes[0]}
        self._now = dict(self._born)
        self._before = dict(self._born)
        self._load: Mapping[str, Callable[[Any], Awaitable[Any]]] = {
            "job": store.job,
            "task": store.task,
            "attempt": store.attempt,
            "lease": store.lease,
            "node": store.node,
        }

    async def happen(self, kind: str, events: list[Any], is_stale: bool) -> None:
        before = self._before[kind] if is_stale else self._now[kind]
        after, change = step(before, *self._sensible(before, events))
        last = terminal_status(self._now[kind])
        if last is not None and last != terminal_status(after):
            return  # the database would refuse: terminal is for ever
        if before.version != self._now[kind].version:
            await self._refused(change, kind)
            return
        await self._store.commit([change], label="property")
        self._before[kind], self._now[kind] = before, after
        assert await self._loaded(kind) == after

    async def _refused(self, change: Change, kind: str) -> None:
        with pytest.raises(StaleVersion):
            await self._store.commit([change], label="property")
        assert await self._loaded(kind) == self._now[kind]

    def _sensible(self, before: Any, events: list[Any]) -> list[Any]:
        """A membership is never assigned twice under one number, and nobody joins it under one that is taken."""
        generations = count(getattr(before, "generation", 0) + 1)
        taken = len(getattr(before, "ranks", ()))
        sensible: list[Any] = []
        for event in events:
            if isinstance(event, RanksAssigned):
                event, taken = replace(event, generation=next(generations)), len(event.ranks)
            elif isinstance(event, MemberJoined):
                joined = tuple(replace(rank, rank=taken + number) for number, rank in enumerate(event.ranks))
                event, taken = replace(event, ranks=joined), taken + len(joined)
            sensible.append(event)
        return sensible

    async def _loaded(self, kind: str) -> Any:
        id_ = self._now[kind].id
        return (await self._store.order(id_))[0] if kind == "order" else await self._load[kind](id_)

    async def check_the_log(self) -> None:
        log = await self._store.events(self._born["job"].id)
        for kind, entity in self._born.items():
            mine = [e for e in log if e.entity_id == entity.id]
            assert [e.version for e in mine] == list(range(self._now[kind].version + 1))
            later = [decode_event(UNIONS[kind], e.type, e.body) for e in mine if e.version > entity.version]
            assert fold(entity, later) == self._now[kind] == await self._loaded(kind)


async def replay(url: str, steps: list[tuple[str, list[Any], bool]]) -> None:
    store = await open_store(url)
    try:
        story = Replay(store, await running(store, f"j{next(NAMES)}"))
        for kind, events, is_stale in steps:
            await story.happen(kind, events, is_stale)
        await story.check_the_log()
    finally:
        await store.close()


@given(STEPS)
@settings(max_examples=150, deadline=None)
def test_the_row_is_the_fold_of_its_log_in_memory(steps: list[tuple[str, list[Any], bool]]) -> None:
    asyncio.run(replay("sqlite://", steps))


@pytest.fixture(scope="module")
def shared_url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("postgres").fresh_database())


@given(steps=STEPS)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_row_is_the_fold_of_its_log_on_postgres(shared_url: str, steps: list[tuple[str, list[Any], bool]]) -> None:
    asyncio.run(replay(shared_url, steps))


# --- lists ----------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab")), max_size=20), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_pages_of_any_size_hold_every_job_once(made: list[tuple[int, str]], limit: int) -> None:
    async def scenario() -> None:
        store = await open_store("sqlite://")
        jobs = []
        for number, (second, name) in enumerate(made):
            at = NOW + timedelta(seconds=second)
            jobs.append((await submitted(store, f"{name}{number}", name=name, created_at=at))[0])
        newest_first = sorted(jobs, key=lambda job: (job.created_at, job.id), reverse=True)
        for name in (None, "a"):
            found, cursor = [], ""
            while cursor is not None:
                page = await store.jobs(JobQuery(limit=limit, cursor=cursor or None, name=name))
                found += [item.id for item in page.items]
                cursor = page.next_cursor
            assert found == [job.id for job in newest_first if name in (None, job.name)]
        await store.close()

    asyncio.run(scenario())


# --- claims ---------------------------------------------------------------------------------------------------

CLAIM_STEPS = st.lists(
    st.tuples(st.sampled_from(["claim", "renew", "release", "write", "wait"]), st.integers(0, 2), st.integers(1, 40)),
    max_size=40,
)


@given(CLAIM_STEPS)
@settings(max_examples=100, deadline=None)
def test_only_the_last_holder_of_a_claim_can_write(steps: list[tuple[str, int, int]]) -> None:
    async def scenario() -> None:
        clock = [0.0]
        store = await open_store("sqlite://", clock_monotonic=lambda: clock[0])
        job, _ = await submitted(store)
        held: list[Claim | None] = [None, None, None]
        holder, expires, fence = -1, 0.0, 0
        for what, worker, seconds in steps:
            ttl, mine = timedelta(seconds=seconds), held[worker]
            if what == "wait":
                clock[0] += seconds
            elif what == "claim":
                got = await store.claim("task", f"w{worker}", ttl)
                assert (got is not None) == (holder < 0 or expires <= clock[0])
                if got is not None:
                    assert got.fence > fence
                    held[worker], holder, expires, fence = got, worker, clock[0] + seconds, got.fence
            elif mine is None:
                continue
            elif what == "renew":
                assert await store.renew(mine, ttl) == (holder == worker and mine.fence == fence)
                if holder == worker and mine.fence == fence:
                    expires = clock[0] + seconds
            elif what == "release":
                await store.release(mine)
                holder = -1 if holder == worker and mine.fence == fence else holder
            else:
                job = await written(store, job, mine, is_allowed=holder == worker and mine.fence == fence)
        await store.close()

    asyncio.run(scenario())


async def written(store: Store, job: Any, claim: Claim, is_allowed: bool) -> Any:
    after, change = step(job, JobReasonChanged(NOW, claim.owner))
    if is_allowed:
        await store.commit([change], label="property", claim=claim)
        return after
    with pytest.raises(StaleClaim):
        await store.commit([change], label="property", claim=claim)
    assert await store.job(job.id) == job
    return job


# --- values ---------------------------------------------------------------------------------------------------

ANY_TEXT = st.text(st.characters(), max_size=30) | st.sampled_from(["\0", "\\u0000", "\ud800", "a\0\\u0000\udfff☃"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


def cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(key): cleaned(inner) for key, inner in value.items()}
    return [cleaned(inner) for inner in value] if isinstance(value, list) else value


def fits(text: str) -> bool:
    return "\0" not in text and text.encode().decode() == text


@given(JSON)
def test_nested_values_come_back_and_fit_into_any_database(value: Any) -> None:
    text = to_json(value)
    assert fits(text)
    assert json.loads(text) == cleaned(value)


@given(ANY_TEXT)
def test_clean_text_fits_and_stays_as_it_is(text: str) -> None:
    kept = clean(text)
    assert fits(kept)
    assert clean(kept) == kept


@given(MOMENTS)
def test_moments_come_back_to_the_microsecond(at: datetime) -> None:
    assert moment(micros(at)) == at
