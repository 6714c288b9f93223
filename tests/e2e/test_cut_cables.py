"""A gang whose host is cut off for a while, at a tenth of the usual times (a node is silent after 5 s instead of 50).
Whatever is shorter than the silence ends nothing, loses nothing and starts nothing twice."""

import time
from collections.abc import Iterator, Sequence

import pytest

from crash.server_process import until
from hosts_world import HostsWorld
from onprem_world import sweep
from own_site import LIMIT_S, QUICK, Site

USED = ("h1", "h2")
# Numbered lines until it is told to stop: a gap or a repetition is seen, and so is a second process.
COUNTING = """
import itertools, os, time
rank = os.environ["RANK"]
print("rank", rank, "begins as", os.getpid(), flush=True)
for number in itertools.count():
    print(rank, number, flush=True)
    if os.path.exists("/tmp/go"):
        break
    time.sleep(0.02)
print("rank", rank, "ends as", os.getpid(), flush=True)
"""


@pytest.fixture(scope="module")
def site(session_hosts: HostsWorld, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    session_hosts.mend()
    made = Site(tmp_path_factory.mktemp("cut"), session_hosts, session_hosts.gateway, **QUICK)
    made.add(*USED)
    yield made
    made.close()
    session_hosts.mend()
    for host in USED:
        sweep(session_hosts, host)


@pytest.fixture
def counting(site: Site) -> Iterator[str]:
    """A gang of two that counts; told to stop at the end of the test, it leaves the hosts empty."""
    job = site.submit_spec(
        name="counting", command=["python3", "-c", COUNTING], resources={"nodes": 2}, retry={"limit": 0}
    )
    site.wait(job, "both count", lambda: all(numbers(site, job, rank) for rank in "01"))
    yield job
    site.hosts.mend()
    site.run("cancel", job)
    until("the hosts are empty", lambda: site.machines() == 0, LIMIT_S)
    for host in USED:
        site.hosts.run(host, ["rm", "-f", "/tmp/go"])


def numbers(site: Site, job: str, rank: str) -> list[int]:
    """What that rank has counted, as the server knows it."""
    words = [line.split() for line in site.log(job).splitlines()]
    return [int(line[1]) for line in words if len(line) == 2 and line[0] == rank]


def cut_for(site: Site, host: str, seconds: float) -> None:
    site.hosts.cut(host)
    time.sleep(seconds)
    site.hosts.heal(host)


@pytest.mark.parametrize("cuts", [[0.5], [3.0], [0.5] * 4], ids=["half a second", "three seconds", "again and again"])
def test_a_cut_shorter_than_the_silence_ends_nothing_and_loses_no_line(
    site: Site, counting: str, cuts: Sequence[float]
) -> None:
    victim = site.host_of(counting, 1)
    for seconds in cuts:
        cut_for(site, victim, seconds)
        time.sleep(1.0)  # as long as the cable holds
    before = len(numbers(site, counting, "1"))
    site.wait(counting, "it is heard again", lambda: len(numbers(site, counting, "1")) > before)
    for host in USED:
        site.hosts.put(host, "/tmp/go", "")
    site.finished(counting)
    (attempt,) = site.attempts(counting)
    assert [rank["exit_code"] for rank in attempt["ranks"]] == [0, 0]
    for rank in "01":
        found = numbers(site, counting, rank)
        assert found == list(range(len(found))), "no line is lost, doubled or out of order"
        assert process(site, counting, rank, "begins") == process(site, counting, rank, "ends")


def process(site: Site, job: str, rank: str, verb: str) -> str:
    (line,) = [line for line in site.log(job).splitlines() if line.startswith(f"rank {rank} {verb} as ")]
    return line.split()[-1]
