"""Work on many items over real HTTP: items are found at submit, workers lease and commit, people read what came of it.
Storage is a fake that signs for itself."""

import gzip
import hashlib
import http.client
import io
import json
import tarfile
from collections.abc import Mapping
from typing import Any

import pytest

from crucible.core.datasets import manifest_key, object_key
from crucible.model import dataset_tree
from crucible.model.dataset_tree import Entry
from crucible.model.storage import parse
from crucible.ports.objects import Signed

from .conftest import Agent, Reply, Server, eventually

SPEC = """\
job:
  type: inference
  name: many
  command: [echo, hi]
  resources: {{gpus: 1}}
  retry: {{limit: 3, delay: 1s}}
  shards: {shards}
"""


def submitted(server: Server, shards: str, **more: Any) -> Reply:
    return server.call("POST", "/v1/jobs", json_body={"spec_yaml": SPEC.format(shards=shards), **more})


class Worker:
    """What `crucible.train` says for a program."""

    def __init__(self, server: Server, agent: Agent) -> None:
        self.server = server
        self.agent = agent
        self.questions = 0

    def ask(self, what: str, said: Mapping[str, Any], token: str | None = None) -> Reply:
        return self.server.call("POST", f"/worker/v1/shards/{what}", token or self.agent.token, json_body=dict(said))

    def question(self) -> str:
        return hashlib.md5(f"{self.agent.token}/{self.questions}".encode(), usedforsecurity=False).hexdigest()

    def lease(self) -> Any:
        reply = self.ask("lease", {"asked": self.question()})
        assert reply.status == 200, reply.text
        self.questions += 1
        return reply.json

    def put(self, signed: Mapping[str, Any], body: bytes) -> None:
        self.server.storage.send(Signed("PUT", signed["url"], signed["headers"]), body)

    def commit(self, shard: Mapping[str, Any], output: bytes, **more: Any) -> Reply:
        if output:
            self.put(shard["parts"][0], output)
        said = {"number": shard["number"], "fence": shard["fence"], "size": len(output), "seconds": 1.0}
        return self.ask("commit", {**said, "sha256": hashlib.sha256(output).hexdigest(), **more})


def worker_of(server: Server, job_id: str) -> Worker:
    return Worker(server, server.agent(job_id).begin())


def read(server: Server, job_id: str, what: str) -> bytes:
    reply = server.call("GET", f"/v1/jobs/{job_id}/{what}")
    assert reply.status == 200, reply.text
    return reply.body


# --- the life of a job ------------------------------------------------------------------------------------------


def test_a_worker_leases_commits_and_is_told_when_all_is_done(server: Server) -> None:
    job_id = submitted(server, "{count: 5, size: 2, workers: 1}").json["id"]
    worker = worker_of(server, job_id)
    assert worker.agent.launch["env"]["CRUCIBLE_SHARDS"] == "1"
    assert worker.agent.launch["argv"] == ["python", "-m", "crucible.train.shard_command", "--", "echo", "hi"]
    for number, (first, items) in enumerate([(0, 2), (2, 2), (4, 1)]):
        shard = worker.lease()["shard"]
        assert (shard["number"], shard["first"], shard["items"], shard["fence"]) == (number, first, items, 1)
        assert shard["source"]["kind"] == "numbers"
        assert worker.commit(shard, f"{number}\n".encode()).json == {"verdict": "accepted"}
    assert worker.lease() == {"shard": None, "wait_s": None, "reason": "every item is done"}
    worker.agent.finish()
    assert read(server, job_id, "results") == b"0\n1\n2\n"
    view = server.call("GET", f"/v1/jobs/{job_id}").json
    counts = view["shards"]
    assert (counts["items"], counts["items_done"], counts["done"], counts["fraction"]) == (5, 5, 3, 1.0)
    assert counts["eta_s"] is None and counts["items_per_s"] > 0
    shards = server.call("GET", f"/v1/jobs/{job_id}/shards?limit=2").json
    assert [one["state"] for one in shards["items"]] == ["done", "done"] and shards["next_after"] == 1
    assert server.call("GET", f"/v1/jobs/{job_id}/shards?after=1&state=done").json["items"][0]["number"] == 2


def test_an_answer_that_was_lost_is_given_again(server: Server) -> None:
    worker = worker_of(server, submitted(server, "{count: 2, workers: 1}").json["id"])
    question = {"asked": worker.question()}
    first, again = worker.ask("lease", question).json["shard"], worker.ask("lease", question).json["shard"]
    assert (first["number"], first["fence"]) == (again["number"], again["fence"]) == (0, 1)
    assert worker.commit(first, b"x").json["verdict"] == "accepted"
    assert worker.commit(first, b"x").json["verdict"] == "repeated"
    worker.agent.report(state="exited", exit_code=1)


def test_nothing_is_committed_that_has_not_arrived(server: Server) -> None:
    worker = worker_of(server, submitted(server, "{count: 1, workers: 1}").json["id"])
    shard = worker.lease()["shard"]
    said = {"number": 0, "fence": 1, "size": 3, "sha256": "0" * 64}
    reply = worker.ask("commit", said)
    assert (reply.status, reply.json["error"]) == (409, "conflict") and "has not arrived" in reply.json["message"]
    worker.put(shard["parts"][0], b"four")
    assert worker.ask("commit", said).status == 409
    assert worker.commit(shard, b"abc").json["verdict"] == "accepted"
    worker.agent.finish()


def test_a_lease_that_was_never_given_cannot_be_committed_or_read(server: Server) -> None:
    worker = worker_of(server, submitted(server, "{count: 2, workers: 1}").json["id"])
    worker.lease()
    for number, fence in ((0, 2), (1, 1)):
        assert worker.ask("commit", {"number": number, "fence": fence}).json["verdict"] == "foreign"
    assert worker.ask("commit", {"number": 9, "fence": 1}).status == 410
    assert worker.ask("commit", {"number": -1, "fence": 1}).status == 422
    assert worker.ask("lease", {"asked": "nonsense"}).status == 422
    assert worker.ask("lease", {"asked": worker.question()}, token="alice").status == 401
    worker.agent.report(state="exited", exit_code=1)


def test_a_renewal_says_whether_a_shard_is_wanted_and_signs_more_parts(server: Server) -> None:
    worker = worker_of(server, submitted(server, "{count: 1, workers: 1}").json["id"])
    shard = worker.lease()["shard"]
    said = worker.ask("renew", {"number": 0, "fence": 1, "parts": 3}).json
    assert said["is_wanted"] and len(said["parts"]) == 3
    assert len({one["url"] for one in said["parts"]}) == 3
    worker.commit(shard, b"")
    assert worker.ask("renew", {"number": 0, "fence": 1}).json["is_wanted"] is False
    worker.agent.finish()


def test_items_that_failed_are_told_without_failing_the_rest(server: Server) -> None:
    job_id = submitted(server, "{items: [a, b, c], size: 2, workers: 1, max_errors: 2}").json["id"]
    worker = worker_of(server, job_id)
    first = worker.lease()["shard"]
    error = {"index": 1, "item": "b", "reason": "blurred"}
    worker.put(first["errors"], json.dumps(error).encode() + b"\n")
    assert worker.commit(first, b"A\n", failed=1, errors=[error]).json["verdict"] == "accepted"
    second = worker.lease()["shard"]
    assert worker.ask("commit", {"number": 1, "fence": 1, "reason": "exit code 1"}).json["verdict"] == "accepted"
    assert second["items"] == 1
    worker.agent.finish()
    assert read(server, job_id, "results") == b"A\n"
    errors = [json.loads(line) for line in read(server, job_id, "errors").splitlines()]
    assert errors == [error, {"index": 2, "item": "c", "reason": "exit code 1"}]
    counts = server.call("GET", f"/v1/jobs/{job_id}").json["shards"]
    assert (counts["items_failed"], counts["first_error"]) == (2, "blurred")


def test_too_many_failed_items_fail_the_job_and_end_the_work(server: Server) -> None:
    job_id = submitted(server, "{count: 10, size: 2, workers: 1, max_errors: 1}").json["id"]
    worker = worker_of(server, job_id)
    shard = worker.lease()["shard"]
    other = worker.lease()["shard"]
    assert worker.ask("commit", {"number": shard["number"], "fence": 1, "reason": "no GPU"}).status == 200
    over = worker.lease()
    assert over["shard"] is None and "2 items failed and max_errors is 1" in over["reason"]
    assert worker.ask("renew", {"number": other["number"], "fence": 1}).json["is_wanted"] is False
    worker.agent.report(state="exited", exit_code=0)
    view = eventually(lambda: ended(server, job_id))
    assert view["status"] == "failed" and "no GPU" in view["reason"]


def ended(server: Server, job_id: str) -> Any:
    view = server.call("GET", f"/v1/jobs/{job_id}").json
    return view if view["status"] in ("completed", "failed", "cancelled") else None


def test_workers_that_end_early_leave_a_job_that_failed(server: Server) -> None:
    job_id = submitted(server, "{count: 2, workers: 1}").json["id"]
    worker = worker_of(server, job_id)
    worker.commit(worker.lease()["shard"], b"x")
    worker.agent.report(state="exited", exit_code=0)
    view = eventually(lambda: ended(server, job_id))
    assert (view["status"], view["reason"]) == ("failed", "its workers ended and left 1 of 2 items undone")


def test_a_cancelled_job_is_cancelled_and_keeps_what_was_committed(server: Server) -> None:
    job_id = submitted(server, "{count: 2, workers: 1}").json["id"]
    worker = worker_of(server, job_id)
    worker.commit(worker.lease()["shard"], b"x")
    server.call("POST", f"/v1/jobs/{job_id}/cancel")
    worker.agent.report(state="exited", exit_code=0)
    assert eventually(lambda: ended(server, job_id))["status"] == "cancelled"
    assert read(server, job_id, "results") == b"x"


def test_an_attempt_that_is_over_is_told_so(server: Server) -> None:
    worker = worker_of(server, submitted(server, "{count: 1, workers: 1}").json["id"])
    shard = worker.lease()["shard"]
    worker.commit(shard, b"")
    worker.agent.finish()
    assert worker.ask("lease", {"asked": worker.question()}).status in (404, 410)


def test_a_job_that_goes_on_repeats_nothing_but_what_failed(server: Server) -> None:
    job_id = submitted(server, "{items: [a, b, c], workers: 1, size: 1}").json["id"]
    worker = worker_of(server, job_id)
    worker.commit(worker.lease()["shard"], b"A\n")
    shard = worker.lease()["shard"]
    worker.ask("commit", {"number": shard["number"], "fence": 1, "reason": "no"})
    worker.agent.report(state="exited", exit_code=0)
    assert eventually(lambda: ended(server, job_id))["status"] == "failed"
    again = server.call("POST", f"/v1/jobs/{job_id}/resume").json["id"]
    worker = worker_of(server, again)
    for text in (b"B\n", b"C\n"):
        shard = worker.lease()["shard"]
        assert shard["source"]["list"] is not None
        worker.commit(shard, text)
    worker.agent.finish()
    assert read(server, again, "results") == b"A\nB\nC\n"
    assert read(server, job_id, "results") == b"A\n"
    reply = server.call("POST", f"/v1/jobs/{again}/resume")
    assert reply.status == 409 and "every item" in reply.json["message"]


def test_a_job_without_items_has_no_shards_to_ask_for(server: Server) -> None:
    agent = server.agent(server.submit()).begin()
    reply = Worker(server, agent).ask("lease", {"asked": "0" * 32})
    assert (reply.status, reply.json["error"]) == (409, "conflict")
    for what in ("shards", "results", "errors"):
        assert server.call("GET", f"/v1/jobs/{agent.launch['job_id']}/{what}").status == 409
    assert server.call("GET", f"/v1/jobs/{agent.launch['job_id']}").json["shards"] is None
    agent.finish()


def test_what_nobody_committed_is_removed_when_the_job_is_over(server: Server) -> None:
    job_id = submitted(server, "{count: 2, workers: 1}").json["id"]
    worker = worker_of(server, job_id)
    first, second = worker.lease()["shard"], worker.lease()["shard"]
    worker.put(first["parts"][0], b"kept")
    worker.put(first["errors"], b"kept")
    worker.put(second["parts"][0], b"of a try that was lost")
    worker.commit(first, b"kept")
    assert worker.ask("commit", {"number": 1, "fence": 1, "reason": "no"}).json["verdict"] == "accepted"
    worker.agent.finish()
    place = parse(f"s3://kept/checkpoints/{job_id}/shards")

    def left() -> list[str]:
        async def look() -> list[str]:
            return [one.key async for one in server.storage.open(place).list(f"{job_id}/outputs/")]

        return server.run(look())

    eventually(lambda: len(left()) == 2)
    assert all(key.split("/")[2].startswith("00000000-") for key in left())
    assert read(server, job_id, "results") == b"kept"


def test_an_output_that_is_not_what_was_committed_is_not_handed_out(server: Server) -> None:
    job_id = submitted(server, "{count: 1, workers: 1}").json["id"]
    worker = worker_of(server, job_id)
    shard = worker.lease()["shard"]
    worker.commit(shard, b"good")
    worker.agent.finish()
    worker.put(shard["parts"][0], b"evil")
    with pytest.raises(http.client.IncompleteRead):
        server.call("GET", f"/v1/jobs/{job_id}/results")


# --- where items come from --------------------------------------------------------------------------------------


def package(server: Server, files: Mapping[str, bytes]) -> str:
    """Shipped code."""
    raw = io.BytesIO()
    with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w") as archive:
        for name, body in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
    digest = hashlib.sha256(raw.getvalue()).hexdigest()
    assert server.call("PUT", f"/v1/packages/{digest}", body=raw.getvalue()).status in (200, 201)
    return digest


def dataset(server: Server, name: str, files: Mapping[str, bytes]) -> None:
    home = parse("s3://kept/checkpoints/datasets")
    entries = [Entry(path, len(body), hashlib.sha256(body).hexdigest()) for path, body in files.items()]
    tree, manifest = dataset_tree.tree_of(entries)
    bodies = {hashlib.sha256(body).hexdigest(): body for body in files.values()}

    async def put() -> None:
        objects = server.storage.open(home)
        for one in tree.objects:
            pieces = [bodies[piece.sha256][piece.offset : piece.offset + piece.size] for piece in one.pieces]
            await objects.put(object_key(one.name), b"".join(pieces))
        await objects.put(manifest_key(tree.digest), manifest)

    server.run(put())
    reply = server.call("POST", "/v1/datasets", json_body={"name": name, "digest": tree.digest})
    assert reply.status == 201, reply.text


def shards_of(server: Server, job_id: str) -> list[tuple[int, int, int]]:
    found = server.run(server.deps.store.shards(job_id))  # type: ignore[arg-type]
    return [(one.items, one.start, one.end) for one in found]


def list_of(server: Server, job_id: str) -> bytes:
    place = parse(f"s3://kept/checkpoints/{job_id}/shards")
    return server.run(server.storage.open(place).get(f"{job_id}/items"))


def test_a_glob_finds_files_of_the_shipped_code(server: Server) -> None:
    digest = package(server, {"a.txt": b"", "b.txt": b"", "c.md": b"", "sub/d.txt": b""})
    job_id = submitted(server, '{glob: "**/*.txt", size: 2}', code_digest=digest).json["id"]
    assert list_of(server, job_id) == b"a.txt\nb.txt\nsub/d.txt\n"
    assert shards_of(server, job_id) == [(2, 0, 12), (1, 12, 22)]
    server.call("POST", f"/v1/jobs/{job_id}/cancel")


def test_a_glob_finds_files_of_the_dataset(server: Server) -> None:
    dataset(server, "pictures", {"x/1.jpg": b"1", "x/2.jpg": b"2", "y/3.png": b"3"})
    job_id = submitted(server, '{glob: "x/*"}\n  data: {dataset: "dataset://pictures"}').json["id"]
    assert list_of(server, job_id) == b"x/1.jpg\nx/2.jpg\n"
    server.call("POST", f"/v1/jobs/{job_id}/cancel")


@pytest.mark.parametrize("where", ["code", "dataset"])
def test_lines_of_a_file_are_cut_by_their_bytes(server: Server, where: str) -> None:
    files = {"in/prompts.txt": b"one\ntwo\nthree", "other": b"x" * 2_000_000}
    if where == "code":
        more, data = {"code_digest": package(server, files)}, ""
    else:
        dataset(server, "prompts", files)
        more, data = {}, '\n  data: {dataset: "dataset://prompts"}'
    reply = submitted(server, "{lines: in/prompts.txt, size: 2}" + data, **more)
    assert reply.status == 201, reply.text
    assert shards_of(server, reply.json["id"]) == [(2, 0, 8), (1, 8, 13)]
    server.call("POST", f"/v1/jobs/{reply.json['id']}/cancel")


def test_objects_below_an_address_are_items_that_a_worker_can_read(server: Server) -> None:
    async def put() -> None:
        for key in ("b.wav", "a.wav", "deep/c.wav"):
            await server.storage.open(parse("s3://sounds/in")).put(key, key.encode())

    server.run(put())
    job_id = submitted(server, '{prefix: "s3://sounds/in/", size: 3, workers: 1}').json["id"]
    assert list_of(server, job_id).splitlines()[0] == b"s3://sounds/in/a.wav"
    worker = worker_of(server, job_id)
    shard = worker.lease()["shard"]
    found = worker.ask("objects", {"number": 0, "fence": 1, "first": 1, "count": 5}).json["objects"]
    bodies = [server.storage.send(Signed("GET", one["url"], one["headers"])) for one in found]
    assert bodies == [b"b.wav", b"deep/c.wav"] and shard["source"]["kind"] == "objects"
    assert worker.ask("objects", {"number": 0, "fence": 2}).status == 403
    worker.agent.report(state="exited", exit_code=1)
    server.call("POST", f"/v1/jobs/{job_id}/cancel")


@pytest.mark.parametrize(
    ("shards", "field", "words"),
    [
        ('{glob: "*.gif"}', "job.shards.glob", "no file of the shipped code matches '*.gif'"),
        ("{lines: promts.txt}", "job.shards.lines", "did you mean prompts.txt?"),
        ("{lines: empty}", "job.shards.lines", "is empty"),
        ('{prefix: "s3://sounds/nothing/here"}', "job.shards.prefix", "there is no object below"),
        ('{prefix: "s3://kept/checkpoints"}', "job.shards.prefix", "no place that a job may read"),
        ('{prefix: "s3://kept/"}', "job.shards.prefix", "no place that a job may read"),
        ("{count: 1000000, size: 1}", "job.shards.size", "give a size of 10 or more"),
    ],
)
def test_a_job_without_items_is_refused_and_leaves_nothing(server: Server, shards: str, field: str, words: str) -> None:
    digest = package(server, {"prompts.txt": b"a\n", "empty": b""})
    reply = submitted(server, shards, code_digest=digest)
    assert reply.status in (400, 422, 424), reply.text
    assert reply.json["details"]["field"] == field and words in reply.json["message"], reply.text


def test_files_that_this_server_cannot_list_are_refused(server: Server) -> None:
    assert "neither a dataset nor code" in submitted(server, '{glob: "*"}').json["message"]
    reply = submitted(server, '{glob: "*"}\n  data: {dataset: /mnt/pictures}')
    assert "cannot be listed here" in reply.json["message"], reply.text


def test_a_prefix_on_the_servers_disk_is_no_address(server: Server) -> None:
    reply = submitted(server, '{prefix: "file:///etc"}')
    assert (reply.status, reply.json["error"]) == (422, "invalid_spec")


def test_the_same_submission_again_leaves_no_second_list(server: Server) -> None:
    body = {"spec_yaml": SPEC.format(shards="{items: [a, b]}")}
    headers = {"Idempotency-Key": "twice"}
    first = server.call("POST", "/v1/jobs", json_body=body, headers=headers).json["id"]
    assert server.call("POST", "/v1/jobs", json_body=body, headers=headers).json["id"] == first

    async def lists() -> list[str]:
        return [one.key async for one in server.storage.open(parse("s3://kept/checkpoints")).list()]

    assert sum(key.endswith("/items") and first in key for key in server.run(lists())) == 1
    server.call("POST", f"/v1/jobs/{first}/cancel")
