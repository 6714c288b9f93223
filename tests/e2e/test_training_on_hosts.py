"""Real training on real hosts: frameworks on CPU, machines that are cut off or die, and the same result in the end."""

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from engines.frameworks import python_of

from crash.server_process import until
from hosts_world import HostsWorld
from onprem_world import sweep
from own_site import LIMIT_S, QUICK, Site

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "frameworks"
PACED = Path(__file__).with_name("paced.py")
ENVIRONMENT = {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
# A step takes so long until the test has seen what it wanted; so many are more than any test needs.
PACE_S = "0.3"
STEPS = "400"
TORCHRUN = ("-m", "torch.distributed.run", "--standalone")


@pytest.fixture(scope="module")
def site(session_hosts: HostsWorld, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    hosts = session_hosts
    hosts.mend()
    made = Site(tmp_path_factory.mktemp("training"), hosts, hosts.gateway, **QUICK)
    made.add(*hosts.names)
    shutil.copytree(EXAMPLES, made.folder / "code")
    shutil.copy(PACED, made.folder / "code")
    yield made
    made.close()
    hosts.mend()
    for host in hosts.names:
        sweep(hosts, host)


@pytest.fixture(autouse=True)
def whole(site: Site) -> Iterator[None]:
    """Every test finds all hosts in order and empty."""
    yield
    site.hosts.mend()
    until("the hosts are empty", lambda: site.machines() == 0, LIMIT_S)
    for host in site.hosts.names:
        site.hosts.run(host, ["rm", "-f", "/tmp/hurry", "/tmp/witness"])


def train(site: Site, framework: str, script: str, venv: str, *args: str, **more: Any) -> str:
    env = {**ENVIRONMENT, **more.pop("env", {})}
    spec = {"framework": framework, "code": "code", "python": str(python_of(venv)), "env": env}
    return site.submit_spec(
        name=script, entrypoint="paced.py", args=[script, *args], retry={"limit": 0}, **{**spec, **more}
    )


def undisturbed(site: Site, venv: str, *argv: str, **env: str) -> str:
    """What the same script says in the end where nobody disturbs it, and nobody helps it."""
    folder = site.folder / "undisturbed"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    path = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    done = subprocess.run(
        [str(python_of(venv)), *argv],
        cwd=folder,
        env={**path, **ENVIRONMENT, **env},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    return next(line for line in done.stdout.splitlines() if line.startswith("final "))


def hurry(site: Site) -> None:
    for host in filter(site.hosts.is_up, site.hosts.names):
        site.hosts.put(host, "/tmp/hurry", "")


def said(site: Site, job: str, words: str) -> str:
    """The rest of the line in which a program said these words."""
    lines = [line for line in site.log(job).splitlines() if words in line]
    assert lines, f"nobody said {words!r}: {site.log(job)}"
    return lines[-1].split(words)[1].strip()


# --- DDP ------------------------------------------------------------------------------------------------------


def ddp(site: Site) -> str:
    """Two hosts, and a checkpoint of theirs."""
    args = ("--steps", STEPS, "--step-seconds", PACE_S, "--save-every", "5")
    job = train(site, "pytorch_ddp", "ddp.py", "torch", *args, resources={"nodes": 2})
    site.wait(job, "it has saved", lambda: "step 5 " in site.log(job))
    return job


@pytest.fixture(scope="module")
def weights(site: Site) -> str:
    script = (str(EXAMPLES / "ddp.py"), "--steps", STEPS)
    return undisturbed(site, "torch", *TORCHRUN, "--nproc-per-node", "2", *script).split()[-1]


def begun(site: Site, job: str) -> list[int]:
    """After which step rank 0 began, each time."""
    words = "rank 0 of 2 begins after step "
    return [int(line.split(words)[1]) for line in site.log(job).splitlines() if words in line]


def test_a_gang_that_loses_a_host_to_kill_9_ends_with_the_same_weights(site: Site, weights: str) -> None:
    job = ddp(site)
    victim, healthy = site.host_of(job, 1), site.host_of(job, 0)
    site.hosts.kill(victim)
    site.wait(job, "the other has ended", lambda: site.attempts(job)[0]["ranks"][0]["ended_at"] is not None)
    site.hosts.start(victim)
    hurry(site)
    site.wait(job, "it goes on", lambda: len(begun(site, job)) > 1)
    assert site.host_of(job, 0) == healthy, "the healthy machine was kept"
    site.finished(job, LIMIT_S)
    assert said(site, job, "final weights") == weights
    assert begun(site, job)[0] == 0 and begun(site, job)[-1] > 0, "it went on from a checkpoint"


def test_a_gang_whose_host_is_cut_off_goes_on_elsewhere_once_the_fence_has_passed(site: Site, weights: str) -> None:
    job = ddp(site)
    victim = site.host_of(job, 1)
    site.hosts.cut(victim)
    site.wait(job, "it goes on", lambda: len(begun(site, job)) > 1)
    left = site.hosts.run(victim, ["sh", "-c", "ps -eo args | grep '[d]dp.py' || true"])
    assert left.strip() == "", f"a second copy lives: {left}"
    site.hosts.heal(victim)
    hurry(site)
    site.finished(job, LIMIT_S)
    assert said(site, job, "final weights") == weights
    check_one_copy(site, victim)


def check_one_copy(site: Site, victim: str) -> None:
    """By what each process noted on its own host: an attempt had ended everywhere before the next began anywhere."""
    notes = {
        host: site.hosts.run(host, ["sh", "-c", "cat /tmp/witness || true"]).split("\n") for host in site.hosts.names
    }
    assert len(notes[victim]) > 1, "the host that was cut off took part"
    lives: dict[str, list[float]] = {}
    for line in filter(None, itertools.chain(*notes.values())):
        at, attempt, _ = line.split()
        lives.setdefault(attempt, []).append(float(at))
    spans = sorted((min(beats), max(beats)) for beats in lives.values())
    assert len(spans) > 1
    for (_, ended), (began, _) in itertools.pairwise(spans):
        assert ended < began, f"two copies ran at a time: {spans}"


# --- elastic --------------------------------------------------------------------------------------------------

# The global batch is the same whoever computes which part; sums of floats in another order differ in their last bits.
CLOSE = 1e-5


def loss_of(site: Site, job: str) -> float:
    return float(said(site, job, "final loss").split()[0])


def loss_in(line: str) -> float:
    """Of `final loss 0.1234 …`."""
    return float(line.split()[2])


def sizes(site: Site, job: str) -> list[int]:
    """How many took part, in the order in which it changed."""
    seen: list[int] = []
    for line in site.log(job).splitlines():
        if line.startswith("step ") and " with " in line and (size := int(line.split()[-1])) not in seen[-1:]:
            seen.append(size)
    return seen


@contextmanager
def without_spare(site: Site, *used: str) -> Iterator[None]:
    """No other host may step in."""
    others = [name for name in site.hosts.names if name not in used]
    for name in others:
        site.ok("hosts", "drain", name)
    yield
    for name in others:
        site.ok("hosts", "resume", name)


def test_torchrun_goes_on_with_one_host_and_again_with_two(site: Site) -> None:
    run: dict[str, Any] = {"execution": {"min_nodes": 1, "max_nodes": 2}}
    pace = {"STEPS": STEPS, "STEP_SECONDS": PACE_S}
    job = train(site, "pytorch_ddp", "elastic.py", "torch", env=pace, **run)
    site.wait(job, "two have saved", lambda: "step 10 " in site.log(job) and sizes(site, job)[-1:] == [2])
    victim = site.host_of(job, 1)
    with without_spare(site, site.host_of(job, 0), victim):
        site.hosts.kill(victim)
        site.wait(job, "one goes on", lambda: sizes(site, job)[-1:] == [1])
    site.hosts.start(victim)
    site.wait(job, "two take part again", lambda: sizes(site, job)[-1:] == [2])
    hurry(site)
    begins = [line for line in site.log(job).splitlines() if line.startswith("rank 0 ")]
    assert [line.endswith("after step 0") for line in begins] == [True, False, False], "it went on from checkpoints"
    site.finished(job, LIMIT_S)
    assert len(site.attempts(job)) == 1, "it was one attempt"
    alone = undisturbed(site, "torch", *TORCHRUN, "--nproc-per-node", "1", str(EXAMPLES / "elastic.py"), STEPS=STEPS)
    assert abs(loss_of(site, job) - loss_in(alone)) < CLOSE


def test_horovod_elastic_grows_and_shrinks(site: Site) -> None:
    run = {"execution": {"min_nodes": 1, "max_nodes": 2}, "resources": {"nodes": 1}}
    pace = {"STEPS": STEPS, "STEP_SECONDS": PACE_S}
    job = train(site, "horovod_elastic", "horovod_elastic.py", "horovod", env=pace, **run)
    site.wait(job, "it grew to two", lambda: sizes(site, job)[-1:] == [2])
    victim = site.host_of(job, 1)
    with without_spare(site, site.host_of(job, 0), victim):
        site.hosts.kill(victim)
        site.wait(job, "one goes on", lambda: sizes(site, job)[-1:] == [1])
        hurry(site)
        site.finished(job, LIMIT_S)
    assert len(site.attempts(job)) == 1, "it was one attempt"
    quick = undisturbed(site, "horovod", str(EXAMPLES / "horovod_elastic.py"), STEPS=STEPS, STEP_SECONDS="0")
    assert abs(loss_of(site, job) - loss_in(quick)) < CLOSE


# --- the others -----------------------------------------------------------------------------------------------


def test_horovod_on_two_hosts_is_horovod_in_two_processes(site: Site) -> None:
    two = train(site, "horovod", "horovod_train.py", "horovod", resources={"nodes": 2})
    one = train(site, "horovod", "horovod_train.py", "horovod", execution={"processes_per_node": 2})
    site.finished(two, LIMIT_S)
    site.finished(one, LIMIT_S)
    assert "worker 1 of 2 begins" in site.log(two)
    assert said(site, two, "final weights") == said(site, one, "final weights")


def test_workers_of_tensorflow_on_two_hosts_end_with_the_same_loss_every_time(site: Site) -> None:
    runs = [
        train(site, "tensorflow_multiworker", "tensorflow_train.py", "tensorflow", resources={"nodes": 2})
        for _ in range(2)
    ]
    for job in runs:
        site.finished(job, LIMIT_S)
        assert "worker 1 of 2 begins" in site.log(job)
    assert said(site, runs[0], "final loss") == said(site, runs[1], "final loss")
