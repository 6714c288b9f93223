"""Reports of costs over HTTP: they add up to the ledger and what runs, people see what they may, and bad questions are
answered with what is wrong."""

import csv
import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crucible.model.account import Membership, Role, Team
from crucible.model.ids import UserId
from crucible.model.ledger import ChargeKind, Entry, Posting
from crucible.model.units import MicroUsd

from .conftest import SPEC, Server
from .test_costs_api import MINUTE, SPIKE, charge

FAR = "from=2020-01-01T00:00Z&to=2040-01-01T00:00Z"


@pytest.fixture(scope="module")
def spent(server: Server) -> Iterator[dict[str, str]]:
    """alice and bob are members of vision, carol manages it; both run a job for it, and the admin one of their own."""

    async def people() -> None:
        store, now = server.deps.store, server.deps.clock.now()
        await server._add_person("carol", Role.MEMBER)
        await store.add_team(Team(name="vision", created_at=now, created_by=UserId("admin")))
        for name, role in (("alice", Role.MEMBER), ("bob", Role.MEMBER), ("carol", Role.MANAGER)):
            await store.save_member(Membership(team="vision", user_id=UserId(name), role=role, created_at=now))

    server.run(people())
    jobs: dict[str, str] = {}
    for name, who, team in (("a", "alice", "vision"), ("b", "bob", "vision"), ("own", "admin", None)):
        spec = SPEC.replace("job:\n", f"job:\n  team: {team}\n", 1) if team else SPEC
        jobs[name] = server.submit(who, spec=spec)
        server.agent(jobs[name]).begin()
        charge(server, jobs[name], started=90 * MINUTE)
    moved = Posting(
        id=f"transfer/{jobs['a']}/data",
        at=datetime.now(UTC),
        memo="data",
        job_id=jobs["a"],  # type: ignore[arg-type]
        kind=ChargeKind.TRANSFER,
        entries=(Entry(f"job:{jobs['a']}", MicroUsd(77)), Entry("provider:aws", MicroUsd(-77))),
    )
    server.run(server.deps.store.commit([], [moved], label="moved"))
    yield jobs


def told(server: Server, query: str, who: str = "admin") -> Any:
    reply = server.call("GET", f"/v1/costs?{query}", who)
    assert reply.status == 200, reply.text
    return reply.json


def keys(said: Any) -> set[tuple[str, ...]]:
    return {tuple(row["key"].values()) for row in said["rows"]}


@pytest.mark.parametrize("by", ["team", "team,day", "user", "kind", "job", "provider,hour", "gpu,instance_type", ""])
def test_a_report_adds_up_to_its_total_and_that_to_the_ledger(server: Server, spent: dict[str, str], by: str) -> None:
    before = ledgers(server, spent)
    said = told(server, f"by={by}&{FAR if 'hour' not in by else lately()}")
    assert before <= said["total"]["cost_microusd"] <= ledgers(server, spent)
    for name in ("cost_microusd", "useful_microusd", "idle_microusd", "saved_microusd", "jobs"):
        assert sum(row[name] for row in said["rows"]) == said["total"][name]
    for row in said["rows"]:
        assert row["useful_microusd"] + row["idle_microusd"] == row["cost_microusd"]


def lately() -> str:
    now = datetime.now(UTC)
    start, end = (f"{now + days:%Y-%m-%dT%H:00Z}" for days in (timedelta(days=-9), timedelta(days=9)))
    return f"from={start}&to={end}"


def ledgers(server: Server, spent: dict[str, str]) -> int:
    mine = [server.call("GET", f"/v1/jobs/{job_id}/costs", "admin").json for job_id in spent.values()]
    return sum(one["so_far_microusd"] for one in mine)


def test_what_runs_costs_so_much_an_hour_whatever_the_period_and_everybody_is_told_of_theirs(
    server: Server, spent: dict[str, str]
) -> None:
    each = SPIKE + 1000  # with its disk
    past = "provider=elsewhere&from=2020-01-01T00:00Z&to=2020-02-01T00:00Z"
    assert told(server, f"by=team&provider=elsewhere&{FAR}")["per_hour_microusd"] == 3 * each
    assert told(server, f"by=team&{past}")["per_hour_microusd"] == 3 * each
    assert told(server, f"by=job&{past}", "alice")["per_hour_microusd"] == each


def test_a_report_is_the_same_before_and_after_it_is_added_up(server: Server, spent: dict[str, str]) -> None:
    """Of what is closed: the rest grows while one looks."""

    def closed() -> Any:
        said = told(server, f"by=team,kind&kind=transfer&{FAR}")
        return said["rows"], told(server, f"by=job&provider=elsewhere&{FAR}")["total"]["jobs"]

    before = closed()
    assert server.run(server.deps.costs.add_up()) >= 4  # a stretch of each machine, and the data
    assert server.run(server.deps.costs.add_up()) == 0
    assert closed() == before


def test_everything_is_attributed(server: Server, spent: dict[str, str]) -> None:
    assert keys(told(server, f"by=team&{FAR}")) == {("vision",), ("-",)}
    assert ("transfer",) in keys(told(server, f"by=kind&{FAR}"))
    assert told(server, f"by=kind&kind=transfer&{FAR}")["total"]["cost_microusd"] == 77


def test_members_see_their_own_and_the_teams_total_and_managers_see_who(server: Server, spent: dict[str, str]) -> None:
    team = told(server, f"by=team&team=vision&{FAR}", "carol")["total"]["cost_microusd"]
    assert told(server, f"by=team&{FAR}", "alice")["rows"][0]["cost_microusd"] >= team
    assert keys(told(server, f"by=team&{FAR}", "alice")) == {("vision",)}
    assert keys(told(server, f"by=user&{FAR}", "alice")) == {("alice",)}
    assert keys(told(server, f"by=job&{FAR}", "alice")) == {(spent["a"],)}
    assert keys(told(server, f"by=team,user&{FAR}", "bob")) == {("vision", "bob")}
    assert keys(told(server, f"by=user&{FAR}", "carol")) == {("alice",), ("bob",)}
    assert told(server, f"by=day&user=alice&{FAR}", "bob")["rows"] == []


def test_a_job_in_a_row_has_its_name_and_rows_beyond_the_limit_are_in_the_total(
    server: Server, spent: dict[str, str]
) -> None:
    said = told(server, f"by=job&limit=1&{FAR}")
    assert said["left_out"] == 2 and said["rows"][0]["job_name"]
    assert said["total"]["jobs"] == 3 and said["total"]["cost_microusd"] > said["rows"][0]["cost_microusd"]


def test_csv_has_every_row_and_all_digits(server: Server, spent: dict[str, str]) -> None:
    reply = server.call("GET", f"/v1/costs?by=team,kind&format=csv&limit=1&{FAR}", "admin")
    assert reply.status == 200 and reply.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(reply.text)))
    assert {(row["team"], row["kind"]) for row in rows} >= {
        ("vision", "compute"),
        ("vision", "transfer"),
        ("-", "storage"),
    }
    (moved,) = [row for row in rows if row["kind"] == "transfer"]
    assert (moved["cost_usd"], moved["idle_usd"]) == ("0.000077", "0.000000")


def test_this_month_is_meant_if_no_period_is_named_and_it_is_told_what_it_comes_to(
    server: Server, spent: dict[str, str]
) -> None:
    said = told(server, "by=team&forecast=true")
    start, end = (datetime.fromisoformat(said[name]) for name in ("from_at", "to_at"))
    assert start.day == end.day == 1 and start <= datetime.now(UTC) < end
    assert said["forecast"] is None or said["forecast"]["total_microusd"] >= said["total"]["cost_microusd"]


def test_the_days_of_a_zone_are_its_own(server: Server, spent: dict[str, str]) -> None:
    start = (datetime.now(UTC) - timedelta(days=3)).strftime("%Y-%m-%dT%H:00Z")
    said = told(server, f"by=day&tz=Asia/Tokyo&from={start}")
    assert said["rows"] and {len(row["key"]["day"]) for row in said["rows"]} == {10}


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("by=colour", "not told apart by colour"),
        ("by=team,user,day", "at most 2"),
        ("by=team,team", "different"),
        ("by=day,hour", "different"),
        ("from=2026-11-02T00:00Z&to=2026-11-01T00:00Z", "before"),
        ("from=2026-11-01T00:30Z", "whole hour"),
        ("from=2026-11-01T00:00", "zone"),
        ("tz=Mars/Olympus", "no time zone"),
        ("tz=../etc", "query.tz"),
        ("by=day&tz=Asia/Kolkata", "use UTC"),
        ("by=job&from=2026-11-01T05:00Z", "whole days"),
        ("by=hour&from=2026-01-01T00:00Z&to=2026-12-01T00:00Z", "at most 93 days"),
        ("by=day&tz=Asia/Tokyo&from=2026-01-01T00:00Z&to=2026-12-01T00:00Z", "at most 93 days"),
        ("limit=0", "limit"),
        ("format=xls", "format"),
        ("colour=red", "colour"),
    ],
)
def test_a_bad_question_is_answered_with_what_is_wrong(server: Server, query: str, words: str) -> None:
    reply = server.call("GET", f"/v1/costs?{query}", "admin")
    assert reply.status in (400, 422) and words in reply.text, reply.text


def test_savings_are_those_of_the_sums_and_what_could_be_saved_stands_apart(
    server: Server, spent: dict[str, str]
) -> None:
    reply = server.call("GET", f"/v1/savings?by=market&{FAR}", "admin")
    assert reply.status == 200, reply.text
    said = reply.json
    assert sum(row["saved_microusd"] for row in said["rows"]) == said["total"]["saved_microusd"]
    assert said["available"]["jobs"] >= 3
    only = server.call("GET", f"/v1/savings?available=false&{FAR}", "admin").json
    assert only["available"] is None
