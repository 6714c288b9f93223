"""A rank in a real container: podman and runc, images made of this computer."""

import base64
import hashlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_process import AgentProcess, carriers, package_of, rank_work
from containers import IMAGE, NO_SHELL, Podman
from crucible.wire.agent import RankWork, SecretUse
from doubles.agent_server import ServerDouble
from doubles.docker import FakeDocker
from doubles.http_server import Handler, Request, serving
from doubles.registry import Registry, running_registry


def boxed(*argv: str, image: str = IMAGE, volumes: dict[str, str] | None = None, **launch: Any) -> RankWork:
    """`container` changes how; the rest is a launch as any other."""
    options = {
        "runtime": "podman",
        "pull": "missing",
        "auth_file": None,
        "user": None,
        "shm_gib": None,
        "cpus": None,
        "memory_gib": None,
        **launch.pop("container", {}),
    }
    return rank_work(*argv, container={"image": image, **options}, volumes=volumes or {}, **launch)


def python(code: str, **launch: Any) -> RankWork:
    return boxed("python", "-c", code, **launch)


@pytest.fixture
def node(agent: AgentProcess, podman: Podman, tmp_path: Path) -> AgentProcess:
    """Where checkpoints of the ranks go, every test has a folder of its own."""
    return agent.start(**podman.env)


def test_a_program_runs_in_the_image_and_its_output_and_exit_code_come_through(
    node: AgentProcess, server: ServerDouble, podman: Podman
) -> None:
    code = "import os, sys; print(sorted(os.listdir('/'))); print('to err', file=sys.stderr); sys.exit(3)"
    server.give(python(code))
    report = server.exit_of()
    assert (report.exit_code, report.signal, report.reason) == (3, None, None), server.lines(None)
    assert "'home'" not in server.lines()[0] and "'usr'" in server.lines()[0]
    assert server.lines("err") == ["to err"]
    assert podman.containers() == []


def test_python_means_the_one_of_the_image(node: AgentProcess, server: ServerDouble) -> None:
    server.give(boxed("python", "-c", "import sys; print(sys.executable)"))
    server.exit_of()
    assert server.lines() == ["/usr/bin/python3"]


def test_code_and_run_folder_are_at_the_paths_that_the_environment_names(
    node: AgentProcess, server: ServerDouble, tmp_path: Path
) -> None:
    script = """
import json, os
e = os.environ
with open(os.path.join(e['CRUCIBLE_RUN_DIR'], 'events.jsonl'), 'a') as file:
    file.write(json.dumps({'type': 'progress', 'step': 7, 'total': 9}) + '\\n')
open('made-here', 'w').close()
with open(os.path.join(e['CRUCIBLE_CHECKPOINTS'][len('file://'):], 'saved'), 'w') as file:
    file.write('weights')
print(open(e['CRUCIBLE_TOKEN_FILE']).read(), os.getcwd())
"""
    body = package_of({"train.py": script})
    digest = hashlib.sha256(body).hexdigest()
    server.packages[digest] = body
    server.give(boxed("python", "train.py", code=digest, checkpoints=f"file://{tmp_path}/checkpoints"))
    assert server.exit_of().exit_code == 0, server.lines(None)
    code = node.rank_folder().parent / "code"
    assert server.lines() == [f"token-of-the-attempt {code}"]
    assert (code / "made-here").exists()
    assert (tmp_path / "checkpoints" / "saved").read_text() == "weights"
    server.wait_for(lambda: any(each.step == 7 for each in server.progress))


def test_every_value_reaches_the_program_as_it_is(node: AgentProcess, server: ServerDouble) -> None:
    values = {
        "PLAIN": "a=b c",
        "LINES": "one\ntwo\n",
        "QUOTES": """{"a": 'b', "c": "\\n"}""",
        "SIGNS": "$HOME `id` #x",
        "SPACES": "  both ends ",
        "EMPTY": "",
        "LONG": "x" * 70000,
        "UNICODE": "für café",
    }
    server.give(python("import os, json; print(json.dumps(dict(os.environ)))", env=values))
    assert server.exit_of().exit_code == 0, server.lines(None)
    env = json.loads("".join(server.lines()))
    assert {name: env.get(name) for name in values} == values
    assert (env["CRUCIBLE_RANK_ID"], env["CUDA_VISIBLE_DEVICES"], env["PYTHONUNBUFFERED"]) == ("att-1/0", "", "1")
    assert "VIRTUAL_ENV" not in env and env["PATH"].startswith("/usr/local/sbin")


def test_no_secret_is_in_a_command_line(node: AgentProcess, server: ServerDouble) -> None:
    canaries = {"PLAIN": "canary-plain-4711", "QUOTED": 'canary-"quoted"-4712'}
    server.give(python("import time; print('up', flush=True); time.sleep(60)", env=canaries))
    server.wait_for(lambda: server.lines() == ["up"])
    words = [path.read_bytes() for path in map(cmdline_of, os.listdir("/proc")) if path is not None]
    assert any(b"crucible-att-1-0" in each for each in words)
    assert not any(b"canary-" in each for each in words)
    env_file = node.rank_folder().parent / "container-0.env"
    assert env_file.stat().st_mode & 0o077 == 0
    server.give()
    server.exit_of()
    assert not env_file.exists()


def cmdline_of(pid: str) -> Path | None:
    path = Path("/proc", pid, "cmdline")
    return path if pid.isdigit() and path.exists() and int(pid) != os.getpid() else None


def test_volumes_are_folders_of_the_machine_and_named_ones(
    node: AgentProcess, server: ServerDouble, podman: Podman, tmp_path: Path
) -> None:
    data = tmp_path / "data, with a comma"
    data.mkdir()
    (data / "input").write_text("from the machine")
    code = "print(open('/data/input').read()); open('/data/out', 'w').close(); open('/kept/x', 'a').write('1')"
    server.give(python(code, volumes={"/data": str(data), "/kept": "crucible-test-volume"}))
    try:
        assert server.exit_of().exit_code == 0, server.lines(None)
        assert server.lines() == ["from the machine"]
        assert (data / "out").exists()
        assert "crucible-test-volume" in podman("volume", "ls", "--quiet")
    finally:
        podman("volume", "rm", "--force", "crucible-test-volume")


def test_a_volume_that_the_machine_lacks_is_the_reason(node: AgentProcess, server: ServerDouble) -> None:
    server.give(python("print('never')", volumes={"/data": "/no/such/folder"}))
    report = server.exit_of()
    assert report.reason == "volumes: the machine has no folder /no/such/folder (wanted at /data)"
    assert report.started_at_ms is None


def test_limits_are_those_of_the_launch(node: AgentProcess, server: ServerDouble) -> None:
    code = """
import os
for path in ('/sys/fs/cgroup/memory/memory.limit_in_bytes', '/sys/fs/cgroup/memory.max'):
    if os.path.exists(path):
        print(open(path).read().strip())
print(os.statvfs('/dev/shm').f_blocks * os.statvfs('/dev/shm').f_frsize)
"""
    server.give(python(code, container={"memory_gib": 0.25, "cpus": 1000, "shm_gib": 0.125}))
    assert server.exit_of().exit_code == 0, server.lines(None)
    assert server.lines() == [str(256 << 20), str(128 << 20)]


def test_too_much_memory_kills_the_program_and_not_the_machine(node: AgentProcess, server: ServerDouble) -> None:
    server.give(python("x = bytearray(512 << 20)", container={"memory_gib": 0.0625}))
    assert server.exit_of().signal == signal.SIGKILL


def test_somebody_else_in_the_container_owns_what_it_needs(node: AgentProcess, server: ServerDouble) -> None:
    code = "import os; print(os.getuid(), os.getgid(), os.environ['HOME']); open('mine', 'w').close()"
    more = "; print(open(os.environ['CRUCIBLE_TOKEN_FILE']).read())"
    server.give(python(code + more, container={"user": "1234:2345"}, setup=["touch by-setup"]))
    assert server.exit_of().exit_code == 0, server.lines(None)
    assert server.lines() == ["1234 2345 /tmp", "token-of-the-attempt"]
    assert (node.rank_folder().parent / "code" / "mine").stat().st_uid == 1234


def test_setup_lines_run_in_the_container_before_the_program(node: AgentProcess, server: ServerDouble) -> None:
    server.give(boxed("cat", "/tmp/made", setup=["echo preparing", "echo by setup > /tmp/made"]))
    assert server.exit_of().exit_code == 0, server.lines(None)
    assert server.lines() == ["preparing", "by setup"]


def test_setup_that_fails_in_the_container_is_the_reason(node: AgentProcess, server: ServerDouble) -> None:
    server.give(boxed("echo", "never", setup=["echo about to fail", "sh -c 'exit 4'"]))
    report = server.exit_of()
    assert (report.exit_code, report.reason) == (4, "setup failed (exit 4)")
    assert "never" not in server.lines()


def test_several_ranks_have_a_container_each(node: AgentProcess, server: ServerDouble) -> None:
    server.give(*[python("import os; print(os.environ['N'])", rank=i, env={"N": str(i)}) for i in range(3)])
    for i in range(3):
        assert server.exit_of(rank=i).exit_code == 0
        assert server.lines(rank=i) == [str(i)]


# --- stopping -----------------------------------------------------------------------------------------


SLEEPER = "import time; print('up', flush=True); time.sleep(600)"
POLITE = """
import signal, sys, time
def end(*_):
    print('asked to end', flush=True)
    sys.exit(5)
signal.signal(signal.SIGTERM, end)
print('up', flush=True)
time.sleep(600)
"""
STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    time.sleep(600)
print('up', flush=True)
time.sleep(600)
"""


def test_sigterm_reaches_the_program(node: AgentProcess, server: ServerDouble, podman: Podman) -> None:
    server.give(python(POLITE))
    server.wait_for(lambda: server.lines() == ["up"])
    server.give(python(POLITE, stop=True, stop_reason="cancelled by ada"))
    report = server.exit_of()
    assert (report.exit_code, report.reason) == (5, "cancelled by ada")
    assert server.lines() == ["up", "asked to end"]
    assert podman.containers() == []


def test_a_program_that_handles_no_signal_ends_at_once_when_told_to(node: AgentProcess, server: ServerDouble) -> None:
    server.give(python(SLEEPER, stop_grace_s=60.0))
    server.wait_for(lambda: server.lines() == ["up"])
    began = time.monotonic()
    server.give(python(SLEEPER, stop_grace_s=60.0, stop=True))
    assert server.exit_of().signal == signal.SIGTERM
    assert time.monotonic() - began < 30


def test_after_the_grace_everything_is_killed(node: AgentProcess, server: ServerDouble, podman: Podman) -> None:
    server.give(python(STUBBORN, stop_grace_s=0.5))
    server.wait_for(lambda: "up" in server.lines())
    server.give(python(STUBBORN, stop_grace_s=0.5, stop=True))
    report = server.exit_of()
    assert report.signal == signal.SIGKILL
    assert podman.containers() == []
    assert in_containers(node) == []


def in_containers(node: AgentProcess) -> list[int]:
    """What carries the rank's mark: not its supervisor, which may be about to end."""
    return carriers("CRUCIBLE_RUN_DIR", str(node.rank_folder()))


def test_nothing_survives_a_supervisor_that_is_killed(node: AgentProcess, server: ServerDouble, podman: Podman) -> None:
    server.give(python(STUBBORN))
    server.wait_for(lambda: "up" in server.lines())
    begun = json.loads((node.rank_folder() / "supervisor.json").read_text())
    os.kill(begun["pid"], signal.SIGKILL)
    report = server.exit_of()
    assert report.reason is not None and report.reason.startswith("its supervisor ended before it")
    assert podman.containers() == []
    assert in_containers(node) == []


def test_a_container_outlives_its_agent_and_is_found_again(
    node: AgentProcess, server: ServerDouble, podman: Podman
) -> None:
    server.give(python(SLEEPER))
    server.wait_for(lambda: server.lines() == ["up"])
    node.kill()
    assert podman.containers() == ["crucible-att-1-0"]
    node.start(**podman.env)
    server.give(python(SLEEPER, stop=True))
    assert server.exit_of().signal == signal.SIGTERM
    assert podman.containers() == []


def test_a_rank_that_is_no_longer_wanted_leaves_no_container(
    node: AgentProcess, server: ServerDouble, podman: Podman
) -> None:
    server.give(python(STUBBORN))
    server.wait_for(lambda: "up" in server.lines())
    assert podman("ps", "--quiet", "--filter", f"label=crucible.machine={node.machine_id}") != ""
    server.give()
    server.wait_for(lambda: podman.containers() == [] and in_containers(node) == [], 30)


# --- images -----------------------------------------------------------------------------------------------


def test_an_image_that_does_not_exist_is_the_reason(node: AgentProcess, server: ServerDouble) -> None:
    server.give(python("print('never')", image="localhost/no-such-image:9", container={"pull": "never"}))
    report = server.exit_of()
    assert report.reason == "the image localhost/no-such-image:9 is not on the machine, and container.pull is never"
    assert (report.exit_code, report.started_at_ms) == (None, None)


def test_a_program_that_the_image_lacks_is_not_found(node: AgentProcess, server: ServerDouble) -> None:
    server.give(boxed("no-such-program"))
    assert server.exit_of().exit_code == 127
    assert any("not found" in line for line in server.lines("err"))


def test_an_image_without_a_shell_runs_an_absolute_path(node: AgentProcess, server: ServerDouble) -> None:
    server.give(boxed("/bin/sleep", "0", image=NO_SHELL), boxed("sleep", "0", image=NO_SHELL, rank=1))
    assert server.exit_of().exit_code == 0, server.lines(None)
    report = server.exit_of(rank=1)
    assert report.reason is not None and report.reason.startswith("the container could not start: ")
    assert "/bin/sh" in report.reason


def test_without_a_runtime_the_reason_says_what_to_install(
    new_agent: Callable[..., AgentProcess], server: ServerDouble, tmp_path: Path
) -> None:
    new_agent().start(PATH=str(tmp_path))
    server.give(python("print('never')", container={"runtime": "auto"}))
    assert server.exit_of().reason == "no container runtime: install podman or docker on the machine"


@pytest.fixture(scope="module")
def saved(podman_session: Podman, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "image"
    podman_session("save", "--quiet", "--format", "oci-dir", "--output", str(folder), NO_SHELL)
    return folder


def auth_file(path: Path, place: str, login: str) -> str:
    path.write_text(json.dumps({"auths": {place: {"auth": base64.b64encode(login.encode()).decode()}}}))
    path.chmod(0o600)
    return str(path)


def test_a_private_image_is_pulled_with_credentials_and_only_when_it_must_be(
    node: AgentProcess, server: ServerDouble, podman: Podman, saved: Path, tmp_path: Path
) -> None:
    registry = Registry(saved, "team/trainer", "ada", "right-password")
    with running_registry(registry) as double:
        place = f"127.0.0.1:{double.server_port}"
        image = f"{place}/team/trainer:1"
        auth = auth_file(tmp_path / "auth.json", place, "ada:right-password")
        options = {"auth_file": auth}
        try:
            for attempt, pull in (("att-1", "missing"), ("att-2", "missing"), ("att-3", "always")):
                work = boxed("/bin/sleep", "0", image=image, attempt_id=attempt, container={**options, "pull": pull})
                server.give(work)
                assert server.exit_of(attempt).exit_code == 0, server.lines(None, attempt)
        finally:
            podman("rmi", "--force", image)
    assert registry.pulls == 2
    assert server.lines("sys", "att-1")[0] == f"pulling the image {image} with podman"
    assert server.lines("sys", "att-2") == []
    assert not any("right-password" in line for each in ("att-1", "att-3") for line in server.lines(None, each))


@pytest.mark.parametrize(("login", "tag"), [("ada:wrong-password", "1"), (None, "1"), ("ada:right-password", "9")])
def test_a_wrong_login_or_a_missing_image_is_the_users_to_mend(
    node: AgentProcess, server: ServerDouble, saved: Path, tmp_path: Path, login: str | None, tag: str
) -> None:
    with running_registry(Registry(saved, "team/trainer", "ada", "right-password")) as double:
        place = f"127.0.0.1:{double.server_port}"
        image = f"{place}/team/trainer:{tag}"
        options = {"auth_file": auth_file(tmp_path / "auth.json", place, login) if login else None}
        server.give(boxed("/bin/sleep", "0", image=image, container=options))
        report = server.exit_of()
    assert report.reason is not None
    assert report.reason.startswith(f"the image {image} does not exist or needs a login: ")
    assert (report.exit_code, report.evicted, report.started_at_ms) == (None, False, None)


def test_a_disk_that_is_too_full_for_the_image_is_the_reason(
    agent: AgentProcess, server: ServerDouble, small_podman: Podman, saved: Path
) -> None:
    agent.start(**small_podman.env)
    with running_registry(Registry(saved, "team/trainer", "ada", "right-password")) as double:
        place = f"127.0.0.1:{double.server_port}"
        image = f"{place}/team/trainer:1"
        auth = auth_file(saved.parent / "auth.json", place, "ada:right-password")
        server.give(boxed("/bin/sleep", "0", image=image, container={"auth_file": auth}))
        report = server.exit_of()
    assert report.reason is not None
    assert report.reason.startswith(f"the disk of the machine is too full for the image {image}: ")


@pytest.fixture
def small_podman(podman_session: Podman, tmp_path: Path) -> Iterator[Podman]:
    """Another one, on a disk of one megabyte."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=True)
    try:
        podman = Podman(folder)
        podman.env["TMPDIR"] = str(folder)
        yield podman
    finally:
        subprocess.run(["umount", str(folder / "graph" / "overlay")], capture_output=True)
        subprocess.run(["umount", str(folder)], check=True)


def test_a_pull_can_be_stopped(node: AgentProcess, server: ServerDouble) -> None:
    waiting = threading.Event()

    def never(request: Request, handler: Handler) -> None:
        waiting.set()
        over.wait(60)

    over = threading.Event()
    with serving(never) as double:
        work = boxed("/bin/sleep", "0", image=f"127.0.0.1:{double.server_port}/slow:1")
        server.give(work)
        assert waiting.wait(20)
        server.give(boxed("/bin/sleep", "0", image="any", stop=True, stop_reason="cancelled by ada"))
        assert server.exit_of().reason == "stopped during setup: cancelled by ada"
        over.set()


# --- docker -------------------------------------------------------------------------------------------------


@pytest.fixture
def docker(tmp_path: Path) -> FakeDocker:
    return FakeDocker(tmp_path / "fake")


@pytest.fixture
def docked(agent: AgentProcess, docker: FakeDocker) -> AgentProcess:
    return agent.start(PATH=f"{docker.folder}:/usr/bin:/bin")


AUTO = {"runtime": "auto", "pull": "missing"}


def test_where_podman_does_not_answer_docker_is_used(
    agent: AgentProcess, server: ServerDouble, docker: FakeDocker
) -> None:
    broken = docker.folder / "podman"
    broken.write_text("#!/bin/sh\necho 'Error: cannot set up namespace' >&2\nexit 125\n")
    broken.chmod(0o755)
    agent.start(PATH=f"{docker.folder}:/usr/bin:/bin")
    server.give(boxed("sh", "-c", "echo $MINE; exit 4", image="x", container=AUTO, env={"MINE": "yes"}))
    assert server.exit_of().exit_code == 4, server.lines(None)
    assert server.lines() == ["yes"]
    [call] = docker.calls("run")
    assert call[call.index("--user") + 1] == f"{os.getuid()}:{os.getgid()}"
    assert "--init" in call


def test_gpus_are_handed_to_docker_where_there_are_any(
    docked: AgentProcess, server: ServerDouble, docker: FakeDocker
) -> None:
    show = ("sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
    server.give(boxed(*show, image="x", container={"runtime": "docker"}, devices=["2", "3"]))
    server.exit_of()
    smi = docker.folder / "nvidia-smi"
    smi.write_text("#!/bin/sh\n")
    smi.chmod(0o755)
    server.give(boxed(*show, image="x", container={"runtime": "docker"}, devices=["2", "3"], attempt_id="att-2"))
    server.exit_of("att-2")
    declared, real = docker.calls("run")
    assert "--gpus" not in declared and server.lines() == ["2,3"]
    assert real[real.index("--gpus") + 1] == '"device=2,3"' and server.lines("out", "att-2") == ["0,1"]


def test_docker_gets_credentials_as_a_folder(
    docked: AgentProcess, server: ServerDouble, docker: FakeDocker, tmp_path: Path
) -> None:
    (docker.folder / "has-image").unlink()
    (tmp_path / "login.json").write_text("right")
    options = {"runtime": "docker", "auth_file": str(tmp_path / "login.json")}
    server.give(boxed("true", image="x", container={"runtime": "docker"}))
    reason = server.exit_of().reason
    assert reason is not None and reason.startswith("the image x does not exist or needs a login: ")
    server.give(boxed("true", image="x", container=options, attempt_id="att-2"))
    assert server.exit_of("att-2").exit_code == 0, server.lines(None, "att-2")


def test_a_container_of_a_daemon_is_killed_by_name(
    docked: AgentProcess, server: ServerDouble, docker: FakeDocker
) -> None:
    work = {"image": "x", "container": {"runtime": "docker"}, "stop_grace_s": 0.5}
    argv = ("sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done")
    server.give(boxed(*argv, **work))
    server.wait_for(lambda: server.lines() == ["up"])
    pid = int((docker.folder / "crucible-att-1-0.pid").read_text())
    server.give(boxed(*argv, stop=True, **work))
    assert server.exit_of().signal == signal.SIGKILL
    assert not is_alive(pid)


def test_a_container_of_a_daemon_goes_with_a_supervisor_that_is_killed(
    docked: AgentProcess, server: ServerDouble, docker: FakeDocker
) -> None:
    server.give(boxed("sh", "-c", "echo up; sleep 600", image="x", container={"runtime": "docker"}))
    server.wait_for(lambda: server.lines() == ["up"])
    pid = int((docker.folder / "crucible-att-1-0.pid").read_text())
    os.kill(json.loads((docked.rank_folder() / "supervisor.json").read_text())["pid"], signal.SIGKILL)
    assert server.exit_of().reason is not None
    assert not is_alive(pid)


def is_alive(pid: int) -> bool:
    """A zombie is dead: who should reap it may not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_secrets_come_into_a_container_and_into_no_command_line_file_or_log(
    node: AgentProcess, server: ServerDouble, podman: Podman
) -> None:
    server.secrets = {"TOKEN": b'canary "plain" 0001', "KEY": b"canary of a file 0002"}
    uses = [SecretUse(name="TOKEN", env="TOKEN"), SecretUse(name="KEY", file="deep/key", env="KEY_FILE")]
    code = (
        "import os, time; print(len(os.environ['TOKEN']), len(open(os.environ['KEY_FILE']).read()));"
        "print(os.environ['TOKEN'], open(os.environ['KEY_FILE']).read(), flush=True); time.sleep(2)"
    )
    server.give(python(code, secrets=uses))
    server.wait_for(lambda: server.has_line("***"))
    told = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, check=True).stdout
    assert b"canary" not in told and b"--env TOKEN " in told
    assert [path for path in node.folder.rglob("*") if path.is_file() and b"canary" in path.read_bytes()] == []
    assert server.exit_of().exit_code == 0, server.lines(None)
    assert server.lines() == ["19 21", "*** ***"]
