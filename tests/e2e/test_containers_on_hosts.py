"""A job with an image on own hosts: the command line, a server, sshd, and the podman of each host."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from containers import CONTAINERS_CONF, IMAGE, PATH, STORAGE_CONF, make_root
from crash.server_process import until
from hosts_world import HostsWorld
from onprem_world import sweep
from own_site import LIMIT_S, Site

USED = ("h1", "h2")
# In the host's memory: an overlay cannot stand on an overlay.
STORAGE = "/tmp/containers"
CONFIGURATION = {"containers": CONTAINERS_CONF, "storage": STORAGE_CONF}
# Machines that have ended are remembered beside the one that runs.
KILL_AGENT = "cd /root/.crucible/*/machines; for id in host-*; do [ -e $id/gone.json ] || kill -9 $(cat $id/lock); done"
WITH_MARK = "grep -lsa CRUCIBLE_MACHINE_ID= /proc/[0-9]*/environ || true"


@pytest.fixture(scope="module")
def boxes(session_hosts: HostsWorld, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostsWorld]:
    """Hosts whose podman has the image."""
    assert shutil.which("podman", path=PATH), "own hosts run containers with podman: run `make engines`"
    session_hosts.mend()
    archive = image(tmp_path_factory.mktemp("image"))
    for host in USED:
        for name, text in CONFIGURATION.items():
            session_hosts.put(host, f"/etc/containers/{name}.conf", text.format(folder=STORAGE), 0o644)
        session_hosts.run(host, ["podman", "import", "--quiet", "-", IMAGE], stdin=archive)
    yield session_hosts
    for host in USED:
        session_hosts.run(host, ["podman", "rm", "--all", "--force", "--time", "0"])
        session_hosts.run(host, ["sh", "-c", f"umount {STORAGE}/graph/overlay; rm -rf {STORAGE}"])
        session_hosts.run(host, ["rm", *(f"/etc/containers/{name}.conf" for name in CONFIGURATION)])
        sweep(session_hosts, host)


@pytest.fixture(scope="module")
def site(boxes: HostsWorld, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("boxed"), boxes, boxes.gateway)
    made.add(*USED)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def nothing_left(site: Site) -> Iterator[None]:
    """Every test ends with hosts as they were: no machine, no container, no volume, no process."""
    yield
    until("the hosts are empty", lambda: site.machines() == 0, LIMIT_S)
    for host in USED:
        assert containers(site, host) == []
        assert site.hosts.run(host, ["podman", "volume", "ls", "--quiet"]) == ""
        assert site.hosts.run(host, ["sh", "-c", WITH_MARK]) == ""
        assert site.hosts.run(host, ["sh", "-c", "pgrep -x conmon || true"]) == ""


def image(folder: Path) -> bytes:
    make_root(folder / "root", python=True)
    return subprocess.run(["tar", "-C", str(folder / "root"), "-c", "."], capture_output=True, check=True).stdout


def containers(site: Site, host: str) -> list[str]:
    return site.hosts.run(host, ["podman", "ps", "--all", "--format", "{{.Names}}"]).split()


def boxed(site: Site, command: str, **more: Any) -> str:
    job = {"image": IMAGE, "container": {"pull": "never"}, "retry": {"limit": 0}, **more}
    return site.submit_spec(name="boxed", command=["sh", "-c", command], **job)


def test_a_gang_runs_in_containers_of_two_hosts(site: Site) -> None:
    assert "podman" in str(site.json("hosts", "list")["items"][0]["facts"]["runtimes"])
    inside = "[ -e /run/.containerenv ] && echo rank $CRUCIBLE_RANK inside on $(cat /etc/hostname) for $WORD"
    job = boxed(site, inside, env={"WORD": 'a "word"'}, resources={"nodes": 2, "cpus": 1, "cpu_memory": "256MB"})
    site.finished(job)
    said = sorted(line[line.index("rank ") :] for line in site.ok("logs", job).splitlines())
    assert said == ['rank 0 inside on h1 for a "word"', 'rank 1 inside on h2 for a "word"']


def test_the_exit_code_comes_through(site: Site) -> None:
    job = boxed(site, "echo before; exit 7")
    ended = site.run("wait", job, "--timeout", f"{LIMIT_S:g}")
    assert ended.returncode != 0
    (attempt,) = site.attempts(job)
    assert [rank["exit_code"] for rank in attempt["ranks"]] == [7]
    assert "before" in site.ok("logs", job)


def test_an_image_that_no_host_has_ends_the_job_with_the_reason(site: Site) -> None:
    job = boxed(site, "true", image="localhost/no-such:1")
    assert site.run("wait", job, "--timeout", f"{LIMIT_S:g}").returncode != 0
    assert "the image localhost/no-such:1 is not on the machine, and container.pull is never" in site.ok("why", job)


def test_an_agent_that_dies_takes_its_container_with_it(site: Site) -> None:
    """And the job goes on in another container: losing a machine is nobody's failure."""
    job = boxed(site, "echo up; sleep 600")
    until("the container is up", lambda: running(site) != {}, LIMIT_S, 0.2)
    ((host, first),) = running(site).items()
    site.hosts.run(host, ["sh", "-c", KILL_AGENT])
    until("the next is up", lambda: running(site) not in ({}, {host: first}), LIMIT_S, 0.2)
    until("the first is gone", lambda: first not in containers(site, host), LIMIT_S, 0.2)
    site.ok("cancel", job)
    assert site.run("wait", job, "--timeout", f"{LIMIT_S:g}").returncode != 0


def running(site: Site) -> dict[str, str]:
    return {host: names[0] for host in USED if (names := containers(site, host))}
