"""Golden messages tie the agent, which imports nothing of Crucible, to the shapes of `crucible.wire.agent`.

What the agent says is made by its real encoders and read by the wire models; what the server says is made by the wire
models and read by the agent's real parsers. Set UPDATE_GOLDEN=1 to write the files anew, and review the difference."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from crucible.agent import journal, protocol, spool
from crucible.agent.events import parse
from crucible.wire import agent as wire
from crucible.wire import datasets as trees
from crucible.wire import outputs as left
from crucible.wire.channels import REQUEST, Wish

GOLDEN = Path(__file__).parent / "agent"

LAUNCH = wire.Launch(
    job_id="3f0c6a3e-7f1e-4d2b-9a55-0d6a5a2f7a10",
    task_id="task-01",
    attempt_id="att-01",
    number=2,
    generation=1,
    rank=3,
    argv=["python", "train.py", "--lr", "0.1"],
    env={"RANK": "3", "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1"},
    devices=["0", "1"],
    setup=["pip install -r requirements.txt"],
    code="ab" * 32,
    checkpoints="file:///data/checkpoints/lineage-1",
    checkpoint_keep=3,
    timeout_s=3600.0,
    stop_grace_s=30.0,
    progress_pattern=r"step (\d+)",
    progress_total=1000,
)
MINIMAL = LAUNCH.model_copy(
    update={"rank": 0, "code": None, "timeout_s": None, "progress_pattern": None, "progress_total": None, "setup": []}
)


WITH_TREES = MINIMAL.model_copy(
    update={
        "dataset": wire.DatasetWork(name="images", digest="ab" * 32),
        "inputs": [
            wire.DatasetWork(name="weights", digest="cd" * 32),
            wire.DatasetWork(name="tokens.v2", digest="ef" * 32),
        ],
        "output": wire.OutputWork(max_bytes=1 << 40, max_files=400_000, within_s=21600.0),
    }
)
WITH_SECRETS = MINIMAL.model_copy(
    update={
        "secrets": [
            wire.SecretUse(name="HF_TOKEN", env="HF_TOKEN"),
            wire.SecretUse(name="GCP", env="GCP_FILE", file="gcp/key.json"),
        ]
    }
)
BROUGHT = {"transfer": "0123456789abcdef" * 2, "source": "aws/us-east-1", "size_bytes": 1 << 40, "is_told": False}


def put(key: str) -> wire.Signed:
    headers = {"x-ms-blob-type": "BlockBlob"}
    return wire.Signed(method="PUT", url=f"https://storage.example/bucket/{key}?signature=x", headers=headers)


def get(key: str) -> wire.Signed:
    return wire.Signed(method="GET", url=f"https://storage.example/bucket/datasets/{key}?signature=x")


IN_RANK = {"attempt_id": "att-01", "rank": 3}
REQUESTS = [
    REQUEST.validate_python(asked).model_dump(mode="json")
    for asked in (
        {"kind": "exec", "argv": ["nvidia-smi"]},
        {"kind": "exec", "stdin": True, "tty": {"rows": 24, "columns": 80, "term": "xterm-256color"}},
        {"kind": "copy_in", "path": "data/"},
        {"kind": "copy_out", "path": "/tmp/core"},
        {"kind": "forward", "port": 6006},
    )
]
SERVER_SAYS: dict[str, BaseModel] = {
    "enrolled": wire.Enrolled(
        node_id="node-01",
        node_key="a-node-key",
        report_every_s=5.0,
        servers=["http://127.0.0.1:7070", "https://crucible.example:443/base"],
        orphan_after_s=900.0,
    ),
    "work": wire.WorkReply(
        version="v-17",
        ranks=[
            wire.RankWork(launch=LAUNCH, stop=False, stop_reason=None, token="a-token"),
            wire.RankWork(launch=MINIMAL, stop=True, stop_reason="cancelled by ada", token="a-token"),
        ],
        servers=["http://127.0.0.1:7071"],
    ),
    "work_trees": wire.WorkReply(
        version="v-19",
        ranks=[
            wire.RankWork(launch=WITH_TREES, stop=True, stop_reason="pruned", token="a-token", keeps_outputs=True),
        ],
    ),
    "work_channels": wire.WorkReply(
        version="v-17+0123456789ab",
        channels=[
            Wish(id="channel-01", url="http://127.0.0.1:7070", request={**IN_RANK, **request}) for request in REQUESTS
        ],
    ),
    "work_unchanged": wire.WorkReply(version="v-17", unchanged=True),
    "work_retire": wire.WorkReply(version="v-18", retire=True),
    "slot": wire.SlotReply(
        slot="00002-00003-0123456789abcdef",
        prefix="s3://bucket/lineage/0",
        manifest=put("manifests/00002-00003-0123456789abcdef.json"),
        parts=[put("parts/00002-00003-0123456789abcdef/00000"), put("parts/00002-00003-0123456789abcdef/00001")],
        result=put("results/att-01-3.json"),
        lives_s=3600.0,
    ),
    "candidate": wire.CandidateReply(
        candidate=wire.Candidate(
            step=40,
            shards=[
                wire.StoredShard(
                    slot="00001-00000-0123456789abcdef",
                    manifest="{}",
                    objects=[wire.Signed(method="GET", url="https://storage.example/bucket/part?signature=x")],
                )
            ],
        )
    ),
    "candidate_none": wire.CandidateReply(candidate=None),
    "tree": trees.TreeReply(
        source="aws/us-east-1",
        manifest=get("manifests/" + "ab" * 32),
        objects=[
            trees.TreeObject(
                signed=get("objects/" + "cd" * 32),
                name="cd" * 32,
                size=10,
                holds=[("ef" * 32, 0, 4), ("01" * 32, 67108864, 6)],
            )
        ],
        total=2,
    ),
    "tree_wait": trees.TreeReply(wait_s=1.0, reason="images is being copied to aws/eu-west-1"),
    "output": left.OutputReply(
        missing=[left.MissingObject(name="cd" * 32, signed=put("objects/" + "cd" * 32))],
        manifest=put("manifests/" + "ab" * 32),
        lives_s=3600.0,
    ),
    "output_nothing": left.OutputReply(missing=[], manifest=None, lives_s=3600.0),
    "work_secrets": wire.WorkReply(
        version="v-20", ranks=[wire.RankWork(launch=WITH_SECRETS, stop=False, stop_reason=None, token="a-token")]
    ),
    "secrets": wire.SecretsReply(
        items=[wire.SecretValue(name="HF_TOKEN", value="aGZfeA=="), wire.SecretValue(name="GCP", value="AP8=")]
    ),
    "report_reply": wire.ReportReply(
        acks=[wire.StreamAck(attempt_id="att-01", rank=3, log=120, metrics=7)],
        servers=["http://127.0.0.1:7071"],
        work_version="v-18",
    ),
}


AGENT_SAYS: dict[str, type[BaseModel]] = {
    "enrol": wire.Enrol,
    "slot_request": wire.SlotRequest,
    "slot_request_more": wire.SlotRequest,
    "candidate_request": wire.CandidateRequest,
    "tree_request": trees.TreeRequest,
    "tree_fetched": trees.TreeFetched,
    "output_request": left.OutputAsked,
    "output_whole": left.OutputWhole,
    "secrets_request": wire.SecretsAsked,
}


def agent_says() -> dict[str, bytes]:
    launch = protocol.launch_from(json.loads(LAUNCH.model_dump_json()))
    boot = {"order_id": "order-01", "machine_id": "machine-01", "address": "127.0.0.1"}
    facts = {"python": "3.8.18", "hostname": "box", "cpus": 8, "memory_bytes": 1 << 34}
    gpus = [{"index": 0, "name": "NVIDIA A100", "memory_mib": 81920}]
    identity = {"agent_id": "0123456789abcdef", "rendezvous_port": 29500}
    return {
        "enrol": protocol.enrol(boot, identity, "boot-01", "0.1.0", {**facts, "gpus": gpus}),
        "report": _report(launch),
        "report_exited": _exited(launch),
        "report_heartbeat": protocol.report("boot-01", [], [], [], [], {}),
        "report_carried": _carried(launch),
        "slot_request": protocol.slot_request(launch, None, 0, 16),
        "slot_request_more": protocol.slot_request(launch, "00002-00003-0123456789abcdef", 16, 4),
        "candidate_request": protocol.candidate_request(launch, 1),
        "report_left": _left(launch),
        "tree_request": protocol.tree_request(launch, "ab" * 32, 500),
        "tree_fetched": protocol.fetched_request(launch, "ab" * 32, BROUGHT),
        "output_request": protocol.output_request(launch, "ab" * 32, [("cd" * 32, 10), ("ef" * 32, 67108864)], False),
        "output_whole": protocol.whole_request(launch, "ab" * 32),
        "secrets_request": protocol.secrets_request(launch),
    }


def _report(launch: dict[str, Any]) -> bytes:
    frames = [
        journal.Frame(journal.OUT, False, 2, 1700000000000, "première ligne\nline 2\n".encode()),
        journal.Frame(journal.ERR, True, 1, 1700000000001, b"50%\r \xff\xfe\x00"),
        journal.Frame(journal.SYS, False, 1, 1700000000002, b"stopping: budget\n"),
    ]
    log = [spool.encode(spool.records_of(n, frame)) for n, frame in zip((100, 102, 103), frames, strict=True)]
    events = {kind: event(kind) for kind in ("metrics", "checkpoint", "progress")}
    metrics = [dict(events["metrics"], n=7)]
    running = protocol.rank_report(
        launch, "started", {"started_at_ms": 1700000000000}, is_checkpointing=True, log_lines=104, last_lines=[]
    )
    checkpoints = [protocol.of_rank(launch, events["checkpoint"])]
    progress = [protocol.of_rank(launch, events["progress"])]
    usage = {"cpu_percent": 12.5, "memory_used_bytes": 1024.0, "gpu0_percent": 97.0, "gpu0_memory_mib": 70000.0}
    streams = [protocol.stream_batch(launch, log, metrics)]
    return protocol.report("boot-01", [running], streams, checkpoints, progress, usage)


def _exited(launch: dict[str, Any]) -> bytes:
    result = {
        "exit_code": None,
        "signal": 9,
        "reason": "timed out after 3600 s",
        "timed_out": True,
        "started_at_ms": 1700000000000,
        "ended_at_ms": 1700003600000,
    }
    report = protocol.rank_report(
        launch, "exited", result, is_checkpointing=False, log_lines=104, last_lines=["Traceback", "ValueError: no"]
    )
    return protocol.report("boot-01", [report], [], [], [], {})


def _left(launch: dict[str, Any]) -> bytes:
    """The exit of a rank that left something behind."""
    result = {"exit_code": 0, "started_at_ms": 1700000000000, "ended_at_ms": 1700003600000}
    said = protocol.rank_report(launch, "exited", result, log_lines=104, last_lines=[], outputs="ab" * 32)
    return protocol.report("boot-01", [said], [], [], [], {})


def _carried(launch: dict[str, Any]) -> bytes:
    """A shard that the agent carried to storage."""
    slot = "00002-00003-0123456789abcdef"
    uri = f"s3://bucket/lineage/0/manifests/{slot}.json"
    stored = dict(event("checkpoint"), uri=uri, slot=slot, shard=3, shards=4, manifest_sha256="ef" * 32)
    usage = {"checkpoint_upload_bytes": 1024.0, "checkpoint_upload_total_bytes": 4096.0}
    return protocol.report("boot-01", [], [], [protocol.of_rank(launch, stored)], [], usage)


def event(kind: str) -> dict[str, Any]:
    line = {
        "type": kind,
        "t": 1700000000003,
        "step": 40,
        "total": 100,
        "values": {"loss": 0.25, "diverged": float("nan")},
        "uri": "file:///data/checkpoints/lineage-1/step-40",
        "size_bytes": 4096,
        "manifest_sha256": "cd" * 32,
        "metadata": {"epoch": 2},
    }
    parsed = parse(json.dumps(line).encode())
    assert parsed is not None
    del parsed["type"]
    return parsed


def check(name: str, message: bytes) -> Any:
    """The golden file, after comparing it with what is said today."""
    path = GOLDEN / f"{name}.json"
    said = json.loads(message)
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(json.dumps(said, indent=2, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    golden = json.loads(path.read_text(encoding="utf-8"))
    assert said == golden
    return golden


@pytest.mark.parametrize("name", sorted(agent_says()))
def test_the_server_understands_what_the_agent_says(name: str) -> None:
    golden = check(name, agent_says()[name])
    model = AGENT_SAYS.get(name, wire.Report)
    read = model.model_validate(golden)
    # Every field the agent sends is one the server knows.
    assert_subset(golden, json.loads(read.model_dump_json()))


def assert_subset(said: Any, read: Any) -> None:
    if isinstance(said, dict):
        assert said.keys() <= read.keys()
        for name, value in said.items():
            assert_subset(value, read[name])
    elif isinstance(said, list):
        assert len(said) == len(read)
        for one, other in zip(said, read, strict=True):
            assert_subset(one, other)
    else:
        assert said == read


@pytest.mark.parametrize("name", sorted(SERVER_SAYS))
def test_what_the_server_says_is_what_the_golden_file_says(name: str) -> None:
    check(name, SERVER_SAYS[name].model_dump_json().encode())


def golden(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))


def test_the_agent_understands_its_enrolment() -> None:
    enrolled = protocol.Enrolled(golden("enrolled"))
    assert (enrolled.node_key, enrolled.report_every_s, enrolled.orphan_after_s) == ("a-node-key", 5.0, 900.0)
    assert enrolled.servers == ["http://127.0.0.1:7070", "https://crucible.example:443/base"]


def test_the_agent_understands_its_work() -> None:
    work = protocol.Work(golden("work"))
    assert (work.version, work.unchanged, work.retire) == ("v-17", False, False)
    assert [each.key for each in work.ranks] == [("att-01", 3), ("att-01", 0)]
    assert [(each.stop, each.stop_reason) for each in work.ranks] == [
        (False, "told to stop"),
        (True, "cancelled by ada"),
    ]
    assert work.ranks[0].launch == json.loads(LAUNCH.model_dump_json())
    assert work.ranks[1].launch == json.loads(MINIMAL.model_dump_json())
    assert protocol.Work(golden("work_unchanged")).unchanged
    assert protocol.Work(golden("work_retire")).retire


def test_the_agent_understands_which_secrets_a_rank_wants_and_their_values() -> None:
    (rank,) = protocol.Work(golden("work_secrets")).ranks
    assert rank.launch == json.loads(WITH_SECRETS.model_dump_json())
    assert protocol.secrets_from(golden("secrets")) == {"HF_TOKEN": b"hf_x", "GCP": b"\x00\xff"}


@pytest.mark.parametrize("said", [None, {}, {"items": [{"name": "A"}]}, {"items": [{"value": "aGZfeA=="}]}])
def test_what_is_no_list_of_secrets_is_not_repeated(said: Any) -> None:
    with pytest.raises(protocol.Malformed, match=r"^secrets were expected$"):
        protocol.secrets_from(said)


@pytest.mark.parametrize("file", ["/etc/passwd", "../x", "a/../../x", "a/..", "", "a b"])
def test_a_file_that_leaves_its_folder_is_refused_by_the_agent_too(file: str) -> None:
    work = golden("work_secrets")
    work["ranks"][0]["launch"]["secrets"][1]["file"] = file
    with pytest.raises(protocol.Malformed, match="the file of a secret"):
        protocol.Work(work)


def test_the_agent_understands_which_trees_a_rank_needs_and_may_leave() -> None:
    (rank,) = protocol.Work(golden("work_trees")).ranks
    assert rank.launch == json.loads(WITH_TREES.model_dump_json()) and rank.keeps_outputs
    assert not any(each.keeps_outputs for each in protocol.Work(golden("work")).ranks)


@pytest.mark.parametrize(
    "spoiled",
    [
        {"inputs": [{"name": "../x", "digest": "ab" * 32}]},
        {"inputs": [{"name": "..", "digest": "ab" * 32}]},
        {"inputs": [{"name": "a/b", "digest": "ab" * 32}]},
        {"inputs": [{"name": "x", "digest": "../x"}]},
        {"inputs": ["x"]},
        {"inputs": {"x": "y"}},
        {"output": {"max_bytes": 1}},
        {"output": {"max_bytes": "1", "max_files": 1, "within_s": 1.0}},
    ],
)
def test_a_launch_whose_trees_make_no_sense_is_refused(spoiled: dict[str, Any]) -> None:
    work = golden("work_trees")
    work["ranks"][0]["launch"] |= spoiled
    with pytest.raises(protocol.Malformed):
        protocol.Work(work)


def test_the_agent_understands_where_its_outputs_go() -> None:
    reply = protocol.OutputReply(golden("output"))
    assert list(reply.missing) == ["cd" * 32] and reply.missing["cd" * 32].method == "PUT"
    assert reply.manifest is not None and reply.manifest.headers == {"x-ms-blob-type": "BlockBlob"}
    nothing = protocol.OutputReply(golden("output_nothing"))
    assert nothing.missing == {} and nothing.manifest is None


def test_the_agent_understands_what_people_want_of_it() -> None:
    wishes = protocol.Work(golden("work_channels")).channels
    assert {wish.key for wish in wishes} == {("att-01", 3)}
    assert [wish.request["kind"] for wish in wishes] == ["exec", "exec", "copy_in", "copy_out", "forward"]
    assert protocol.Work(golden("work") | {"channels": None}).channels == [], "an older server knows none"


@pytest.mark.parametrize(
    "spoiled", [{"kind": "sudo"}, {"argv": "x"}, {"tty": {"rows": 1}}, {"rank": "0"}, {"stdin": 1}]
)
def test_a_wish_that_it_does_not_understand_does_not_keep_it_from_its_work(spoiled: dict[str, Any]) -> None:
    work = golden("work_channels")
    work["channels"][0]["request"] |= spoiled
    assert len(protocol.Work(work).channels) == 4


def test_the_agent_understands_the_answer_to_a_report() -> None:
    reply = protocol.Reply(golden("report_reply"))
    assert reply.acks == {("att-01", 3): (120, 7)}
    assert reply.work_version == "v-18"


def test_the_agent_understands_where_a_checkpoint_may_go() -> None:
    slot = protocol.SlotReply(golden("slot"))
    assert (slot.slot, slot.prefix, slot.lives_s) == (
        "00002-00003-0123456789abcdef",
        "s3://bucket/lineage/0",
        3600.0,
    )
    assert slot.manifest.url.endswith("/manifests/00002-00003-0123456789abcdef.json?signature=x")
    assert [each.url[-17:] for each in slot.parts] == ["00000?signature=x", "00001?signature=x"]
    assert slot.result.headers == {"x-ms-blob-type": "BlockBlob"} and slot.result.method == "PUT"


def test_the_agent_understands_where_a_dataset_is() -> None:
    reply = protocol.TreeReply(golden("tree"))
    (one,) = reply.objects
    assert reply.manifest is not None and (reply.source, reply.total) == ("aws/us-east-1", 2)
    assert (one.name, one.size) == ("cd" * 32, 10) and one.signed.method == "GET"
    assert one.holds == [("ef" * 32, 0, 4), ("01" * 32, 67108864, 6)]
    waits = protocol.TreeReply(golden("tree_wait"))
    assert waits.manifest is None and waits.wait_s == 1.0 and "being copied" in waits.reason


@pytest.mark.parametrize(
    "spoiled", [{"name": "../x"}, {"holds": [["a", 0]]}, {"holds": [["a", "0", 1]]}, {"size": "1"}]
)
def test_an_object_of_a_dataset_that_is_none_is_refused(spoiled: dict[str, Any]) -> None:
    reply = golden("tree")
    reply["objects"][0] |= spoiled
    with pytest.raises(protocol.Malformed):
        protocol.TreeReply(reply)


def test_the_agent_understands_what_to_resume_from() -> None:
    candidate = protocol.candidate_from(golden("candidate"))
    assert candidate is not None and candidate.step == 40
    assert [(each.manifest, len(each.objects)) for each in candidate.shards] == [("{}", 1)]
    assert candidate.shards[0].objects[0].method == "GET"
    assert protocol.candidate_from(golden("candidate_none")) is None


@pytest.mark.parametrize("spoiled", [{"url": "file:///etc/passwd"}, {"method": "GET"}, {"headers": {"a": 1}}])
def test_an_address_that_is_none_is_refused(spoiled: dict[str, Any]) -> None:
    slot = golden("slot")
    slot["manifest"] |= spoiled
    with pytest.raises(protocol.Malformed):
        protocol.SlotReply(slot)


def test_both_sides_speak_the_same_version_and_limits() -> None:
    from crucible.agent import cutter, events, output_tree, output_upload, slots, stowing
    from crucible.model import dataset_tree
    from crucible.model.storage import PIECE_BYTES

    assert protocol.PROTOCOL == wire.PROTOCOL
    assert cutter.MAX_LINE_BYTES == wire.MAX_LINE_BYTES
    assert slots.AT_ONCE == wire.MAX_SIGNED and events.MAX_SHARDS == wire.MAX_SHARDS
    assert stowing.OBJECT_BYTES == PIECE_BYTES
    assert output_upload.PAGE == trees.MAX_OBJECTS
    for name in ("OBJECT_BYTES", "SMALL_BYTES", "PACK_ENDS", "MAX_MANIFEST_BYTES", "MAX_PATH_BYTES"):
        assert getattr(output_tree, name) == getattr(dataset_tree, name)
    assert 2 * (protocol.LOG_BYTES + protocol.METRIC_BYTES + protocol.CHECKPOINT_BYTES) <= wire.MAX_REPORT_BYTES
