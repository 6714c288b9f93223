"""kill -9 of an agent, of a rank, of a rank's supervisor, of a whole machine: the job goes on with another attempt, and
never with two at a time."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crash.harness import World, world
from crash.stories import Story
from crash.verdict import judge
from crucible.providers.local import processes
from crucible.providers.local.folder import MachineFolder

# Well below the time after which anybody would ask again without being told.
AT_ONCE_S = 5.0

Victims = Callable[[World, Story], list[int]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("machines")) as one:
        one.server.start().wait_ready()
        yield one
        one.wait_for_people()
        judge(one, 0).assert_good()


def pids_of(made: World, story: Story) -> list[int]:
    return [fact["pid"] for fact in made.wait_for_witness(story, count=story.ranks)]


def machine_of(pid: int) -> str:
    found = processes.mark_of(pid)
    assert found is not None
    return found


def agent(made: World, story: Story) -> list[int]:
    folder = MachineFolder.read(made.data / "local" / "machines" / machine_of(pids_of(made, story)[0]))
    pid = None if folder is None else folder.agent_pid()
    assert pid is not None
    return [pid]


def whole_machine(made: World, story: Story) -> list[int]:
    machine = machine_of(pids_of(made, story)[0])
    return processes.carriers([machine])[machine]


def supervisor(made: World, story: Story) -> list[int]:
    pid = pids_of(made, story)[0]
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [int(fields[1])]


def rank(made: World, story: Story) -> list[int]:
    return pids_of(made, story)[:1]


@pytest.mark.parametrize(
    ("victims", "gpus", "losses", "failures"),
    [
        (agent, 0, 1, 0),
        (whole_machine, 0, 1, 0),
        (agent, 2, 1, 0),
        (rank, 0, 0, 1),
        (rank, 2, 0, 1),
        (supervisor, 0, 0, 1),
    ],
)
def test_a_killed_part_of_a_machine_costs_an_attempt_and_not_the_job(
    made: World, victims: Victims, gpus: int, losses: int, failures: int
) -> None:
    name = f"{victims.__name__.replace('_', '-')}-{gpus}"
    story = Story(name, ("until-told", "lines:20"), gpus=gpus, limit=failures, starts=(2,))
    made.begin(story, lambda story, job_id: strike(made, story, victims))
    made.wait_for_end(story)
    counts = made.insist(lambda c: c.job(made.jobs[name]))["attempts"]
    assert (counts["losses"], counts["failures"]) == (losses, failures)


def strike(made: World, story: Story, victims: Victims) -> None:
    for pid in victims(made, story):
        os.kill(pid, signal.SIGKILL)
    made.wait_for_witness(story, count=2 * story.ranks)
    made.permit(story)


def test_the_death_of_one_rank_stops_the_others_at_once(made: World) -> None:
    story = Story("together", ("until-told",), gpus=3, ends="failed")
    struck: list[float] = []

    def strike_one(story: Story, job_id: str) -> None:
        made.wait(job_id, {"running"})
        struck.append(time.monotonic())
        os.kill(pids_of(made, story)[2], signal.SIGKILL)

    made.begin(story, strike_one)
    ends = made.wait_for_witness(story, "end", count=2)
    assert max(end["at"] for end in ends) - struck[0] < AT_ONCE_S
    made.wait_for_end(story)
