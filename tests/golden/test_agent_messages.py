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
    "work_unchanged": wire.WorkReply(version="v-17", unchanged=True),
    "work_retire": wire.WorkReply(version="v-18", retire=True),
    "report_reply": wire.ReportReply(
        acks=[wire.StreamAck(attempt_id="att-01", rank=3, log=120, metrics=7)],
        servers=["http://127.0.0.1:7071"],
        work_version="v-18",
    ),
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
    model = wire.Enrol if name == "enrol" else wire.Report
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


def test_the_agent_understands_the_answer_to_a_report() -> None:
    reply = protocol.Reply(golden("report_reply"))
    assert reply.acks == {("att-01", 3): (120, 7)}
    assert reply.work_version == "v-18"


def test_both_sides_speak_the_same_version_and_limits() -> None:
    from crucible.agent import cutter

    assert protocol.PROTOCOL == wire.PROTOCOL
    assert cutter.MAX_LINE_BYTES == wire.MAX_LINE_BYTES
    assert 2 * (protocol.LOG_BYTES + protocol.METRIC_BYTES + protocol.CHECKPOINT_BYTES) <= wire.MAX_REPORT_BYTES
