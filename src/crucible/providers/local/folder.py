"""The folder of one machine, which is all that is known of it: there is no other memory to disagree with.

    machine.json   what was ordered; the folder appears with it, by one rename
    boot.json      for the agent, 0600; removed when the machine is gone
    lock           held by the agent as long as it lives, with its pid inside: not empty means that it has run
    delete.json    somebody asked for its end, and when
    gone.json      it has ended for ever, when and why
    agent.out      what the agent printed;  agent.exit: the reason that it gave for its end

Nothing is flushed to the disk: a power failure ends the machines too."""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from crucible.model.lease import Boot
from crucible.providers.local.cgroups import parent_for_ranks

# A reason is a line for a person.
MAX_REASON = 500


@dataclass(frozen=True, slots=True)
class Record:
    """machine.json."""

    id: str
    order_id: str
    index: int
    count: int  # machines of the order
    gpus: int
    devices: tuple[str, ...]
    created_at: float


@dataclass(frozen=True, slots=True)
class Ending:
    at: float
    reason: str


@dataclass(frozen=True, slots=True)
class MachineFolder:
    path: Path
    record: Record

    @classmethod
    def read(cls, path: Path) -> "MachineFolder | None":
        """None if it is not a machine's folder, or half gone."""
        data = read_json(path / "machine.json")
        try:
            record = Record(**{**data, "devices": tuple(data["devices"])}) if data else None
        except (KeyError, TypeError):
            return None
        return cls(path, record) if record is not None and record.id == path.name else None

    @classmethod
    def make(cls, path: Path, record: Record, boot: dict[str, Any]) -> "MachineFolder":
        """Whole or not at all."""
        draft = path.with_name(f".new-{path.name}")
        draft.mkdir(mode=0o700)
        write_json(draft / "boot.json", boot)
        write_json(draft / "machine.json", asdict(record))
        draft.rename(path)
        return cls(path, record)

    # --- the agent ------------------------------------------------------------------------------------

    def has_run(self) -> bool:
        try:
            return (self.path / "lock").stat().st_size > 0
        except FileNotFoundError:
            return False

    def is_locked(self) -> bool:
        """Whether the agent lives. Only to be asked once it has run: a look at the lock is itself a short hold, and an
        agent that is just starting must not lose to it."""
        with open_lock(self.path / "lock") as lock:
            return not takes(lock, fcntl.LOCK_SH)

    def agent_pid(self) -> int | None:
        try:
            return int((self.path / "lock").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return None

    def prevent_start(self) -> bool:
        """An agent that has not taken its lock by now never will; False if it has. Without boot.json a late one has
        nothing to do but end."""
        with open_lock(self.path / "lock") as lock:
            if not takes(lock, fcntl.LOCK_EX):
                return False
            (self.path / "boot.json").unlink(missing_ok=True)
            return True

    # --- its end ----------------------------------------------------------------------------------------

    def delete_asked_at(self) -> float | None:
        data = read_json(self.path / "delete.json")
        return float(data["at"]) if data else None

    def ask_delete(self, now: float) -> float:
        """When it was first asked for."""
        asked = self.delete_asked_at()
        if asked is None:
            write_json(self.path / "delete.json", {"at": now})
        return now if asked is None else asked

    def ending(self) -> Ending | None:
        data = read_json(self.path / "gone.json")
        return Ending(float(data["at"]), str(data["reason"])) if data else None

    def end(self, now: float, reason: str) -> Ending:
        for secret in ("boot.json", "identity.json"):
            (self.path / secret).unlink(missing_ok=True)
        write_json(self.path / "gone.json", {"at": now, "reason": reason})
        return Ending(now, reason)

    def exit_reason(self) -> str | None:
        """What the agent said when it ended, if it could."""
        try:
            text = (self.path / "agent.exit").read_text(encoding="utf-8", errors="replace")[:MAX_REASON].strip()
        except OSError:
            return None
        return text or None

    def last_output(self) -> str:
        try:
            with (self.path / "agent.out").open("rb") as out:
                out.seek(max(out.seek(0, os.SEEK_END) - MAX_REASON, 0))
                lines = out.read().decode("utf-8", "replace").strip().splitlines()
        except OSError:
            lines = []
        return lines[-1] if lines else "it printed nothing"

    def remove(self) -> None:
        """machine.json first: half a removal is no machine."""
        (self.path / "machine.json").unlink(missing_ok=True)
        shutil.rmtree(self.path, ignore_errors=True)


def boot_file(record: Record, boot: Boot, address: str, server_file: Path | None, cache: Path) -> dict[str, Any]:
    """`cache` outlives machines: environments and datasets that one has brought, the next ones find."""
    group = parent_for_ranks()
    return {
        "servers": list(boot.servers),
        "server_file": str(server_file) if server_file else None,
        "cache": str(cache),
        "enrolment_token": boot.enrolment_token,
        "order_id": record.order_id,
        "machine_id": record.id,
        "address": address,
        "devices": list(record.devices),
        "power_off": None,  # this computer is never switched off
        "cgroup": str(group) if group else None,
    }


def write_json(path: Path, data: dict[str, Any]) -> None:
    draft = path.with_name(f".{path.name}.tmp")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as out:
        json.dump(data, out)
    draft.replace(path)


def read_json(path: Path) -> dict[str, Any] | None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


@contextmanager
def open_lock(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield file
    finally:
        os.close(file)  # gives the lock up too


def takes(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
