"""Two servers share a PostgreSQL and a data folder. One falls asleep past its claims: the other carries on, and when it
wakes it finds that it owns nothing any more."""

import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.server_process import ServerProcess, until
from crucible.client.api import Client
from crucible.client.endpoint import Endpoint
from crucible.client.transport import Transport

CLAIM_TTL_S = 3
TERMINAL = ("completed", "failed", "cancelled")
# An agent gives up on a server that takes its call and never answers after 30 s, then tries the next.
STORY_WITHIN_S = 150.0

# Says when it starts and ends, in one shared file: who ran twice is seen there, whatever the database believes.
WITNESS = """
import os, sys, time
def say(what):
    with open(sys.argv[1], 'a') as file:
        file.write('%s %s\\n' % (os.environ['CRUCIBLE_JOB_ID'], what))
say('start')
for n in range(int(sys.argv[2])):
    print(n, flush=True)
    time.sleep(0.2)
say('end')
"""


@pytest.fixture
def servers(tmp_path: Path, postgres_url: str) -> Iterator[list[ServerProcess]]:
    made: list[ServerProcess] = []
    try:
        for name in ("one", "two"):
            options = ["--claim-ttl", str(CLAIM_TTL_S)]
            log = tmp_path / f"{name}.log"
            server = ServerProcess(tmp_path / "data", database=postgres_url, options=options, log=log)
            made.append(server.start(CRUCIBLE_SECRET_KEY="shared by both").wait_ready())
        yield made
    finally:
        for server in made:
            if not server.has_ended():
                server.signal(signal.SIGCONT)
            server.stop()


def client_of(server: ServerProcess) -> Client:
    return Client(Transport(Endpoint(server.url, (server.data / "admin-token").read_text().strip())))


def test_a_server_that_sleeps_past_its_claims_doubles_nothing(servers: list[ServerProcess], tmp_path: Path) -> None:
    one, two = servers
    witness, program = tmp_path / "witness", tmp_path / "program.py"
    witness.touch()
    program.write_text(WITNESS)

    def submit(server: ServerProcess, lines: int) -> str:
        with client_of(server) as client:
            spec = f"job:\n  command: [python, {program}, {witness}, '{lines}']\n  resources: {{gpus: 1}}\n"
            return client.submit(None, spec)["id"]

    def facts() -> Counter[str]:
        return Counter(witness.read_text().splitlines())

    def ended(server: ServerProcess, jobs: list[str]) -> bool:
        with client_of(server) as client:
            return all(client.job(job_id)["status"] in TERMINAL for job_id in jobs)

    jobs = [submit(server, 20) for server in (one, two, one, two)]
    until("all four run", lambda: sum(facts().values()) >= len(jobs))
    one.signal(signal.SIGSTOP)
    asleep_since = time.monotonic()
    jobs += [submit(two, 5) for _ in range(4)]
    until("everything ends while one server sleeps", lambda: ended(two, jobs), STORY_WITHIN_S, 0.2)
    until("every claim of the sleeper has run out", lambda: time.monotonic() - asleep_since > 2 * CLAIM_TTL_S)
    one.signal(signal.SIGCONT)
    until("the sleeper answers again", one.answers)
    jobs += [submit(server, 5) for server in (one, two)]
    until("both serve as before", lambda: ended(one, jobs), STORY_WITHIN_S, 0.2)

    with client_of(two) as client:
        assert {job_id: client.job(job_id)["status"] for job_id in jobs} == dict.fromkeys(jobs, "completed")
        assert all(len(client.attempts(job_id)) == 1 for job_id in jobs)
        for job_id in jobs:
            numbers = [int(record["x"]) for record in client.logs(job_id)]
            assert numbers == list(range(len(numbers))) and len(numbers) in (5, 20)
    assert facts() == Counter({f"{job_id} {what}": 1 for job_id in jobs for what in ("start", "end")})
