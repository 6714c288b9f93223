"""What machines are paid for beside the work: boot, set-up, the wait until they are given back. Past jobs say how long
that is with each provider, and plans are made with it instead of the catalog's figure. Few jobs move it a little, many
take over. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np

from crucible.core.offers import OfferTable
from crucible.model.job import JobStatus
from crucible.model.record import Prediction

_BELIEF = 5.0  # jobs that the catalog's figure is worth
_HALF_LIFE = timedelta(days=30)  # images, clouds and set-up lines change faster than GPUs
# Of longer runs a share may be extra for other reasons, such as uploads. It is found so that it is not taken for a slow
# start; the belief that there is none is worth so many hours, squared.
_SHARE_BELIEF = 50.0
MOST_H = 2.0  # whatever is told: a start that takes longer is a fault, and no property of a provider


@dataclass(frozen=True, slots=True)
class Overhead:
    """One job: hours that a machine of it was paid for, and those in which its ranks ran."""

    provider: str
    extra_h: float
    ran_h: float
    at: datetime


def overhead_of(done: Prediction) -> Overhead | None:
    """None where nothing can be said: it did not complete in one attempt, where it was planned, or is not paid for."""
    if done.provider is None or done.paid_hours is None or not done.actual_hours or done.ended_at is None:
        return None
    if done.status != JobStatus.COMPLETED or done.attempts != 1 or done.ran_on != done.planned_on:
        return None
    extra = min(max(done.paid_hours - done.actual_hours, 0.0), MOST_H)
    return Overhead(done.provider, extra, done.actual_hours, done.ended_at)


def starts_of(seen: Iterable[Overhead], believed_h: Mapping[str, float], now: datetime) -> Mapping[str, float]:
    """Hours of each provider, of those that something is known of; `believed_h` is what the catalog says."""
    by_provider: dict[str, list[Overhead]] = defaultdict(list)
    for one in seen:
        by_provider[one.provider].append(one)
    return {name: fitted(some, believed_h.get(name, 0.0), now) for name, some in sorted(by_provider.items())}


def fitted(seen: Iterable[Overhead], believed_h: float, now: datetime) -> float:
    """The constant of extra = constant + share of the hours, by least squares beside what is believed."""
    s1, sh, shh, sy, shy = _BELIEF, 0.0, _SHARE_BELIEF, _BELIEF * believed_h, 0.0
    for one in seen:
        weight = float(0.5 ** (max(now - one.at, timedelta(0)) / _HALF_LIFE))
        s1 += weight
        sh += weight * one.ran_h
        shh += weight * one.ran_h**2
        sy += weight * one.extra_h
        shy += weight * one.ran_h * one.extra_h
    constant = (sy * shh - sh * shy) / (s1 * shh - sh * sh)
    return min(max(constant, 0.0), MOST_H)


def with_starts(table: OfferTable, starts: Mapping[str, float]) -> OfferTable:
    """The same with the starts that were learnt."""
    if not starts:
        return table
    known = [starts.get(name) for name in table.sellers.name]
    told = np.array([np.nan if one is None else one * 3600 for one in known])
    start_s = np.where(np.isnan(told), table.sellers.start_s, told)
    return replace(table, sellers=replace(table.sellers, start_s=start_s))


def believed(table: OfferTable) -> Mapping[str, float]:
    return {name: float(start) / 3600 for name, start in zip(table.sellers.name, table.sellers.start_s, strict=True)}
