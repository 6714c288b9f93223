"""Starts the agent of a folder, or the supervisor of one of its ranks.

    python crucible-agent.pyz --dir DIR      DIR/boot.json says which server and who we are
    python crucible-agent.pyz --rank FOLDER  started by the agent itself

Secrets come in files and stay out of command lines and environments."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List

_USAGE = "usage: crucible-agent.pyz --dir DIR | --version"


def main(argv: List[str]) -> int:
    if len(argv) == 2 and argv[0] == "--rank":
        # A supervisor needs little; what an agent imports would make every rank start later.
        from . import supervise

        return supervise.main(argv[1])
    if len(argv) == 2 and argv[0] == "--dir":
        from . import agent

        return agent.main(argv[1])
    if argv == ["--version"]:
        from . import VERSION

        print(VERSION)
        return 0
    print(_USAGE, file=sys.stderr)
    return 2
