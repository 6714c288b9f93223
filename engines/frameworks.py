"""Training frameworks, each in an environment of its own: they are large, and some exclude each other. An environment
is made once and named by what is in it, below CRUCIBLE_CACHE (default ~/.cache/crucible); half of one is made anew."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# The CPU build by that very version: any other pulls gigabytes of CUDA.
TORCH = ("torch==2.13.0", "numpy==2.4.6")
HOROVOD = "horovod==0.28.1"
HOROVOD_FLAGS = {
    "HOROVOD_WITH_GLOO": "1",
    "HOROVOD_WITHOUT_MPI": "1",
    "HOROVOD_WITH_PYTORCH": "1",
    "HOROVOD_WITHOUT_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
    "MAKEFLAGS": "-j2",
}


@dataclass(frozen=True)
class Framework:
    name: str
    packages: tuple[str, ...]
    without_dependencies: tuple[str, ...] = ()
    build: Callable[[Path], Path] | None = None  # makes a wheel with the environment's python

    @property
    def key(self) -> str:
        words = [*self.packages, *self.without_dependencies, HOROVOD if self.build else "", sys.version]
        return hashlib.sha256("\n".join(words).encode()).hexdigest()[:12]


def horovod_wheel(python: Path) -> Path:
    """Horovod 0.28.1 builds against this torch once its C++ standard is 20."""
    kept = cache() / "wheels" / hashlib.sha256(f"{HOROVOD} {TORCH} {sys.version}".encode()).hexdigest()[:12]
    found = sorted(kept.glob("horovod-*.whl"))
    if found:
        return found[0]
    with tempfile.TemporaryDirectory() as folder:
        pip(python, "download", "--no-deps", "--no-binary", "horovod", "--no-build-isolation", "-d", folder, HOROVOD)
        (archive,) = Path(folder).glob("horovod-*.tar.gz")
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
        source = archive.with_name(archive.name.removesuffix(".tar.gz"))
        for path in source.rglob("CMakeLists.txt"):
            if "third_party" not in path.parts:
                text = path.read_text()
                path.write_text(
                    text.replace("CMAKE_CXX_STANDARD 17", "CMAKE_CXX_STANDARD 20").replace(
                        "CMAKE_CXX_STANDARD 14", "CMAKE_CXX_STANDARD 20"
                    )
                )
        pip(python, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, str(source), env=HOROVOD_FLAGS)
        (wheel,) = Path(folder).glob("horovod-*.whl")
        kept.mkdir(parents=True, exist_ok=True)
        part = kept / f".{wheel.name}.part"
        shutil.copy(wheel, part)
        return part.replace(kept / wheel.name)


FRAMEWORKS = {
    each.name: each
    for each in (
        Framework("torch", TORCH),
        Framework("tensorflow", ("tensorflow-cpu==2.21.0",), without_dependencies=("tf-keras==2.21.0",)),
        Framework(
            "horovod",
            (*TORCH, "setuptools<81", "wheel", "cmake<4", "packaging", "cloudpickle", "psutil", "pyyaml"),
            build=horovod_wheel,
        ),
    )
}


def cache() -> Path:
    return Path(os.environ.get("CRUCIBLE_CACHE") or Path.home() / ".cache" / "crucible").absolute()


def python_of(name: str) -> Path:
    """The interpreter of a framework's environment, made if need be."""
    framework = FRAMEWORKS[name]
    folder = cache() / "venvs" / f"{framework.name}-{framework.key}"
    python = folder / "bin" / "python"
    with locked(folder.with_suffix(".lock")):
        if not (folder / "ready").exists():
            make(framework, folder, python)
    return python


def make(framework: Framework, folder: Path, python: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip(python, "install", *framework.packages)
    if framework.without_dependencies:
        pip(python, "install", "--no-deps", *framework.without_dependencies)
    if framework.build is not None:
        pip(python, "install", "--no-deps", str(framework.build(python)))
    (folder / "ready").touch()


def pip(python: Path, verb: str, *arguments: str, env: dict[str, str] | None = None) -> None:
    argv: Sequence[str | Path] = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", verb, *arguments]
    path = os.pathsep.join([str(python.parent), os.environ.get("PATH", os.defpath)])
    subprocess.run(argv, check=True, env={**os.environ, **(env or {}), "PATH": path})


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Two test runs at once make one environment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
