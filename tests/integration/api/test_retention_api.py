"""Keeping and forgetting over HTTP."""

import io
import json
import tarfile
from datetime import timedelta
from typing import Any

import pytest

from crucible.engine.people import digest_of
from crucible.model.ids import TaskId
from crucible.model.retention import Kept
from crucible.ports.streams import LogLine

from .conftest import Server


def ended(server: Server, token: str = "alice") -> str:
    agent = server.agent(server.submit(token)).begin()
    line = LogLine(attempt=1, rank=0, n=0, at_ms=0, stream="out", text="hello")
    server.run(server.append(agent.launch, [line]))
    agent.finish()
    return str(agent.launch["job_id"])


def kinds(server: Server) -> dict[str, Any]:
    return {one["what"]: one for one in server.call("GET", "/v1/retention", "admin").json["items"]}


def test_an_admin_sees_and_sets_how_long_things_are_kept(server: Server) -> None:
    assert kinds(server)["logs"] == {"what": "logs", "days": 90, "set_by": "default", "ran_at": None, "removed": 0}
    said = server.call("PUT", "/v1/retention/logs", "admin", json_body={"age": "30d"})
    assert (said.status, said.json["days"], said.json["set_by"]) == (200, 30, "admin")
    assert server.call("PUT", "/v1/retention/logs", "admin", json_body={"age": "never"}).json["days"] is None
    lines = server.call("GET", "/v1/audit", "admin").json["items"]
    assert [line["action"] for line in lines[:2]] == ["retention.set"] * 2 and lines[1]["details"] == {"days": 30}
    server.call("PUT", "/v1/retention/logs", "admin", json_body={"age": "default"})
    assert kinds(server)["logs"]["days"] == 90


@pytest.mark.parametrize(
    ("what", "age", "words"),
    [("logs", "soon", "is no age"), ("logs", "0d", "is no age"), ("postings", "1y", "money is kept for ever")],
)
def test_what_cannot_be_kept_so_is_refused_and_changes_nothing(server: Server, what: str, age: str, words: str) -> None:
    before = kinds(server)
    said = server.call("PUT", f"/v1/retention/{what}", "admin", json_body={"age": age})
    assert said.status == 400 and words in said.json["message"]
    assert kinds(server) == before


def test_a_run_of_a_young_server_finds_nothing(server: Server) -> None:
    job = ended(server)
    due = server.call("POST", "/v1/retention/run", "admin", json_body={"dry_run": True}).json
    assert due["is_done"] and not any(due["removed"].values())
    done = server.call("POST", "/v1/retention/run", "admin", json_body={}).json
    assert done["is_done"] and not any(done["removed"].values())
    assert kinds(server)["jobs"]["ran_at"] is not None
    assert server.call("GET", f"/v1/jobs/{job}").status == 200


def test_a_job_is_kept_and_let_go(server: Server) -> None:
    job = ended(server)
    assert server.call("PUT", f"/v1/jobs/{job}/keep", "bob").status == 404
    assert server.call("PUT", f"/v1/jobs/{job}/keep").json == {"id": job, "kept": True}
    assert [one["id"] for one in server.call("GET", "/v1/kept").json["items"]] == [job]
    assert server.call("GET", "/v1/kept", "bob").json["items"] == []
    assert server.call("DELETE", f"/v1/jobs/{job}/keep").json == {"id": job, "kept": False}
    assert server.call("GET", "/v1/kept").json["items"] == []


def test_everybody_has_what_is_stored_about_them_and_nobody_elses(server: Server) -> None:
    job = ended(server)
    assert server.call("GET", "/v1/users/alice/export", "bob").status == 404
    reply = server.call("GET", "/v1/users/alice/export?logs=true")
    assert (reply.status, reply.headers["Content-Type"]) == (200, "application/x-tar")
    assert server.tokens["alice"] not in reply.text and digest_of(server.tokens["alice"]) not in reply.text
    with tarfile.open(fileobj=io.BytesIO(reply.body)) as archive:
        rows = {
            name: [json.loads(line) for line in (archive.extractfile(name) or io.BytesIO()).read().splitlines()]
            for name in archive.getnames()
        }
    assert [one["name"] for one in rows["users/000001.jsonl"]] == ["alice"]
    assert job in [one["id"] for one in rows["jobs/000001.jsonl"]]
    logs = [line for name, lines in rows.items() if name.startswith("log/") for line in lines]
    assert "hello" in [line["text"] for line in logs]


def test_a_person_is_forgotten_with_all_they_left(server: Server) -> None:
    token = server.call("POST", "/v1/users", "admin", json_body={"name": "carol", "role": "member"})
    assert token.status == 201, token.text
    secret = server.call("POST", "/v1/tokens", "admin", json_body={"name": "t", "user": "carol"}).json["token"]
    job = ended(server, secret)
    task = server.run(server.deps.store.job_tasks(job))[0].id  # type: ignore[arg-type]
    waiting = server.submit(secret, spec="job: {name: big, command: [ls], resources: {gpus: 1}}")
    said = server.call("DELETE", "/v1/users/carol", "admin")
    assert said.status == 409 and waiting in said.json["message"]
    agent = server.agent(waiting).begin()
    agent.finish()
    done = server.call("DELETE", "/v1/users/carol", "admin").json
    assert done["is_done"] and done["pseudonym"].startswith("deleted-user-")
    assert server.call("DELETE", "/v1/users/carol", "admin").status == 404
    assert (
        server.call("GET", "/v1/me", secret).status == 401 or server.call("GET", "/v1/jobs", secret).json["items"] == []
    )
    assert server.call("GET", f"/v1/jobs/{job}", "admin").status == 404
    assert server.run(server.deps.streams.log_size(TaskId(task))) == 0
    users = [one["name"] for one in server.call("GET", "/v1/users", "admin").json["items"]]
    assert "carol" not in users and done["pseudonym"] in users


def test_nobody_deletes_themselves(server: Server) -> None:
    said = server.call("DELETE", "/v1/users/admin", "admin")
    assert said.status == 409 and "another admin" in said.json["message"]


def test_whoever_asks_for_logs_that_are_gone_hears_so(server: Server) -> None:
    job = ended(server)
    assert "hello" in server.call("GET", f"/v1/jobs/{job}/logs").text

    async def forget() -> None:
        store, now = server.deps.store, server.deps.clock.now()
        claim = await store.claim("retention", "test", timedelta(minutes=1))
        assert claim is not None
        await store.mark_old(Kept.LOGS, now, now, 10, claim=claim)
        await store.release(claim)
        await server.deps.retention.pass_once()

    server.run(forget())
    reply = server.call("GET", f"/v1/jobs/{job}/logs")
    assert reply.status == 409 and "were removed on" in reply.json["message"]
    assert server.call("GET", f"/v1/jobs/{job}").status == 200
