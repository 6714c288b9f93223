"""The network between a node and its server is cut, both ways and one way, for a moment and for good; times are a tenth
of the real ones. Nobody is given up who is silent for no longer than usual, no job runs twice at the same time, no line
is missing, and what ended while nobody could hear it is not run again."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crash.database import rows_of
from crash.harness import World
from crash.partition import Partition, free_port, partition
from crash.server_process import until
from crash.stories import Story
from crash.verdict import judge
from crucible.client.api import Client
from crucible.client.endpoint import Endpoint
from crucible.client.transport import Transport

SILENCE_S = 5.0  # 50 s
MOMENT_S = 0.5
WHILE_S = 3.0  # 30 s
LONG_S = 9.0  # 90 s: longer than a node may be silent
FLAPS = 4  # one a second
# From the end of its time until its machine is given back: the server looks twice a second, the machine is killed.
GIVEN_BACK_WITHIN_S = 40.0


class Divided(World):
    """Nodes reach the server through the partition, people do not."""

    def __init__(self, folder: Path, network: Partition, port: int) -> None:
        options = ("--silence", f"{SILENCE_S:g}", "--public-url", network.url)
        super().__init__(folder, port=port, options=options)
        self.network = network

    def client(self) -> Client:
        token = (self.data / "admin-token").read_text()
        return Client(Transport(Endpoint(self.server.url, token), timeout_s=10.0))

    def attempts(self, story: Story) -> list[tuple[str, str | None]]:
        query = "SELECT a.phase, a.outcome FROM attempts a JOIN jobs j ON j.id = a.job_id WHERE j.name = '{}'"
        with rows_of(self.data, None) as rows:
            return [(phase, outcome) for phase, outcome in rows(query.format(story.name))]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Divided]:
    port = free_port()
    with partition(port) as network:
        folder = tmp_path_factory.mktemp("partitions")
        one = Divided(folder, network, port)
        try:
            one.server.start().wait_ready()
            yield one
            one.wait_for_people()
            judge(one, 0).assert_good()
        except BaseException:
            print(one.describe())
            raise
        finally:
            one.close()


def for_a_moment(network: Partition) -> None:
    network.cut()
    time.sleep(MOMENT_S)


def for_a_while(network: Partition) -> None:
    network.cut()
    time.sleep(WHILE_S)


def without_replies(network: Partition) -> None:
    """The server hears the node and acts on it; the node hears nobody, and says everything again."""
    network.cut(requests=False)
    time.sleep(LONG_S)


def flapping(network: Partition) -> None:
    for _ in range(FLAPS):
        network.cut()
        time.sleep(0.5)
        network.heal()
        time.sleep(0.5)


@pytest.mark.parametrize("trouble", [for_a_moment, for_a_while, without_replies, flapping])
def test_nobody_is_given_up_and_what_ended_meanwhile_is_not_run_again(
    made: Divided, trouble: Callable[[Partition], None]
) -> None:
    """One prints and ends while it is cut off, one goes on afterwards: neither is started twice."""
    name = trouble.__name__.replace("_", "-")
    quick = made.begin(Story(f"{name}-ends", ("lines:20", "until-told", "lines:200")))
    steady = made.begin(Story(f"{name}-goes-on", ("lines:20", "until-told", "lines:200"), gpus=1))
    for story in (quick, steady):
        made.wait_for_witness(story)
    try:
        made.network.cut(requests=trouble is not without_replies)
        made.permit(quick)
        made.wait_for_witness(quick, "end")
        trouble(made.network)
    finally:
        made.network.heal()
    made.permit(steady)
    made.wait_for_end(quick, steady)
    assert [made.attempts(story) for story in (quick, steady)] == [[("ended", "succeeded")]] * 2


def test_who_is_cut_off_for_good_is_given_up_and_goes_on_elsewhere_alone(made: Divided) -> None:
    story = made.begin(Story("cut-off", ("deaf", "lines:20", "until-told", "lines:50"), starts=(2,), is_hunted=True))
    made.wait_for_witness(story)
    made.network.cut()
    began = time.monotonic()
    try:
        until("the lost attempt is over", lambda: ("ended", "lost") in made.attempts(story), GIVEN_BACK_WITHIN_S)
        assert time.monotonic() - began >= SILENCE_S, "nobody was given up too early"
    finally:
        made.network.heal()
    made.permit(story)
    made.wait_for_end(story)
    assert made.attempts(story) == [("ended", "lost"), ("ended", "succeeded")]
