"""The first minute with Crucible, for `make run`: two equal trainings on this machine. One has its processes killed
half way, goes on from its checkpoint, and ends with the same loss, bit for bit. Stops what it started."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from crucible.client.api import Client
from crucible.client.config import embedded
from crucible.client.transport import Transport

HERE = Path(__file__).resolve().parent
SPEC = HERE / "job.yaml"
CRUCIBLE = [sys.executable, "-m", "crucible.cli.entry"]
KILL_AT = 0.5
PATIENCE_S = 120


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="crucible-run-") as home:
        # A folder of its own: nothing of an installed Crucible is used or touched.
        os.environ.update(CRUCIBLE_HOME=home, XDG_CONFIG_HOME=home, CRUCIBLE_SERVER="", CRUCIBLE_TOKEN="")
        server = embedded(os.environ)
        server.start(["--local-gpus", "4"])
        try:
            endpoint = server.endpoint()
            assert endpoint is not None
            with Client(Transport(endpoint)) as client:
                return tell(client)
        finally:
            server.stop()


def tell(client: Client) -> int:
    say(f"A server is running at {client.endpoint.url}, with four declared GPU slots on this machine.")
    say("What would the job cost, and where would it run?")
    crucible("plan", str(SPEC))
    say("Two of them: one in peace, one that will be killed half way.")
    calm, killed = submit("in-peace"), submit("killed")
    wait_until(client, killed, lambda job: progress(job) >= KILL_AT)
    shoot(killed)
    wait_until(client, killed, lambda job: job["status"] in ("completed", "failed", "cancelled"))
    wait_until(client, calm, lambda job: job["status"] in ("completed", "failed", "cancelled"))
    say("What happened to the one that was killed:")
    crucible("events", killed)
    crucible("checkpoints", killed)
    crucible("ps", "-a")
    return compare(final_loss(client, calm), final_loss(client, killed), resumed_at(client, killed))


def submit(name: str) -> str:
    made = crucible("submit", str(SPEC), "--name", name, "-y", "-d", "-q", quiet=True).strip().splitlines()
    print(f"  {name}: job {made[-1]}")
    return made[-1]


def wait_until(client: Client, job_id: str, holds) -> None:  # type: ignore[no-untyped-def]
    """Show progress while waiting, one line in place on a terminal."""
    deadline, last = time.monotonic() + PATIENCE_S, ""
    while time.monotonic() < deadline:
        job = client.job(job_id)
        line = f"  {job['name']}: {job['status']:<13} {progress(job):>4.0%}  {bar(progress(job))}"
        if line != last:
            print(f"\r{line}" if sys.stdout.isatty() else line, end="" if sys.stdout.isatty() else "\n", flush=True)
            last = line
        if holds(job):
            print(end="\n" if sys.stdout.isatty() else "")
            return
        time.sleep(0.5)
    raise SystemExit(f"job {job_id} did not get there within {PATIENCE_S} s: {client.job(job_id)}")


def shoot(job_id: str) -> None:
    """kill -9 every rank of the job: found by the environment that Crucible gave them."""
    victims = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if is_rank_of(pid, job_id)]
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    say(f"kill -9 {' '.join(map(str, victims))}: both ranks are gone in the middle of a step.")


def is_rank_of(pid: int, job_id: str) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        return (
            f"CRUCIBLE_JOB_ID={job_id}".encode() in environment
            and b"train.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
        )
    except OSError:
        return False


def final_loss(client: Client, job_id: str) -> str:
    lines = [record["x"] for record in client.logs(job_id) if record["x"].startswith("final loss")]
    return lines[-1].removeprefix("final loss ") if lines else "none"


def resumed_at(client: Client, job_id: str) -> str:
    lines = [record["x"] for record in client.logs(job_id) if record["x"].startswith("resumed")]
    return lines[-1] if lines else "did not resume"


def compare(calm: str, killed: str, how: str) -> int:
    say(f"The killed job {how}.")
    print(f"  final loss in peace {calm}\n  final loss killed   {killed}")
    same = calm == killed != "none" and how.startswith("resumed")
    say("The same, bit for bit." if same else "They differ: that is a bug.")
    return 0 if same else 1


def crucible(*arguments: str, quiet: bool = False) -> str:
    if not quiet:
        print(f"\n$ crucible {' '.join(Path(a).name if a == str(SPEC) else a for a in arguments)}", flush=True)
    done = subprocess.run([*CRUCIBLE, *arguments], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"crucible {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}")
    if not quiet:
        print(done.stdout, end="", flush=True)
    return done.stdout


def say(text: str) -> None:
    print(f"\n» {text}", flush=True)


def bar(fraction: float, width: int = 30) -> str:
    return ("█" * round(fraction * width)).ljust(width, "░")


def progress(job) -> float:  # type: ignore[no-untyped-def]
    return (job.get("progress") or {}).get("fraction") or 0.0


if __name__ == "__main__":
    sys.exit(main())
