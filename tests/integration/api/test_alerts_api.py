"""Alerts over HTTP: what is refused, what is shown, who is told; prices, leaks and deadlines that the engine finds."""

import json
import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from crucible.engine.poller import Poller
from crucible.engine.watches import DeadlineWatch, PriceWatch
from crucible.model.account import Membership, Role, Team
from crucible.model.ids import MachineId, OrderId, UserId
from crucible.model.lease import Machine, MachineState
from crucible.model.offer import Market
from crucible.ports.accounts import AuditQuery
from market import a_price, a_table, a_type
from notice_receivers import Receiver, slack_receiver, webhook_receiver

from .conftest import CLOSED, SPEC, ApiSettings, Reply, Server, eventually

SECRET = "sixteen-letters-or-more"


@pytest.fixture(scope="module")
def hook() -> Iterator[Receiver]:
    with webhook_receiver(SECRET) as receiver:
        yield receiver


@pytest.fixture(scope="module")
def chat() -> Iterator[Receiver]:
    with slack_receiver() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def server(hook: Receiver, chat: Receiver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(
        folder=tmp_path_factory.mktemp("server"),
        settings=ApiSettings(version="9.9.9", providers=("fake",)),
        alert_endpoints=(CLOSED, hook.origin, chat.origin),
    )
    running.start()
    running.run(teams(running))
    yield running
    running.stop()


async def teams(server: Server) -> None:
    """alice and bob are in one, carol is in none."""
    store, now = server.deps.store, server.deps.clock.now()
    await server._add_person("carol", Role.MEMBER)
    await store.add_team(Team(name="vision", created_at=now, created_by=UserId("admin")))
    for user, role in (("alice", Role.MANAGER), ("bob", Role.MEMBER)):
        await store.save_member(Membership(team="vision", user_id=UserId(user), role=role, created_at=now))


def channel(server: Server, name: str, address: str, who: str = "alice", **more: Any) -> Reply:
    body = {"name": name, "kind": "webhook", "address": address, **more}
    return server.call("POST", "/v1/alerts/channels", who, json_body=body)


def rule(server: Server, name: str, *channels: str, who: str = "alice", **more: Any) -> Reply:
    body = {"name": name, "channels": list(channels), **more}
    return server.call("POST", "/v1/alerts/rules", who, json_body=body)


def made(reply: Reply) -> Any:
    assert reply.status == 201, reply.text
    return reply.json


@pytest.fixture(scope="module")
def mine(server: Server, hook: Receiver) -> str:
    return str(made(channel(server, "hook", hook.url, secret=SECRET))["id"])


# --- channels -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"address": "https://169.254.169.254/latest"}, "private network"),
        ({"address": "http://example.org/x"}, "plain http"),
        ({"address": "https://example.org:22/x"}, "port"),
        ({"address": "https://2130706433/x"}, "no name of a host"),
        ({"address": "nonsense"}, "no address"),
        ({"secret": "short"}, "16"),
        ({"kind": "email", "address": "ann@example.org"}, "--smtp-url"),
        ({"kind": "slack", "secret": SECRET}, "no secret beside its address"),
        ({"kind": "pigeon"}, "email"),
        ({"team": "speech"}, "managers of the team speech"),
    ],
)
def test_a_channel_that_cannot_be_is_refused_and_nothing_is_kept(server: Server, body: Any, words: str) -> None:
    before = server.call("GET", "/v1/alerts/channels").json
    reply = channel(server, "bad", **{"address": f"{CLOSED}/x", **body})
    assert reply.status in (400, 403, 422) and words in reply.json["message"], reply.text
    assert server.call("GET", "/v1/alerts/channels").json == before


def test_what_is_secret_of_a_channel_is_told_once_and_sealed(server: Server, chat: Receiver) -> None:
    told = made(channel(server, "made-up", f"{CLOSED}/very/secret/path"))
    assert len(told["secret"]) >= 32 and told["to"] == CLOSED
    shown = server.call("GET", "/v1/alerts/channels").text
    assert told["secret"] not in shown and "very/secret/path" not in shown and "sealed" not in shown
    with sqlite3.connect(server.folder / "db") as database:
        stored = str(database.execute("select * from alert_channels").fetchall())
    assert told["secret"] not in stored and "very/secret/path" not in stored
    audit = str(server.run(server.deps.store.audit_lines(AuditQuery(subject=f"alert_channel:{told['id']}"))))
    assert "alert_channel.create" in audit and told["secret"] not in audit


def test_a_name_is_given_once(server: Server) -> None:
    made(channel(server, "twice", f"{CLOSED}/x"))
    assert channel(server, "twice", f"{CLOSED}/x").status == 409
    made(channel(server, "twice", f"{CLOSED}/x", "bob"))


def test_the_test_button_tells_what_the_receiver_said(server: Server, hook: Receiver, mine: str) -> None:
    reply = server.call("POST", f"/v1/alerts/channels/{mine}/test")
    assert reply.status == 200 and hook.messages.wait()[-1]["delivery"] == reply.json["delivery"]
    assert hook.messages.items[-1]["is_test"]
    again = server.call("POST", f"/v1/alerts/channels/{mine}/test")
    assert (again.status, again.json["error"]) == (429, "busy")
    nowhere = made(channel(server, "nowhere", f"{CLOSED}/x"))["id"]
    failed = server.call("POST", f"/v1/alerts/channels/{nowhere}/test")
    assert (failed.status, failed.json["error"]) == (502, "send_failed") and "refused" in failed.json["message"]


def test_a_secret_is_rotated_and_the_last_one_still_signs(server: Server, hook: Receiver) -> None:
    """The receiver knows the old one only."""
    old = made(channel(server, "rotating", hook.url, secret=SECRET))["id"]
    first = server.call("POST", f"/v1/alerts/channels/{old}/rotate").json["secret"]
    assert first != SECRET
    count = len(hook.messages.items)
    assert server.call("POST", f"/v1/alerts/channels/{old}/test").status == 200
    assert len(hook.messages.items) == count + 1
    assert server.call("POST", f"/v1/alerts/channels/{old}/rotate").json["secret"] != first
    slack = made(channel(server, "no-secret", f"{CLOSED}/x", kind="slack"))["id"]
    assert server.call("POST", f"/v1/alerts/channels/{slack}/rotate").status == 409


def test_a_channel_that_a_rule_uses_stays(server: Server) -> None:
    used = made(channel(server, "used", f"{CLOSED}/x"))["id"]
    by = made(rule(server, "uses it", used))["id"]
    refused = server.call("DELETE", f"/v1/alerts/channels/{used}")
    assert refused.status == 409 and "uses it" in refused.json["message"]
    assert server.call("DELETE", f"/v1/alerts/rules/{by}").status == 204
    assert server.call("DELETE", f"/v1/alerts/channels/{used}").status == 204
    assert server.call("DELETE", f"/v1/alerts/channels/{used}").status == 404


# --- rules ----------------------------------------------------------------------------------------------------------


def test_a_rule_is_shown_as_it_was_given_and_changed_field_by_field(server: Server, mine: str) -> None:
    wish = {"gpu": "H100", "provider": "aws", "market": "spot", "below_usd": 2.5, "drop": 0.2}
    quiet = {"start": "22:00", "end": "07:00", "time_zone": "Europe/Berlin", "critical_passes": False}
    scope = {"kind": "job", "name": "train-*"}
    given = {"kinds": ["failure", "price"], "least": "warning", "price": wish, "quiet": quiet, "scope": scope}
    one = made(rule(server, "whole", mine, window_s=60, **given))
    assert {name: one[name] for name in given} == given and one["enabled"] and one["user"] == "alice"
    path = f"/v1/alerts/rules/{one['id']}"
    change = {"quiet": None, "enabled": False, "muted_until": "2030-01-01T00:00:00Z"}
    after = server.call("PATCH", path, json_body=change).json
    assert after == {**one, "quiet": None, "enabled": False, "muted_until": "2030-01-01T00:00:00Z"}
    assert server.call("GET", path).json == after
    assert server.call("PATCH", path, json_body={"muted_until": None}).json["muted_until"] is None
    assert server.call("PATCH", path, json_body={"muted_until": "2030-01-01T00:00:00"}).status == 400


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"channels": []}, 422, "at least 1"),
        ({"channels": ["nobody"]}, 400, "no channel nobody"),
        ({"kinds": ["weather"]}, 422, "kinds"),
        ({"kinds": ["price"]}, 400, "says which"),
        ({"scope": {"kind": "team", "name": "speech"}}, 400, "not in a team speech"),
        ({"scope": {"kind": "job"}}, 400, "with a name"),
        ({"quiet": {"start": "22:00", "end": "25:00"}}, 422, "quiet"),
        ({"quiet": {"start": "22:00", "end": "07:00", "time_zone": "Mars/Base"}}, 400, "no time zone Mars/Base"),
        ({"window_s": -1}, 422, "window_s"),
        ({"colour": "red"}, 422, "colour"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(server: Server, mine: str, body: Any, status: int, words: str) -> None:
    reply = (
        rule(server, "bad", **{"channels": [mine], **body}) if "channels" not in body else bad_channels(server, body)
    )
    assert reply.status == status and words in reply.text, reply.text
    assert "bad" not in [one["name"] for one in server.call("GET", "/v1/alerts/rules").json["items"]]


def bad_channels(server: Server, body: Any) -> Reply:
    return server.call("POST", "/v1/alerts/rules", json_body={"name": "bad", **body})


def test_a_teams_rules_are_seen_by_the_team_and_kept_by_its_managers(server: Server, hook: Receiver) -> None:
    shared = made(channel(server, "of-vision", hook.url, team="vision", secret=SECRET))["id"]
    one = made(rule(server, "of vision", shared, team="vision"))["id"]
    assert one in [each["id"] for each in server.call("GET", "/v1/alerts/rules", "bob").json["items"]]
    assert server.call("DELETE", f"/v1/alerts/rules/{one}", "bob").status == 403
    assert rule(server, "bob's", shared, who="bob", team="vision").status == 403
    assert rule(server, "bob's own", shared, who="bob").status == 400  # not a channel of his
    own = made(channel(server, "own", f"{CLOSED}/x"))["id"]
    assert server.call("GET", f"/v1/alerts/rules/{one}", "bob").status == 200
    assert own not in server.call("GET", "/v1/alerts/channels", "bob").text
    assert server.call("POST", f"/v1/alerts/channels/{own}/test", "bob").status == 404
    assert server.call("DELETE", f"/v1/alerts/rules/{one}").status == 204


# --- from a failure to whom it concerns -----------------------------------------------------------------------------


def failed(server: Server, name: str, who: str = "alice") -> str:
    job_id = server.submit(who, SPEC.replace("tiny", name))
    agent = server.agent(job_id).begin()
    agent.finish(exit_code=3)
    return job_id


def about(receiver: Receiver, name: str) -> list[Any]:
    return [one for one in receiver.messages.items if name in json.dumps(one)]


def test_a_failure_reaches_its_owner_and_nobody_elses_rule(server: Server, hook: Receiver, mine: str) -> None:
    carols = made(channel(server, "carols", hook.url, "carol", secret=SECRET))["id"]
    rules = [made(rule(server, "mine", mine, kinds=["failure"]))["id"]]
    made(rule(server, "carols", carols, who="carol"))
    job_id = failed(server, "unlucky")
    eventually(lambda: about(hook, "unlucky"))
    (told,) = about(hook, "unlucky")
    assert told["delivery"].startswith(mine) and told["notices"][0]["job"] == job_id
    (notice,) = server.call("GET", f"/v1/notices?job={job_id}").json["items"]
    assert notice["kind"] == "failure" and notice["title"] == "unlucky failed"
    path = f"/v1/notices/{notice['seq']}/deliveries"
    (delivery,) = eventually(lambda: [d for d in server.call("GET", path).json["items"] if d["state"] == "sent"])
    assert (delivery["channel"], delivery["tries"], delivery["error"]) == ("hook", 1, None)
    assert server.call("GET", path, "carol").status == 404
    assert server.call("GET", f"/v1/notices?job={job_id}", "carol").json["items"] == []
    assert server.call("GET", f"/v1/notices?job={job_id}&kind=stall").json["items"] == []
    assert server.call("GET", "/v1/notices?kind=weather").status == 400
    for one in rules:
        server.call("DELETE", f"/v1/alerts/rules/{one}")


def test_a_channel_that_refuses_ends_the_message_with_its_reason(server: Server, hook: Receiver) -> None:
    wrong = made(channel(server, "wrong-secret", hook.url, secret="x" * 20))["id"]
    one = made(rule(server, "to the wrong", wrong, kinds=["failure"]))["id"]
    job_id = failed(server, "forlorn")
    (notice,) = server.call("GET", f"/v1/notices?job={job_id}").json["items"]
    path = f"/v1/notices/{notice['seq']}/deliveries"
    (dead,) = eventually(lambda: [d for d in server.call("GET", path).json["items"] if d["state"] == "dead"])
    assert "answered 400" in dead["error"] and dead["tries"] == 1
    server.call("DELETE", f"/v1/alerts/rules/{one}")


# --- what the engine finds ------------------------------------------------------------------------------------------


def test_a_price_that_fell_is_told_once(server: Server, chat: Receiver) -> None:
    place = made(channel(server, "prices", chat.url, kind="slack"))["id"]
    made(rule(server, "cheap", place, kinds=["price"], price={"gpu": "A100", "below_usd": 1.0}))
    context = engine_context(server)

    async def look(price: float) -> None:
        async def table() -> Any:
            return a_table([a_type("p4d")], [a_price("p4d", price * 8, Market.SPOT)])

        await PriceWatch(context, table).look()

    for price in (2.0, 0.9, 0.8):
        server.run(look(price))
    eventually(lambda: about(chat, "A100 at $0.9"))
    found = server.call("GET", "/v1/notices?kind=price").json["items"]
    assert [one["details"]["price_per_gpu_hour_usd"] for one in found] == [0.9]


def test_a_machine_that_nobody_owns_is_told_to_admins(server: Server) -> None:
    context = engine_context(server)
    poller = Poller(context, server.cloud, lambda: None)
    stray = Machine(id=MachineId("i-stray"), order_id=OrderId("nobody"), index=0, state=MachineState.RUNNING)
    for _ in range(3):
        server.run(poller._reap([stray]))
    (found,) = server.call("GET", "/v1/notices?kind=leak", "admin").json["items"]
    assert found["severity"] == "critical" and found["details"]["machine"] == "i-stray"
    assert server.call("GET", "/v1/notices?kind=leak").json["items"] == []


def test_a_deadline_that_has_passed_is_told_once(server: Server) -> None:
    soon = server.deps.clock.now() + timedelta(hours=1)
    limits = f"  constraints: {{deadline: '{soon.isoformat()}'}}\n"
    job_id = server.submit(
        "alice", SPEC.replace("tiny", "tardy").replace("gpus: 1", "gpus: 1, estimated_hours: 0.1") + limits
    )
    context = engine_context(server)
    watch = DeadlineWatch(context)
    server.run(watch.look())
    assert server.call("GET", f"/v1/notices?job={job_id}").json["items"] == []

    class Later:
        def __getattr__(self, name: str) -> Any:
            return getattr(server.deps.clock, name)

        def now(self) -> Any:
            return server.deps.clock.now() + timedelta(hours=2)

    kept, context.clock = context.clock, Later()  # type: ignore[assignment]
    try:
        for _ in range(2):
            server.run(watch.look())
    finally:
        context.clock = kept
    (found,) = server.call("GET", f"/v1/notices?job={job_id}").json["items"]
    assert found["kind"] == "deadline" and found["severity"] == "critical" and "tardy" in found["title"]


def engine_context(server: Server) -> Any:
    assert server.deps.alerts is not None
    return server.deps.alerts._context
