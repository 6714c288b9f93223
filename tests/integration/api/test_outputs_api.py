"""Outputs over real HTTP: nodes are given places for what is missing, a report names a tree only when it is whole,
people find it, and other jobs are given it. Storage is a fake that signs for itself; objects are put in directly."""

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest

from crucible.api.app import ApiSettings
from crucible.core.datasets import manifest_key, object_key
from crucible.engine.planner import Knowledge
from crucible.model.dataset_tree import Tree
from crucible.model.ids import JobId
from crucible.model.storage import Address, parse

from .conftest import SPEC, Agent, Server, eventually
from .test_datasets_api import a_tree as tree_of
from .test_datasets_api import add, empty_book, keys, lanes_table, put, transfers
from .test_datasets_api import asked as asked_for
from .test_datasets_api import fetched as told_fetched

ASK, WHOLE = "/agent/v1/outputs", "/agent/v1/outputs/whole"
ROOT = parse("s3://kept/checkpoints/outputs")
TWICE = SPEC.replace("limit: 0", "limit: 1, delay: 0s")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(
        folder=tmp_path_factory.mktemp("server"),
        settings=ApiSettings(version="9.9.9", providers=("fake",)),
        knowledge=Knowledge(lanes_table(), empty_book()),
        region_storage={"aws/us-east-1": parse("s3://kept/checkpoints")},
    )
    running.start()
    yield running
    running.stop()


def home(agent: Agent) -> Address:
    return ROOT.below(agent.launch["job_id"])


def ask(agent: Agent, tree: Tree, *, resend: bool = False) -> Any:
    wanted = [{"name": one.name, "size": one.size} for one in tree.objects]
    body = {"attempt_id": agent.launch["attempt_id"], "digest": tree.digest, "objects": wanted, "resend": resend}
    return agent.server.call("POST", ASK, agent.key, json_body=body)


def whole(agent: Agent, tree: Tree) -> Any:
    body = {"attempt_id": agent.launch["attempt_id"], "digest": tree.digest}
    return agent.server.call("POST", WHOLE, agent.key, json_body=body)


def store(agent: Agent, **files: bytes) -> Tree:
    """As an agent does it, but for the signed requests."""
    tree, manifest, objects = tree_of(**files)
    for name, body in objects.items():
        put(agent.server, home(agent), object_key(name), body)
    put(agent.server, home(agent), manifest_key(tree.digest), manifest)
    return tree


def end(agent: Agent, tree: Tree | None, exit_code: int | None = 0) -> str:
    """Reports the exit; returns how the job ended."""
    ranks = [
        {
            "attempt_id": agent.launch["attempt_id"],
            "rank": 0,
            "generation": agent.launch["generation"],
            "state": "exited",
            "exit_code": exit_code,
            "outputs": None if tree is None else tree.digest,
        }
    ]
    agent.report(ranks=ranks)
    path = f"/v1/jobs/{agent.launch['job_id']}"
    eventually(lambda: agent.server.call("GET", path, "admin").json["status"] in ("completed", "failed", "cancelled"))
    return str(agent.server.call("GET", path, "admin").json["status"])


def left(server: Server, who: str = "alice", **files: bytes) -> tuple[str, Tree]:
    job_id = server.submit(who)
    agent = server.agent(job_id).begin()
    tree = store(agent, **files)
    assert end(agent, tree) == "completed"
    return job_id, tree


def reading(**inputs: str) -> str:
    lines = "".join(f"    {name}: {address}\n" for name, address in inputs.items())
    return f"{SPEC}  inputs:\n{lines}"


# --- nodes ------------------------------------------------------------------------------------------------------


def test_only_what_is_missing_is_signed_and_the_tree_counts_when_it_is_whole(server: Server) -> None:
    agent = server.agent(server.submit()).begin()
    assert agent.launch["output"] == {"max_bytes": 1 << 40, "max_files": 400_000, "within_s": 21600.0}
    tree, manifest, objects = tree_of(a=b"one", b=b"x" * (2 << 20))
    first = ask(agent, tree).json
    assert {one["name"] for one in first["missing"]} == set(objects) and first["manifest"]["method"] == "PUT"
    assert whole(agent, tree).status == 409
    (small, large) = sorted(objects, key=lambda name: len(objects[name]))
    put(server, home(agent), object_key(small), objects[small])
    put(server, home(agent), manifest_key(tree.digest), manifest)
    assert [one["name"] for one in ask(agent, tree).json["missing"]] == [large]
    refused = whole(agent, tree)
    assert refused.status == 409 and "1 of 2 objects of the outputs are missing" in refused.text
    put(server, home(agent), object_key(large), objects[large])
    assert whole(agent, tree).json == {"size_bytes": (2 << 20) + 3, "files": 2}
    assert ask(agent, tree).json["missing"] == [] and ask(agent, tree).json["manifest"] is None
    assert len(ask(agent, tree, resend=True).json["missing"]) == 2
    assert end(agent, tree) == "completed"
    assert ask(agent, tree).status == 403, "its attempt is over"


def test_a_stranger_s_node_is_given_no_place(server: Server) -> None:
    mine, other = (server.agent(server.submit()).begin() for _ in range(2))
    tree = store(mine, a=b"x")
    other.launch = {**other.launch, "attempt_id": mine.launch["attempt_id"]}
    assert ask(other, tree).status == 403 and whole(other, tree).status == 403
    other.launch = {**other.launch, "attempt_id": "nothing"}
    assert ask(other, tree).status == 403
    bad = {"attempt_id": "x", "digest": "../x", "objects": []}
    assert server.call("POST", ASK, mine.key, json_body=bad).status == 422
    assert server.call("POST", ASK, "alice", json_body=bad).status in (401, 403)


@pytest.mark.parametrize("what", ["manifest", "object", "shorter", "another"])
def test_a_report_that_names_what_is_not_there_fails_the_rank(server: Server, what: str) -> None:
    agent = server.agent(server.submit()).begin()
    tree, manifest, objects = tree_of(a=b"hello")
    ((name, body),) = objects.items()
    if what != "object":
        put(server, home(agent), object_key(name), body[:-1] if what == "shorter" else body)
    if what != "manifest":
        put(
            server,
            home(agent),
            manifest_key(tree.digest),
            manifest.replace(b"a", b"b") if what == "another" else manifest,
        )
    assert end(agent, tree) == "failed"
    job = server.call("GET", f"/v1/jobs/{agent.launch['job_id']}").json
    assert "could not store the outputs" in job["reason"], job
    assert server.call("GET", f"/v1/jobs/{job['id']}/outputs").json["items"] == []


def test_what_an_attempt_left_whose_task_runs_again_does_not_count(server: Server) -> None:
    job_id = server.submit(spec=TWICE)
    agent = server.agent(job_id).begin()
    rank = {"attempt_id": agent.launch["attempt_id"], "rank": 0, "generation": 1, "state": "exited", "exit_code": 1}
    lost = store(agent, a=b"half")
    agent.report(ranks=[{**rank, "outputs": lost.digest}])
    first = agent.launch["attempt_id"]
    agent.launch = {}
    agent.begin()
    assert agent.launch["attempt_id"] != first
    kept = store(agent, a=b"whole")
    assert end(agent, kept) == "completed"
    (item,) = server.call("GET", f"/v1/jobs/{job_id}/outputs").json["items"]
    assert item["digest"] == kept.digest
    wanted = sorted([manifest_key(kept.digest), *(object_key(one.name) for one in kept.objects)])
    eventually(lambda: sorted(keys(server, home(agent))) == wanted)  # what counts no more is removed


def test_repeated_and_late_reports_change_nothing(server: Server) -> None:
    job_id, tree = left(server, a=b"x")
    agent = server.agent(job_id)
    before = server.call("GET", f"/v1/jobs/{job_id}/outputs").json
    late = {"attempt_id": "", "rank": 0, "generation": 1, "state": "exited", "exit_code": 0, "outputs": tree.digest}
    attempt = server.run(server.deps.store.job_attempts(JobId(job_id)))[0]
    agent.key = server.keys.node(attempt.ranks[0].node_id)
    agent.launch = {"attempt_id": attempt.id, "generation": 1, "number": 0}
    body = {"boot_id": "b", "ranks": [{**late, "attempt_id": attempt.id}]}
    assert server.call("POST", "/agent/v1/report", agent.key, json_body=body).status in (200, 410)
    assert server.call("GET", f"/v1/jobs/{job_id}/outputs").json == before


# --- people -----------------------------------------------------------------------------------------------------


def test_people_find_what_a_job_left_and_nobody_else_s(server: Server) -> None:
    job_id, tree = left(server, a=b"one", b=b"x" * (2 << 20))
    path = f"/v1/jobs/{job_id}/outputs"
    (item,) = server.call("GET", path).json["items"]
    assert (item["task"], item["digest"], item["files"], item["size_bytes"]) == (0, tree.digest, 2, (2 << 20) + 3)
    view = server.call("GET", f"{path}/0").json
    assert view["manifest"]["name"] == tree.digest and (view["first"], view["total"]) == (0, 2)
    assert [(one["name"], one["size"]) for one in view["objects"]] == [(one.name, one.size) for one in tree.objects]
    assert len(server.call("GET", f"{path}/0?first=1").json["objects"]) == 1
    assert server.call("GET", f"{path}/1").status == 404 and server.call("GET", f"{path}/x").status == 400
    assert server.call("GET", f"{path}?cursor=x").status == 400
    assert server.call("GET", path, "bob").status == 404 and server.call("GET", f"{path}/0", "bob").status == 404
    assert server.call("GET", path, "admin").json["items"] == [item]
    artifacts = server.call("GET", f"/v1/jobs/{job_id}/artifacts").json["items"]
    (said,) = [one for one in artifacts if one["type"] == "output"]
    assert said["uri"] == path and said["meta"] == {"tasks": 1, "files": 2, "size_bytes": (2 << 20) + 3}


def test_a_job_that_left_nothing_has_no_outputs_and_no_artifact(server: Server) -> None:
    job_id = server.submit()
    assert end(server.agent(job_id).begin(), None) == "completed"
    assert server.call("GET", f"/v1/jobs/{job_id}/outputs").json == {"items": [], "next_cursor": None}
    assert "output" not in {one["type"] for one in server.call("GET", f"/v1/jobs/{job_id}/artifacts").json["items"]}


def test_pages_follow_one_another(server: Server) -> None:
    job_id, _ = left(server, a=b"x")
    rows = server.run(server.deps.store.outputs(JobId(job_id)))
    assert [row.task_index for row in rows] == [0]
    page = server.call("GET", f"/v1/jobs/{job_id}/outputs?limit=1").json
    assert page["next_cursor"] is None
    assert server.call("GET", f"/v1/jobs/{job_id}/outputs?cursor=0").json["items"] == []
    assert server.call("GET", f"/v1/jobs/{job_id}/outputs?limit=0").status == 422


# --- what jobs are given ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["output://{job}", "output://{job}/0", "tree://{tree}"])
def test_a_job_is_given_what_another_left(server: Server, form: str) -> None:
    first, tree = left(server, weights=b"w" * 1000)
    address = form.format(job=first, tree=tree.digest)
    agent = server.agent(server.submit(spec=reading(model=address))).begin()
    assert agent.launch["inputs"] == [{"name": "model", "digest": tree.digest}]
    reply = asked_for(agent, tree).json
    assert reply["source"] == "aws/us-east-1" and reply["total"] == 1
    assert reply["objects"][0]["name"] == tree.objects[0].name
    assert told_fetched(agent, tree, "fake/nowhere-1").status == 403, "it is not there"
    transfer = hashlib.sha256(form.encode()).hexdigest()[:32]
    for _ in range(2):  # told again, it is paid for once
        assert told_fetched(agent, tree, "aws/us-east-1", transfer).status == 200
    (paid,) = transfers(server, agent.launch["job_id"])
    assert paid["entries"][0]["amount_microusd"] == 20_000
    other, _, _ = tree_of(else_=b"where")
    assert asked_for(agent, other).status == 403
    assert end(agent, None) == "completed"


def test_a_registered_dataset_may_be_an_input_too(server: Server) -> None:
    tree = add(server, "pictures", a=b"picture")
    agent = server.agent(server.submit(spec=reading(images=f"tree://{tree.digest}"))).begin()
    assert asked_for(agent, tree).json["source"] == "fake/nowhere-1"
    refused = server.call("DELETE", "/v1/datasets/pictures")
    assert refused.status == 409 and agent.launch["job_id"] in refused.text
    assert end(agent, None) == "completed"
    assert server.call("DELETE", "/v1/datasets/pictures").status == 200


def test_a_dataset_that_goes_takes_nothing_from_an_output(server: Server) -> None:
    job_id, tree = left(server, same=b"the same bytes")
    assert add(server, "twin", same=b"the same bytes").digest == tree.digest
    assert server.call("DELETE", "/v1/datasets/twin").status == 200
    view = server.call("GET", f"/v1/jobs/{job_id}/outputs/0").json
    stored = keys(server, ROOT.below(job_id))
    assert sorted(stored) == sorted([manifest_key(tree.digest), *(object_key(one["name"]) for one in view["objects"])])


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("tree://" + "0" * 64, "no job that you see has left the tree 000000000000"),
        ("output://nobody", "there is no job nobody"),
        ("output://{empty}", "has left nothing behind"),
        ("output://{job}/7", "task 7 of job"),
        ("output://{running}", "has left nothing behind; it is not over yet"),
        ("output://{foreign}", "there is no job"),
        ("tree://{foreign_tree}", "no job that you see has left the tree"),
    ],
)
def test_what_is_not_there_is_refused_at_submit(server: Server, address: str, why: str) -> None:
    job_id, _ = left(server, a=b"x")
    foreign, foreign_tree = left(server, "bob", secret=b"of bob")
    empty = server.submit()
    assert end(server.agent(empty).begin(), None) == "completed"
    running = server.submit()
    said = address.format(job=job_id, empty=empty, running=running, foreign=foreign, foreign_tree=foreign_tree.digest)
    reply = server.call("POST", "/v1/jobs", json_body={"spec_yaml": reading(model=said)})
    assert reply.status == 422 and reply.json["error"] == "unknown_input" and why in reply.json["message"], reply.text
    assert reply.json["details"]["field"] == "job.inputs.model"
    plan = server.call("POST", "/v1/plan", json_body={"spec_yaml": reading(model=said)})
    assert plan.status == 422 and plan.json["error"] == "unknown_input"
    server.call("POST", f"/v1/jobs/{running}/cancel")


def test_a_retry_is_given_the_same(server: Server) -> None:
    first, tree = left(server, a=b"x")
    agent = server.agent(server.submit(spec=reading(model=f"output://{first}"))).begin()
    agent.finish(1)
    again = server.call("POST", f"/v1/jobs/{agent.launch['job_id']}/retry").json["id"]
    assert server.agent(again).begin().launch["inputs"] == [{"name": "model", "digest": tree.digest}]
