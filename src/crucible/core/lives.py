"""What spot machines lived through with us, against what the catalog says of them. A seller's figure is of a month and
a region; a week of our own machines says more about the next one."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from crucible.core.cooling import chosen
from crucible.core.offers import Bools, OfferTable
from crucible.model.lease import SpotLives

# The catalog's word weighs as much as so many hours of our own: about four days of one machine.
PRIOR_H = 100.0
# Where nobody says anything, half a loss is assumed before the first: a short life without one is no proof of a long.
UNSEEN = 0.5
HOUR_S = 3600.0


def posterior(hazard: float, lives: SpotLives) -> float:
    """Interruptions per hour: the mean of a gamma distribution, from the catalog's rate and our losses. NaN is unknown,
    and stays so until a machine has lived."""
    hours, taken = max(lives.hours, 0.0), max(lives.taken, 0)
    if np.isnan(hazard):
        return (UNSEEN + taken) / hours if hours > 0 else hazard
    return (hazard * PRIOR_H + taken) / (PRIOR_H + hours)


def learned(table: OfferTable, lives: Sequence[SpotLives]) -> OfferTable:
    """The same with the risk of spot machines as we know it by now. What cannot be taken away keeps its none."""
    hazard = table.hazard.copy()
    for one in lives:
        for row in np.flatnonzero(of_kind(table, one)):
            hazard[row] = posterior(float(hazard[row]), one)
    return replace(table, hazard=hazard) if lives else table


def of_kind(table: OfferTable, one: SpotLives) -> Bools:
    found: Bools = table.is_spot & (table.seller == table.seller_code(one.provider))
    found &= chosen(table.places.region, one.region)[table.place]
    found &= chosen(table.shapes.name, one.instance_type)[table.shape]
    return found


def mean_life_s(hazards: Iterable[float | None]) -> float | None:
    """Between interruptions of a gang whose machines are taken so often each; None where none of them ever is."""
    together = sum(hazard or 0.0 for hazard in hazards)
    return HOUR_S / together if together > 0 else None
