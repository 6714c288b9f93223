"""A server whose machines are sold as some clouds sell them: a purchase has no token, so asking twice buys twice. A
second purchase for an order whose machines exist is noted in `bought-twice`."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from crucible import main
from crucible.model.lease import Boot, Machine, Order
from crucible.providers.local import LocalProvider, opening


class TokenlessProvider(LocalProvider):
    def __init__(self, root: Path, **options: Any) -> None:
        super().__init__(root, **options)
        self.facts = replace(self.facts, idempotent_create=False, visibility=timedelta(seconds=1))
        self._complaints = root.parent / "bought-twice"

    async def create(self, order: Order, boot: Boot) -> Sequence[Machine]:
        if any(machine.order_id == order.id for machine in await self.machines()):
            with self._complaints.open("a") as file:
                file.write(f"{order.id}\n")
        return await super().create(order, boot)


if __name__ == "__main__":
    opening.LocalProvider = TokenlessProvider  # type: ignore[misc]
    sys.exit(main.main())
