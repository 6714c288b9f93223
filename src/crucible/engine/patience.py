"""A purchase that was not answered is made again with the same token, ever more slowly: a seller in trouble is not
helped by everybody asking at once. Forgotten at a restart, which costs one call too early."""

import hashlib

from crucible.model.ids import OrderId

FIRST_S = 0.5
LONGEST_S = 30.0
REMEMBERED = 10_000


class Patience:
    def __init__(self) -> None:
        self._waits: dict[OrderId, tuple[int, float]] = {}  # how often it was in vain, and when it may be tried again

    def is_over(self, order_id: OrderId, now: float) -> bool:
        return order_id not in self._waits or now >= self._waits[order_id][1]

    def grow(self, order_id: OrderId, now: float, least_s: float = 0.0) -> None:
        tries = self._waits.get(order_id, (0, 0.0))[0]
        longest = min(FIRST_S * 2.0 ** min(tries, 16), LONGEST_S)
        if len(self._waits) >= REMEMBERED:
            self._waits.clear()
        self._waits[order_id] = (tries + 1, now + max(least_s, longest * spread(order_id, tries)))

    def forget(self, order_id: OrderId) -> None:
        self._waits.pop(order_id, None)


def spread(order_id: OrderId, tries: int) -> float:
    """Between a half and the whole, and another for each order and try: not all come back at the same moment."""
    digest = hashlib.sha256(f"{order_id}/{tries}".encode()).digest()
    return 0.5 + digest[0] / 512
