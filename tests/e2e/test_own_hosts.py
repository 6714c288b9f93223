"""Own hosts as an operator uses them: a real server, the command line, real sshds, real agents."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.server_process import until
from hosts_world import HostsWorld
from onprem_world import fake_smi, gpus_of, sweep
from own_site import LIMIT_S, Site


@pytest.fixture
def hosts_with_gpus(hosts: HostsWorld) -> Iterator[HostsWorld]:
    for host in hosts.names:
        hosts.run(host, ["rm", "-f", "/tmp/go"])
        fake_smi(hosts, host, gpus_of(host, 1))
    yield hosts
    for host in hosts.names:
        sweep(hosts, host)


@pytest.fixture
def site(hosts_with_gpus: HostsWorld, tmp_path: Path) -> Iterator[Site]:
    """Its server can be reached from the hosts."""
    made = Site(tmp_path, hosts_with_gpus, hosts_with_gpus.gateway)
    yield made
    made.close()


@pytest.fixture
def hidden(hosts_with_gpus: HostsWorld, tmp_path: Path) -> Iterator[Site]:
    """Its server listens on its own loopback: no host has a route to it."""
    made = Site(tmp_path, hosts_with_gpus, "127.0.0.1")
    yield made
    made.close()


def test_from_a_host_that_nobody_knows_to_a_finished_gang(site: Site) -> None:
    key = str(site.hosts.keys.private)
    place = f"root@{site.hosts.address('h1')}"
    first = site.run("hosts", "add", "h1", place, "--identity-file", key)
    assert first.returncode != 0 and "is not known yet" in first.stderr and "--fingerprint SHA256:" in first.stderr
    assert site.json("hosts", "list")["items"] == [], "nothing is half registered"
    fingerprint = first.stderr.split("--fingerprint ")[1].split()[0]
    site.ok("hosts", "add", "h1", place, "--identity-file", key, "--fingerprint", fingerprint)
    site.add("h2", "h3")
    table = site.ok("hosts", "list")
    assert "1 x A100-SXM4-80GB" in table and table.count("ready") == 3

    assert "onprem" in site.ok("doctor", "onprem")
    job = site.submit("echo rank $CRUCIBLE_RANK on $(hostname) with $CUDA_VISIBLE_DEVICES", gpus=2, nodes=2)
    found = site.finished(job)
    assert (found["selected"]["provider"], found["selected"]["count"]) == ("onprem", 2)
    log = site.ok("logs", job)
    ranks = {line.split("rank ")[1].split()[0]: line.split(" on ")[1].split()[0] for line in log.splitlines()}
    assert set(ranks) == {"0", "1"} and len(set(ranks.values())) == 2, "one machine on each host"
    assert "GPU-h" in log
    until("the hosts are empty again", lambda: sum(one["machines"] for one in site.json("hosts", "list")["items"]) == 0)


def test_a_server_that_dies_in_the_middle_finds_what_it_started(site: Site) -> None:
    site.add("h1", "h2")
    command = "echo begun by $$; until [ -e /tmp/go ]; do sleep 0.1; done; echo done by $$"
    job = site.submit(command, gpus=2, nodes=2)
    until("both ranks run", lambda: site.run("logs", job).stdout.count("begun by") == 2, LIMIT_S)
    site.server.kill()
    site.server.start().wait_ready()
    for host in ("h1", "h2"):
        site.hosts.put(host, "/tmp/go", "")
    site.finished(job)
    log = site.ok("logs", job)
    assert (log.count("begun by"), log.count("done by")) == (2, 2), "nothing ran twice"


def test_hosts_without_a_route_to_the_server_reach_it_through_its_own_connection(hidden: Site) -> None:
    hidden.add("h1", "h2")
    command = "echo begun on $(hostname); until [ -e /tmp/go ]; do sleep 0.1; done; echo done"
    job = hidden.submit(command, gpus=2, nodes=2)
    until("both ranks run", lambda: hidden.run("logs", job).stdout.count("begun on") == 2, LIMIT_S)
    # The way back goes with the server, and comes back with it.
    hidden.server.kill()
    hidden.server.start().wait_ready()
    for host in ("h1", "h2"):
        hidden.hosts.put(host, "/tmp/go", "")
    hidden.finished(job)
    assert hidden.ok("logs", job).count("done") == 2


def test_a_drained_host_gets_nothing_new_and_is_not_removed_while_it_works(site: Site) -> None:
    site.add("h1")
    job = site.submit("echo begun; until [ -e /tmp/go ]; do sleep 0.1; done")
    until("it runs", lambda: "begun" in site.run("logs", job).stdout, LIMIT_S)
    assert "a machine runs on host h1: drain it, or wait" in site.run("hosts", "remove", "h1").stderr
    assert "1 machine still run there" in site.ok("hosts", "drain", "h1")
    refused = site.run("submit", "job.yaml", "-y", "-d", "-q")
    assert refused.returncode == 3 and "no offer fits" in refused.stderr
    site.hosts.put("h1", "/tmp/go", "")
    site.finished(job)
    until("h1 is empty", lambda: site.json("hosts", "list")["items"][0]["machines"] == 0)
    site.ok("hosts", "resume", "h1")
    site.finished(site.submit("echo later"))
    until("h1 is empty", lambda: site.json("hosts", "list")["items"][0]["machines"] == 0)
    site.ok("hosts", "remove", "h1")
    assert site.json("hosts", "list")["items"] == []
