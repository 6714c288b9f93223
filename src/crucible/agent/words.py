"""The agent's own words: a bounded file, and the standard error of whoever started it."""

from __future__ import annotations

import os
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict

# Two of them are kept.
_MAX_BYTES = 1 << 20


class Words:
    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._last: Dict[str, str] = {}

    def say(self, text: str) -> None:
        line = "%s %s\n" % (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), text.replace("\n", " "))
        with self._lock:
            try:
                self._write(line)
                sys.stderr.write(line)
                sys.stderr.flush()
            except (OSError, ValueError):
                pass  # a full disk or a closed terminal must not end the node

    def say_once(self, topic: str, text: str) -> None:
        """Unless it was the last thing said on this topic: for what repeats while a server is away."""
        if self._last.get(topic) != text:
            self._last[topic] = text
            self.say("%s: %s" % (topic, text))

    def _write(self, line: str) -> None:
        if os.path.exists(self._path) and os.path.getsize(self._path) > _MAX_BYTES:
            os.replace(self._path, self._path + ".1")
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(line)
