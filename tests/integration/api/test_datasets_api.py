"""Datasets over real HTTP: registered when they are whole, pinned to jobs, brought to nodes, copied to regions, paid
for once. Storage is a fake that signs for itself; objects are put into it directly."""

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest

from crucible.api.app import ApiSettings
from crucible.core.datasets import manifest_key, object_key
from crucible.engine.planner import Knowledge
from crucible.model import dataset_tree
from crucible.model.dataset_tree import Entry, Tree
from crucible.model.storage import Address, parse

from .conftest import Agent, Server, eventually

HOME = parse("s3://kept/checkpoints/datasets")
REGION = parse("s3://regional")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(
        folder=tmp_path_factory.mktemp("server"),
        settings=ApiSettings(version="9.9.9", providers=("fake",)),
        knowledge=Knowledge(lanes_table(), empty_book()),
        region_storage={"fake/nowhere-1": REGION},
    )
    running.start()
    yield running
    running.stop()


def lanes_table() -> Any:
    from crucible.core.offers import make_table
    from crucible.model.catalog import Billing, Lane

    billing = Billing(
        provider="aws", unit_s=1, minimum_s=0, start_s=1.0, egress_usd_per_gb=0.09, max_nodes=8, source="test"
    )
    lane = Lane(source="aws:us-east-1", target="fake:nowhere-1", usd_per_gb=0.02, gbps=5.0)
    return make_table((), (), billing=[billing], lanes=[lane])


def empty_book() -> Any:
    from crucible.core.perf import make_book

    return make_book((), ())


def a_tree(**files: bytes) -> tuple[Tree, bytes, dict[str, bytes]]:
    entries = [Entry(name, len(body), hashlib.sha256(body).hexdigest()) for name, body in files.items()]
    tree, manifest = dataset_tree.tree_of(entries)
    contents = {hashlib.sha256(body).hexdigest(): body for body in files.values()}
    objects = {
        one.name: b"".join(contents[piece.sha256][piece.offset : piece.offset + piece.size] for piece in one.pieces)
        for one in tree.objects
    }
    return tree, manifest, objects


def put(server: Server, address: Address, key: str, body: bytes) -> None:
    server.run(server.storage.open(address).put(key, body))


def keys(server: Server, address: Address) -> list[str]:
    async def listed() -> list[str]:
        return [facts.key async for facts in server.storage.open(address).list()]

    return server.run(listed())


def add(server: Server, name: str, who: str = "alice", region: str = "fake/nowhere-1", **files: bytes) -> Tree:
    tree, manifest, objects = a_tree(**files)
    for object_name, body in objects.items():
        put(server, HOME, object_key(object_name), body)
    put(server, HOME, manifest_key(tree.digest), manifest)
    body = {"name": name, "digest": tree.digest, "region": region}
    reply = server.call("POST", "/v1/datasets", who, json_body=body)
    assert reply.status == 201, reply.text
    return tree


def spec(dataset: str, policy: str = "none") -> str:
    return (
        "job:\n  command: [train]\n  resources: {gpus: 1}\n  retry: {limit: 0}\n"
        f"  data: {{dataset: '{dataset}', replication_policy: {policy}}}\n"
    )


def asked(agent: Agent, tree: Tree, first: int = 0) -> Any:
    body = {"attempt_id": agent.launch["attempt_id"], "digest": tree.digest, "first": first}
    return agent.server.call("POST", "/agent/v1/datasets", agent.key, json_body=body)


def fetched(agent: Agent, tree: Tree, source: str, transfer: str = "ab" * 16, size: int = 10**9) -> Any:
    body = {
        "attempt_id": agent.launch["attempt_id"],
        "digest": tree.digest,
        "transfer": transfer,
        "source": source,
        "size_bytes": size,
    }
    return agent.server.call("POST", "/agent/v1/datasets/fetched", agent.key, json_body=body)


def transfers(server: Server, job_id: str) -> list[Any]:
    said = server.call("GET", f"/v1/jobs/{job_id}/costs").json
    return [one for one in said["postings"] if one["kind"] == "transfer"]


# --- adding ---------------------------------------------------------------------------------------------------


def test_only_what_is_missing_is_signed_and_the_manifest_comes_last(server: Server) -> None:
    tree, manifest, objects = a_tree(a=b"one", b=b"x" * (2 << 20))
    wanted = [{"name": one.name, "size": one.size} for one in tree.objects]
    first = server.call("POST", "/v1/datasets/uploads", json_body={"digest": tree.digest, "objects": wanted}).json
    assert {one["name"] for one in first["missing"]} == set(objects) and first["manifest"]["url"]
    new = {"name": "first", "digest": tree.digest}
    refused = server.call("POST", "/v1/datasets", json_body=new)
    assert refused.status == 409 and "manifest has not arrived" in refused.text
    put(server, HOME, manifest_key(tree.digest), manifest)
    refused = server.call("POST", "/v1/datasets", json_body=new)
    assert refused.status == 409 and "2 of 2 objects are missing" in refused.text
    assert server.call("GET", "/v1/datasets/first").status == 404
    for name, body in objects.items():
        put(server, HOME, object_key(name), body)
    again = server.call("POST", "/v1/datasets/uploads", json_body={"digest": tree.digest, "objects": wanted}).json
    assert again["missing"] == [] and again["manifest"] is None
    resent = {"digest": tree.digest, "objects": wanted, "resend": True}
    assert len(server.call("POST", "/v1/datasets/uploads", json_body=resent).json["missing"]) == 2
    assert server.call("POST", "/v1/datasets", json_body=new).json["files"] == 2
    assert server.call("DELETE", "/v1/datasets/first").json == {"removed": ["first"]}


def test_an_object_of_another_size_is_missing(server: Server) -> None:
    tree, manifest, objects = a_tree(a=b"exact")
    put(server, HOME, manifest_key(tree.digest), manifest)
    put(server, HOME, object_key(next(iter(objects))), b"exactly")
    reply = server.call("POST", "/v1/datasets", json_body={"name": "wrong", "digest": tree.digest})
    assert reply.status == 409 and "1 of 1 objects are missing" in reply.text


def test_a_manifest_with_other_bytes_registers_nothing(server: Server) -> None:
    tree, manifest, _ = a_tree(a=b"forged")
    put(server, HOME, manifest_key(tree.digest), manifest.replace(b'"a"', b'"b"'))
    reply = server.call("POST", "/v1/datasets", json_body={"name": "forged", "digest": tree.digest})
    assert reply.status == 400 and "is not the one of" in reply.text
    assert server.call("GET", "/v1/datasets/forged").status == 404


@pytest.mark.parametrize(
    "body",
    [
        {"name": "no spaces", "digest": "0" * 64},
        {"name": "x", "digest": "abc"},
        {"name": "x", "digest": "0" * 64, "region": "nowhere"},
        {"name": "x", "digest": "0" * 64, "more": 1},
    ],
)
def test_bad_requests_are_refused(server: Server, body: dict[str, Any]) -> None:
    assert server.call("POST", "/v1/datasets", json_body=body).status == 422


def test_a_name_belongs_to_who_gave_it(server: Server) -> None:
    add(server, "mine", a=b"alice's")
    tree, _, _ = a_tree(a=b"alice's")
    theirs = {"name": "mine", "digest": tree.digest}
    assert server.call("POST", "/v1/datasets", "bob", json_body=theirs).status == 403
    assert server.call("POST", "/v1/datasets/uploads", "bob", json_body=theirs).status == 403
    assert server.call("DELETE", "/v1/datasets/mine", "bob").status == 403
    assert server.call("GET", "/v1/datasets/mine", "bob").status == 200
    assert server.call("DELETE", "/v1/datasets/mine", "admin").status == 200


# --- jobs -----------------------------------------------------------------------------------------------------


def test_a_job_keeps_the_tree_that_its_name_meant(server: Server) -> None:
    old = add(server, "moving", a=b"before")
    agent = server.agent(server.submit(spec=spec("dataset://moving"))).begin()
    new = add(server, "moving", a=b"after")
    assert agent.launch["dataset"] == {"name": "moving", "digest": old.digest}
    assert asked(agent, old).json["total"] == 1
    assert asked(agent, new).status == 403
    names = {one["name"] for one in server.call("GET", "/v1/datasets").json["items"]}
    assert {"moving", f"moving@{old.digest}"} <= names
    agent.finish()
    again = server.call("POST", f"/v1/jobs/{agent.launch['job_id']}/retry").json["id"]
    assert server.agent(again).begin().launch["dataset"]["digest"] == old.digest
    pinned = server.agent(server.submit(spec=spec(f"dataset://moving@{old.digest}"))).begin()
    assert pinned.launch["dataset"]["digest"] == old.digest


@pytest.mark.parametrize("name", ["dataset://never", f"dataset://known@{'0' * 64}"])
def test_an_unknown_dataset_is_told_with_its_field(server: Server, name: str) -> None:
    add(server, "known", a=b"known")
    for path in ("/v1/jobs", "/v1/plan"):
        reply = server.call("POST", path, json_body={"spec_yaml": spec(name)})
        assert (reply.status, reply.json["error"]) == (422, "unknown_dataset"), reply.text
        assert reply.json["details"]["field"] == "job.data.dataset"


def test_it_cannot_be_removed_while_a_job_needs_it_and_what_others_need_stays(server: Server) -> None:
    shared = b"s" * (2 << 20)
    tree = add(server, "used", shared=shared, own=b"o" * (2 << 20))
    agent = server.agent(server.submit(spec=spec("dataset://used"))).begin()
    refused = server.call("DELETE", "/v1/datasets/used")
    assert refused.status == 409 and agent.launch["job_id"] in refused.text
    assert server.call("GET", "/v1/datasets/used").json["jobs"] == [agent.launch["job_id"]]
    agent.finish()
    other = add(server, "other", shared=shared)
    assert server.call("DELETE", "/v1/datasets/used").status == 200
    left = keys(server, HOME)
    assert manifest_key(tree.digest) not in left and manifest_key(other.digest) in left
    mine = {object_key(one.name) for one in tree.objects}
    assert mine & set(left) == {object_key(one.name) for one in other.objects}


# --- nodes ------------------------------------------------------------------------------------------------------


def test_a_node_is_told_where_the_tree_of_its_job_is(server: Server) -> None:
    tree = add(server, "told", a=b"small", b=b"l" * (3 << 20))
    agent = server.agent(server.submit(spec=spec("dataset://told"))).begin()
    said = asked(agent, tree).json
    assert said["manifest"]["method"] == "GET" and said["total"] == len(said["objects"]) == 2
    assert {hold[0] for one in said["objects"] for hold in one["holds"]} == {e.sha256 for e in tree.entries}
    assert asked(agent, tree, first=2).json["objects"] == []
    agent.finish()
    assert asked(agent, tree).status in (403, 410)


def test_what_came_over_a_lane_is_charged_once(server: Server) -> None:
    tree = add(server, "far", region="aws/us-east-1", a=b"far away")
    job_id = server.submit(spec=spec("dataset://far", "on-demand-cache"))
    agent = server.agent(job_id).begin()
    source = asked(agent, tree).json["source"]
    assert source == "aws/us-east-1"
    for _ in range(3):
        assert fetched(agent, tree, source).status == 200
    own = [one for one in transfers(server, job_id) if one["id"] == "transfer/" + "ab" * 16]
    assert [one["entries"][0]["amount_microusd"] for one in own] == [20_000]  # a GB at 2 cents
    assert fetched(agent, tree, "aws/mars").status == 403
    said = server.call("GET", f"/v1/jobs/{job_id}/costs").json
    (kind,) = [one for one in said["by_kind"] if one["kind"] == "transfer"]
    assert kind["so_far_microusd"] >= 20_000 and said["so_far_microusd"] >= 20_000
    agent.finish()


def test_on_demand_reads_from_home_first_and_from_the_copy_later(server: Server) -> None:
    tree = add(server, "warm", region="aws/us-east-1", a=b"w" * 1000, b=b"W" * (2 << 20))
    first = server.agent(server.submit(spec=spec("dataset://warm", "on-demand-cache"))).begin()
    assert asked(first, tree).json["source"] == "aws/us-east-1"
    eventually(lambda: server.call("GET", "/v1/datasets/warm").json["copies"])
    first.finish()
    later_id = server.submit(spec=spec("dataset://warm", "on-demand-cache"))
    later = server.agent(later_id).begin()
    assert asked(later, tree).json["source"] == "fake/nowhere-1"
    assert fetched(later, tree, "fake/nowhere-1", "cd" * 16).status == 200
    assert transfers(server, later_id) == []
    later.finish()
    assert server.call("DELETE", "/v1/datasets/warm").status == 200
    assert manifest_key(tree.digest) not in keys(server, REGION.below("datasets"))


def test_pre_stage_waits_for_the_copy_and_charges_it_to_who_asked(server: Server) -> None:
    tree = add(server, "staged", region="aws/us-east-1", a=b"S" * (50 << 20))
    job_id = server.submit(spec=spec("dataset://staged", "pre-stage"))
    agent = server.agent(job_id).begin()
    said = asked(agent, tree).json
    assert said["manifest"] is None and said["wait_s"] > 0 and "is being copied" in said["reason"]
    assert eventually(lambda: asked(agent, tree).json["source"]) == "fake/nowhere-1"
    (paid,) = transfers(server, job_id)
    assert paid["entries"][0]["amount_microusd"] == round((50 << 20) / 1e9 * 0.02 * 1e6)
    assert fetched(agent, tree, "fake/nowhere-1", "ef" * 16).status == 200
    assert len(transfers(server, job_id)) == 1
    agent.finish()


def test_jobs_at_the_same_time_make_one_copy_and_pay_once(server: Server) -> None:
    tree = add(server, "together", region="aws/us-east-1", a=b"T" * (50 << 20))
    ids = [server.submit(spec=spec("dataset://together", "pre-stage")) for _ in range(3)]
    agents = [server.agent(job_id).begin() for job_id in ids]
    for agent in agents:
        assert eventually(lambda agent=agent: asked(agent, tree).json["source"]) == "fake/nowhere-1"
    assert sum(len(transfers(server, job_id)) for job_id in ids) == 1
    later = server.submit(spec=spec("dataset://together", "pre-stage"))
    agents.append(server.agent(later).begin())
    assert asked(agents[-1], tree).json["source"] == "fake/nowhere-1" and transfers(server, later) == []
    for agent in agents:
        agent.finish()
