"""What the stories of `make run` share: commands as a person would type them, and waiting with something to look at."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crucible.client.api import TERMINAL, Client

CRUCIBLE = [sys.executable, "-m", "crucible.cli.entry"]
PATIENCE_S = 120


def say(text: str) -> None:
    print(f"\n» {text}", flush=True)


def crucible(*arguments: str, quiet: bool = False) -> str:
    """What the command printed; shown as a person would see it, paths by their names."""
    if not quiet:
        print(f"\n$ crucible {' '.join(Path(word).name if '/' in word else word for word in arguments)}", flush=True)
    done = subprocess.run([*CRUCIBLE, *arguments], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"crucible {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}")
    if not quiet:
        print(done.stdout, end="", flush=True)
    return done.stdout


def submit(spec: Path, name: str) -> str:
    made = crucible("submit", str(spec), "--name", name, "-y", "-d", "-q", quiet=True).strip().splitlines()
    print(f"  {name}: job {made[-1]}")
    return made[-1]


def wait_until(client: Client, job_id: str, holds: Callable[[Any], bool], patience_s: float = PATIENCE_S) -> Any:
    """Show progress while waiting, one line in place on a terminal. Returns the job."""
    deadline, last = time.monotonic() + patience_s, ""
    while time.monotonic() < deadline:
        job = client.job(job_id)
        line = f"  {job['name']}: {job['status']:<13} {progress(job):>4.0%}  {bar(progress(job))}"
        if line != last:
            print(f"\r{line}" if sys.stdout.isatty() else line, end="" if sys.stdout.isatty() else "\n", flush=True)
            last = line
        if holds(job):
            print(end="\n" if sys.stdout.isatty() else "")
            return job
        time.sleep(0.5)
    raise SystemExit(f"job {job_id} did not get there within {patience_s:g} s: {client.job(job_id)}")


def is_over(job: Any) -> bool:
    return job["status"] in TERMINAL


def bar(fraction: float, width: int = 30) -> str:
    return ("█" * round(fraction * width)).ljust(width, "░")


def progress(job: Any) -> float:
    return (job.get("progress") or {}).get("fraction") or 0.0


def printed(client: Client, job_id: str, beginning: str) -> list[str]:
    """Lines of the job's own that begin so, without their beginning."""
    lines = [record["x"] for record in client.logs(job_id) if record["s"] == "out"]
    return [line.removeprefix(beginning) for line in lines if line.startswith(beginning)]
