"""Whatever a program prints arrives once and in order: through restarts of the agent and of the server, in any bytes,
of any length, in any amount."""

import fcntl
import json
import os
import signal
import time
from pathlib import Path

import pytest

from agent_process import AgentProcess, rank_work
from doubles.agent_server import ServerDouble

COUNT_SLOWLY = "import sys, time\nfor i in range(int(sys.argv[1])): print('line', i); time.sleep(float(sys.argv[2]))"
MEBIBYTE = 1 << 20


def numbered(count: int) -> list[str]:
    return [f"line {i}" for i in range(count)]


def cpu_seconds(pid: int) -> float:
    """Of a process and its ended children."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    return sum(map(int, stat[stat.rindex(")") + 2 :].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def test_records_are_numbered_from_zero_over_both_streams(agent: AgentProcess, server: ServerDouble) -> None:
    code = "import sys\nfor i in range(100): print(i, file=(sys.stdout, sys.stderr)[i % 2], flush=True)"
    server.give(rank_work("python", "-c", code))
    agent.start()
    server.exit_of()
    records = server.logs["att-1", 0]
    assert [record.n for record in records] == list(range(100))
    assert [int(record.x) for record in records if record.s == "out"] == list(range(0, 100, 2))
    assert [int(record.x) for record in records if record.s == "err"] == list(range(1, 100, 2))
    assert all(abs(record.t - time.time() * 1000) < 60_000 for record in records)


def test_a_line_arrives_while_the_program_runs(agent: AgentProcess, server: ServerDouble) -> None:
    code = "import time\nfor i in range(20): print(time.time()); time.sleep(0.1)"
    server.give(rank_work("python", "-c", code))
    agent.start()
    delays = []
    for i in range(20):
        line = server.wait_for(lambda i=i: server.lines()[i:])[0]
        delays.append(time.time() - float(line))
    assert sorted(delays)[len(delays) // 2] < 0.3, delays


def test_an_unfinished_line_is_sent_as_a_piece(agent: AgentProcess, server: ServerDouble) -> None:
    code = "import sys, time\nsys.stdout.write('50%\\r'); sys.stdout.flush(); time.sleep(3); print('done')"
    server.give(rank_work("python", "-c", code))
    agent.start()
    server.wait_for(lambda: server.logs.get(("att-1", 0)))
    assert server.ranks["att-1", 0].state != "exited"
    first = server.logs["att-1", 0][0]
    assert (first.x, first.p) == ("50%\r", True)
    server.exit_of()
    assert server.lines() == ["50%\rdone"]


def test_a_last_line_without_its_end_is_not_lost(agent: AgentProcess, server: ServerDouble) -> None:
    server.give(rank_work("printf", "one\\ntwo"))
    agent.start()
    server.exit_of()
    assert server.lines() == ["one", "two"]


def test_a_line_of_ten_megabytes_arrives_in_pieces(agent: AgentProcess, server: ServerDouble) -> None:
    code = "import sys; print('before'); sys.stdout.write('x' * 10_000_000 + '\\n'); print('after')"
    server.give(rank_work("python", "-c", code))
    agent.start()
    server.exit_of()
    assert server.lines() == ["before", "x" * 10_000_000, "after"]
    assert all(len(record.x) <= 64 << 10 for record in server.logs["att-1", 0])


def test_long_lines_are_not_cut_inside_a_character(agent: AgentProcess, server: ServerDouble) -> None:
    code = "import sys; sys.stdout.buffer.write(('a' + '€' * 100_000 + '\\n').encode())"
    server.give(rank_work("python", "-c", code))
    agent.start()
    server.exit_of()
    assert server.lines() == ["a" + "€" * 100_000]


def test_binary_output_becomes_text_without_loss(agent: AgentProcess, server: ServerDouble) -> None:
    code = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 4000)"
    server.give(rank_work("python", "-c", code))
    agent.start()
    server.exit_of()
    expected = (bytes(range(256)) * 4000).decode("utf-8", "backslashreplace")
    assert "\n".join(server.lines()) == expected
    assert max(server.report_bytes) < 4 * MEBIBYTE


def test_null_bytes_do_not_make_a_report_too_large(agent: AgentProcess, server: ServerDouble) -> None:
    server.give(rank_work("head", "-c", "5000000", "/dev/zero"))
    agent.start()
    server.exit_of()
    assert server.lines() == ["\0" * 5_000_000]
    assert max(server.report_bytes) < 4 * MEBIBYTE


def test_a_program_may_open_its_output_again(agent: AgentProcess, server: ServerDouble) -> None:
    server.give(rank_work("/bin/sh", "-c", "echo one; echo two > /dev/stdout; echo three; echo four > /dev/stderr"))
    agent.start()
    server.exit_of()
    assert server.lines() == ["one", "two", "three"]
    assert server.lines("err") == ["four"]


def test_a_server_that_moves_to_another_port_gets_every_line_once(agent: AgentProcess, server: ServerDouble) -> None:
    server.give(rank_work("python", "-c", COUNT_SLOWLY, "400", "0.005"))
    agent.start()
    for at in (50, 150, 250):
        server.wait_for(lambda at=at: len(server.lines()) > at)
        server.stop()
        time.sleep(0.3)
        server.start()
        agent.point_at(server)
    assert server.exit_of().exit_code == 0
    assert server.lines() == numbered(400)


def test_lost_replies_double_nothing(agent: AgentProcess, server: ServerDouble) -> None:
    server.give(rank_work("python", "-c", COUNT_SLOWLY, "200", "0.005"))
    agent.start()
    for at in range(20, 200, 40):
        server.wait_for(lambda at=at: len(server.lines()) > at)
        server.replies_to_lose["/agent/v1/report"] = 1
    server.exit_of()
    assert server.lines() == numbered(200)


def test_a_killed_agent_finds_its_rank_again_and_loses_no_line(agent: AgentProcess, server: ServerDouble) -> None:
    server.give(rank_work("python", "-c", COUNT_SLOWLY, "300", "0.01"))
    agent.start()
    pids = set()
    for at in (20, 100, 180):
        server.wait_for(lambda at=at: len(server.lines()) > at)
        agent.kill()
        pids.add(json.loads((agent.rank_folder() / "started.json").read_text())["pid"])
        agent.start()
    report = server.exit_of()
    assert report.exit_code == 0
    assert server.lines() == numbered(300)
    assert len(pids) == 1
    assert len(server.enrolments) == 1


def test_a_rank_that_ends_while_agent_and_server_are_dead_is_reported(
    agent: AgentProcess, server: ServerDouble
) -> None:
    code = COUNT_SLOWLY + "\nsys.exit(9)"
    server.give(rank_work("python", "-c", code, "50", "0.01"))
    agent.start()
    server.wait_for(lambda: server.has_line("line 3"))
    agent.kill()
    server.stop()
    result = agent.rank_folder() / "result.json"
    deadline = time.monotonic() + 10
    while not result.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert json.loads(result.read_text())["exit_code"] == 9
    server.start()
    agent.point_at(server)
    agent.start()
    report = server.exit_of()
    assert report.exit_code == 9
    assert server.lines() == numbered(50)
    assert report.last_lines[-1] == "line 49"


def test_a_stop_given_before_the_agent_died_is_carried_out(agent: AgentProcess, server: ServerDouble) -> None:
    work = {"stop_grace_s": 1.5, "env": {}}
    deaf = ("/bin/sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done")
    server.give(rank_work(*deaf, **work))
    agent.start()
    server.wait_for(lambda: server.has_line("ready"))
    server.give(rank_work(*deaf, stop=True, **work))
    server.wait_for(lambda: server.has_line("stopping", "sys"))
    agent.kill()
    result = agent.rank_folder() / "result.json"
    deadline = time.monotonic() + 10
    while not result.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    agent.start()
    assert server.exit_of().signal == 9


def test_a_rank_whose_supervisor_is_killed_is_ended_and_reported(agent: AgentProcess, server: ServerDouble) -> None:
    server.give(rank_work("sleep", "1000"))
    agent.start()
    server.wait_for(lambda: server.states.get(("att-1", 0), [])[-1:] == ["started"])
    folder = agent.rank_folder()
    rank = json.loads((folder / "started.json").read_text())["pid"]
    os.kill(json.loads((folder / "supervisor.json").read_text())["pid"], 9)
    report = server.exit_of()
    assert report.exit_code is None
    assert report.reason is not None and "its supervisor ended before it" in report.reason
    assert not Path(f"/proc/{rank}").exists()


def test_a_deaf_supervisor_is_killed_and_its_rank_with_it(agent: AgentProcess, server: ServerDouble) -> None:
    server.give(rank_work("sleep", "1000"))
    agent.start()
    server.wait_for(lambda: server.states.get(("att-1", 0), [])[-1:] == ["started"])
    folder = agent.rank_folder()
    rank = json.loads((folder / "started.json").read_text())["pid"]
    os.kill(json.loads((folder / "supervisor.json").read_text())["pid"], signal.SIGSTOP)
    server.give()
    server.wait_for(lambda: server.reports[-1].ranks == [], what="the rank is forgotten")
    assert not Path(f"/proc/{rank}").exists()


def test_a_node_that_cannot_write_says_so(agent: AgentProcess, server: ServerDouble) -> None:
    agent.start()
    server.wait_for(lambda: server.reports)
    (agent.folder / "attempts").rmdir()
    (agent.folder / "attempts").write_text("in the way of every folder")
    server.give(rank_work("echo", "hello"))
    reason = server.exit_of().reason
    assert reason is not None and reason.startswith("could not make the folder of the rank")


def test_a_rank_that_an_earlier_supervisor_holds_is_left_to_it(agent: AgentProcess, server: ServerDouble) -> None:
    """An agent that was killed between starting a supervisor and anything else leaves one that may begin late."""
    folder = agent.rank_folder()
    folder.mkdir(parents=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        server.give(rank_work("echo", "a second time"))
        agent.start()
        server.wait_for((folder / "supervisor.err").exists)
        # Longer than the second one waits for the lock.
        seen = len(server.reports)
        server.wait_for(lambda: len(server.reports) > seen + 2)
        assert server.states["att-1", 0] == ["starting"]
        (folder / "result.json").write_text(json.dumps({"exit_code": 5, "started_at_ms": 1, "ended_at_ms": 2}))
    assert server.exit_of().exit_code == 5
    assert server.lines(None) == []


def test_metrics_progress_and_checkpoints_arrive_once(agent: AgentProcess, server: ServerDouble) -> None:
    code = """
import json, os, time
file = open(os.environ['CRUCIBLE_RUN_DIR'] + '/events.jsonl', 'a', buffering=1)
def say(**event): file.write(json.dumps(event) + '\\n')
say(type='checkpoint_began', t=1, step=0)
file.write('not json\\n' + 'x' * 300_000 + '\\n')
for step in range(100):
    say(type='metrics', t=step, step=step, values={'loss': 1 / (step + 1), 'nan': float('nan')})
    say(type='progress', t=step, step=step, total=100)
    time.sleep(0.01)
say(type='checkpoint', t=5, step=99, uri='file:///c/99', size_bytes=12, manifest_sha256='0' * 64, metadata={'a': 1})
say(type='metrics', t=100, step=100, values={'loss': 0})
"""
    server.give(rank_work("python", "-c", code))
    agent.start()
    for at in (10, 50):
        server.wait_for(lambda at=at: len(server.metrics.get(("att-1", 0), [])) > at)
        agent.kill()
        agent.start()
    server.exit_of()
    metrics = server.metrics["att-1", 0]
    assert [record.step for record in metrics] == list(range(101))
    assert [record.n for record in metrics] == list(range(101))
    assert metrics[0].v == {"loss": 1.0, "nan": None}
    assert [(each.step, each.uri, each.metadata) for each in server.checkpoints] == [(99, "file:///c/99", {"a": 1})]
    assert server.progress[-1].fraction == 0.99
    assert any(report.ranks and report.ranks[0].is_checkpointing for report in server.reports)
    assert server.lines("sys") == ["a line of events.jsonl was ignored: it is not an event, or too long"]


def test_progress_is_read_from_the_lines_of_a_program_that_reports_none(
    agent: AgentProcess, server: ServerDouble
) -> None:
    work = rank_work("seq", "-f", "step %g of 8", "8", progress_pattern=r"step (?P<step>\d+)", progress_total=8)
    server.give(work)
    agent.start()
    server.exit_of()
    assert (server.progress[-1].step, server.progress[-1].total_steps, server.progress[-1].fraction) == (8, 8, 1.0)


def test_a_pattern_without_end_is_given_up(agent: AgentProcess, server: ServerDouble) -> None:
    code = "import time\nprint('a' * 40 + 'b'); time.sleep(2); print('after')"
    server.give(rank_work("python", "-c", code, progress_pattern="(a+)+$"))
    agent.start()
    server.exit_of()
    assert server.lines() == ["a" * 40 + "b", "after"]
    assert server.has_line("no longer used", "sys")


def test_a_report_that_the_server_cannot_use_silences_neither_heartbeat_nor_log(
    agent: AgentProcess, server: ServerDouble
) -> None:
    code = """
import json, os, time
with open(os.environ['CRUCIBLE_RUN_DIR'] + '/events.jsonl', 'a') as file:
    event = dict(type='checkpoint', t=5, step=1, uri='file:///c', size_bytes=1, manifest_sha256='0' * 64)
    file.write(json.dumps(event) + '\\n')
print('before'); time.sleep(2); print('after'); time.sleep(1000)
"""
    server.cannot_use = lambda report: bool(report.checkpoints)
    server.give(rank_work("python", "-c", code))
    agent.start()
    server.wait_for(lambda: server.states.get(("att-1", 0), [])[-1:] == ["started"])
    seen = len(server.reports)
    server.wait_for(lambda: len(server.reports) > seen + 4)
    server.cannot_use = lambda report: False
    server.wait_for(lambda: server.has_line("after") and server.checkpoints)
    assert server.lines() == ["before", "after"]
    server.give()


def test_a_server_that_takes_no_records_still_hears_of_the_exit(agent: AgentProcess, server: ServerDouble) -> None:
    server.takes_records = False
    server.give(rank_work("echo", "hello"))
    agent.start()
    began = time.monotonic()
    report = server.exit_of(timeout_s=60)
    assert report.exit_code == 0
    assert time.monotonic() - began >= 30
    # It did not send the same records over and over meanwhile.
    assert len(server.reports) < 200


@pytest.mark.timeout(200)
def test_a_hundred_megabytes_arrive_complete_with_less_than_a_core(agent: AgentProcess, server: ServerDouble) -> None:
    """One million lines of a hundred bytes, printed as fast as the pipe takes them."""
    lines = 1_000_000
    code = f"import sys\nw = sys.stdout.write\nfor i in range({lines}): w('%08d ' % i + 'x' * 90 + '\\n')"
    server.give(rank_work("python", "-c", code, env={"PYTHONUNBUFFERED": "0"}))
    agent.start()
    assert agent.process is not None
    server.wait_for(lambda: server.ranks)
    assert server.exit_of(timeout_s=150).exit_code == 0
    spent = cpu_seconds(agent.process.pid)
    records = server.logs["att-1", 0]
    assert len(records) == lines
    assert all(int(record.x[:8]) == i for i, record in enumerate(records))
    assert spent < 60, f"the agent used {spent:.1f} s of CPU for 100 MB"
    # Nothing stays on disk that the server has, but the end of the log.
    assert sum(path.stat().st_size for path in (agent.rank_folder() / "log").iterdir()) < 20 * MEBIBYTE
