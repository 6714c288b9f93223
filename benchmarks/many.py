"""Very many short tasks: what each costs the control plane from its seat to its end, and how soon ten thousand that
wait are gone when somebody sees that the whole search was a mistake. The node is pretended, with sixteen seats whose
tasks end as soon as they begin, so that nothing but the server is measured."""

import json
from collections.abc import Iterator
from typing import Any

from benchmarks import gangs, server, timing
from benchmarks.figure import Figure

TASKS = 10_000
SEATS = 16
SEARCH = """\
job:
  name: {name}
  type: hpo
  command: ['true']
  resources: {{gpus: {gpus}}}
  sweep: {{method: random, trials: {trials}, parameters: {{x: {{min: 0, max: 1}}}}}}
"""


def measure() -> Iterator[Figure]:
    yield tasks()
    yield cancel()


def tasks() -> Figure:
    with server.running(program=gangs.PROGRAM) as one:
        job_id = one.submit(SEARCH.format(name="short ones", gpus=0, trials=TASKS))
        machines = one.home / "local" / "machines"
        timing.until(lambda: len(list(machines.glob("*/boot.json"))) == 1, "the machine")
        (boot,) = [json.loads(path.read_text()) for path in machines.glob("*/boot.json")]
        agent = ShortWork(one, boot, {"cpus": SEATS, "memory_bytes": 64 << 30})
        agent.enrol()
        before = one.spent()
        agent.work_through(TASKS)
        timing.until(lambda: one.status(job_id) == "completed", "the search", 60)
        spent = one.spent() - before
    return Figure(
        name="server CPU per short task",
        value=spent.cpu_s / TASKS * 1000,
        unit="ms CPU",
        bound=5.0,
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"tasks": TASKS, "seats": SEATS, "tasks_per_s": TASKS / spent.wall_s},
    )


class ShortWork(gangs.Agent):
    """Whatever it is told to run has ended before it answers."""

    def __init__(self, one: server.Server, boot: dict[str, Any], facts: dict[str, Any]) -> None:
        super().__init__(one, boot, facts)
        self._seen = ""

    def work_through(self, count: int) -> None:
        done: set[str] = set()
        while len(done) < count:
            work = self.ask("GET", f"/agent/v1/work?wait=30&seen={self._seen}")
            self._seen = work["version"]
            new = [rank["launch"] for rank in work["ranks"] if rank["launch"]["attempt_id"] not in done]
            done.update(launch["attempt_id"] for launch in new)
            if new:
                self.ask("POST", "/agent/v1/report", {"boot_id": "b", "ranks": [ended(launch) for launch in new]})


def ended(launch: dict[str, Any]) -> dict[str, Any]:
    return {
        "attempt_id": launch["attempt_id"],
        "generation": launch["generation"],
        "rank": launch["rank"],
        "state": "exited",
        "exit_code": 0,
    }


def cancel() -> Figure:
    with server.running("--local-gpus", "1") as one:
        one.hold_the_slot()
        job_id = one.submit(SEARCH.format(name="a mistake", gpus=1, trials=TASKS))
        before = one.spent()
        one.ask("POST", f"/v1/jobs/{job_id}/cancel")
        timing.until(lambda: one.status(job_id) == "cancelled", "the last task to be cancelled", 60)
        spent = one.spent() - before
    return Figure(
        name="cancel 10,000 waiting tasks",
        value=spent.wall_s,
        unit="s wall",
        bound=10.0,
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"tasks": TASKS, "cpu_ms_each": spent.cpu_s / TASKS * 1000},
    )
