"""Sums of costs: what was added up and what was not are together what was charged, whenever one looks. A part of
StoreContract."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from crucible.core.cost_parts import parts_of
from crucible.core.cost_reports import rows_of, whole, windows
from crucible.core.ledger import accrued, amount
from crucible.model.account import Sight
from crucible.model.attempt import AttemptStarted, RankExited, RankStarted
from crucible.model.costs import Charged, CostPart, CostQuery, Dimension, Moved, Sums, Window
from crucible.model.errors import InvalidRequest, StaleClaim
from crucible.model.ids import JobId, MachineId, UserId
from crucible.model.ledger import ChargeKind, Entry, Posting, Rate, Usage
from crucible.model.record import Record
from crucible.model.units import MicroUsd
from crucible.ports.store import Claim, Store
from crucible.testing.specimens import LATER, NOW, Family, running, step, submitted

D = Dimension
START = NOW.replace(microsecond=0)
HOUR = timedelta(hours=1)
END = START + 60 * HOUR
MONTH = windows(START.replace(hour=0, minute=0), START.replace(hour=0, minute=0) + timedelta(days=4))
QUESTIONS: Sequence[tuple[D, ...]] = (
    (),
    (D.TEAM,),
    (D.TEAM, D.DAY),
    (D.USER,),
    (D.PROVIDER, D.REGION),
    (D.KIND, D.HOUR),
    (D.MARKET,),
    (D.GPU, D.INSTANCE_TYPE),
    (D.JOB,),
    (D.JOB, D.DAY),
    (D.PROJECT,),
)
RATES = {
    ChargeKind.COMPUTE: (MicroUsd(3_141_593), 3600),
    ChargeKind.STORAGE: (MicroUsd(8_000_001), 730 * 3600),
}


def cut(charged: Sequence[Charged], moved: Sequence[Moved]) -> Sequence[CostPart]:
    return tuple(parts_of(charged, moved, END))


def asked(*by: D, scope: Sight | None = None, where: Mapping[D, str] | None = None) -> CostQuery:
    return CostQuery(by=by, windows=MONTH, scope=scope, where=where or {})


async def told(store: Store, query: CostQuery) -> Mapping[tuple[str, ...], Sums]:
    return dict(rows_of(await store.costs(query), query, END))


def stretches(family: Family, random: Random, machine: int) -> Sequence[Usage]:
    """One machine: a few stretches of each kind, the last of which may be open."""
    found: list[Usage] = []
    for kind, (rate, per_s) in RATES.items():
        at = START + timedelta(seconds=random.randrange(7200))
        for number in range(last := random.randrange(1, 4)):
            until = at + timedelta(seconds=random.randrange(1, 40_000))
            is_open = number == last - 1 and random.random() < 0.4
            priced = Rate(kind, MicroUsd(rate + number), per_s)
            found.append(
                Usage(
                    provider=family.order.target.provider,
                    region=family.order.target.region,
                    machine_id=MachineId(f"{family.job.id}-{machine}"),
                    order_id=family.order.id,
                    job_id=family.job.id,
                    lease_id=family.leases[machine % len(family.leases)].id if random.random() < 0.9 else None,
                    rate=priced,
                    from_at=at,
                    to_at=None if is_open else until,
                    amount=None
                    if is_open
                    else MicroUsd(amount(priced, (until - at) // timedelta(seconds=1)) - random.choice((0, 0, 7))),
                )
            )
            at = until
    return found


def transfer(family: Family, number: int) -> Posting:
    return Posting(
        id=f"transfer/{family.job.id}/{number}",
        at=START + number * HOUR,
        memo="a dataset",
        job_id=family.job.id,
        kind=ChargeKind.TRANSFER,
        entries=(Entry(f"job:{family.job.id}", MicroUsd(123_457)), Entry("provider:aws", MicroUsd(-123_457))),
    )


async def a_past(store: Store, seed: int = 1) -> Sequence[Record]:
    """A few jobs of three people and two teams, with ranks that ran for a part of the time."""
    random, records = Random(seed), list[Record]()  # noqa: S311 - the same past every time
    people = (("ann", "vision", "cars"), ("bob", "vision", None), ("cyd", None, None), ("bob", "speech", "asr"))
    for number, (user, team, project) in enumerate(people):
        family = await running(store, f"j{number}", user_id=UserId(user), team=team, project=project)
        begun = START + timedelta(seconds=random.randrange(10_000))
        _, ran = step(
            family.attempt,
            RankStarted(NOW, 0, begun),
            RankStarted(NOW, 1, begun + timedelta(seconds=17)),
            AttemptStarted(NOW, LATER),
            RankExited(NOW, 0, 0, None, None, begun + timedelta(seconds=random.randrange(90_000))),
        )
        await store.commit([ran], label="ran")
        for machine in range(3):
            records += stretches(family, random, machine)
        records += [transfer(family, hour) for hour in range(number)]
    for record in records:
        await store.commit([], [record], label="account")
    return records


async def claimed(store: Store) -> Claim:
    claim = await store.claim("costs", "s1", timedelta(minutes=1))
    assert claim is not None
    return claim


class CostContract:
    async def test_sums_and_what_is_not_in_them_are_what_was_charged_whenever_one_looks(self, store: Store) -> None:
        records = await a_past(store)
        charged: int = sum(accrued(one, END) for one in records if isinstance(one, Usage))
        charged += sum(one.entries[0].amount for one in records if isinstance(one, Posting))
        before = {by: await told(store, asked(*by)) for by in QUESTIONS}
        claim = await claimed(store)
        for limit, until in ((3, START + 20 * HOUR), (5, END), (100, END), (100, END)):
            await store.add_up(cut, until, limit, claim=claim)
            for by in QUESTIONS:
                assert await told(store, asked(*by)) == before[by], f"{by} after {limit}"
                assert whole((await told(store, asked(*by))).items()).cost == charged
        assert not [one for one in (await store.costs(asked())).charged if one.usage.to_at is not None]
        assert not (await store.costs(asked())).moved

    async def test_useful_and_idle_are_what_was_charged_and_a_job_counts_once(self, store: Store) -> None:
        await a_past(store)
        await store.add_up(cut, END, 100, claim=await claimed(store))
        rows = await told(store, asked(D.TEAM, D.DAY))
        whole_of = whole(rows.items())
        assert whole_of.jobs == 4 and 0 < whole_of.useful < whole_of.cost
        assert all(sums.useful + sums.idle == sums.cost for sums in rows.values())
        assert {team for team, _ in rows} == {"vision", "speech", "-"}

    async def test_the_same_again_adds_nothing(self, store: Store) -> None:
        records = await a_past(store)
        claim = await claimed(store)
        while await store.add_up(cut, END, 7, claim=claim):
            pass
        before = await told(store, asked(D.JOB))
        for record in records:
            await store.commit([], [record], label="account")
        assert await store.add_up(cut, END, 100, claim=claim) == 0
        assert await told(store, asked(D.JOB)) == before

    async def test_who_lost_the_claim_adds_nothing(self, store: Store) -> None:
        await a_past(store)
        claim, before = await claimed(store), await told(store, asked(D.TEAM))
        await store.release(claim)
        with pytest.raises(StaleClaim):
            await store.add_up(cut, END, 100, claim=claim)
        assert await told(store, asked(D.TEAM)) == before

    async def test_people_see_their_own_and_what_their_teams_spent(self, store: Store) -> None:
        await a_past(store)
        claim = await claimed(store)
        for limit in (0, 9, 100):  # nothing of it, some of it and all of it is added up
            await store.add_up(cut, END, limit or 1, claim=claim)
            everything = await told(store, asked(D.TEAM, D.USER))
            ann = await told(store, asked(D.TEAM, D.USER, scope=Sight(UserId("ann"), frozenset())))
            assert ann == {key: sums for key, sums in everything.items() if key[1] == "ann"}
            speech = await told(store, asked(D.TEAM, D.USER, scope=Sight(UserId("ann"), frozenset({"speech"}))))
            assert set(speech) == {("vision", "ann"), ("speech", "bob")}
            only = await told(store, asked(D.TEAM, D.USER, where={D.USER: "bob", D.KIND: "storage"}))
            assert {key[1] for key in only} == {"bob"} and len(only) == 2

    async def test_parts_of_a_period_add_up_to_it(self, store: Store) -> None:
        await a_past(store)
        await store.add_up(cut, END, 100, claim=await claimed(store))
        middle = START.replace(minute=0) + 13 * HOUR
        (window,) = MONTH
        halves = [Window(window.from_at, middle), Window(middle, window.to_at)]
        parts = [await told(store, CostQuery(by=(D.TEAM,), windows=(half,))) for half in halves]
        both = await told(store, asked(D.TEAM))
        assert {key: parts[0].get(key, Sums()) + parts[1].get(key, Sums()) for key in both} == both

    async def test_days_of_a_zone_are_its_own(self, store: Store) -> None:
        await a_past(store)
        await store.add_up(cut, END, 100, claim=await claimed(store))
        (window,) = MONTH
        ahead = CostQuery(by=(D.DAY,), windows=(Window(window.from_at, window.to_at, 9 * 3600),))
        days = await told(store, ahead)
        first = Window(window.from_at, datetime(2026, 1, 1, 15, tzinfo=UTC))
        only = await told(store, CostQuery(by=(), windows=(first,)))
        assert days[("2026-01-01",)] == only[()]
        assert whole(days.items()) == whole((await told(store, asked())).items())

    async def test_single_jobs_are_told_by_whole_days(self, store: Store) -> None:
        await submitted(store, "j1")
        with pytest.raises(InvalidRequest, match="whole days"):
            await store.costs(CostQuery(by=(D.JOB,), windows=(Window(START, START + HOUR),)))

    async def test_names_of_jobs_and_when_agents_came(self, store: Store) -> None:
        family = await running(store)
        assert await store.job_names([family.job.id, JobId("nobody")]) == {family.job.id: family.job.name}
        assert await store.user_names([UserId("nobody")]) == {}
        assert await store.enrolments(family.job.id) == {node.id: node.enrolled_at for node in family.nodes}
