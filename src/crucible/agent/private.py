"""The folder with the files of a rank's secrets: in memory where the machine has a tmpfs that everybody may use, else
beside the rank's own. Only its owner may enter it, and it goes with the rank.

    /dev/shm/crucible-<name>/machine           the folder of the agent; all of this goes when that is gone
    /dev/shm/crucible-<name>/<attempt>-<rank>  the files
"""

from __future__ import annotations

import hashlib
import os
import stat

from . import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterable, List, Optional

_MEMORY = "/dev/shm"  # noqa: S108 (a place in memory; what is made there is checked)
_PREFIX = "crucible-"
_MACHINE = "machine"


def make(rank: str, files: Dict[str, bytes]) -> str:
    """The folder of the rank whose run folder this is, with these files. Raises OSError."""
    try:
        return _filled(_place_in_memory(rank), files)
    except OSError:
        remove(rank)
    return _filled(_beside(rank), files)


def remove(rank: str) -> None:
    """Absent is success."""
    disk.remove(_beside(rank))
    place = _name_in_memory(rank)
    disk.remove(place)
    _remove_empty(os.path.dirname(place))


def remove_others(machine: str, live: Iterable[str]) -> None:
    """Of this machine all but those of these ranks; and all of machines whose folders are gone."""
    kept = {os.path.basename(_name_in_memory(rank)) for rank in live}
    top = _top(machine)
    for name in _names(top):
        if name not in kept and name != _MACHINE:
            disk.remove(os.path.join(top, name))
    _remove_empty(top)
    for name in _names(_MEMORY):
        folder = os.path.join(_MEMORY, name)
        if name.startswith(_PREFIX) and _is_ours(folder):
            owner = _owner_of(folder)
            if owner is not None and not os.path.isdir(owner):
                disk.remove(folder)


def remove_left(machine: str) -> None:
    """All of a machine that runs nothing any more."""
    disk.remove(_top(machine))


def _filled(folder: str, files: Dict[str, bytes]) -> str:
    os.mkdir(folder, 0o700)
    for name, content in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    return folder


def _place_in_memory(rank: str) -> str:
    """Raises OSError where there is none, or somebody else has taken the name."""
    if not os.path.ismount(_MEMORY):
        raise FileNotFoundError(_MEMORY)
    place = _name_in_memory(rank)
    top = os.path.dirname(place)
    try:
        os.mkdir(top, 0o700)
        with open(os.path.join(top, _MACHINE), "w", encoding="utf-8") as file:
            file.write(_machine_of(rank))
    except FileExistsError:
        if not _is_ours(top):
            raise
    return place


def _is_ours(folder: str) -> bool:
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and stat.S_IMODE(found.st_mode) == 0o700


def _owner_of(folder: str) -> Optional[str]:
    try:
        with open(os.path.join(folder, _MACHINE), encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return None


def _remove_empty(top: str) -> None:
    if _names(top) == [_MACHINE]:
        disk.remove(top)


def _names(folder: str) -> List[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _name_in_memory(rank: str) -> str:
    attempt, name = os.path.split(rank)
    return os.path.join(_top(_machine_of(rank)), "%s-%s" % (os.path.basename(attempt), name[len("rank-") :]))


def _machine_of(rank: str) -> str:
    """MACHINE/attempts/ATTEMPT/rank-R"""
    return os.path.dirname(os.path.dirname(os.path.dirname(rank)))


def _top(machine: str) -> str:
    digest = hashlib.sha256(os.fsencode(os.path.abspath(machine))).hexdigest()
    return os.path.join(_MEMORY, _PREFIX + digest[:24])


def _beside(rank: str) -> str:
    attempt, name = os.path.split(rank)
    return os.path.join(attempt, "secrets-" + name[len("rank-") :])
