"""A server whose machines on this computer are made and never start an agent: whoever reads a machine's boot.json may
be its agent instead. So a hundred machines fit on a laptop."""

import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from crucible import main
from crucible.providers.local import LocalProvider, opening

PLENTY = int(os.environ.get("CRUCIBLE_BENCH_MACHINES", "256"))
HOUR = timedelta(hours=1)


class AgentlessProvider(LocalProvider):
    def __init__(self, root: Path, **options: Any) -> None:
        super().__init__(root, max_machines=PLENTY, boot_time=HOUR, **options)
        self._purchases.start = lambda folders: None  # type: ignore[method-assign]
        self._purchases.resume = lambda folders: None  # type: ignore[method-assign]


if __name__ == "__main__":
    opening.LocalProvider = AgentlessProvider  # type: ignore[misc]
    sys.exit(main.main())
