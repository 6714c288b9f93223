"""Own hosts: how long a gang takes from `submit` until all its ranks run, on hosts that the server knows already. The
hosts are real sshds in namespaces of this computer, so the two cores that start agents are also the server's."""

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import server, timing
from benchmarks.figure import Figure

if TYPE_CHECKING:
    from hosts_world import HostsWorld

HOSTS = 3
RUNS = 5
LOOK_EVERY_S = 0.02
GANG = f"job: {{name: a gang, command: [sleep, '600'], resources: {{nodes: {HOSTS}}}}}"


def measure() -> Iterator[Figure]:
    if os.geteuid() != 0:
        print("hosts: not measured, since hosts are made of namespaces: run as root", file=sys.stderr)
        return
    tests = str(Path(__file__).parent.parent / "tests")
    if tests not in sys.path:
        sys.path.insert(0, tests)
    from hosts_world import HostsWorld

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="crucible-bench-")))
        world = stack.enter_context(HostsWorld(folder / "world", HOSTS))
        known = {"CRUCIBLE_ONPREM_KNOWN_HOSTS": str(world.keys.known_hosts)}
        options = ("--provider", "onprem", "--host", world.gateway)
        one = stack.enter_context(server.running(*options, more=known))
        one.ask("POST", "/v1/hosts", {"items": [registered(world, name) for name in world.names]})
        yield gangs(one)


def registered(world: "HostsWorld", name: str) -> dict[str, Any]:
    return {
        "name": name,
        "address": world.address(name),
        "user": "root",
        "identity_file": str(world.keys.private),
    }


def gangs(one: server.Server) -> Figure:
    ready_s(one)  # the agent is brought, the way back is found
    before = one.spent()
    found = [ready_s(one) for _ in range(RUNS)]
    spent = one.spent() - before
    return Figure(
        name=f"gang of {HOSTS} warm hosts ready",
        value=statistics.median(found),
        unit="s",
        bound=3.0,
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"runs": RUNS, "least_s": min(found), "most_s": max(found)},
    )


def ready_s(one: server.Server) -> float:
    """From the request until every rank runs; then the hosts are emptied again."""
    began = time.perf_counter()
    job_id = one.submit(GANG)
    while not all_run(one, job_id):
        if time.perf_counter() - began > 60:
            raise TimeoutError(f"the gang does not run: {json.dumps(one.ask('GET', f'/v1/jobs/{job_id}'))[:2000]}")
        time.sleep(LOOK_EVERY_S)
    took_s = time.perf_counter() - began
    one.ask("POST", f"/v1/jobs/{job_id}/cancel")
    timing.until(lambda: is_over(one, job_id), "empty hosts", 120)
    return took_s


def all_run(one: server.Server, job_id: str) -> bool:
    attempts = one.ask("GET", f"/v1/jobs/{job_id}/attempts")["items"]
    ranks = attempts[-1]["ranks"] if attempts else []
    return len(ranks) == HOSTS and all(rank["started_at"] for rank in ranks)


def is_over(one: server.Server, job_id: str) -> bool:
    if one.status(job_id) != "cancelled":
        return False
    return not any(host["machines"] for host in one.ask("GET", "/v1/hosts")["items"])
