"""What a rank's container is given of its machine: folders at the paths that its environment names, the job's volumes,
and the rights of its user to them. Done by the agent, before the rank's supervisor starts."""

from __future__ import annotations

import os

from . import container

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple

    Mount = Tuple[str, str, str, bool]

_FILE = "file://"


def describe(
    folder: str, code: str, setup: Optional[str], program: str, launch: Dict[str, Any], machine_id: str
) -> Dict[str, Any]:
    """The container of the rank whose folder this is, for its supervisor; `program` is the agent's file. Raises
    Unusable, OSError."""
    wanted = launch["container"]
    checkpoints = folder_of(launch["checkpoints"])
    if checkpoints is not None:
        os.makedirs(checkpoints, mode=0o700, exist_ok=True)
    private = launch.get("private")
    _hand_over(wanted.get("user"), [code, folder, checkpoints, private])
    cpus = wanted.get("cpus")
    return {
        "name": container.name_of(launch["attempt_id"], launch["rank"]),
        "machine_id": machine_id,
        "rank_id": "%s/%d" % (launch["attempt_id"], launch["rank"]),
        "image": wanted["image"],
        "runtime": wanted.get("runtime") or "auto",
        "pull": wanted.get("pull") or "missing",
        "auth_file": wanted.get("auth_file"),
        "user": wanted.get("user"),
        "agent": "%d:%d" % (os.getuid(), os.getgid()),
        "shm_gib": wanted.get("shm_gib"),
        "cpus": None if cpus is None else min(cpus, os.cpu_count() or cpus),
        "memory_gib": wanted.get("memory_gib"),
        "devices": launch["devices"] if has_gpus() else [],
        "workdir": code,
        "mounts": [
            *(("bind", path, path, False) for path in (code, folder, checkpoints) if path is not None),
            *(("bind", path, path, True) for path in (setup, program, private, data_of(launch)) if path is not None),
            *(("bind", path, path, True) for path in trees_of(launch)),
            *(_volume(target, source) for target, source in sorted(launch["volumes"].items())),
        ],
    }


def has_gpus() -> bool:
    """Slots may be declared on a machine that has none: there is nothing to hand through then."""
    import shutil

    return shutil.which("nvidia-smi") is not None


def folder_of(place: str) -> Optional[str]:
    """A folder of the machine; None if it is elsewhere."""
    if place.startswith(_FILE):
        from urllib.parse import unquote

        place = unquote(place[len(_FILE) :])
    return place if place.startswith("/") else None


def data_of(launch: Dict[str, Any]) -> Optional[str]:
    """A dataset that is a folder of the machine."""
    place = folder_of(launch["env"].get("DATASET", ""))
    return place if place is not None and os.path.exists(place) else None


def trees_of(launch: Dict[str, Any]) -> List[str]:
    """Of its inputs, each once, without the dataset that is mounted already."""
    return sorted(set((launch.get("trees") or {}).values()) - {data_of(launch)})


def check_volumes(volumes: Dict[str, str]) -> None:
    """Raises Unusable for a folder that is not there, whether a container or a plain process wants it."""
    for target, source in sorted(volumes.items()):
        if source.startswith("/") and not os.path.exists(source):
            raise container.Unusable("volumes: the machine has no folder %s (wanted at %s)" % (source, target))


def _volume(target: str, source: str) -> Mount:
    return ("bind" if source.startswith("/") else "volume"), source, target, False


def _hand_over(user: Optional[str], paths: List[Optional[str]]) -> None:
    """The folders are the agent's alone: somebody else in the container needs to own them."""
    if user is None:
        return
    uid, gid = (int(number) for number in [*user.split(":"), "0"][:2])
    if uid == os.getuid():
        return
    if os.getuid() != 0:
        raise container.Unusable("container.user %s: the agent is user %d and not root" % (user, os.getuid()))
    for path in paths:
        if path is not None:
            _give(path, uid, gid)


def _give(path: str, uid: int, gid: int) -> None:
    os.lchown(path, uid, gid)
    for parent, folders, files in os.walk(path):
        for name in folders + files:
            os.lchown(os.path.join(parent, name), uid, gid)
