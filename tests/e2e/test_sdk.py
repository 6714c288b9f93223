"""The SDK against a real server with real agents: the seed's example as it stands, a kill in the middle of a training,
a server that is restarted under who watches, and many coroutines at once."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crucible import AsyncClient, Job, MLPlatform, Requirements, Status
from crucible.client.config import embedded
from crucible.client.embedded import Embedded
from crucible.client.errors import JobCancelled, JobFailed
from crucible.model.errors import InfeasibleJob

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
GPT = (EXAMPLES / "nanogpt_train.py").read_text()
LIMIT_S = 90.0


def home(folder: Path) -> dict[str, str]:
    """The environment of somebody who has nothing configured."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("CRUCIBLE_", "XDG_"))}
    return {**clean, "HOME": str(folder), "CRUCIBLE_HOME": str(folder / "data")}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """A server on this computer with two declared slots, found as any program finds it."""
    environment = home(tmp_path_factory.mktemp("home"))
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ.keys() - environment.keys():
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        server = embedded(environment)
        server.start(["--local-gpus", "2"])
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture
def platform(local: Embedded) -> Iterator[MLPlatform]:
    with MLPlatform() as found:
        yield found


def train(platform: MLPlatform, name: str, steps: int = 120) -> Job:
    return platform.submit(
        GPT,
        Requirements(gpu_memory_gb=16, interruptible=True, max_cost_usd=10.0),
        {"optimize_for": "cost"},
        name=name,
        env={"STEPS": str(steps), "STEP_SECONDS": "0.02", "SAVE_EVERY": "20"},
        spec={"retry": {"delay": "1s"}},
    )


def until(job: Job, holds: Callable[[Status], bool]) -> Status:
    deadline = time.monotonic() + LIMIT_S
    while not holds(status := job.status()):
        assert not status.is_over and time.monotonic() < deadline, status
        time.sleep(0.05)
    return status


def shoot(job: Job) -> None:
    """kill -9 the rank of the job, found by the environment that it was given."""
    marks = f"CRUCIBLE_JOB_ID={job.id}".encode(), b"train.py"
    victims = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if is_marked(pid, *marks)]
    assert victims
    for pid in victims:
        os.kill(pid, signal.SIGKILL)


def is_marked(pid: int, variable: bytes, script: bytes) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        return variable in environment and script in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def said(job: Job, pattern: str) -> list[str]:
    return [match[1] for line in job.logs() if (match := re.fullmatch(pattern, line))]


# --- the seed's example ---------------------------------------------------------------------------------------


def test_the_example_runs_to_its_end_on_a_computer_without_gpus(tmp_path: Path) -> None:
    environment = home(tmp_path)
    server = embedded(environment)
    try:
        server.start(["--local-gpus", "0"])  # also where there are some
        ran = subprocess.run(
            [sys.executable, str(EXAMPLES / "sdk_seed003.py")],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
    finally:
        server.stop()
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-3:] == ["Backend: local", "Progress: 100.0%", "Cost so far: $0.00"]
    assert "runs on CPUs" in ran.stderr and "Traceback" not in ran.stderr
    assert "Migrated" not in ran.stdout


def test_a_program_that_finds_no_server_starts_one_and_says_so(tmp_path: Path) -> None:
    environment = home(tmp_path)
    program = "import crucible; print(crucible.MLPlatform().jobs())"
    try:
        ran = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=LIMIT_S
        )
    finally:
        embedded(environment).stop()
    assert (ran.returncode, ran.stdout) == (0, "[]\n"), ran.stderr
    assert "started a local server" in ran.stderr


def test_what_the_page_shows_runs(local: Embedded) -> None:
    page = (EXAMPLES.parent / "docs" / "sdk.md").read_text()
    programs = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(programs) == 6
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program], cwd=EXAMPLES, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for program in programs
    ]
    for program, process in zip(programs, running, strict=True):
        with process:
            output, error = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 0, f"{program}\n{output}\n{error}"


# --- a training that is killed --------------------------------------------------------------------------------


def test_a_killed_training_resumes_and_ends_with_the_same_loss(platform: MLPlatform) -> None:
    calm, killed = train(platform, "in-peace"), train(platform, "killed")
    assert killed.notes == (), "there are slots, so it has one"
    until(killed, lambda status: status.progress >= 40)
    assert killed.checkpoints()
    shoot(killed)
    seen = list(killed.watch())
    assert [status.phase for status in seen][-1] == "completed", seen[-1]
    assert {status.backend for status in seen} == {"local"} and not any(status.backend_changed for status in seen)
    result, calm_result = killed.result(), calm.result(LIMIT_S)
    (resumed,) = said(killed, r"resumed from step (\d+)")
    assert int(resumed) >= 20
    assert said(killed, "final loss (.*)") == said(calm, "final loss (.*)") != []
    losses = [point["values"]["loss"] for point in calm.metrics()]
    assert len(losses) == 120 and losses[-1] is not None and losses[0] is not None and losses[-1] < losses[0] / 1.5
    assert result.metrics == calm_result.metrics
    assert result.checkpoint is not None and result.checkpoint["step"] == 120
    assert calm.view().get("gpus") == 1


def test_a_rule_about_gpus_that_nothing_fits_is_refused(platform: MLPlatform) -> None:
    with pytest.raises(InfeasibleJob):
        platform.submit("print('hello')\n", Requirements(gpus=64))


def test_a_job_that_fails_or_is_cancelled_has_no_result(platform: MLPlatform) -> None:
    needs = Requirements(gpus=0)
    failing = platform.submit("raise SystemExit(7)\n", needs, spec={"retry": {"limit": 0}})
    sleeping = platform.submit("import time\ntime.sleep(600)\n", needs)
    until(sleeping, lambda status: status.phase == "running")
    sleeping.cancel()
    with pytest.raises(JobCancelled):
        sleeping.result(LIMIT_S)
    with pytest.raises(JobFailed, match="7"):
        failing.result(LIMIT_S)


# --- many at once ---------------------------------------------------------------------------------------------


def test_coroutines_submit_watch_and_read_at_once_through_a_restart_of_the_server(local: Embedded) -> None:
    script = "import time\nfor n in range(30):\n    print('line', n, flush=True)\n    time.sleep(0.1)\n"

    async def one(platform: MLPlatform, client: AsyncClient, runs: asyncio.Event) -> tuple[str, list[str]]:
        job = await platform.asubmit(script, Requirements(gpus=0))

        async def lines() -> list[str]:
            return [record["x"] async for record in client.logs(job.id, follow=True)]

        reading = asyncio.ensure_future(lines())
        async for status in job.monitor():
            if status.phase == "running" or status.is_over:
                runs.set()
        return status.phase, await reading

    async def main() -> list[tuple[str, list[str]]]:
        runs = asyncio.Event()
        async with asyncio.timeout(LIMIT_S), AsyncClient.open() as client:
            with MLPlatform() as platform:
                jobs = [asyncio.ensure_future(one(platform, client, runs)) for _ in range(4)]
                await runs.wait()
                await asyncio.to_thread(local.stop)
                await asyncio.to_thread(local.start, ["--local-gpus", "2"])
                return await asyncio.gather(*jobs)

    for phase, lines in asyncio.run(main()):
        assert phase == "completed"
        assert lines == [f"line {n}" for n in range(30)]


def test_ctrl_c_leaves_the_job_and_ends_the_program_at_once(platform: MLPlatform) -> None:
    job = platform.submit("import time\ntime.sleep(600)\n", Requirements(gpus=0))
    until(job, lambda status: status.phase == "running")
    program = (
        "import asyncio, crucible\n"
        "async def main():\n"
        f"    async for status in crucible.MLPlatform().job({job.id!r}).monitor():\n"
        "        print(status.phase, flush=True)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "running\n"
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=10)
    assert process.returncode != 0 and "KeyboardInterrupt" in error and "Warning" not in error
    assert job.status().phase == "running"
    job.cancel()
    assert job.wait(LIMIT_S).phase == "cancelled"
