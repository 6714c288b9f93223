"""What is left of containers when a machine ends. Those of docker belong to its daemon and carry no mark of ours that
everybody may read; so every supervisor notes, before it starts one, the command that removes it."""

import subprocess
from pathlib import Path

from crucible.providers.local.folder import read_json

# The processes are dead by now; a runtime that hangs must not keep the machine's end from being seen.
LIMIT_S = 20.0
RUNTIMES = ("podman", "docker")


def remove_left(machine: Path) -> None:
    """Tried once: a note that cannot be followed goes too. Some are in the folders of attempts, some in the trash."""
    for note in machine.glob("*/*/container-*.json"):
        argv = (read_json(note) or {}).get("remove")
        if isinstance(argv, list) and argv and argv[0] in RUNTIMES:
            run([str(word) for word in argv])
        note.unlink(missing_ok=True)


def run(argv: list[str]) -> None:
    try:
        subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return
