"""The machines of this host. Each is a folder, which is all that is known of it: there is no other memory to disagree
with.

    machine.json   what was ordered; the folder appears with it, by one rename
    boot.json      for the agent, 0600; removed when the machine is gone
    go.json        it may start, and since when; without it the folder only keeps the place for a while
    lock           held by the agent as long as it lives, with its pid inside: not empty means that it has run
    delete.json    somebody asked for its end, and when
    gone.json      it has ended for ever, when and why
    agent.out      what the agent printed;  agent.exit: the reason that it gave for its end

A machine is gone when nothing of it runs any more, and gone is for ever."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time

from . import disk, processes, removal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple

MARK = "CRUCIBLE_MACHINE_ID"
_PREFIX = "host-"
# A place that was made and never used is given up: whoever made it has died, or bought elsewhere.
_MADE_FOR_S = 180.0
# The engine sees an end within seconds; the rest is for people who look into the folder.
_REMEMBER_S = 3600.0
_MAX_REMEMBERED = 100
# Passes over all processes when a tree is killed: it may fork in between.
_KILL_PASSES = 5
_KILL_PAUSE_S = 0.02
_MAX_REASON = 500


class Refused(Exception):
    """`code`: no_capacity, trouble, rejected or unknown, as a seller would say it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Busy(Exception):
    """Another server is at it."""


class Folder:
    """One machine's."""

    def __init__(self, path: str, record: Dict[str, Any]) -> None:
        self.path = path
        self.record = record

    @classmethod
    def read(cls, path: str) -> Optional[Folder]:
        """None if it is not a machine's folder, or half gone."""
        record = disk.read_json(os.path.join(path, "machine.json"))
        if record is None or record.get("id") != os.path.basename(path):
            return None
        return cls(path, record)

    @classmethod
    def make(cls, path: str, record: Dict[str, Any], boot: Dict[str, Any]) -> Folder:
        """Whole or not at all."""
        draft = os.path.join(os.path.dirname(path), ".new-" + os.path.basename(path))
        os.mkdir(draft, 0o700)
        disk.write_json(os.path.join(draft, "boot.json"), boot)
        with open(os.path.join(draft, "agent.out"), "w", encoding="utf-8") as out:
            out.write("machine %s of order %s\n" % (record["id"], record["order_id"]))
        disk.write_json(os.path.join(draft, "machine.json"), record)
        os.rename(draft, path)
        return cls(path, record)

    def file(self, name: str) -> str:
        return os.path.join(self.path, name)

    def note(self, name: str) -> Optional[Dict[str, Any]]:
        return disk.read_json(self.file(name))

    # --- the agent -----------------------------------------------------------------------------

    def started_at(self) -> Optional[float]:
        note = self.note("go.json")
        return float(note["at"]) if note else None

    def was_started(self) -> bool:
        return self.started_at() is not None or self.has_run()

    def has_run(self) -> bool:
        try:
            return os.stat(self.file("lock")).st_size > 0
        except OSError:
            return False

    def is_locked(self) -> bool:
        """Whether the agent lives. Only to be asked once it has run."""
        return disk.is_locked(self.file("lock"))

    def is_live(self) -> bool:
        """It has, or keeps, a place of its own."""
        return self.ending() is None

    def agent_pid(self) -> Optional[int]:
        try:
            with open(self.file("lock"), encoding="ascii") as file:
                return int(file.read().split()[0])
        except (OSError, ValueError, IndexError):
            return None

    def prevent_start(self) -> bool:
        """An agent that has not taken its lock by now never will; False if it has. Without boot.json a late one has
        nothing to do but end."""
        lock = disk.take_lock(self.file("lock"))
        if lock is None:
            return False
        try:
            _unlink(self.file("boot.json"))
        finally:
            os.close(lock)
        return True

    # --- its end -------------------------------------------------------------------------------

    def delete_asked_at(self) -> Optional[float]:
        note = self.note("delete.json")
        return float(note["at"]) if note else None

    def ending(self) -> Optional[Dict[str, Any]]:
        return self.note("gone.json")

    def end(self, reason: str) -> str:
        for secret in ("boot.json", "identity.json"):
            _unlink(self.file(secret))
        disk.write_json(self.file("gone.json"), {"at": time.time(), "reason": reason})
        return reason

    def exit_reason(self) -> Optional[str]:
        """What the agent said when it ended, if it could."""
        try:
            with open(self.file("agent.exit"), encoding="utf-8", errors="replace") as file:
                return file.read(_MAX_REASON).strip() or None
        except OSError:
            return None

    def last_output(self, limit: int) -> str:
        try:
            with open(self.file("agent.out"), "rb") as out:
                out.seek(max(out.seek(0, os.SEEK_END) - limit, 0))
                return out.read(limit).decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def remove(self) -> None:
        """machine.json first: half a removal is no machine."""
        _unlink(self.file("machine.json"))
        disk.remove(self.path)


class Host:
    """To be used by one at a time: under the lock."""

    def __init__(self, root: str, request: Dict[str, Any]) -> None:
        self.root = root
        deployment = os.path.join(root, request["deployment"])
        self.machines = os.path.join(deployment, "machines")
        self.server_file = os.path.join(deployment, "server.json")
        # Datasets and environments outlive the machine that brought them.
        self._cache = os.path.join(deployment, "cache")
        self._boot_time_s = float(request.get("boot_time_s", 60.0))
        self._stop_grace_s = float(request.get("stop_grace_s", 15.0))

    # --- what is there -------------------------------------------------------------------------

    def folder(self, name: str) -> Optional[Folder]:
        return Folder.read(os.path.join(self.machines, name))

    def folders(self) -> List[Folder]:
        return _folders(self.machines)

    def everybodys(self) -> List[Folder]:
        """Of every deployment that uses this host as the same user."""
        found: List[Folder] = []
        for name in sorted(_names(self.root)):
            found += _folders(os.path.join(self.root, name, "machines"))
        return found

    def order(self, order_id: str) -> List[Folder]:
        return [folder for folder in self.folders() if folder.record["order_id"] == order_id]

    # --- buying --------------------------------------------------------------------------------

    def make(self, request: Dict[str, Any]) -> List[Folder]:
        """All or none. Raises Refused, OSError."""
        self._check_room(request)
        made: List[Folder] = []
        try:
            for wanted in request["machines"]:
                record = {
                    "id": machine_id(request["order_id"], wanted["index"]),
                    "order_id": request["order_id"],
                    "index": int(wanted["index"]),
                    "devices": [str(device) for device in wanted["devices"]],
                    "exclusive": bool(request["exclusive"]),
                    "created_at": time.time(),
                }
                path = os.path.join(self.machines, record["id"])
                made.append(Folder.make(path, record, self._boot(record, request["boot"])))
        except OSError:
            self.clear_debris()
            for folder in made:
                self.destroy(folder)
            raise
        return made

    def _check_room(self, request: Dict[str, Any]) -> None:
        live = [folder.record for folder in self.everybodys() if folder.is_live()]
        wanted = [device for machine in request["machines"] for device in machine["devices"]]
        busy = {device for record in live for device in record["devices"]}
        if live and (request["exclusive"] or any(record["exclusive"] for record in live)):
            raise Refused("no_capacity", "the host is in use by machine %s" % live[0]["id"])
        if busy & set(wanted):
            raise Refused("no_capacity", "in use already: %s" % ", ".join(sorted(busy & set(wanted))))
        if len(live) + len(request["machines"]) > int(request["max_machines"]):
            raise Refused("no_capacity", "%d machines are there already" % len(live))

    def _boot(self, record: Dict[str, Any], given: Dict[str, Any]) -> Dict[str, Any]:
        return dict(
            given,
            order_id=record["order_id"],
            machine_id=record["id"],
            devices=record["devices"],
            server_file=self.server_file,
            cache=self._cache,
            power_off=None,  # somebody's own computer is never switched off
            cgroup=None,
        )

    def start(self, folders: List[Folder], may_undo: bool) -> None:
        """Starts what has never run. `may_undo`: if one cannot be started, all of them are removed again. Raises
        OSError, Refused."""
        now = time.time()
        waiting = [folder for folder in folders if not folder.has_run() and folder.is_live()]
        carried = carriers([folder.record["id"] for folder in waiting])
        try:
            for folder in waiting:
                if folder.started_at() is None:
                    disk.write_json(folder.file("go.json"), {"at": now})
            for folder in waiting:
                # A second agent would end by itself, since it cannot have the lock; but why start it.
                if not carried[folder.record["id"]]:
                    _start_agent(folder)
        except OSError as error:
            if not may_undo:
                raise
            undone = [self.destroy(folder) for folder in folders]
            if not all(undone):
                raise Refused("unknown", "some agents started, one could not: %s" % error) from error
            raise

    def resume(self, folders: List[Folder]) -> None:
        """What was to start, by somebody who died before its agent came."""
        waiting = [folder for folder in folders if folder.started_at() is not None and not folder.has_run()]
        young = [folder for folder in waiting if folder.delete_asked_at() is None]
        self.start([folder for folder in young if not self._is_late(folder)], may_undo=False)

    def expire(self, folders: List[Folder]) -> None:
        for folder in folders:
            # Also what seems to come from the future: a clock was set back.
            if not folder.was_started() and abs(time.time() - folder.record["created_at"]) > _MADE_FOR_S:
                self.destroy(folder)

    def clear_debris(self) -> None:
        """Drafts and half-removed folders. Only the holder of the lock makes them: a crash left any that is there."""
        for name in _names(self.machines):
            path = os.path.join(self.machines, name)
            if name.startswith(".new-") or not os.path.exists(os.path.join(path, "machine.json")):
                disk.remove(path)

    # --- living and ending ---------------------------------------------------------------------

    def look(self, folder: Folder) -> Dict[str, Any]:
        """Its state, having ended what is left of a machine whose agent is dead or never came."""
        ending = folder.ending()
        if ending is not None:
            return _machine(folder, "gone", str(ending["reason"]))
        if folder.has_run():
            return self._look_at_run(folder)
        return self._look_at_start(folder)

    def stop(self, folder: Folder) -> None:
        """SIGTERM to the agent; once the grace is over, SIGKILL to everything that carries the machine's id."""
        if folder.delete_asked_at() is None:
            disk.write_json(folder.file("delete.json"), {"at": time.time()})
            if self.look(folder)["state"] != "gone":
                _signal_agent(folder, signal.SIGTERM)
        else:
            self.look(folder)

    def destroy(self, folder: Folder) -> bool:
        """Undo a purchase that was never reported; False if something of it cannot be killed."""
        if not folder.prevent_start():
            _signal_agent(folder, signal.SIGKILL)
        if not _kill(folder):
            return False
        removal.remove_left(folder.path)
        folder.remove()
        return True

    def forget(self, seen: List[Tuple[Folder, Dict[str, Any]]]) -> None:
        """Ended machines, the oldest first. Whole orders only: what is left of one must show that it was bought."""
        orders: Dict[str, List[Folder]] = {}
        for folder, _ in seen:
            orders.setdefault(folder.record["order_id"], []).append(folder)
        ended = []
        for folders in orders.values():
            endings = [folder.ending() for folder in folders]
            if all(endings):
                ended.append((max(float(each["at"]) for each in endings if each), folders))
        ended.sort(key=lambda order: -order[0])
        for place, (at, folders) in enumerate(ended):
            if place >= _MAX_REMEMBERED or time.time() - at > _REMEMBER_S:
                for folder in folders:
                    folder.remove()

    def _look_at_run(self, folder: Folder) -> Dict[str, Any]:
        asked_at = folder.delete_asked_at()
        if folder.is_locked():
            if asked_at is None:
                return _machine(folder, "running")
            if not 0 <= time.time() - asked_at < self._stop_grace_s:
                _kill(folder)
            return _machine(folder, "stopping")
        if not _kill(folder):
            return _machine(folder, "stopping", "processes that its agent left behind are being killed")
        removal.remove_left(folder.path)
        said = folder.exit_reason() or ("deleted" if asked_at is not None else "its agent ended")
        return _machine(folder, "gone", folder.end(said))

    def _look_at_start(self, folder: Folder) -> Dict[str, Any]:
        is_deleted = folder.delete_asked_at() is not None
        if not is_deleted and not self._is_late(folder):
            return _machine(folder, "starting")
        # It may win the race after all: then it is as good as started, and the next look finds it running.
        if not folder.prevent_start() or not _kill(folder):
            return _machine(folder, "starting")
        words = folder.last_output(_MAX_REASON).splitlines()[-1:]
        late = "its agent did not start within %g s: %s" % (self._boot_time_s, " ".join(words))
        return _machine(folder, "gone", folder.end("deleted before its agent started" if is_deleted else late))

    def _is_late(self, folder: Folder) -> bool:
        started_at = folder.started_at()
        return started_at is not None and not -60.0 < time.time() - started_at < self._boot_time_s


def machine_id(order_id: str, index: int) -> str:
    """The same for the same order, and fit for a file name whatever the order is called."""
    return _PREFIX + hashlib.sha256(("%s/%d" % (order_id, index)).encode()).hexdigest()[:20]


def carriers(machine_ids: List[str]) -> Dict[str, List[processes.Process]]:
    """The living processes of each machine, in one look at all processes."""
    found: Dict[str, List[processes.Process]] = {name: [] for name in machine_ids}
    if not found:
        return found
    for process in processes.everything().values():
        name = _mark_of(process.pid)
        if name in found and not process.is_zombie and process.pid != os.getpid():
            found[name].append(process)
    return found


def _mark_of(pid: int) -> Optional[str]:
    try:
        with open("/proc/%d/environ" % pid, "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:
        return None
    prefix = MARK.encode() + b"="
    return next((os.fsdecode(each[len(prefix) :]) for each in variables if each.startswith(prefix)), None)


def _kill(folder: Folder) -> bool:
    """True when nothing carries the machine's id any more."""
    name = folder.record["id"]
    for turn in range(_KILL_PASSES):
        if turn:
            time.sleep(_KILL_PAUSE_S)
        found = carriers([name])[name]
        if not found:
            return True
        processes.kill(found)
    return False


def _signal_agent(folder: Folder, signum: int) -> None:
    """The pid in the lock file is the agent's as long as the lock is held."""
    pid = folder.agent_pid()
    if pid is None or not folder.is_locked() or _mark_of(pid) != folder.record["id"]:
        return
    process = processes.find(pid)
    if process is not None:
        processes.kill([process], signum)


def _start_agent(folder: Folder) -> None:
    """It outlives us and the connection. Raises OSError."""
    with open(folder.file("agent.out"), "ab") as out:
        subprocess.Popen(
            [sys.executable, "-I", "-S", os.path.abspath(sys.argv[0]), "--dir", folder.path],
            cwd=folder.path,
            env=_environment(folder.record["id"]),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _environment(name: str) -> Dict[str, str]:
    """Ours without what is only about the way here."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("CRUCIBLE_", "SSH_"))}
    kept[MARK] = name
    return kept


def _machine(folder: Folder, state: str, reason: Optional[str] = None) -> Dict[str, Any]:
    record = folder.record
    return {
        "id": record["id"],
        "order_id": record["order_id"],
        "index": record["index"],
        "devices": record["devices"],
        "exclusive": record["exclusive"],
        "state": state,
        "reason": reason,
        "has_run": folder.has_run(),
    }


def _folders(path: str) -> List[Folder]:
    names = sorted(name for name in _names(path) if name.startswith(_PREFIX))
    return [folder for folder in (Folder.read(os.path.join(path, name)) for name in names) if folder is not None]


def _names(path: str) -> List[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
