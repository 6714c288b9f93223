"""The first minute with Crucible, for `make run-local`: two equal trainings on this machine. One has its processes
killed half way, goes on from its checkpoint, and ends with the same loss, bit for bit. Stops what it started."""

import os
import signal
import sys
import tempfile
from pathlib import Path

from examples.telling import crucible, is_over, printed, progress, say, submit, wait_until

from crucible.client.api import Client
from crucible.client.config import embedded
from crucible.client.transport import Transport

SPEC = Path(__file__).resolve().with_name("job.yaml")
KILL_AT = 0.5


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
    calm, killed = submit(SPEC, "in-peace"), submit(SPEC, "killed")
    wait_until(client, killed, lambda job: progress(job) >= KILL_AT)
    shoot(killed)
    wait_until(client, killed, is_over)
    wait_until(client, calm, is_over)
    say("What happened to the one that was killed:")
    crucible("events", killed)
    crucible("checkpoints", killed)
    crucible("ps", "-a")
    losses = [printed(client, job_id, "final loss ")[-1:] for job_id in (calm, killed)]
    return compare(*losses, printed(client, killed, "resumed from step "))


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


def compare(calm: list[str], killed: list[str], resumed: list[str]) -> int:
    say(f"The killed job resumed from step {resumed[-1]}." if resumed else "The killed job did not resume.")
    print(f"  final loss in peace {''.join(calm)}\n  final loss killed   {''.join(killed)}")
    same = calm == killed != [] and bool(resumed)
    say("The same, bit for bit." if same else "They differ: that is a bug.")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
