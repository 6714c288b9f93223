"""The server dies around everything that outputs need of it: the job comes to its end, and what it left is whole."""

import pytest

from crash.points import OUTPUTS, both
from crash.test_dataset_kills import die_at, is_dead
from e2e.test_cli_journeys import Person, person
from e2e.test_outputs import LEAVE, READ, a_job, python

__all__ = ["person"]

# A rank is reported twice: that it runs, and its exit, with what it left.
POINTS = [
    *OUTPUTS,
    *(f"{point}:{hit}" for point in both("commit.report.rank") for hit in (1, 2)),
    *both("commit.task.step"),
]


@pytest.mark.parametrize("point", POINTS)
def test_what_a_job_left_is_whole_wherever_the_server_died(person: Person, point: str) -> None:
    die_at(person, point)
    job = str(person.json("submit", a_job(person, python(LEAVE)), "-y", "--detach")["id"])
    person.until("the server is dead", lambda: is_dead(person))
    assert person.run("server", "start").returncode == 0
    assert person.run("wait", job).returncode == 0, person.run("why", job).stdout
    (item,) = person.json("outputs", "ls", job)["items"]  # type: ignore[misc]
    assert item["files"] == 3
    read = person.run("submit", a_job(person, READ, "reader", inputs={"made": f"output://{job}"}), "-y")
    assert read.returncode == 0 and f"hello\n{3 << 20}\n" in read.stdout, read.stdout + read.stderr
