"""A torchrun and, beside it, the store at which an elastic gang meets. The store is a process of its own: it outlives
whatever happens to the torchrun, and other nodes come and go without noticing it."""

from __future__ import annotations

import time

from .children import Children, own, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import Options

# The others say goodbye to each other through the store.
_LINGER_S = 2.0


def run(options: Options) -> int:
    children = Children()
    children.start("store", own("torch-store-serve", "--port=%d" % options.number("port")), {})
    children.start("torchrun", options.program, {})
    code = children.wait("torchrun", _tell)
    if code == 0:
        time.sleep(_LINGER_S)
    children.stop()
    return code


def _tell(name: str, code: int) -> None:
    """The torchruns notice by themselves; a program that needs no store goes on."""
    say("the %s at which the gang meets ended with %d" % (name, code))
