"""Counts and times requests. It stands in the way of each of them, so everything is bound beforehand and one request
costs two or three microseconds. Routes are told by their template: what a client makes up has no figure of its own."""

from collections import Counter

from crucible.api.access import SOCKET, TABLE
from crucible.engine.metrics import REQUEST_TIME, REQUESTS, SOCKETS, SOCKETS_DROPPED
from crucible.ports.meter import Instrument, Meter

UNMATCHED = "unmatched"
OTHER = "other"  # methods that nobody serves
CLASSES = {number: f"{number}xx" for number in range(1, 6)}
SHOWN = ("2xx", "4xx", "5xx")  # from the start


class RequestMeter:
    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._counts: dict[tuple[str, str, int], Instrument] = {}
        self._times: dict[tuple[str, str], Instrument] = {}
        self._sockets = Counter[str]()
        self.dropped = meter.counter(SOCKETS_DROPPED)
        for method, route in (*TABLE, (OTHER, UNMATCHED)):
            if method == SOCKET:
                self._sockets[route] = 0
                continue
            for status in SHOWN:
                meter.counter(REQUESTS, method, route, status)

    def answered(self, method: str, route: str | None, status: int, seconds: float) -> None:
        """`route` is None where none was found."""
        if route is None:
            method, route = OTHER, UNMATCHED
        count = self._counts.get((method, route, status))
        if count is None:
            count = self._counts[method, route, status] = self._bound(method, route, status)
        count(1)
        self._times[method, route](seconds)

    def _bound(self, method: str, route: str, status: int) -> Instrument:
        self._times[method, route] = self._meter.histogram(REQUEST_TIME, method, route)
        return self._meter.counter(REQUESTS, method, route, CLASSES.get(status // 100, OTHER))

    def opened(self, route: str) -> None:
        self._sockets[route] += 1

    def closed(self, route: str) -> None:
        self._sockets[route] -= 1

    def show(self) -> None:
        """Gauges, before somebody reads them."""
        self._meter.show(SOCKETS, {(route,): count for route, count in self._sockets.items()})
