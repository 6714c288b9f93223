"""A script hears of a stop through the agent's file or SIGTERM, and Crucible takes nothing from a script that handles
SIGTERM itself."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from crucible.train import stopping

WAITS_FOR_STOP = """
import os, sys, time
from crucible import train
assert not train.should_stop()
print("ready", flush=True)
deadline = time.monotonic() + 20
while not train.should_stop() and time.monotonic() < deadline:
    time.sleep(0.005)
print("stopped" if train.should_stop() else "never", flush=True)
"""

HANDLES_SIGTERM_ITSELF = """
import signal, sys, time
from crucible import train
signal.signal(signal.SIGTERM, lambda *_: (print("own handler", flush=True), sys.exit(7)))
train.should_stop()
print("ready", flush=True)
time.sleep(20)
"""

ONLY_LOGS = """
import time
from crucible import train
train.init(); train.log(1, loss=0.5)
print("ready", flush=True)
time.sleep(20)
"""

ASKS_FROM_A_THREAD = """
import threading
from crucible import train
answers = []
thread = threading.Thread(target=lambda: answers.append(train.should_stop()))
thread.start(); thread.join()
print(answers, train.should_stop(), flush=True)
"""


def start(script: str, env: dict[str, str]) -> "subprocess.Popen[str]":
    process = subprocess.Popen([sys.executable, "-c", script], env=env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "CRUCIBLE_RUN_DIR": str(tmp_path)}


def test_sigterm_is_a_notice_inside_crucible(env: dict[str, str]) -> None:
    process = start(WAITS_FOR_STOP, env)
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=20)[0] == "stopped\n" and process.returncode == 0


def test_the_stop_file_is_a_notice(env: dict[str, str], tmp_path: Path) -> None:
    process = start(WAITS_FOR_STOP, env)
    (tmp_path / "stop").touch()
    assert process.communicate(timeout=20)[0] == "stopped\n"


def test_outside_crucible_sigterm_kills_as_always(env: dict[str, str]) -> None:
    del env["CRUCIBLE_RUN_DIR"]
    process = start(WAITS_FOR_STOP, env)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == -signal.SIGTERM


def test_a_script_that_never_asks_is_killed_as_always(env: dict[str, str]) -> None:
    process = start(ONLY_LOGS, env)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == -signal.SIGTERM


def test_the_scripts_own_handler_stays(env: dict[str, str]) -> None:
    process = start(HANDLES_SIGTERM_ITSELF, env)
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=20)[0] == "own handler\n" and process.returncode == 7


def test_asking_from_another_thread_is_safe(env: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASKS_FROM_A_THREAD], env=env, capture_output=True, text=True, timeout=20
    )
    assert (done.stdout, done.stderr) == ("[False] False\n", "")


def test_asking_every_step_rarely_looks_at_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    monkeypatch.setattr(stopping.os.path, "exists", lambda path: bool(looks.append(path)))
    notice = stopping.StopNotice()
    notice._is_listening = True  # this process keeps its own SIGTERM
    started = stopping.time.monotonic()
    for _ in range(10_000):
        assert not notice.has_come(str(tmp_path))
    assert len(looks) <= 1 + (stopping.time.monotonic() - started) / stopping.LOOK_EVERY_S
