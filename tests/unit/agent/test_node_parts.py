"""The small parts of the agent: servers to ask, patterns, facts, processes, the archive."""

import ast
import io
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

import crucible
from crucible.agent import VERSION, bundle, disk, facts, processes
from crucible.agent.link import Backoff, Servers, Unanswered
from crucible.agent.meter import Meter
from crucible.agent.prepare import own_names
from crucible.agent.progress import Pattern
from crucible.agent.protocol import Malformed, Work
from crucible.agent.words import Words

AGENT = Path(bundle.__file__).parent


def test_devices_are_called_as_cuda_calls_them_here() -> None:
    names = {"0": "2", "1": "3", "gpu1/2": "2", "gpu1/3": "3"}
    assert own_names(["0", "1"], names) == own_names(["gpu1/2", "gpu1/3"], names) == ["2", "3"]
    assert own_names(["0", "GPU-7"], {}) == ["0", "GPU-7"], "whoever has a machine to itself renames nothing"


# --- servers ----------------------------------------------------------------------------------


def test_a_server_that_fails_makes_room_for_the_next() -> None:
    servers = Servers(["http://a", "http://b"], [], None)
    servers.failed("http://a")
    assert servers.current() == "http://b"
    servers.failed("http://a")
    assert servers.current() == "http://b"
    servers.failed("http://b")
    assert servers.current() == "http://a"


def test_the_file_names_where_the_server_went(tmp_path: Path) -> None:
    file = tmp_path / "server.json"
    servers = Servers(["http://old"], [], str(file))
    assert servers.current() == "http://old"
    file.write_text(json.dumps({"url": "http://new"}))
    servers.failed("http://old")
    assert servers.current() == "http://new"


def test_a_server_that_hangs_is_asked_last_although_the_file_names_it(tmp_path: Path) -> None:
    file = tmp_path / "server.json"
    file.write_text(json.dumps({"url": "http://hangs"}))
    servers = Servers(["http://alive"], [], str(file))
    assert servers.known() == ["http://alive", "http://hangs"]
    servers.learn(["http://alive"])
    servers.failed("http://alive")
    assert servers.known() == ["http://alive", "http://hangs"]
    assert Servers([], [], str(file)).current() == "http://hangs"


def test_without_any_server_nobody_answers() -> None:
    with pytest.raises(Unanswered, match=r"boot\.json"):
        Servers([], [], None).current()


def test_what_the_server_says_replaces_what_was_known() -> None:
    servers = Servers(["http://a"], ["http://a", "http://old"], None)
    servers.learn(["http://a", "http://b"])
    assert servers.known() == ["http://a", "http://b"]
    servers.learn([])
    assert servers.known() == ["http://a", "http://b"]


def test_a_server_given_at_boot_is_never_forgotten() -> None:
    servers = Servers(["http://proxy"], [], None)
    servers.learn(["http://inside"])
    servers.failed("http://proxy")
    servers.learn(["http://inside"])
    assert sorted(servers.known()) == ["http://inside", "http://proxy"]


def test_pauses_grow_to_five_seconds_and_no_further() -> None:
    backoff = Backoff()
    pauses = [backoff.next_s() for _ in range(20)]
    assert pauses[0] <= 0.1 and 2.5 <= pauses[-1] <= 5.0
    backoff.reset()
    assert backoff.next_s() <= 0.1


# --- messages ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        [],
        {},
        {"version": 1},
        {"version": "1", "ranks": [{}]},
        {"version": "1", "ranks": [{"launch": {"attempt_id": "../../etc"}, "stop": False, "token": "t"}]},
    ],
)
def test_a_reply_that_makes_no_sense_is_not_obeyed(data: object) -> None:
    with pytest.raises(Malformed):
        Work(data)


# --- patterns ---------------------------------------------------------------------------------


def test_the_group_step_or_the_first_group_is_the_step() -> None:
    for text in (r"(?P<epoch>\d+)/(?P<step>\d+)", r"\d+/(\d+)"):
        pattern = Pattern(text, 40)
        pattern.search(["epoch 1/10", "nothing", "epoch 2/20", "nothing"])
        assert pattern.found == {"step": 20, "total_steps": 40, "fraction": 0.5}


@pytest.mark.parametrize("text", ["(", "(?P<step>", "a{999999999999}"])
def test_a_broken_pattern_is_a_problem_not_a_failure(text: str) -> None:
    pattern = Pattern(text, None)
    pattern.search(["anything"])
    assert pattern.problem is not None and pattern.found is None


def test_a_pattern_that_needs_too_long_is_given_up() -> None:
    pattern = Pattern("(a+)+$", None)
    began = time.monotonic()
    pattern.search(["a" * 60 + "b"])
    assert pattern.problem is not None and "no longer used" in pattern.problem
    pattern.search(["a" * 60 + "b"])
    assert time.monotonic() - began < 5
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_groups_that_hold_no_number_are_passed_over() -> None:
    pattern = Pattern(r"step (\S*)", None)
    pattern.search(["step 3", "step three", "step ", "step ²", "step " + "9" * 40])
    assert pattern.found is not None and pattern.found["step"] == 3


# --- facts ------------------------------------------------------------------------------------


def nvidia_smi(folder: Path, script: str) -> None:
    path = folder / "nvidia-smi"
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)


def test_gpus_are_found_by_nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia_smi(tmp_path, "echo '0, NVIDIA A100-SXM4-80GB, 81920'; echo '1, NVIDIA A100-SXM4-80GB, 81920'")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    gpus, reason = facts.find_gpus()
    assert reason is None
    assert gpus[1] == {"index": 1, "name": "NVIDIA A100-SXM4-80GB", "memory_mib": 81920}


def test_a_hung_driver_means_no_gpus_and_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia_smi(tmp_path, "exec sleep 1000")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(facts, "_NVIDIA_TIMEOUT_S", 0.2)
    gpus, reason = facts.find_gpus()
    assert gpus == [] and reason is not None and "did not answer" in reason


def test_a_broken_driver_means_no_gpus_and_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia_smi(tmp_path, "echo 'could not talk to the driver' >&2; exit 9")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    gpus, reason = facts.find_gpus()
    assert gpus == [] and reason == "nvidia-smi failed (exit 9): could not talk to the driver"
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert facts.find_gpus() == ([], "nvidia-smi is not installed")


def test_usage_is_of_the_whole_node() -> None:
    usage = facts.Usage(Meter(), ".")
    figures = usage.figures()
    assert 0 < figures["memory_used_bytes"] < figures["memory_total_bytes"]
    assert 0 < figures["disk_used_bytes"] < figures["disk_total_bytes"]
    assert abs(figures["clock_s"] - time.time()) < 60


def test_network_traffic_is_told_by_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    told = iter([(10.0, 1000, 500), (12.0, 5000, 700), None, (20.0, 0, 0)])
    monkeypatch.setattr(facts, "_network_bytes", lambda: next(told))
    monkeypatch.setattr(facts, "_USAGE_EVERY_S", 0.0)
    usage = facts.Usage(Meter(), ".")
    assert "network_sent_bytes_per_s" not in usage.figures()  # nothing to compare with
    second = usage.figures()
    assert (second["network_received_bytes_per_s"], second["network_sent_bytes_per_s"]) == (2000, 100)
    assert "network_sent_bytes_per_s" not in usage.figures()  # /proc could not be read
    assert "network_sent_bytes_per_s" not in usage.figures()


# --- processes --------------------------------------------------------------------------------


def test_a_process_with_a_used_pid_is_not_killed() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    try:
        found = processes.find(child.pid)
        assert found is not None
        found.started -= 1
        processes.kill([found])
        assert child.poll() is None
        found.started += 1
        processes.kill([found])
        assert child.wait(10) == -signal.SIGKILL
    finally:
        child.kill()
        child.wait()


def test_descendants_are_found_by_parent_and_by_mark(tmp_path: Path) -> None:
    rank_id, run_dir = f"attempt-{os.getpid()}/0", str(tmp_path)
    shell = subprocess.Popen(
        ["/bin/sh", "-c", "sleep 1000 & echo $!; wait"],
        stdout=subprocess.PIPE,
        env={**os.environ, processes.RANK_ID: rank_id, processes.RUN_DIR: run_dir},
        text=True,
    )
    assert shell.stdout is not None
    grandchild = int(shell.stdout.readline())
    try:
        assert {shell.pid, grandchild} <= {each.pid for each in processes.descendants(os.getpid())}
        assert [each.pid for each in processes.descendants(shell.pid)] == [grandchild]
        assert {each.pid for each in processes.marked(rank_id, run_dir)} == {shell.pid, grandchild}
        assert processes.marked(rank_id, run_dir + "x") == processes.marked("other/0", run_dir) == []
        processes.kill(processes.marked(rank_id, run_dir))
        shell.wait(10)
    finally:
        shell.stdout.close()


# --- files ------------------------------------------------------------------------------------


def test_a_lock_is_seen_while_it_is_held(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    assert not disk.is_locked(path)
    held = disk.take_lock(path)
    assert held is not None
    assert disk.is_locked(path) and disk.take_lock(path) is None
    os.close(held)
    assert not disk.is_locked(path)


def test_the_agents_own_log_is_bounded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = Words(str(tmp_path / "agent.log"))
    for i in range(300):
        words.say(f"{i} " + "x" * 10_000)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 3 << 20
    for _ in range(3):
        words.say_once("report", "nobody there")
    assert capsys.readouterr().err.count("nobody there") == 1


# --- the archive ------------------------------------------------------------------------------


def test_the_same_sources_give_the_same_bytes(tmp_path: Path) -> None:
    first = bundle.build(tmp_path / "a.pyz")
    code = "import pathlib, sys; from crucible.agent import bundle; print(bundle.build(pathlib.Path(sys.argv[1])))"
    argv = [sys.executable, "-c", code, str(tmp_path / "b")]
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        again = subprocess.run(argv, capture_output=True, text=True, check=True, env=env)
        assert again.stdout.strip() == first
    assert (tmp_path / "a.pyz").read_bytes() == (tmp_path / "b").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pyz", "b"]


def test_the_archive_for_machines_elsewhere_depends_on_the_sources_alone(tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(bundle.portable())) as archive:
        assert {Path(name).suffix for name in archive.namelist()} == {".py"}
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    (tmp_path / "a.pyz").write_bytes(bundle.portable())
    argv = [sys.executable, str(tmp_path / "a.pyz"), "--version"]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip() == VERSION
    assert bundle.portable() == bundle.portable()


def test_the_archive_holds_the_agent_and_what_scripts_import_and_nothing_else(tmp_path: Path) -> None:
    bundle.build(tmp_path / "a.pyz")
    with zipfile.ZipFile(tmp_path / "a.pyz") as archive:
        names = {name for name in archive.namelist() if name.endswith(".py")}
    found = [path.relative_to(AGENT).as_posix() for path in AGENT.rglob("*.py") if path.name != "bundle.py"]
    sources = {f"crucible_agent/{name}" for name in found}
    library = {f"library/crucible/train/{path.name}" for path in (AGENT.parent / "train").glob("*.py")}
    assert names == sources | library | {"__main__.py", "library/crucible/__init__.py"}


def test_the_agent_imports_the_standard_library_and_itself_only() -> None:
    for path in AGENT.rglob("*.py"):
        # A launcher is run by the Python that has its framework.
        known = sys.stdlib_module_names | ({"torch", "horovod"} if path.parent.name == "launchers" else set())
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert all(alias.name.split(".")[0] in known for alias in node.names), path
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                assert node.module is not None and node.module.split(".")[0] in known, path


def test_every_module_is_python_3_8() -> None:
    for path in AGENT.glob("*.py"):
        ast.parse(path.read_text(), feature_version=(3, 8))


def test_the_agent_has_the_version_of_the_product() -> None:
    assert crucible.__version__ == VERSION
