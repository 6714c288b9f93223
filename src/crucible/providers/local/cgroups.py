"""Where this computer lets us put a job into a control group: a group can be killed whole, whatever a process of it
does to its parentage or environment. Nothing is limited by it."""

import os
from pathlib import Path


def parent_for_ranks(root: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")) -> Path | None:
    """Our own group, if this is cgroup v2 and groups may be made in it; None elsewhere."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return None
    own = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), None)
    if own is None or not (root / "cgroup.controllers").is_file():
        return None
    group = root / own
    return group if os.access(group, os.W_OK) else None
