"""Starts the agent of a folder, the supervisor of one of its ranks, or what a person asked for beside one.

    python crucible-agent.pyz --dir DIR      DIR/boot.json says which server and who we are
    python crucible-agent.pyz --keep         looks after the machines of a host, as the request on stdin says
    python crucible-agent.pyz --launch NAME  starts a framework's processes, by the Python that has it
    python crucible-agent.pyz --rank FOLDER  started by the agent itself; so are
    python crucible-agent.pyz --enter …      a program that a person runs beside a rank
    python crucible-agent.pyz --pack PATH    a file or folder to stdout, for a person
    python crucible-agent.pyz --unpack PATH  the same from stdin

Secrets come in files and stay out of command lines and environments."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List

_USAGE = "usage: crucible-agent.pyz --dir DIR | --keep | --launch NAME … | --version"


def main(argv: List[str]) -> int:
    if len(argv) == 2 and argv[0] == "--rank":
        # A supervisor needs little; what an agent imports would make every rank start later.
        from . import supervise

        return supervise.main(argv[1])
    if len(argv) == 2 and argv[0] == "--dir":
        from . import agent

        return agent.main(argv[1])
    if argv == ["--keep"]:
        from . import keeper

        return keeper.main()
    if argv[:1] == ["--launch"]:
        from . import launchers

        return launchers.main(argv[1:])
    if len(argv) > 3 and argv[0] == "--enter":
        from . import entrance

        return entrance.main(argv[1:])
    if len(argv) == 2 and argv[0] in ("--pack", "--unpack"):
        return _copy(argv[0], argv[1])
    if argv == ["--version"]:
        from . import VERSION

        print(VERSION)
        return 0
    print(_USAGE, file=sys.stderr)
    return 2


def _copy(verb: str, path: str) -> int:
    """What is left out, and what went wrong, goes to stderr."""
    from . import trees

    try:
        if verb == "--pack":
            trees.pack(path, sys.stdout.buffer, lambda text: print(text, file=sys.stderr))
            sys.stdout.buffer.flush()
        else:
            trees.unpack(sys.stdin.buffer, path)
    except (trees.Uncopied, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0
