"""Two servers on one PostgreSQL and one data folder. One of them is stopped past its claims and goes on later, as if
nothing had happened: the other has carried on, nothing is done twice, nothing stale is written (F20, F21)."""

import os
import random
import signal
import socket
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest

from crash.harness import CLAIM_TTL_S, World
from crash.server_process import ServerProcess, until
from crash.stories import MENU, gang, occupying, quick, saving, talkative
from crash.verdict import judge
from crucible.client.api import Client
from crucible.client.endpoint import Endpoint
from crucible.client.transport import Transport

STOPS = 2
# An agent that waits for an answer of the stopped server asks the other one after fifteen seconds.
CARRIED_ON_WITHIN_S = 60.0


class Pair(World):
    """People ask whichever server comes next, and the other one if it does not answer."""

    def __init__(self, folder: Path, database: str, seed: int) -> None:
        super().__init__(folder, database=database, seed=seed)
        options = ("--claim-ttl", str(CLAIM_TTL_S))
        self.pair = [ServerProcess(self.data, database=database, options=options, port=free_port()) for _ in range(2)]
        self._next = cycle(self.pair)

    def client(self) -> Client:
        token = (self.data / "admin-token").read_text()
        return Client(Transport(Endpoint(next(self._next).url, token), timeout_s=2.0))

    def start(self) -> None:
        """Both at once, on an empty folder and an empty database."""
        for server in self.pair:
            server.start()
        for server in self.pair:
            server.wait_ready()

    def close(self) -> None:
        for server in self.pair:
            server.kill()
        super().close()


@pytest.fixture
def pair(tmp_path: Path, postgres_url: str) -> Iterator[Pair]:
    made = Pair(tmp_path, postgres_url, random.randrange(10**6))
    try:
        made.start()
        yield made
        print(made.describe())
    finally:
        made.close()


def test_a_server_that_stands_still_past_its_claims_harms_nobody(pair: Pair) -> None:
    for _ in range(8):
        pair.tell(pair.random.choice(MENU))
    for stop in range(STOPS):
        stopped = pair.pair[stop % 2]
        running = [pair.tell(occupying) for _ in range(2)]
        for story in running:
            pair.wait_for_witness(story)
        pair.tell(gang)
        stand_still(stopped)
        new = [pair.tell(make) for make in (quick, saving, gang, talkative)]
        for story in running:
            pair.permit(story)
        pair.wait_for_end(*new, *running, within_s=CARRIED_ON_WITHIN_S)
        stopped.signal(signal.SIGCONT)
        until("both servers answer", lambda: all(server.answers() for server in pair.pair))
    pair.wait_for_people()
    verdict = judge(pair, STOPS)
    verdict.assert_good()
    for server in pair.pair:
        assert server.answers()
        server.stop()


def test_a_server_that_stops_leaves_the_address_of_the_other(pair: Pair) -> None:
    named, other = in_the_file(pair)
    other.stop()
    assert named.url in (pair.data / "server.json").read_text()
    named.stop()
    assert not (pair.data / "server.json").exists()


def test_the_file_with_the_address_does_not_go_on_naming_a_dead_server(pair: Pair) -> None:
    named, other = in_the_file(pair)
    named.kill()
    until("the other is named", lambda: other.url in (pair.data / "server.json").read_text(), CLAIM_TTL_S * 4)


def test_a_person_at_either_server_reaches_a_node_that_listens_to_one_of_them(pair: Pair) -> None:
    story = pair.tell(occupying)
    pair.wait_for_witness(story)
    token = (pair.data / "admin-token").read_text()
    for server in (*pair.pair, *pair.pair):
        with Client(Transport(Endpoint(server.url, token))) as client:
            job_id = client.jobs(name=story.name)["items"][0]["id"]
            until("its rank has started", lambda client=client, job_id=job_id: is_started(client, job_id))
            done = client.exec(job_id, ["sh", "-c", "cat; exit 3"], stdin=server.url.encode(), timeout_s=30)
            assert (done.exit_code, done.stdout.decode()) == (3, server.url)
    pair.permit(story)
    pair.wait_for_people()
    for server in pair.pair:
        server.stop()


def is_started(client: Client, job_id: str) -> bool:
    return all(rank["state"] == "started" for rank in client.attempts(job_id)[-1]["ranks"])


def in_the_file(pair: Pair) -> list[ServerProcess]:
    """First the one that is named there."""
    text = (pair.data / "server.json").read_text()
    return sorted(pair.pair, key=lambda server: server.url not in text)


def stand_still(server: ServerProcess) -> None:
    """Not while it holds a lock on a file: nobody can take that from a process that lives."""

    def is_still() -> bool:
        server.signal(signal.SIGSTOP)
        if not holds_file_lock(server.pid):
            return True
        server.signal(signal.SIGCONT)
        return False

    until("the server stands still", is_still)


def holds_file_lock(pid: int) -> bool:
    """A server opens such a file to take its lock, and closes it to give it up."""
    return any(name.endswith(".lock") and "/data/" in name for name in open_files(pid))


def open_files(pid: int) -> Iterator[str]:
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            yield os.readlink(link)
        except OSError:
            continue


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
