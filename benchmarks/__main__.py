"""python -m benchmarks [--check] [name …]

A machine that others share is now and then half as fast, in CPU seconds too: `loop_ms` in every line tells how fast it
was, and --check measures again what missed its bound. A figure that misses every time is a miss."""

import argparse
import importlib
import sys

from benchmarks import timing

# In the order in which they run.
NAMES = (
    "commands",
    "start",
    "requests",
    "mix",
    "latency",
    "cancel",
    "logs",
    "gangs",
    "crowd",
    "many",
    "hosts",
    "spec",
    "catalog",
    "plan",
    "plan_many",
    "flow",
    "recommend",
    "risk",
    "traces",
    "speeds",
    "store",
    "tables",
    "metrics",
    "costs",
    "shards",
    "saving",
    "transfer",
    "datasets",
    "outputs",
    "lab",
    "orders",
    "recovery",
    "simulation",
    "page",
    "install",
)
TRIES = 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure; one JSON line per figure.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"which; default: all of {', '.join(NAMES)}")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a figure misses its bound")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(NAMES)
    if unknown:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    tries = TRIES if arguments.check else 1
    missed = sorted(figure for name in arguments.names or NAMES for figure in _missed(name, tries))
    if missed:
        print(f"over the bound: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed and arguments.check else 0


def _missed(name: str, tries: int) -> set[str]:
    """The figures that missed their bounds in every try."""
    missed = _measured(name)
    for _ in range(tries - 1):
        if missed:
            missed &= _measured(name)
    return missed


def _measured(name: str) -> set[str]:
    missed = set()
    for figure in importlib.import_module(f"benchmarks.{name}").measure():
        print(figure.line(loop_ms=timing.loop_ms()), flush=True)
        if not figure.is_ok:
            missed.add(figure.name)
    return missed


if __name__ == "__main__":
    sys.exit(main())
