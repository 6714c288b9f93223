"""The folders of attempts: what is there after a restart, and how they go away.

DIR/attempts/<attempt>/code      the user's code, where its ranks run
DIR/attempts/<attempt>/setup.sh
DIR/attempts/<attempt>/rank-<r>  the run folder of a rank; `launch.json` and `token` are written here
"""

from __future__ import annotations

import os
import threading

from . import disk, private, protocol, removal
from .rank import Rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple

    from .carrier import Carrier


class Attempts:
    def __init__(self, folder: str, cgroup: Optional[str], carrier: Carrier) -> None:
        self._carrier = carrier
        self._folder = folder
        self._attempts = os.path.join(folder, "attempts")
        self._trash = os.path.join(folder, "trash")
        self._cgroup = cgroup
        os.makedirs(self._attempts, mode=0o700, exist_ok=True)
        os.makedirs(self._trash, mode=0o700, exist_ok=True)
        self._empty_trash()

    def load(self) -> List[Rank]:
        """The ranks an earlier agent of this folder knew."""
        folders = [rank for attempt in _folders_in(self._attempts) for rank in _folders_in(attempt)]
        launches = [(folder, _read_launch(folder)) for folder in folders]
        ranks = [self._rank(folder, launch, is_adopted=True) for folder, launch in launches if launch is not None]
        private.remove_others(self._folder, [rank.folder for rank in ranks if rank.is_live and rank.was_begun()])
        return ranks

    def make(self, work: protocol.RankWork) -> Tuple[Rank, Optional[str]]:
        """The new rank, and why it cannot run: the server must hear of a full disk too."""
        attempt_id, number = work.key
        folder = os.path.join(self._attempts, attempt_id, "rank-%d" % number)
        problem = None
        try:
            _write(folder, work)
        except OSError as error:
            problem = "could not make the folder of the rank: %s" % error
        return self._rank(folder, work.launch, is_adopted=False), problem

    def _rank(self, folder: str, launch: Dict[str, Any], is_adopted: bool) -> Rank:
        outputs, cargo = self._carrier.outputs(folder, launch), self._carrier.cargo(folder, launch)
        return Rank(folder, launch, self._cgroup, is_adopted, outputs, cargo)

    def discard(self, attempt_id: str) -> None:
        """Out of sight at once, off the disk soon: a folder of code may be large."""
        try:
            os.rename(os.path.join(self._attempts, attempt_id), os.path.join(self._trash, attempt_id))
        except OSError:
            return
        self._empty_trash()

    def _empty_trash(self) -> None:
        if os.listdir(self._trash):
            threading.Thread(target=_remove_all, args=(self._trash,), daemon=True, name="trash").start()


def _write(folder: str, work: protocol.RankWork) -> None:
    """The token goes into a file of its own: it must reach neither a command line nor an environment."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    descriptor = os.open(os.path.join(folder, "token"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(work.token)
    disk.write_json(os.path.join(folder, "launch.json"), work.launch)


def _folders_in(path: str) -> List[str]:
    return sorted(entry.path for entry in os.scandir(path) if entry.is_dir())


def _read_launch(folder: str) -> Optional[Dict[str, Any]]:
    try:
        return protocol.launch_from(disk.read_json(os.path.join(folder, "launch.json")) or {})
    except protocol.Malformed:
        return None


def _remove_all(folder: str) -> None:
    import shutil

    for name in os.listdir(folder):
        removal.remove_noted(os.path.join(folder, name))
        shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
