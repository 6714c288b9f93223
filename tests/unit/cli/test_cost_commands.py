"""crucible costs and savings: what they ask the server, and what they refuse before asking."""

import json
from typing import Any

import pytest

from doubles.http_server import Request

SUMS = {
    f"{name}{unit}": 0 for name in ("cost", "useful", "idle", "saved", "unpriced") for unit in ("_microusd", "_usd")
} | {"gpu_hours": 0.0, "jobs": 0}


def report(**changes: Any) -> dict[str, Any]:
    made = {
        "at": "2026-11-18T10:00:00Z",
        "from_at": "2026-11-01T00:00:00Z",
        "to_at": "2026-12-01T00:00:00Z",
        "by": ["team", "project"],
        "rows": [],
        "left_out": 0,
        "total": SUMS,
        "per_hour_microusd": 0,
        "per_hour_usd": 0.0,
        "forecast": None,
    }
    return made | changes


SPENT = {**SUMS, "cost_microusd": 1_500_000, "cost_usd": 1.5, "idle_usd": 0.5, "gpu_hours": 2.0, "jobs": 1}
ROW = {"key": {"team": "vision", "project": "cars"}, "job_name": None, **SPENT}
JOB = {"key": {"job": "019a8c3f-2b41"}, "job_name": "train", **SPENT}


def told(request: Request) -> Any:
    if request.query["by"] == "job":
        return report(by=["job"], rows=[JOB], total=SPENT)
    return report(rows=[ROW], total=SPENT, forecast={"total_usd": 3.0, "per_day_usd": 0.1})


def test_without_a_question_it_is_this_month_by_team_and_project_and_the_dearest_jobs(
    crucible: Any, serve: Any
) -> None:
    server = serve({"GET /v1/costs": told})
    ran = crucible("costs")
    assert ran.code == 0 and [one.query["by"] for one in server.requests] == ["team,project", "job"]
    assert not {"from", "to"} & set(server.requests[0].query)
    assert "vision  cars" in ran.out and "DEAREST JOBS" in ran.out
    assert "November 2026: $1.50 so far, about $3.00 by its end" in ran.err


def test_a_period_and_what_it_is_narrowed_to_are_sent_as_they_are_meant(crucible: Any, serve: Any) -> None:
    server = serve({"GET /v1/costs": report(by=["day"])})
    ran = crucible(
        "costs", "--by", "day", "--for", "2026-10", "--tz", "Europe/Berlin", "--team", "vision", "-o", "json"
    )
    assert (ran.code, ran.err) == (0, "") and json.loads(ran.out)["by"] == ["day"]
    (asked,) = server.requests
    assert (asked.query["from"], asked.query["to"]) == ("2026-09-30T22:00Z", "2026-10-31T23:00Z")
    assert (asked.query["tz"], asked.query["team"], asked.query["by"]) == ("Europe/Berlin", "vision", "day")


def test_nothing_spent_is_said(crucible: Any, serve: Any) -> None:
    serve({"GET /v1/costs": report()})
    ran = crucible("costs", "--for", "2026-11")
    assert (ran.code, ran.out) == (0, "") and "nothing was spent" in ran.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--for", "next week"), "is no period"),
        (("--tz", "Mars/Olympus"), "no time zone"),
        (("resnet50", "--by", "team"), "a job's costs are whole"),
        (("resnet50", "--csv"), "a job's costs are whole"),
    ],
)
def test_what_makes_no_sense_is_refused(crucible: Any, serve: Any, arguments: tuple[str, ...], words: str) -> None:
    serve({"GET /v1/costs": report()})
    ran = crucible("costs", *arguments)
    assert ran.code == 2 and words in ran.err and ran.out == ""


def test_savings_tell_what_was_saved_and_what_could_be(crucible: Any, serve: Any) -> None:
    nothing = {"ideas": [], "jobs": 3, "unknown": 1, "is_partial": False}
    row = {"key": {"market": "spot"}, "job_name": None, **SPENT, "saved_usd": 4.5}
    said = report(by=["market"], rows=[row], total={**SPENT, "saved_usd": 4.5}, available=nothing)
    server = serve({"GET /v1/savings": said})
    ran = crucible("savings", "--for", "2026-11")
    assert ran.code == 0 and "$6.00  $4.50    75%" in ran.out
    assert "$4.50 saved against prices on demand" in ran.err and "1 job without an estimate" in ran.err
    crucible("savings", "--realised", "-q")
    assert server.requests[-1].query["available"] == "false"


# --- what cannot be meant -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("budget", "set", "team:vision", "-5"), "below zero is none"),
        (("budget", "top-up", "team:vision", "-0.5"), "below zero is none"),
        (("budget", "top-up", "team:vision", "0"), "0 adds nothing"),
        (("budget", "set", "team:vision", "1e30"), "from 0 to a billion"),
        (("budget", "set", "team:vision", "nan"), "from 0 to a billion"),
        (("budget", "set", "team:vision", "much"), "no amount in US dollars"),
        (("token", "create", "x", "--expires", "99999999"), "0<x<=36500"),
    ],
)
def test_an_amount_that_cannot_be_is_told_before_anybody_is_asked(crucible: Any, words: Any, said: str) -> None:
    ran = crucible(*words)
    assert ran.code == 2 and said in ran.err and ran.out == ""
