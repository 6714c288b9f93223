"""Where `setup` lines of a job without an image run: a virtual environment on top of the job's Python, kept under a key
made of all that the lines are known to depend on. Made once, whole or not at all; whoever uses it holds its lock.

    <cache>/environments/<key>/        the environment; complete.json in it is written last
    <cache>/environments/<key>.lock    exclusive while it is made or removed, shared while it is used
    <cache>/environments/<key>.own     its lines do more than fill the environment: they must run every time
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re

from . import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Mapping, Optional, Set, Tuple

COMPLETE = "complete.json"
_LOCK, _OWN = ".lock", ".own"

# Files that are read as they are; any other that the lines name may use the rest of the code too.
_PLAIN = (".txt", ".in", ".lock", ".toml", ".cfg", ".ini", ".yml", ".yaml", ".json", ".whl")
_LISTS = (".txt", ".in")
_PATTERN = set("*?")
_WORDS = re.compile(r"[^\s;&|<>()=\"'`]+")
_VARIABLES = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)")
# Variables that change what installers do.
_INSTALLERS = ("PIP_", "UV_", "CONDA_")
# A requirements file may name others; nobody nests them deeper.
_DEPTH = 5
# Of a file that lines name; a larger one counts by its size and time.
_MOST_BYTES = 64 << 20
# Editable installs are written into small files of a folder of packages.
_LINK_BYTES = 1 << 16

# Run by the job's own Python. Commands that belong to that Python get the environment's instead.
MAKE = """
import os, shlex, sys, venv
folder, here = sys.argv[1], os.path.dirname(sys.executable)
sites = [path for path in sys.path if path.rstrip("/").endswith(("site-packages", "dist-packages"))]
try:
    import pip
    has_pip = True
except ImportError:
    has_pip = False
venv.EnvBuilder(system_site_packages=True, with_pip=not has_pip, symlinks=True).create(folder)
own = os.path.join(folder, "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
with open(os.path.join(own, "zz_crucible.pth"), "w") as file:
    file.writelines("import site; site.addsitedir(%r)\\n" % path for path in sites)
python = shlex.quote(os.path.join(folder, "bin", "python"))
commands = {name: "-m pip" for name in (("pip", "pip3") if has_pip else ())}
for name in os.listdir(here):
    path = os.path.join(here, name)
    if os.path.isfile(path) and os.access(path, os.X_OK):
        with open(path, "rb") as file:
            first = file.readline(512)
        if first.startswith(b"#!" + os.fsencode(here) + b"/python") and name not in commands:
            commands[name] = shlex.quote(path)
for name, words in commands.items():
    path = os.path.join(folder, "bin", name)
    if not os.path.lexists(path):
        with open(path, "w") as file:
            file.write("#!/bin/sh\\nexec %s %s \\"$@\\"\\n" % (python, words))
        os.chmod(path, 0o755)
"""


def key_of(lines: List[str], python: str, env: Mapping[str, str], code: str, digest: Optional[str]) -> str:
    """`code` is the folder where the lines run, `digest` names all of it."""
    text = "\n".join(lines)
    names = set(_VARIABLES.findall(text)) | {name for name in env if name.startswith(_INSTALLERS)}
    files, needs_all = named(text, code)
    facts = {
        "lines": lines,
        "python": [python, *_state(os.path.realpath(python))],
        "env": sorted((name, env[name]) for name in names if name in env),
        "files": sorted((os.path.relpath(path, code), _content(path)) for path in files),
        "code": digest if needs_all else None,
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def named(text: str, code: str) -> Tuple[Set[str], bool]:
    """The files of the code that lines name, and whether they may use all of it."""
    found: Set[str] = set()
    needs_all = False
    frontier = [(text, code)]
    for _ in range(_DEPTH):
        below: List[Tuple[str, str]] = []
        for words, folder in frontier:
            for path in _paths(words, folder, code):
                needs_all = needs_all or os.path.isdir(path) or not path.endswith(_PLAIN)
                if os.path.isfile(path) and path not in found:
                    found.add(path)
                    below += [(_text(path), os.path.dirname(path))] if path.endswith(_LISTS) else []
            needs_all = needs_all or (words is text and bool(_PATTERN & set(words)))
        frontier = below
    return found, needs_all


def _paths(text: str, folder: str, code: str) -> Iterator[str]:
    for word in _WORDS.findall(text):
        # `-rfile` and `pkg[extra]` are written in one word too.
        for name in (word, word[2:] if word.startswith(("-r", "-c", "-e")) else "", word.partition("[")[0]):
            path = os.path.normpath(os.path.join(folder, name)) if name else ""
            if (path == code or path.startswith(code + os.sep)) and os.path.exists(path):
                yield path


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(1 << 20)


def _content(path: str) -> object:
    if os.path.getsize(path) > _MOST_BYTES:
        return _state(path)
    with open(path, "rb") as file:
        return hashlib.sha256(file.read(_MOST_BYTES)).hexdigest()


def _state(path: str) -> List[int]:
    try:
        seen = os.stat(path)
    except OSError:
        return []
    return [seen.st_size, seen.st_mtime_ns]


def variables(env: Mapping[str, str], folder: str) -> Dict[str, str]:
    """The environment of a process that runs in it."""
    path = os.pathsep.join([os.path.join(folder, "bin"), env.get("PATH", os.defpath)])
    return dict(env, PATH=path, VIRTUAL_ENV=folder)


def words_in(argv: List[str], python: str, folder: str) -> List[str]:
    """The same command, run by the environment's Python."""
    inner = os.path.join(folder, "bin", "python")
    return [inner if word == python else word for word in argv]


class Place:
    """Where one environment is kept."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._held: Optional[int] = None

    def take(self) -> Optional[str]:
        """`kept`: it is there, and held. `new`: ours to make. `own`: its lines must run for every attempt. None:
        somebody else makes it; ask again."""
        if os.path.exists(self.folder + _OWN):
            return "own"
        is_there = self.is_complete()
        if self._held is None:
            self._held = os.open(self.folder + _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        if not _flock(self._held, fcntl.LOCK_SH if is_there else fcntl.LOCK_EX):
            return None
        if self.is_complete() != is_there:
            fcntl.flock(self._held, fcntl.LOCK_UN)
            return None
        if is_there:
            os.utime(os.path.join(self.folder, COMPLETE))
            return "kept"
        disk.remove(self.folder)
        return "new"

    def use(self) -> None:
        """Held for as long as this process lives."""
        if self._held is None:
            self._held = os.open(self.folder + _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._held, fcntl.LOCK_SH)

    def complete(self, lines: List[str]) -> None:
        disk.write_json(os.path.join(self.folder, COMPLETE), {"setup": lines, "bytes": _size(self.folder)})

    def is_complete(self) -> bool:
        return os.path.exists(os.path.join(self.folder, COMPLETE))

    def disown(self) -> None:
        """Of no use to others."""
        disk.write_json(self.folder + _OWN, {})

    def leave(self) -> None:
        """Nobody uses it: what is half made is made again by the next."""
        if self._held is not None:
            os.close(self._held)
            self._held = None


def why_not_kept(before: Dict[str, Any], code: str, folder: str, leaves_processes: bool) -> Optional[str]:
    """Why the lines must run again for the next attempt; None if the environment is all that they made."""
    if leaves_processes:
        return "its lines left a process running"
    if snapshot(code) != before:
        return "its lines changed files of the code"
    if links_to(folder, os.path.dirname(code)):
        return "something in it points to the code of this attempt"
    return None


def snapshot(code: str) -> Dict[str, Any]:
    """What is in the folder, without what Python writes there by itself."""
    seen: Dict[str, Any] = {}
    for parent, folders, files in os.walk(code):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in folders:
            seen[os.path.join(parent, name)] = None
        for name in files:
            seen[os.path.join(parent, name)] = _state(os.path.join(parent, name))
    return seen


def links_to(folder: str, attempt: str) -> bool:
    wanted = os.fsencode(attempt)
    for parent, folders, files in os.walk(os.path.join(folder, "lib")):
        is_top = parent.endswith("site-packages")
        folders[:] = [name for name in folders if not is_top or name.endswith((".dist-info", ".egg-info"))]
        for name in files:
            path = os.path.join(parent, name)
            if is_top or name == "direct_url.json":
                with open(path, "rb") as file:
                    if wanted in file.read(_LINK_BYTES):
                        return True
    return False


def _size(folder: str) -> int:
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            total += os.lstat(os.path.join(parent, name)).st_size
    return total


def _flock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
