"""The server dies while the tasks of a search get their seats, hand them on, give machines back, or are cancelled all
together. Every trial runs once, no seat has two, and no machine is left."""

from contextlib import suppress
from pathlib import Path

import pytest

from crash.harness import World, world
from crash.points import both
from crash.server_process import KILLED, until
from crucible.client.api import TERMINAL
from crucible.client.errors import ConnectionLost, ServerTimeout, ServerUnreachable
from postgres_engine import Postgres

TRIALS = 16
SEATING = [f"{point}:1" for point in both("commit.cycle.seat", "commit.crew.give_back")]
HANDING_ON = [f"{point}:{number}" for number in (3, 9) for point in both("commit.report.rank")]

SPEC = """\
job:
  name: {name}
  type: hpo
  retry: {{limit: 0}}
  resources: {{gpus: 1, max_gpus_per_node: 1}}
  constraints: {{providers: [local]}}
  command: "echo began $N >> {witness}; {work}; echo ended $N >> {witness}"
  sweep: {{parameters: {{N: {{min: 1, max: {trials}, step: 1}}}}}}
"""


def submit(made: World, name: str, work: str = "true", trials: int = TRIALS) -> str:
    spec = SPEC.format(name=name, witness=made.notes / name, work=work, trials=trials)
    return str(made.insist(lambda client: client.submit(name, spec, idempotency_key=name))["id"])


def counts(made: World, job: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for task in made.insist(lambda client: list(client.all_tasks(job))):
        found[task["phase"]] = found.get(task["phase"], 0) + 1
    return found


@pytest.mark.parametrize("points", [SEATING, HANDING_ON], ids=["seating", "handing-on"])
@pytest.mark.parametrize("is_shared", [False, True], ids=["sqlite", "postgres"])
def test_a_death_while_tasks_get_seats_runs_every_one_of_them_once(
    tmp_path: Path, request: pytest.FixtureRequest, points: list[str], is_shared: bool
) -> None:
    """Half of the points on each database. A trial has a machine of its own, and the first goes on until the server is
    dead: else all might end within one look, and no machine would be given back before the job is over."""
    server: Postgres | None = request.getfixturevalue("postgres") if is_shared else None
    with world(tmp_path, database=server and server.fresh_database()) as made:
        for point in points[is_shared::2]:
            name = point.replace(".", "-").replace(":", "-")
            made.server.start(armed=point)
            job = submit(made, name, work=f"until test $N != 1 -o -e {made.notes / 'dead'}; do sleep 0.1; done")
            assert made.server.wait_for_end(60.0) == KILLED, f"{point} was not reached"
            (made.notes / "dead").touch()
            made.disturbed()
            made.server.start().wait_ready()
            assert made.wait(job, TERMINAL)["status"] == "completed"
            lines = (made.notes / name).read_text().splitlines()
            assert sorted(lines) == sorted(f"{word} {n}" for word in ("began", "ended") for n in range(1, TRIALS + 1))
            assert counts(made, job) == {"succeeded": TRIALS}
            until("its machines are gone", lambda: not made.leased())
            made.server.stop()
            (made.notes / "dead").unlink()
        made.server.start().wait_ready()


@pytest.mark.parametrize("point", both("commit.job.end_waiting"))
def test_a_death_while_all_are_cancelled_leaves_none_behind(tmp_path: Path, point: str) -> None:
    with world(tmp_path) as made:
        made.server.start(armed=f"{point}:1").wait_ready()
        job = submit(made, "mistake", work="sleep 600", trials=1500)
        until("some run", lambda: (made.notes / "mistake").exists())
        with suppress(ServerUnreachable, ServerTimeout, ConnectionLost), made.client() as client:
            client.cancel(job)
        assert made.server.wait_for_end(60.0) == KILLED
        made.disturbed()
        made.server.start().wait_ready()
        made.insist(lambda client: client.cancel(job))
        assert made.wait(job, TERMINAL)["status"] == "cancelled"
        assert counts(made, job) == {"cancelled": 1500}
        until("its machines are gone", lambda: not made.leased())
