"""Addresses of machines: no two that live have the same. They come back as late as possible, or, where a fault wants
it, at once."""

from ipaddress import IPv4Network


class Addresses:
    def __init__(self, network: str) -> None:
        self._network = IPv4Network(network)
        self._size = self._network.num_addresses - 8  # the first and the last four are the network's own
        self._next = 0
        self._taken: set[str] = set()
        self._freed: list[str] = []  # the last is the freshest
        self.reuses_last = False

    @property
    def left(self) -> int:
        return self._size - len(self._taken)

    def take(self) -> str:
        address = self._freshly_freed() if self.reuses_last else None
        if address is None:
            address = self._unused()
        self._taken.add(address)
        return address

    def free(self, address: str) -> None:
        self._taken.discard(address)
        self._freed = [*self._freed[-99:], address]  # far more than a test reuses

    def _freshly_freed(self) -> str | None:
        while self._freed:
            if (address := self._freed.pop()) not in self._taken:
                return address
        return None

    def _unused(self) -> str:
        """Whoever takes has looked whether one is left."""
        while True:
            address = str(self._network[4 + self._next])
            self._next = (self._next + 1) % self._size
            if address not in self._taken:
                return address
