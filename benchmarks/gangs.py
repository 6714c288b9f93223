"""Gangs: how long a hundred agents take to enrol and pass their barrier, and whether what 64 ranks print at once comes
in whole."""

import http.client
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks import server, timing
from benchmarks.figure import Figure

AGENTS = 100
RANKS = 64
LINES = 2000
PROGRAM = ("-m", "benchmarks.agentless_server")

GANG = f"""\
job:
  name: a gang
  command: ['true']
  resources: {{nodes: {AGENTS}}}
"""
CHORUS = f"""\
job:
  name: a chorus
  command: [python3, -S, -c, "import os; [print(os.environ['RANK'], n) for n in range({LINES})]"]
  execution: {{processes_per_node: {RANKS}}}
"""


def measure() -> Iterator[Figure]:
    yield enrolment()
    yield from fan_in()


# --- enrolment ------------------------------------------------------------------------------------------


def enrolment() -> Figure:
    """From the moment when all machines are there to the moment when every agent was told to run its rank."""
    with server.running(program=PROGRAM) as one:
        one.submit(GANG)
        machines = one.home / "local" / "machines"
        timing.until(lambda: len(list(machines.glob("*/boot.json"))) == AGENTS, "the machines")
        boots = [json.loads(path.read_text()) for path in sorted(machines.glob("*/boot.json"))]
        timing.until(lambda: not one.ask("GET", "/v1/nodes")["items"], "nobody has enrolled")
        before, began = one.spent(), time.perf_counter()
        with ThreadPoolExecutor(AGENTS) as agents:
            told = list(agents.map(lambda boot: Agent(one, boot).enrol().wait_for_work(), boots))
        wall_s, spent = time.perf_counter() - began, one.spent() - before
        ranks = sorted(rank["launch"]["rank"] for work in told for rank in work["ranks"])
        if ranks != list(range(AGENTS)):
            raise RuntimeError(f"{len(set(ranks))} of {AGENTS} agents were told a rank of their own")
    return Figure(
        name=f"{AGENTS} agents enrol and pass their barrier",
        value=wall_s,
        unit="s",
        bound=5.0,
        cpu_s=spent.cpu_s,
        wall_s=wall_s,
        context={"cpu_ms_per_agent": spent.cpu_s / AGENTS * 1000},
    )


class Agent:
    """As much of one as enrols and asks for work."""

    def __init__(self, one: server.Server, boot: dict[str, Any], facts: dict[str, Any] | None = None) -> None:
        self._connection: http.client.HTTPConnection = one.connect()
        self._boot = boot
        self._facts = facts or {}
        self._key = ""

    def enrol(self) -> "Agent":
        message = enrolment_of(self._boot, self._facts)
        self._key = self._ask("POST", "/agent/v1/enrol", self._boot["enrolment_token"], message)["node_key"]
        return self

    def wait_for_work(self) -> dict[str, Any]:
        seen = ""
        while True:
            work: dict[str, Any] = self._ask("GET", f"/agent/v1/work?wait=30&seen={seen}", self._key)
            seen = work["version"]
            if work["ranks"]:
                self._connection.close()
                return work

    def ask(self, method: str, path: str, body: object = None) -> Any:
        return self._ask(method, path, self._key, body)

    def _ask(self, method: str, path: str, token: str, body: object = None) -> Any:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        for _ in range(100):
            self._connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = self._connection.getresponse()
            text = answer.read()
            if answer.status == 200:
                return json.loads(text)
            if answer.status not in (409, 429, 503):
                break
            time.sleep(0.05)
        raise RuntimeError(f"{method} {path}: {answer.status} {text!r}")


def enrolment_of(boot: dict[str, Any], facts: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "protocol": 1,
        "order_id": boot["order_id"],
        "machine_id": boot["machine_id"],
        "agent_id": boot["machine_id"],
        "boot_id": "b",
        "agent_version": "0",
        "address": "127.0.0.1",
        "rendezvous_port": 29500,
        "facts": facts or {},
    }


# --- logs -------------------------------------------------------------------------------------------------


def fan_in() -> Iterator[Figure]:
    with server.running() as one:
        before = one.spent()
        job_id = one.submit(CHORUS)
        timing.until(lambda: one.status(job_id) == "completed", "the chorus", 300)
        spent = one.spent() - before
        lines = read_log(one, job_id)
        lost = {(rank, n) for rank in range(RANKS) for n in range(LINES)} - set(lines)
        yield Figure(
            name=f"lines of {RANKS} ranks lost or doubled",
            value=float(len(lost) + len(lines) - len(set(lines))),
            unit="lines",
            bound=0.0,
            cpu_s=spent.cpu_s,
            wall_s=spent.wall_s,
            context={"lines": RANKS * LINES, "lines_per_s": RANKS * LINES / spent.wall_s},
        )


def read_log(one: server.Server, job_id: str) -> list[tuple[int, int]]:
    connection = one.connect()
    connection.request("GET", f"/v1/jobs/{job_id}/logs", headers=one.headers)
    text = connection.getresponse().read().decode()
    connection.close()
    return [said(line) for line in text.splitlines()]


def said(line: str) -> tuple[int, int]:
    rank, number = line.split()[-2:]
    return int(rank), int(number)
