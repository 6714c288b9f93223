"""The supervisor's end of the control pipe: one JSON object per line, stop, kill or say. What makes no sense is passed
over: the pipe lies in a folder that the rank can write to."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Tuple

    # What to do, why or what to say, and the seconds of grace.
    Order = Tuple[str, str, float]


class Control:
    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, "control")
        if not os.path.exists(self._path):
            os.mkfifo(self._path, 0o600)
        # Open for both directions, so that it never ends when an agent closes its side.
        self.descriptor = os.open(self._path, os.O_RDWR | os.O_NONBLOCK)

    def orders(self) -> List[Order]:
        return orders_in(drain(self.descriptor))

    def close(self) -> List[Order]:
        """The last orders. What the agent has to say later, it writes itself, once there is a result."""
        try:
            os.unlink(self._path)
        except OSError:
            pass
        return self.orders()


def orders_in(data: bytes) -> List[Order]:
    found: List[Order] = []
    for line in data.splitlines():
        try:
            order = json.loads(line)
            found.append((order["do"], str(order["text"]), float(order.get("grace_s", 0))))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return found


def drain(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return b""
