"""Words for the person who reads the log. A closed stderr is no reason to stop training."""

from __future__ import annotations

import sys
from typing import Set

_said: Set[str] = set()


def warn(message: str) -> None:
    try:
        sys.stderr.write("crucible.train: " + message + "\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # full, closed, or None under a windowless interpreter
        pass


def warn_once(topic: str, message: str) -> None:
    if topic not in _said:
        _said.add(topic)
        warn(message)
