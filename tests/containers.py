"""A real podman with runc, in a folder of its own, with an image made of this computer: its Python, a shell and a few
programs. One for the session; a test that leaves a container behind fails."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

IMAGE = "localhost/crucible-test:1"
NO_SHELL = "localhost/crucible-test-bare:1"
# As few as the tests and `enter.sh` need.
PROGRAMS = ("sh", "cat", "env", "false", "grep", "id", "ls", "sleep", "touch", "true")
# Large, and nothing that runs in a test needs it.
LEFT_OUT = (
    *("test", "tests", "idlelib", "tkinter", "lib2to3", "site-packages", "dist-packages", "ensurepip", "config-*"),
    *("pydoc_data", "turtledemo", "unittest", "*.opt-1.pyc", "*.opt-2.pyc", "*.a"),
)
# What only root runs lies here on Debian.
PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])

CONTAINERS_CONF = """\
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = "runc"
tmp_dir = "{folder}/tmp"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
"""
STORAGE_CONF = """\
[storage]
driver = "overlay"
graphroot = "{folder}/graph"
runroot = "{folder}/run"
"""
REGISTRIES_CONF = """\
[[registry]]
location = "127.0.0.1"
insecure = true
"""


class Podman:
    """`env` is what an agent needs to use it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        files = {"containers": CONTAINERS_CONF, "storage": STORAGE_CONF, "registries": REGISTRIES_CONF}
        for name, text in files.items():
            (folder / f"{name}.conf").write_text(text.format(folder=folder))
        self.env = {
            "PATH": PATH,
            "CONTAINERS_CONF": str(folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
            "CONTAINERS_REGISTRIES_CONF": str(folder / "registries.conf"),
        }

    def __call__(self, *words: str, stdin: Path | None = None) -> str:
        with (stdin or Path(os.devnull)).open("rb") as given:
            done = subprocess.run(
                ["podman", *words], env={**os.environ, **self.env}, stdin=given, capture_output=True, text=True
            )
        assert done.returncode == 0, f"podman {' '.join(words)}: {done.stderr}"
        return done.stdout.strip()

    def containers(self) -> list[str]:
        return self("ps", "--all", "--format", "{{.Names}}").split()

    def import_image(self, root: Path, name: str) -> None:
        archive = root.with_suffix(".tar")
        subprocess.run(["tar", "-C", str(root), "-cf", str(archive), "."], check=True)
        self("import", "--quiet", str(archive), name)
        archive.unlink()

    def close(self) -> None:
        subprocess.run(
            ["podman", "rm", "--all", "--force", "--time", "0"], env={**os.environ, **self.env}, capture_output=True
        )
        # The runtime's own view of the storage is mounted as long as it was used.
        subprocess.run(["umount", str(self.folder / "graph" / "overlay")], capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def make_root(root: Path, python: bool) -> None:
    """The files of an image: without Python also without a shell."""
    for name in ("bin", "tmp", "etc", "proc", "sys", "dev", "usr/bin", "usr/lib"):
        (root / name).mkdir(parents=True, exist_ok=True)
    programs = [Path(shutil.which(name) or f"/bin/{name}") for name in (PROGRAMS if python else ("sleep",))]
    for program in programs:
        shutil.copy(program, root / "bin" / program.name)
    if python:
        programs += copy_python(root)
    for library in libraries(programs):
        target = root / library.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)


def copy_python(root: Path) -> list[Path]:
    """The interpreter of these tests, as an image has one: `python3`, and no `python`."""
    binary = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}").resolve()
    library = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix}))
    shutil.copy(binary, root / "usr/bin/python3")
    shutil.copytree(library, root / "usr/lib" / library.name, ignore=shutil.ignore_patterns(*LEFT_OUT))
    return [binary, *(library / "lib-dynload").glob("*.so")]


def libraries(programs: list[Path]) -> set[Path]:
    said = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True).stdout
    return {Path(found) for found in re.findall(r"(?:=> |^\t)(/\S+) \(", said, re.MULTILINE)}


@pytest.fixture(scope="session")
def podman_session() -> Iterator[Podman]:
    if not (shutil.which("podman", path=PATH) and shutil.which("runc", path=PATH)) or os.geteuid() != 0:
        message = "needs root, podman and runc: make engines"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    folder = Path(tempfile.mkdtemp(prefix="crucible-podman-"))
    podman = Podman(folder)
    try:
        for name, has_python in ((IMAGE, True), (NO_SHELL, False)):
            root = folder / "root"
            make_root(root, has_python)
            podman.import_image(root, name)
            shutil.rmtree(root)
        yield podman
    finally:
        podman.close()


@pytest.fixture
def podman(podman_session: Podman) -> Iterator[Podman]:
    yield podman_session
    left = podman_session.containers()
    for name in left:
        podman_session("rm", "--force", "--time", "0", name)
    assert left == [], "a test left containers behind"
