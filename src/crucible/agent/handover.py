"""How an agent gives a supervisor what must be neither in a file nor in a command line nor in an environment: as its
standard input, a file in memory without a name. And no core dump of either holds it."""

from __future__ import annotations

import json
import os
import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

# With a limit of one byte neither a file nor a program that takes core dumps gets one; no byte at all stops files only.
_NO_CORE = 1


def nameless(content: bytes) -> int:
    """A descriptor, to be read from its beginning. Raises OSError."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("crucible")
    else:
        import tempfile

        with tempfile.TemporaryFile() as temporary:
            descriptor = os.dup(temporary.fileno())
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def taken() -> Dict[str, Any]:
    """What this process was given at its start: variables, and values that must be in no log. Whoever comes later does
    not find it there again."""
    with os.fdopen(os.dup(0), "rb") as file:
        text = file.read()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    data = json.loads(text) if text else {}
    values = [value.encode("latin-1") for value in data.get("values", [])]
    return {"env": data.get("env", {}), "values": values}


def forbid_core() -> int:
    """Of this process and of what it starts; returns the limit that there was."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    limit_core(0 if hard == 0 else _NO_CORE)
    return soft


def limit_core(soft: int) -> None:
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    except (OSError, ValueError):
        pass  # whoever may not lower it has none anyway
