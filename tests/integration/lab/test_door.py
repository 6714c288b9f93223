"""One port: who answers what, who may ask, and answers that come late, never, or not at all."""

import http.client
import json
import time
from typing import Any

import pytest

from crucible.lab.http import Response
from crucible.world.facts import Market

from .conftest import TOKEN, SmallLab

pytestmark = pytest.mark.anyio

BEARER = {"Authorization": f"Bearer {TOKEN}"}


async def asked(small: SmallLab, method: str, what: str, body: Any = None, status: int = 200) -> Any:
    sent = b"" if body is None else json.dumps(body).encode()
    got, said = await small.ask(method, f"/_lab/{what}", BEARER, sent)
    assert got == status, said
    return json.loads(said)


async def test_everything_else_is_the_vendors(small: SmallLab) -> None:
    small.vendor.answer = Response(status=200, headers={"x-amzn-requestid": "r-1"}, body=b"<ok/>")
    assert await small.ask("POST", "/a%20b?x=1&y=", {"X-Amz-Date": "now"}, b"Action=Nothing") == (200, b"<ok/>")
    (request,) = small.vendor.asked
    assert (request.method, request.path, request.raw_path, request.query) == ("POST", "/a b", "/a%20b", "x=1&y=")
    assert (request.headers["x-amz-date"], request.body) == ("now", b"Action=Nothing")


async def test_an_answer_can_be_lost_on_its_way(small: SmallLab, caplog: pytest.LogCaptureFixture) -> None:
    small.vendor.answer = Response(is_cut=True)
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        await small.ask("POST", "/", {}, b"Action=RunInstances")
    assert len(small.vendor.asked) == 1
    assert not caplog.records


async def test_an_answer_can_come_late(small: SmallLab) -> None:
    small.vendor.answer = Response(status=200, after_s=0.2)
    began = time.monotonic()
    assert (await small.ask("GET", "/"))[0] == 200
    assert time.monotonic() - began >= 0.2


async def test_a_request_without_end_is_refused(small: SmallLab) -> None:
    assert (await small.ask("POST", "/", {}, b"x" * ((1 << 20) + 1)))[0] == 413
    assert small.vendor.asked == []


async def test_a_front_end_that_fails_ends_one_request(small: SmallLab, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(request: object) -> Response:
        raise RuntimeError("broken")

    with monkeypatch.context() as patch:
        patch.setattr(small.vendor, "handle", broken)
        assert (await small.ask("GET", "/"))[0] == 500
    assert (await small.ask("GET", "/"))[0] == 418


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer \u00e9"}])
async def test_the_door_opens_to_the_token_alone(small: SmallLab, headers: dict[str, str]) -> None:
    status, said = await small.ask(
        "GET", "/_lab/status", {k: v.encode("utf-8").decode("latin-1") for k, v in headers.items()}
    )
    assert (status, json.loads(said)["error"]) == (401, "unauthenticated")
    assert (await small.ask("GET", "/_lab/ready", headers))[0] == 200, "that it is there is no secret"


async def test_status_bill_events_and_console_tell_of_one_machine(small: SmallLab) -> None:
    machine = small.launch("#!/bin/sh\necho hello\n", market=Market.SPOT)
    await small.until(lambda: "user-data-ended" in dict(small.notes(machine)))
    status = await asked(small, "GET", "status")
    assert [one["id"] for one in status["machines"]] == [machine]
    assert status["counts"]["running"] == 1
    bill = await asked(small, "GET", "bill")
    assert 0 < status["machines"][0]["microusd"] <= bill["microusd"]
    assert {line["resource"] for line in bill["lines"]} >= {machine}
    assert bill["microusd"] == sum(line["microusd"] for line in bill["lines"])
    events = (await asked(small, "GET", f"events?subject={machine}"))["items"]
    assert [event["what"] for event in events] == ["launched", "booted", "user-data-ended"]
    assert (await asked(small, "GET", f"events?after={events[1]['number']}"))["items"][0] == events[2]
    assert "hello" in (await asked(small, "GET", f"console?machine={machine}"))["text"]


async def test_spot_machines_are_taken_by_name_or_by_kind(small: SmallLab) -> None:
    machines = [small.launch(market=Market.SPOT, tags={"n": str(number)}) for number in range(3)]
    named = await asked(small, "POST", "preempt", {"machines": machines[:1], "notice_s": 0})
    assert [one["state"] for one in named["items"]] == ["terminated"]
    tagged = await asked(small, "POST", "preempt", {"tag": "n=2", "notice_s": 600})
    assert [one["id"] for one in tagged["items"]] == [machines[2]]
    rest = await asked(small, "POST", "preempt", {"count": 5, "notice_s": 600})
    assert [one["id"] for one in rest["items"]] == [machines[1]], "those that are being taken are not taken again"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"machines": ["i-none"]}, 404),
        ({"machines": "i-none"}, 400),
        ({"machines": [5]}, 400),
        ({"machine": "i-none"}, 400),
        ({"count": -1}, 400),
        ({"notice_s": "soon"}, 400),
        ({"notice_s": float("nan")}, 400),
        ({"unknown": 1}, 400),
        ([], 400),
    ],
)
async def test_a_preemption_that_makes_no_sense_is_refused(small: SmallLab, body: Any, status: int) -> None:
    assert "message" in await asked(small, "POST", "preempt", body, status)


async def test_only_spot_machines_at_work_are_taken(small: SmallLab) -> None:
    on_demand = small.launch()
    assert "on demand" in (await asked(small, "POST", "preempt", {"machines": [on_demand]}, 409))["message"]
    spot = small.launch(market=Market.SPOT)
    await asked(small, "POST", "preempt", {"machines": [spot, on_demand], "notice_s": 600}, 409)
    await asked(small, "POST", "preempt", {"machines": [spot], "notice_s": 600})
    assert "already" in (await asked(small, "POST", "preempt", {"machines": [spot]}, 409))["message"]


async def test_rules_of_faults_are_added_shown_and_removed(small: SmallLab) -> None:
    rule = await asked(small, "POST", "faults", {"kind": "throttle", "operation": "RunInstances", "for": "1h"})
    (shown,) = (await asked(small, "GET", "faults"))["items"]
    assert (shown["id"], shown["struck"]) == (rule["id"], 0)
    wrong = await asked(small, "POST", "faults", {"kind": "thortle"}, 400)
    assert "throttle" in wrong["details"]["hint"]
    assert (await asked(small, "DELETE", "faults?rule=f-99", status=404))["error"] == "not_found"
    assert await asked(small, "DELETE", "faults") == {"cleared": 1}


async def test_what_is_wrong_with_a_machine_from_its_boot_on_comes_true(small: SmallLab) -> None:
    for kind in ("user-data-fails", "orphan-disk"):
        await asked(small, "POST", "faults", {"kind": kind, "count": 1})
    await asked(small, "POST", "faults", {"kind": "sudden-death", "seconds": 1, "count": 1})
    machine = small.launch("#!/bin/sh\necho never\n")
    await small.until_gone(machine)
    assert "user-data failed" in small.console(machine)
    assert "never" not in small.console(machine)
    assert small.machine(machine).end == "seller"
    assert [disk.machine for disk in small.lab.world.disks(small.lab.account.id, None)] == [None]
    kinds = [note.note.split()[0] for note in small.lab.journal.after(0) if note.what == "fault"]
    assert sorted(kinds) == ["orphan-disk", "sudden-death", "user-data-fails"]
