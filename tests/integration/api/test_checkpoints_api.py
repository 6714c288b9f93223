"""Checkpoints over HTTP: slots and candidates for agents, lists, files, checks and removal for people."""

import asyncio
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from crucible.core.checkpoint import manifest_key
from crucible.model.errors import StorageFailed, StorageRefused
from crucible.ports.objects import Signed
from stored import FILES, PIECE, node_manifest, pieces_of, store

from .conftest import SPEC, Agent, Server, eventually

OTHER_FILES = {**FILES, "model.bin": b"\1" * (2 * PIECE + 5)}


@pytest.fixture
def agent(server: Server) -> Agent:
    return server.agent(server.submit()).begin()


@pytest.fixture(autouse=True)
def calm(server: Server) -> Iterator[None]:
    yield
    server.storage.trouble = lambda verb, key: None
    server.storage.buckets = None


def ask(agent: Agent, what: str, **more: Any) -> Any:
    body = {"attempt_id": agent.launch["attempt_id"], **more}
    return agent.server.call("POST", f"/agent/v1/storage/{what}", agent.key, json_body=body)


def slot(agent: Agent, **more: Any) -> dict[str, Any]:
    reply = ask(agent, "slot", rank=0, **more)
    assert reply.status == 200, reply.text
    return dict(reply.json)


def signed(said: Mapping[str, Any]) -> Signed:
    return Signed(said["method"], said["url"], said["headers"])


def save(agent: Agent, step: int, files: Mapping[str, bytes] = FILES, *, shard: int = 0, shards: int = 1) -> Any:
    """As an agent does: with the requests of a slot alone, and then a report."""
    got = slot(agent, count=16)
    requests = {f"parts/{got['slot']}/{n:05d}": signed(part) for n, part in enumerate(got["parts"])}
    requests[manifest_key(got["slot"])] = signed(got["manifest"])
    job_id, number = agent.launch["job_id"], agent.launch["number"]
    node = node_manifest(step, files, job_id=job_id, attempt=number, shard=shard, shards=shards)
    data = store(lambda key, body: agent.server.storage.send(requests[key], body) and None, got["slot"], node, files)
    return {"slot": got["slot"], "prefix": got["prefix"], "data": data, "node": node}


def told(agent: Agent, step: int, made: Any, **more: Any) -> dict[str, Any]:
    return {
        "attempt_id": agent.launch["attempt_id"],
        "rank": 0,
        "step": step,
        "uri": f"{made['prefix']}/{manifest_key(made['slot'])}",
        "size_bytes": made["node"].size_bytes,
        "manifest_sha256": hashlib.sha256(made["data"]).hexdigest(),
        "at_ms": 1,
        "slot": made["slot"],
        **more,
    }


def carried(agent: Agent, step: int, files: Mapping[str, bytes] = FILES) -> Any:
    made = save(agent, step, files)
    agent.report(checkpoints=[told(agent, step, made)])
    return made


def listed(agent: Agent, token: str = "alice") -> list[dict[str, Any]]:
    reply = agent.server.call("GET", f"/v1/jobs/{agent.launch['job_id']}/checkpoints", token)
    assert reply.status == 200, reply.text
    return list(reply.json["items"])


def one(agent: Agent, step: int, rest: str = "", method: str = "GET") -> Any:
    return agent.server.call(method, f"/v1/jobs/{agent.launch['job_id']}/checkpoints/{step}{rest}")


def resumed(agent: Agent) -> Agent:
    """The same lineage, one job later."""
    agent.finish(1)
    reply = agent.server.call("POST", f"/v1/jobs/{agent.launch['job_id']}/resume")
    assert reply.status == 201, reply.text
    return agent.server.agent(reply.json["id"]).begin()


# --- slots -----------------------------------------------------------------------------------------------


def test_machines_that_share_no_files_carry_and_are_told_where(agent: Agent) -> None:
    assert agent.launch["carries_checkpoints"] is True
    got = slot(agent, count=3)
    assert got["prefix"] == agent.launch["checkpoints"] == f"s3://kept/checkpoints/{agent.launch['job_id']}/0"
    assert got["slot"].startswith("00000-00000-") and len(got["parts"]) == 3 and got["lives_s"] == 3600
    assert {got[name]["method"] for name in ("manifest", "result")} == {"PUT"}


def test_a_slot_is_signed_anew_with_more_parts_under_the_same_name(agent: Agent) -> None:
    first = slot(agent, count=0)
    more = slot(agent, slot=first["slot"], first=16, count=2)
    assert more["slot"] == first["slot"] and first["parts"] == []
    agent.server.storage.send(signed(more["parts"][1]), b"x")
    (key,) = [key for key in agent.server.storage.kept["s3", "", "kept"] if first["slot"] in key]
    assert key.endswith(f"parts/{first['slot']}/00017")


@pytest.mark.parametrize(
    ("wish", "status"),
    [
        ({"rank": 1}, 403),
        ({"rank": 0, "slot": "00000-00000-0123456789abcdef"}, 403),
        ({"rank": 0, "slot": "../../x"}, 422),
        ({"rank": 0, "attempt_id": "attempt-of-nobody"}, 403),
        ({"rank": 0, "count": 4097}, 422),
        ({"rank": 0, "count": -1}, 422),
        ({"rank": 0, "first": 100_000}, 422),
        ({}, 422),
    ],
)
def test_a_slot_is_for_one_s_own_rank_and_bounded(agent: Agent, wish: dict[str, Any], status: int) -> None:
    before = dict(agent.server.storage.rights)
    reply = ask(agent, "slot", **wish)
    assert reply.status == status, reply.text
    assert agent.server.storage.rights == before


def test_a_slot_of_another_attempt_is_refused(agent: Agent, server: Server) -> None:
    other = server.agent(server.submit()).begin()
    assert ask(agent, "slot", rank=0, slot=slot(other)["slot"]).status == 403
    assert ask(agent, "slot", rank=0, attempt_id=other.launch["attempt_id"]).status == 403


def test_an_attempt_that_is_over_gets_no_more_signatures(agent: Agent) -> None:
    agent.finish()
    assert ask(agent, "slot", rank=0).status in (403, 410)
    assert ask(agent, "candidate").status in (403, 410)


def test_storage_that_refuses_or_fails_is_said_to_the_agent(agent: Agent) -> None:
    def refuse(verb: str, key: str) -> None:
        raise StorageRefused("there is no bucket kept; make it")

    def fail(verb: str, key: str) -> None:
        raise StorageFailed("storage is away; try again")

    agent.server.storage.trouble = refuse
    assert (ask(agent, "slot", rank=0).status, ask(agent, "candidate").status) == (424, 424)
    agent.server.storage.trouble = fail
    assert (ask(agent, "slot", rank=0).status, ask(agent, "candidate").status) == (507, 507)


# --- reports -----------------------------------------------------------------------------------------------


def test_a_carried_checkpoint_is_recorded_once_and_listed_with_where_it_is(agent: Agent) -> None:
    made = carried(agent, 10)
    agent.report(checkpoints=[told(agent, 10, made)])
    (row,) = listed(agent)
    assert (row["step"], row["shards"], row["attempt"], row["kept_in"], row["is_latest"]) == (10, 1, 0, "storage", True)
    assert row["uri"].endswith(f"/manifests/{made['slot']}.json") and row["metadata"] == {}
    assert row["attempt_id"] == agent.launch["attempt_id"]
    assert row["size_bytes"] == sum(len(content) for content in FILES.values())


@pytest.mark.parametrize(
    "lie",
    [
        {"uri": "s3://elsewhere/manifests/00000-00000-0123456789abcdef.json"},
        {"slot": "00000-00000-0123456789abcdef"},
        {"rank": 3},
        {"shard": 2, "shards": 2},
    ],
)
def test_a_wrong_claim_is_refused_and_nothing_is_recorded(agent: Agent, lie: dict[str, Any]) -> None:
    got = slot(agent)
    made = {**got, "data": b"x", "node": node_manifest(10)}
    report = {"boot_id": "b", "checkpoints": [told(agent, 10, made, **lie)]}
    reply = agent.server.call("POST", "/agent/v1/report", agent.key, json_body=report)
    assert (reply.status, reply.json["error"]) == (403, "forbidden")
    assert listed(agent) == []


def test_shards_count_when_all_are_there(agent: Agent) -> None:
    first = save(agent, 20, shard=0, shards=2)
    agent.report(checkpoints=[told(agent, 20, first, shards=2)])
    assert listed(agent) == []
    second = save(agent, 20, shard=1, shards=2)
    agent.report(checkpoints=[told(agent, 20, second, shard=1, shards=2)])
    (row,) = listed(agent)
    assert (row["shards"], row["size_bytes"]) == (2, 2 * first["node"].size_bytes)
    assert row["uri"].endswith(f"/manifests/{first['slot']}.json")


def test_what_is_whole_in_storage_and_was_never_reported_is_listed_and_then_recorded(agent: Agent) -> None:
    save(agent, 5)
    (row,) = listed(agent)
    assert (row["step"], row["attempt_id"], row["attempt"]) == (5, None, 0)
    carried(agent, 6)  # news makes the server look
    rows = eventually(lambda: [row for row in listed(agent) if row["step"] == 5 and row["attempt_id"]])
    assert rows[0]["metadata"] == {"loss": 0.5}


def test_only_the_newest_few_are_kept_with_what_they_refer_to(agent: Agent) -> None:
    for step in range(1, 7):
        carried(agent, step)
    eventually(lambda: [row["step"] for row in listed(agent)] == [4, 5, 6])
    held = agent.server.storage.kept["s3", "", "kept"]
    slots = {key.split("/")[4].removesuffix(".json") for key in held if agent.launch["job_id"] in key}
    assert len(slots) == 3


# --- what to resume from --------------------------------------------------------------------------------------


def candidate(agent: Agent, skip: int = 0) -> Any:
    reply = ask(agent, "candidate", skip=skip)
    assert reply.status == 200, reply.text
    return reply.json["candidate"]


def test_the_newest_is_offered_first_then_the_next_older_and_then_nothing(agent: Agent) -> None:
    made = {step: carried(agent, step, OTHER_FILES if step == 2 else FILES) for step in (1, 2)}
    later = resumed(agent)
    first, second = candidate(later), candidate(later, 1)
    assert (first["step"], second["step"], candidate(later, 2)) == (2, 1, None)
    (shard,) = first["shards"]
    assert shard["manifest"].encode() == made[2]["data"] and shard["slot"] == made[2]["slot"]
    fetched = [agent.server.storage.send(signed(one)) for one in shard["objects"]]
    assert fetched == [piece for content in OTHER_FILES.values() for piece in pieces_of(content)]


def test_nothing_saved_is_nothing_to_resume_from_and_one_s_own_saves_are_not_offered(agent: Agent) -> None:
    assert candidate(agent) is None
    carried(agent, 1)
    assert candidate(agent) is None


def test_shards_of_two_attempts_and_broken_manifests_are_never_offered(agent: Agent) -> None:
    carried(agent, 1)
    save(agent, 9, shard=0, shards=2)
    bad = carried(agent, 8)
    held = agent.server.storage.kept["s3", "", "kept"]
    key = next(key for key in held if key.endswith(manifest_key(bad["slot"])))
    later = resumed(agent)
    agent.server.storage.keep(("s3", "", "kept"), key, bad["data"][:-9])
    save(later, 9, shard=1, shards=2)
    last = resumed(later)
    assert candidate(last)["step"] == 1 and candidate(last, 1) is None


def test_a_manifest_that_is_too_large_is_not_even_read(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    carried(agent, 1)
    made = carried(agent, 2)
    monkeypatch.setattr("crucible.engine.stored.MAX_STORED_BYTES", len(made["data"]) - 1)
    later = resumed(agent)
    assert candidate(later) is None


# --- for people ----------------------------------------------------------------------------------------------


def test_the_files_are_named_with_addresses_of_all_their_pieces(agent: Agent) -> None:
    carried(agent, 3)
    said = one(agent, 3, "/files").json
    assert [(file["name"], file["size"]) for file in said["files"]] == [(k, len(v)) for k, v in FILES.items()]
    built = {n: bytearray(file["size"]) for n, file in enumerate(said["files"])}
    for held in said["objects"]:
        body = agent.server.storage.send(Signed("GET", held["url"], held["headers"]))
        at = 0
        for piece in held["holds"]:
            built[piece["file"]][piece["offset"] : piece["offset"] + piece["size"]] = body[at : at + piece["size"]]
            at += piece["size"]
    assert [bytes(content) for content in built.values()] == list(FILES.values())


def verified(agent: Agent, step: int) -> Any:
    reply = one(agent, step, "/verify", "POST")
    assert reply.status == 200, reply.text
    lines = [json.loads(line) for line in reply.body.splitlines()]
    sizes = [line["checked_bytes"] for line in lines]
    assert sizes == sorted(sizes)
    return lines[-1]


def broken(agent: Agent, slot_name: str, body: bytes | None) -> None:
    held = agent.server.storage.kept["s3", "", "kept"]
    key = next(key for key in held if f"parts/{slot_name}/00000" in key)
    if body is None:
        del held[key]
    else:
        agent.server.storage.keep(("s3", "", "kept"), key, body)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"\0" * PIECE, "has other content"),
        (bytes(range(256)) * 4095, "is shorter"),
        (pieces_of(FILES["model.bin"])[0] + b"x", "is longer"),
        (None, "there is no"),
    ],
)
def test_every_byte_is_checked(agent: Agent, body: bytes | None, words: str) -> None:
    made = carried(agent, 4)
    good = verified(agent, 4)
    assert (good["is_valid"], good["problems"]) == (True, [])
    assert good["checked_bytes"] == good["size_bytes"] == made["node"].size_bytes
    broken(agent, made["slot"], body)
    bad = verified(agent, 4)
    assert bad["is_valid"] is False and words in bad["problems"][0]


def test_storage_that_fails_during_a_check_is_an_error_and_no_verdict(agent: Agent) -> None:
    carried(agent, 4)

    def fail(verb: str, key: str) -> None:
        if verb == "get" and "parts/" in key:
            raise StorageFailed("storage is away; try again")

    agent.server.storage.trouble = fail
    last = verified(agent, 4)
    assert "is_valid" not in last and (last["error"], last["message"]) == (
        "storage_failed",
        "storage is away; try again",
    )


def test_an_old_one_can_be_removed_and_the_last_two_of_a_live_job_cannot(agent: Agent) -> None:
    made = {step: carried(agent, step) for step in (1, 2, 3)}
    for step in (2, 3):
        reply = one(agent, step, method="DELETE")
        assert (reply.status, reply.json["error"]) == (409, "conflict")
    assert one(agent, 1, method="DELETE").json == {"removed": 1}
    assert [row["step"] for row in listed(agent)] == [2, 3]
    assert not [key for key in agent.server.storage.kept["s3", "", "kept"] if made[1]["slot"] in key]
    assert one(agent, 1, method="DELETE").status == 404
    later = resumed(agent)
    assert one(agent, 3, method="DELETE").status == 409  # the job that goes on from it is alive
    later.finish()
    assert one(agent, 3, method="DELETE").status == 200
    assert [row["step"] for row in listed(agent)] == [2]


def test_what_is_not_there_is_not_found_and_a_step_is_a_number(agent: Agent) -> None:
    for method, rest in (("GET", "/files"), ("POST", "/verify"), ("DELETE", "")):
        reply = one(agent, 77, rest, method)
        assert reply.status == 404 and "step 77" in reply.json["message"]
        assert agent.server.call(method, f"/v1/jobs/{agent.launch['job_id']}/checkpoints/x{rest}").status == 400


def test_a_resumed_job_shows_what_its_ancestors_saved(agent: Agent) -> None:
    carried(agent, 1)
    later = resumed(agent)
    carried(later, 2)
    assert [(row["step"], row["is_latest"]) for row in listed(later)] == [(1, False), (2, True)]


# --- at submit -----------------------------------------------------------------------------------------------


def refused(server: Server, place: str) -> Any:
    spec = SPEC + f"  checkpoint: {{dir: '{place}'}}\n"
    reply = server.call("POST", "/v1/jobs", json_body={"spec_yaml": spec})
    assert reply.status >= 400, reply.text
    return reply


def test_a_bucket_that_is_not_there_is_refused_at_submit_with_the_field(server: Server) -> None:
    server.storage.buckets = frozenset({"kept"})
    before = len(server.call("GET", "/v1/jobs?limit=200").json["items"])
    reply = refused(server, "s3://missing/x")
    assert (reply.status, reply.json["error"]) == (424, "storage_refused")
    assert reply.json["details"]["field"] == "job.checkpoint.dir" and "no bucket missing" in reply.json["message"]
    assert len(server.call("GET", "/v1/jobs?limit=200").json["items"]) == before


def test_a_place_of_one_s_own_is_used_as_it_is(server: Server) -> None:
    agent = server.agent(server.submit(spec=SPEC + "  checkpoint: {dir: 's3://mine/runs'}\n")).begin()
    assert (agent.launch["checkpoints"], agent.launch["carries_checkpoints"]) == ("s3://mine/runs/0", True)
    carried(agent, 1)
    assert [row["uri"].split("/manifests/")[0] for row in listed(agent)] == ["s3://mine/runs/0"]


def test_a_folder_of_one_s_own_stays_a_folder(server: Server) -> None:
    agent = server.agent(server.submit(spec=SPEC + "  checkpoint: {dir: /mnt/runs}\n")).begin()
    assert (agent.launch["checkpoints"], agent.launch["carries_checkpoints"]) == ("/mnt/runs/0", False)


def test_storage_that_stands_still_does_not_keep_a_submit_waiting(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crucible.engine.checkpoint_place.LOOK_S", 0.05)

    async def hang(context: Any, address: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("crucible.engine.checkpoint_place._look", hang)
    reply = refused(server, "s3://kept/x")
    assert (reply.status, reply.json["details"]["field"]) == (507, "job.checkpoint.dir")


# --- last words ------------------------------------------------------------------------------------------------


def leave_word(agent: Agent, **words: Any) -> None:
    attempt = {"attempt_id": agent.launch["attempt_id"], "generation": agent.launch["generation"], "rank": 0}
    body = json.dumps({**attempt, "state": "exited", **words}).encode()
    agent.server.storage.send(signed(slot(agent)["result"]), body)


def status(agent: Agent) -> str:
    return str(agent.server.call("GET", f"/v1/jobs/{agent.launch['job_id']}").json["status"])


def test_a_success_that_nobody_heard_of_is_not_run_again(agent: Agent) -> None:
    leave_word(agent, exit_code=0)
    agent.server.loop.call_soon_threadsafe(agent.server.cloud.end, agent.machine.id, "died")
    eventually(lambda: status(agent) == "completed", 90)


def test_a_failure_that_nobody_heard_of_counts_as_one(agent: Agent) -> None:
    leave_word(agent, exit_code=3, last_lines=["boom"])
    agent.server.loop.call_soon_threadsafe(agent.server.cloud.end, agent.machine.id, "died")
    eventually(lambda: status(agent) == "failed", 90)
    assert "boom" in agent.server.call("GET", f"/v1/jobs/{agent.launch['job_id']}").json["reason"]
