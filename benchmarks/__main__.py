"""python -m benchmarks [--check] [name …]"""

import argparse
import importlib
import sys
from collections.abc import Iterable

from benchmarks.figure import Figure

# In the order in which they run: what others on the machine disturb most comes first.
NAMES = ("commands", "start", "requests", "latency", "cancel", "logs", "spec", "store", "simulation", "install")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure; one JSON line per figure.")
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], metavar="name", help=", ".join(NAMES))
    parser.add_argument("--check", action="store_true", help="exit with 1 if a figure misses its bound")
    arguments = parser.parse_args()
    missed = [figure.name for name in arguments.names or NAMES for figure in _measured(name) if not figure.is_ok]
    if missed:
        print(f"over the bound: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed and arguments.check else 0


def _measured(name: str) -> Iterable[Figure]:
    for figure in importlib.import_module(f"benchmarks.{name}").measure():
        print(figure.line(), flush=True)
        yield figure


if __name__ == "__main__":
    sys.exit(main())
