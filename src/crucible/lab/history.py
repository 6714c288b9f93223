"""Spot prices over time. Recorded ones are moved so that their end meets the start of the world, and go on by beginning
again; where nothing was recorded, prices wander around what the catalog says. Both are the same for the same seed and
start."""

import gzip
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from random import Random

from crucible.catalog.spot_history import FILE
from crucible.world.facts import PricePoint

DAY_S = 86_400
# So much of the record is used, and so often is it played again: two months of prices from now on.
RECORDED_S, AGAIN = 30 * DAY_S, 2
# How made-up prices wander: a step of a few percent every day or so, never far from where they began.
EVERY_S, STEP, FARTHEST = (6 * 3_600, 36 * 3_600), 0.05, 1.25

Pool = tuple[str, str]  # zone id, type
Samples = list[tuple[int, int]]  # second, micro-dollars per hour


@dataclass(frozen=True, slots=True)
class Recorded:
    end: int  # when it was last looked
    pools: Mapping[Pool, Samples]


class History:
    """`line` gives the prices of one pool in a world that starts at `start`."""

    def __init__(self, start: float, seed: int, recorded: "Recorded | None") -> None:
        self._start = int(start)
        self._seed = seed
        self._recorded = recorded or Recorded(0, {})

    @property
    def is_recorded(self) -> bool:
        return bool(self._recorded.pools)

    def line(self, zone_id: str, type: str, price: int) -> tuple[PricePoint, ...]:
        """`price` is what the catalog says: in force at the start where nothing was recorded."""
        samples = self._recorded.pools.get((zone_id, type))
        if samples:
            return tuple(_replayed(samples, self._recorded.end, self._start))
        return tuple(_wandering(Random(f"{self._seed}/{zone_id}/{type}"), price, self._start))  # noqa: S311 (a die)


def read(data: Path | None, regions: Collection[str]) -> Recorded | None:
    """The end of the record in `data`; None if there is none. Reads only the lines it needs: the file holds half a
    million others."""
    path = data / FILE if data is not None else None
    if path is None or not path.is_file():
        return None
    lines = gzip.decompress(path.read_bytes()).splitlines()[1:]  # in order of time
    if not lines:
        return None
    end = _second(lines[-1])
    recent = lines[bisect_left(lines, end - RECORDED_S, key=_second) :]
    return Recorded(end, _pools(recent, {region.encode() for region in regions}))


def _pools(lines: Iterable[bytes], regions: Collection[bytes]) -> dict[Pool, Samples]:
    found: dict[tuple[bytes, bytes], Samples] = {}
    for line in lines:
        at, type, region, zone, price, _ = line.split(b",")
        if region not in regions or not price:  # no price: nothing was on sale then
            continue
        samples, microusd = found.setdefault((zone, type), []), round(float(price) * 1_000_000)
        if not samples or samples[-1][1] != microusd:
            samples.append((int(at), microusd))
    return {(zone.decode(), type.decode()): samples for (zone, type), samples in found.items()}


def _second(line: bytes) -> int:
    return int(line[: line.index(b",")])


def _replayed(samples: Samples, end: int, start: int) -> Iterator[PricePoint]:
    """The first price holds before the record began."""
    shift = start - end
    yield PricePoint(samples[0][0] + shift - RECORDED_S, samples[0][1])
    for again in range(AGAIN + 1):
        for at, price in samples:
            yield PricePoint(at + shift + again * RECORDED_S, price)


def _wandering(chance: Random, price: int, start: int) -> Iterator[PricePoint]:
    """Backwards and forwards from the start, where it is exactly `price`."""
    past = list(_steps(chance, price, start, -1, RECORDED_S))
    future = _steps(chance, price, start, 1, AGAIN * RECORDED_S)
    return chain(reversed(past), [PricePoint(start, price)], future)


def _steps(chance: Random, price: int, start: int, direction: int, length_s: int) -> Iterator[PricePoint]:
    factor, passed = 1.0, int(chance.uniform(*EVERY_S))
    while passed < length_s:
        factor *= 1 + chance.uniform(-STEP, STEP)
        factor = min(FARTHEST, max(1 / FARTHEST, factor))
        yield PricePoint(start + direction * passed, round(price * factor))
        passed += int(chance.uniform(*EVERY_S))
