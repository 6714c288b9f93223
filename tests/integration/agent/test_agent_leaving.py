"""Machines that go: nobody is heard any more, nobody ever was, their time is over, the cloud takes them back. Ranks get
their grace, the server hears of it if it can, and nothing stays switched on."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_process import AgentProcess, rank_work
from carried import stored, training, until
from crucible.agent.notices import seconds_left
from crucible.core.boot import EC2
from crucible.wire.agent import OutputWork
from doubles.agent_server import ServerDouble
from doubles.metadata import MetadataDouble, running_metadata
from doubles.outputs import OutputsDouble
from doubles.storage import StorageDouble

# Says when it is asked to stop and how long it has; then writes its checkpoint.
SAVING = """
import json, os, signal, sys, time
def handler(*_):
    note = json.load(open(os.environ['CRUCIBLE_RUN_DIR'] + '/stop'))
    print('asked, %d s' % round(note['deadline_ms'] / 1000 - time.time()), flush=True)
    time.sleep(0.5)
    open(sys.argv[1], 'w').write('saved')
    sys.exit(0)
signal.signal(signal.SIGTERM, handler)
print('ready', flush=True)
time.sleep(1000)
"""


@pytest.fixture
def off(tmp_path: Path) -> Path:
    """Where a machine that was switched off leaves its mark."""
    return tmp_path / "off"


@pytest.fixture
def metadata() -> Iterator[MetadataDouble]:
    with running_metadata() as double:
        yield double


def boot(agent: AgentProcess, server: ServerDouble, off: Path, **changes: Any) -> None:
    agent.boot(servers=[server.url], server_file=None, power_off=["touch", str(off)], **changes)


def watching(metadata: MetadataDouble) -> dict[str, str]:
    fields = ("token_path", "token_header", "token_ttl_header", "notice_path", "hint_path")
    return {"endpoint": metadata.url, **{name: getattr(EC2, name) for name in fields}}


def begin(agent: AgentProcess, server: ServerDouble, saved: Path, grace_s: float = 5.0) -> None:
    server.give(rank_work("python", "-c", SAVING, str(saved), stop_grace_s=grace_s))
    agent.start()
    server.wait_for(lambda: server.has_line("ready"))


def until_said(agent: AgentProcess, text: str) -> None:
    deadline = time.monotonic() + 20
    while text not in agent.said():
        assert time.monotonic() < deadline, f"not said: {text}"
        time.sleep(0.01)


# --- the dead-man switch ----------------------------------------------------------------------


def test_a_machine_that_hears_nobody_saves_its_work_and_powers_off(
    agent: AgentProcess, server: ServerDouble, off: Path, tmp_path: Path
) -> None:
    server.orphan_after_s = 1.5
    boot(agent, server, off)
    begin(agent, server, tmp_path / "saved")
    server.stop()
    assert agent.wait() == 0
    assert (tmp_path / "saved").read_text() == "saved"
    assert off.exists()
    assert (agent.folder / "agent.exit").read_text() == "orphaned\n"
    result = json.loads((agent.rank_folder() / "result.json").read_text())
    assert result["reason"] == "no server was heard for 1.5 s"
    assert agent.processes() == []


def test_a_server_that_answers_with_refusals_only_is_not_heard(
    agent: AgentProcess, server: ServerDouble, off: Path, tmp_path: Path
) -> None:
    server.orphan_after_s = 1.5
    boot(agent, server, off)
    begin(agent, server, tmp_path / "saved")
    server.refusals |= {"/agent/v1/report": 403, "/agent/v1/work": 403}
    assert agent.wait() == 0
    assert (tmp_path / "saved").exists() and off.exists()


def test_a_heard_server_keeps_the_machine_on(agent: AgentProcess, server: ServerDouble, off: Path) -> None:
    server.orphan_after_s = 1.0
    boot(agent, server, off)
    server.give(rank_work("sleep", "2.5"))
    agent.start()
    assert server.exit_of().exit_code == 0
    assert not off.exists() and agent.process is not None and agent.process.poll() is None


def test_a_server_that_returns_while_the_ranks_stop_hears_that_nobody_is_to_blame(
    agent: AgentProcess, server: ServerDouble, off: Path, tmp_path: Path
) -> None:
    server.orphan_after_s = 1.5
    boot(agent, server, off)
    begin(agent, server, tmp_path / "saved")
    server.refusals |= {"/agent/v1/report": 500, "/agent/v1/work": 500}
    until_said(agent, "stopping every rank")
    server.refusals.clear()
    assert agent.wait() == 0
    report = server.ranks["att-1", 0]
    assert (report.state, report.exit_code, report.evicted) == ("exited", 0, True)
    assert off.exists()


def test_a_machine_that_nobody_welcomes_in_time_powers_off(
    agent: AgentProcess, server: ServerDouble, off: Path
) -> None:
    server.refusals["/agent/v1/enrol"] = 500
    boot(agent, server, off, enrol_within_s=1.0)
    agent.start()
    assert agent.wait() == 1
    assert off.exists()
    assert "no server answered the enrolment for 1 s" in (agent.folder / "agent.exit").read_text()


def test_a_machine_that_is_refused_powers_off(agent: AgentProcess, server: ServerDouble, off: Path) -> None:
    server.refusals["/agent/v1/enrol"] = 410
    boot(agent, server, off)
    agent.start()
    assert agent.wait() == 1
    assert off.exists()


def test_a_machine_whose_agent_breaks_powers_off(agent: AgentProcess, server: ServerDouble, off: Path) -> None:
    boot(agent, server, off)
    (agent.folder / "attempts").write_text("in the way")
    agent.start()
    assert agent.wait() == 1
    assert off.exists()
    assert (agent.folder / "agent.exit").read_text().startswith("broken: FileExistsError")


def test_a_machine_does_not_outlive_what_it_was_given(
    agent: AgentProcess, server: ServerDouble, off: Path, tmp_path: Path
) -> None:
    boot(agent, server, off, max_life_s=3.0)
    begin(agent, server, tmp_path / "saved")
    assert agent.wait() == 0
    report = server.ranks["att-1", 0]
    assert (report.evicted, report.reason) == (True, "the machine has reached its longest life of 3 s")
    assert (tmp_path / "saved").exists() and off.exists()


def test_a_machine_at_the_end_of_its_life_waits_until_the_server_has_heard_how_its_ranks_ended(
    agent: AgentProcess, server: ServerDouble, off: Path, tmp_path: Path
) -> None:
    boot(agent, server, off, max_life_s=3.0)
    begin(agent, server, tmp_path / "saved")
    server.refusals["/agent/v1/report"] = 500
    until_said(agent, "ended: the machine has reached its longest life")
    server.refusals.clear()
    assert agent.wait() == 0
    assert server.ranks["att-1", 0].evicted and off.exists()


# --- notices ----------------------------------------------------------------------------------


def test_what_the_cloud_takes_back_is_saved_and_reported_in_time(
    agent: AgentProcess, server: ServerDouble, metadata: MetadataDouble, off: Path, tmp_path: Path
) -> None:
    boot(agent, server, off, metadata=watching(metadata))
    begin(agent, server, tmp_path / "saved")
    metadata.wait_for("spot/instance-action", 1)
    at, began = metadata.take_back(in_s=120), time.monotonic()
    report = server.exit_of()
    assert (report.exit_code, report.evicted) == (0, True)
    assert report.reason == f"the provider takes the machine back at {at}"
    assert (tmp_path / "saved").exists() and server.lines()[-1] == "asked, 5 s"
    assert time.monotonic() - began < 15
    # It is theirs to switch off, and no new work begins.
    server.give(rank_work("true", attempt_id="att-2"))
    until_said(agent, "waiting for the provider")
    assert not off.exists() and ("att-2", 0) not in server.ranks


def test_the_grace_fits_into_a_short_notice(
    agent: AgentProcess, server: ServerDouble, metadata: MetadataDouble, off: Path
) -> None:
    boot(agent, server, off, metadata=watching(metadata))
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready'); time.sleep(1000)"
    server.give(rank_work("python", "-c", code, stop_grace_s=1000))
    agent.start()
    server.wait_for(lambda: server.has_line("ready"))
    metadata.wait_for("spot/instance-action", 1)
    metadata.take_back(in_s=6)
    began = time.monotonic()
    report = server.exit_of(timeout_s=6)
    assert time.monotonic() - began < 6
    assert (report.signal, report.evicted) == (9, True)


def test_a_rank_that_is_stopping_already_has_no_more_time_than_the_machine(
    agent: AgentProcess, server: ServerDouble, metadata: MetadataDouble, off: Path
) -> None:
    boot(agent, server, off, metadata=watching(metadata))
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready'); time.sleep(1000)"
    server.give(rank_work("python", "-c", code, stop_grace_s=1000))
    agent.start()
    server.wait_for(lambda: server.has_line("ready"))
    server.give(rank_work("python", "-c", code, stop_grace_s=1000, stop=True, stop_reason="cancelled"))
    server.wait_for(lambda: server.has_line("stopping: cancelled", "sys"))
    metadata.take_back(in_s=3)
    assert server.exit_of(timeout_s=10).signal == 9


def test_a_service_that_falls_silent_or_forgets_its_tokens_is_asked_again(
    agent: AgentProcess, server: ServerDouble, metadata: MetadataDouble, off: Path, tmp_path: Path
) -> None:
    metadata.is_silent = True
    boot(agent, server, off, metadata=watching(metadata))
    begin(agent, server, tmp_path / "saved")
    assert server.ranks["att-1", 0].state == "started"
    metadata.is_silent = False
    metadata.wait_for("spot/instance-action", 1)
    metadata.tokens.clear()
    metadata.hint()
    metadata.take_back(in_s=60)
    assert server.exit_of(timeout_s=30).evicted


def test_a_hint_is_told_and_nothing_else(
    agent: AgentProcess, server: ServerDouble, metadata: MetadataDouble, off: Path
) -> None:
    metadata.hint()
    boot(agent, server, off, metadata=watching(metadata))
    server.give(rank_work("sleep", "3"))
    agent.start()
    assert server.exit_of().exit_code == 0
    assert "may soon take the machine back" in agent.said()


# --- notices, with checkpoints that the agent carries --------------------------------------------

LAST_SAVE = ("print('ready', flush=True)", "while not train.should_stop(): time.sleep(0.02)", "save(9, {'w': 100_000})")


def test_a_notice_while_no_server_is_there_still_brings_the_last_checkpoint_to_storage(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble, metadata: MetadataDouble, off: Path
) -> None:
    boot(agent, server, off, metadata=watching(metadata))
    server.give(training(*LAST_SAVE))
    agent.start()
    server.wait_for(lambda: server.has_line("ready") and server.slots)
    server.stop()
    metadata.take_back(in_s=40)
    storage.wait_for(lambda: storage.names("manifests/") and storage.names("results/"))
    assert len(stored(storage)[9]["w"]) == 100_000
    word = json.loads(storage.objects["results/att-1-0.json"])
    assert (word["state"], word["evicted"], word["exit_code"]) == ("exited", True, 0)


def test_the_exit_of_a_rank_that_is_taken_back_waits_for_its_upload(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble, metadata: MetadataDouble, off: Path
) -> None:
    boot(agent, server, off, metadata=watching(metadata))
    storage.fail("PUT", "parts/", "held")
    server.give(training(*LAST_SAVE))
    agent.start()
    server.wait_for(lambda: server.has_line("ready"))
    metadata.take_back(in_s=100)
    until(lambda: (agent.rank_folder() / "result.json").exists())
    count = len(server.reports)
    server.wait_for(lambda: len(server.reports) > count + 2)
    assert (server.ranks["att-1", 0].state, server.ranks["att-1", 0].is_checkpointing) == ("started", True)
    storage.release()
    report = server.exit_of()
    assert (report.exit_code, report.evicted, report.is_checkpointing) == (0, True, False)
    assert list(stored(storage)) == [9] and [one.step for one in server.checkpoints] == [9]


def test_a_machine_without_time_left_does_not_wait_for_an_upload(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble, metadata: MetadataDouble, off: Path
) -> None:
    boot(agent, server, off, metadata=watching(metadata))
    storage.fail("PUT", "parts/", "held")
    server.give(training(*LAST_SAVE))
    agent.start()
    server.wait_for(lambda: server.has_line("ready"))
    metadata.wait_for("spot/instance-action", 1)
    metadata.take_back(in_s=7)
    began = time.monotonic()
    assert server.exit_of(timeout_s=7).evicted
    assert time.monotonic() - began < 7
    assert storage.names("manifests/") == []


@pytest.mark.parametrize(
    ("at", "now", "left_s"),
    [
        ("2026-01-01T00:02:00Z", "Thu, 01 Jan 2026 00:00:00 GMT", 120),
        ("2026-01-01T00:00:30Z", "Thu, 01 Jan 2026 00:00:00 GMT", 30),
        ("2026-01-01T00:00:30Z", None, 120),
        ("2026-01-01T00:00:30Z", "yesterday", 120),
        ("2026-01-01T01:00:30Z", "Thu, 01 Jan 2026 00:00:00 GMT", 120),
        ("2026-01-01T00:00:00Z", "Thu, 01 Jan 2026 01:00:00 GMT", 120),
        ("soon", "Thu, 01 Jan 2026 00:00:00 GMT", 120),
    ],
)
def test_what_is_left_is_counted_by_the_clouds_own_clock(at: str, now: str | None, left_s: float) -> None:
    assert seconds_left(at, now) == left_s


# --- notices, with outputs ------------------------------------------------------------------------------------


def test_a_machine_without_time_left_makes_no_success_of_outputs_that_are_not_stored(
    agent: AgentProcess,
    server: ServerDouble,
    storage: StorageDouble,
    outputs: OutputsDouble,
    metadata: MetadataDouble,
    off: Path,
) -> None:
    boot(agent, server, off, metadata=watching(metadata))
    storage.fail("PUT", "objects/", "503", 10_000)
    limits = OutputWork(max_bytes=1 << 30, max_files=10, within_s=600.0)
    server.give(rank_work("/bin/sh", "-c", 'echo hello > "$CRUCIBLE_OUTPUT/a"', output=limits))
    agent.start()
    storage.wait_for(lambda: any(status == 503 for _, _, status in storage.requests))
    metadata.wait_for("spot/instance-action", 1)
    metadata.take_back(in_s=7)
    began = time.monotonic()
    report = server.exit_of(timeout_s=7)
    assert time.monotonic() - began < 7
    assert (report.evicted, report.outputs) == (True, None)
    assert report.reason == "the machine went before the outputs were stored"


def test_outputs_that_are_stored_before_the_machine_goes_count(
    agent: AgentProcess,
    server: ServerDouble,
    storage: StorageDouble,
    outputs: OutputsDouble,
    metadata: MetadataDouble,
    off: Path,
) -> None:
    boot(agent, server, off, metadata=watching(metadata))
    storage.fail("PUT", "objects/", "held")
    limits = OutputWork(max_bytes=1 << 30, max_files=10, within_s=600.0)
    server.give(rank_work("/bin/sh", "-c", 'echo hello > "$CRUCIBLE_OUTPUT/a"', output=limits))
    agent.start()
    storage.wait_for(lambda: storage.count("held"))
    metadata.take_back(in_s=60)
    until_said(agent, "stopping every rank")
    storage.release()
    report = server.exit_of()
    assert (report.exit_code, report.evicted) == (0, False) and report.outputs == outputs.confirmed[0]
