"""Programs that start a framework on a node. Each is run by the user's Python, which has the framework:

    python crucible-agent.pyz --launch NAME [--option=value …] [-- PROGRAM …]

They know no server. What they need to know comes as options and environment; secrets come in a file."""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List

_MODULES = {
    "torch-store": "torch_store",
    "torch-store-serve": "torch_store_serve",
    "horovod": "horovod_gang",
    "horovod-elastic": "horovod_runner",
    "horovod-driver": "horovod_driver",
}


class Options:
    """`--name=value` and `--name` before `--`; the program after it."""

    def __init__(self, argv: List[str]) -> None:
        at = argv.index("--") if "--" in argv else len(argv)
        pairs = [each[2:].partition("=") for each in argv[:at] if each.startswith("--")]
        self._values: Dict[str, str] = {name: value for name, _, value in pairs}
        self.program = argv[at + 1 :]

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str) -> str:
        if not self._values.get(name):
            raise BadOptions("--%s=… is missing" % name)
        return self._values[name]

    def number(self, name: str) -> int:
        text = self.text(name)
        if not text.isdigit():
            raise BadOptions("--%s=%s is no number" % (name, text))
        return int(text)

    def numbers(self, name: str) -> List[int]:
        texts = self.text(name).split(",")
        if not all(each.isdigit() for each in texts):
            raise BadOptions("--%s=%s is no list of numbers" % (name, ",".join(texts)))
        return [int(each) for each in texts]

    def address(self, name: str) -> tuple[str, int]:
        host, _, port = self.text(name).rpartition(":")
        if not host or not port.isdigit():
            raise BadOptions("--%s must be HOST:PORT" % name)
        return host.strip("[]"), int(port)


class BadOptions(Exception):
    pass


def main(argv: List[str]) -> int:
    if not argv or argv[0] not in _MODULES:
        return _refuse("--launch knows %s" % ", ".join(sorted(_MODULES)), 2)
    module = importlib.import_module("." + _MODULES[argv[0]], __name__)
    try:
        return int(module.run(Options(argv[1:])))
    except BadOptions as error:
        return _refuse("--launch %s: %s" % (argv[0], error), 2)
    except ImportError as error:
        # Which Python was meant is what people get wrong.
        return _refuse("%s: %s (set `python:` in the job to one that has it)" % (sys.executable, error), 1)


def _refuse(words: str, status: int) -> int:
    print("crucible: %s" % words, file=sys.stderr, flush=True)
    return status
