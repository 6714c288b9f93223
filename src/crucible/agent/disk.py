"""Small files that are either whole or absent, and locks that die with their holder."""

from __future__ import annotations

import fcntl
import json
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional


# Longer than anybody looks at a lock, shorter than anybody waits for a start.
LOOK_S = 0.3


def write_json(path: str, data: Dict[str, Any], durable: bool = False) -> None:
    """`durable` survives a power failure; without it only the death of this process."""
    temporary = "%s.%d.tmp" % (path, os.getpid())
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(data, file)
        file.flush()
        if durable:
            os.fsync(file.fileno())
    os.replace(temporary, path)
    if durable:
        sync(os.path.dirname(path))


def read_json(path: str) -> Optional[Dict[str, Any]]:
    """None if it is absent or not an object."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def read_lines(path: str) -> List[str]:
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def sync(path: str) -> None:
    """What a file holds, or which names a folder has, survives a power failure from now on."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(folder: str) -> None:
    """As much of it as can be; absent is success."""
    # Here, because an agent whose jobs save nothing starts without it.
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def take_lock(path: str, patience_s: float = 0.0) -> Optional[int]:
    """A descriptor that holds the lock on `path` until it is closed or its process dies; None if another holds it.

    `patience_s` outlasts somebody who only looks: `is_locked` holds the lock for a moment."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    until = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except OSError:
            if time.monotonic() >= until:
                os.close(descriptor)
                return None
        time.sleep(0.01)


def is_locked(path: str) -> bool:
    """Whether some process holds the lock. Unlike a recorded pid, this cannot mistake a stranger for the holder."""
    if not os.path.exists(path):
        return False
    descriptor = take_lock(path)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False
