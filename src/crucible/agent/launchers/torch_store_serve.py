"""The c10d store of an elastic gang, until it is told to end."""

from __future__ import annotations

import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import Options


def run(options: Options) -> int:
    from torch.distributed import TCPStore

    store = TCPStore("localhost", options.number("port"), is_master=True, wait_for_workers=False)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    del store
    return 0
