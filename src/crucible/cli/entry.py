"""Where `crucible` starts. Imports nothing until it knows that it must: `crucible --version` is asked by scripts."""

import os
import sys

COMPLETE = "_CRUCIBLE_COMPLETE"  # set by the scripts of `crucible completion`


def main() -> int:
    argv = sys.argv[1:]
    if argv in (["--version"], ["-V"]):
        from crucible import __version__

        print(f"crucible {__version__}")
        return 0
    if COMPLETE in os.environ:
        from crucible.cli.commands.completion import complete

        return complete(os.environ[COMPLETE])
    from crucible.cli.run import run

    return run(argv)


if __name__ == "__main__":
    sys.exit(main())
