"""The hosts that other tests stand on."""

import subprocess

import pytest

from hosts_world import HostsWorld, answers


def ping(hosts: HostsWorld, host: str, other: str) -> bool:
    program = "import socket, sys; socket.create_connection((sys.argv[1], 22), timeout=1).close()"
    try:
        hosts.run(host, ["python3", "-c", program, hosts.address(other)])
    except subprocess.CalledProcessError:
        return False
    return True


def test_hosts_have_names_and_processes_of_their_own_and_reach_each_other(hosts: HostsWorld) -> None:
    assert [hosts.run(host, ["hostname"]).strip() for host in hosts.names] == ["h1", "h2", "h3"]
    assert hosts.run("h1", ["cat", "/proc/1/comm"]).strip() == "bash"
    assert ping(hosts, "h1", "h2")


def test_what_a_host_writes_is_seen_nowhere_else(hosts: HostsWorld) -> None:
    hosts.put("h1", "/opt/crucible-test/word", "a word", mode=0o600)
    assert hosts.run("h1", ["cat", "/opt/crucible-test/word"]) == "a word"
    with pytest.raises(subprocess.CalledProcessError):
        hosts.run("h2", ["cat", "/opt/crucible-test/word"])
    assert (hosts.root("h1") / "opt/crucible-test/word").read_text() == "a word"
    hosts.run("h1", ["rm", "-r", "/opt/crucible-test"])


def test_a_cut_host_reaches_nobody_until_it_is_healed(hosts: HostsWorld) -> None:
    hosts.cut("h2")
    assert not ping(hosts, "h2", "h1")
    hosts.heal("h2")
    assert ping(hosts, "h2", "h1")


def test_a_killed_host_comes_back_with_its_files_and_without_its_processes(hosts: HostsWorld) -> None:
    hosts.put("h3", "/root/kept", "still here")
    hosts.run("h3", ["sh", "-c", "setsid sleep 600 >/dev/null 2>&1 &"])
    hosts.kill("h3")
    assert not answers(hosts.address("h3"))
    hosts.start("h3")
    assert hosts.run("h3", ["cat", "/root/kept"]) == "still here"
    assert "sleep" not in hosts.run("h3", ["sh", "-c", "cat /proc/[0-9]*/comm"])
    hosts.run("h3", ["rm", "/root/kept"])
