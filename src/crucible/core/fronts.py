"""Which lots may be part of an optimum: of each group those that no other beats in everything."""

from collections.abc import Sequence

import numpy as np

from crucible.core.lots import UNLIMITED, Lots
from crucible.core.offers import UNKNOWN, Floats, Ints, OfferTable
from crucible.core.quota import is_under
from crucible.model.quota import Measure, Quota

# Quotas that are told apart at a time: as many bits beside a number for those before them.
BITS = 31


def undominated(columns: Sequence[Floats | Ints], group: Ints) -> Ints:
    """Indices in their order; less is better in every column, and only within a group. Of equals the first is kept."""
    if not len(group):
        return np.zeros(0, dtype=np.int64)
    telling = [column.astype(np.float64) for column in columns if column.min() != column.max()]
    table = np.stack(telling) if telling else np.zeros((1, len(group)))
    spans = np.abs(np.where(np.isfinite(table), table, 0.0)).max(axis=1, initial=0.0)
    total = (table / np.where(spans > 0, spans, 1.0)[:, None]).sum(axis=0)
    alive = np.lexsort((np.arange(len(group)), total, group))
    kept: list[Ints] = []
    while len(alive):
        # Nothing alive beats the one with the least sum of its group, which is the first of it.
        of_group = group[alive]
        firsts = np.flatnonzero(np.diff(of_group, prepend=-1))
        kept.append(alive[firsts])
        leader = np.repeat(alive[firsts], np.diff(firsts, append=len(alive)))
        is_beaten = (leader == alive) | np.all(table[:, leader] <= table[:, alive], axis=0)
        alive = alive[~is_beaten]
    return np.sort(np.concatenate(kept))


def numbered(*columns: Ints | Floats) -> Ints:
    """One number for each combination."""
    numbers = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        if not len(column) or column.min() == column.max():
            continue
        values, codes = np.unique(column, return_inverse=True)
        _, numbers = np.unique(numbers * len(values) + codes.reshape(-1), return_inverse=True)
        numbers = numbers.reshape(-1).astype(np.int64)
    return numbers


def limited_apart(table: OfferTable, lots: Lots) -> Ints:
    """A number of its own for what can run out: it stands in for nothing else."""
    is_limited = (lots.most < UNLIMITED) | (lots.least > 0) | (table.stock[lots.ways.row] != UNKNOWN)
    return np.where(is_limited, np.arange(1, len(lots) + 1), 0)


def under_quotas(table: OfferTable, lots: Lots, quotas: tuple[Quota, ...]) -> Ints:
    """A number for each set of quotas that lots count against together."""
    if not quotas:
        return np.zeros(len(lots), dtype=np.int64)
    if quotas not in table.numbered:
        table.numbered[quotas] = quota_sets(table, quotas)
    return table.numbered[quotas][lots.ways.row]


def quota_sets(table: OfferTable, quotas: Sequence[Quota]) -> Ints:
    """The same for every offer."""
    rows = np.arange(len(table))
    numbers = np.zeros(len(table), dtype=np.int64)
    for start in range(0, len(quotas), BITS):
        for bit, quota in enumerate(quotas[start : start + BITS]):
            numbers |= is_under(quota, table, rows).astype(np.int64) << bit
        _, numbers = np.unique(numbers, return_inverse=True)
        numbers = numbers.reshape(-1).astype(np.int64) << BITS
    return numbers


def drawn_columns(table: OfferTable, lots: Lots, quotas: Sequence[Quota]) -> list[Floats]:
    """What a gang takes of quotas, in each measure that one of them has."""
    shape, nodes = table.shape[lots.ways.row], lots.ways.nodes
    each: dict[Measure, Floats | Ints] = {
        Measure.MACHINES: nodes,
        Measure.GPUS: nodes * table.shapes.gpus[shape],
        Measure.CPUS: nodes * table.shapes.cpus[shape],
    }
    measures = [measure for measure in Measure if any(quota.measure is measure for quota in quotas)]
    return [each[measure].astype(np.float64) for measure in measures]
