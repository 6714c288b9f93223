"""What machines and moved data cost: bills as providers round them, and lanes between regions. Columns in, columns out.
What nobody states stays unknown: NaN, or UNKNOWN where the result is an integer. docs/cost-model.md says where each
rule comes from. Interruptions are `core.risk`'s."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crucible.core.offers import UNKNOWN, Floats, Ints, OfferTable
from crucible.model.spec import Brought, Replication
from crucible.model.units import GIB, MICRO, NOTHING, MicroUsd

HOUR_S = 3600.0
GB = 10**9  # providers charge by it; sizes are GiB
# Own machines: they neither charge for traffic nor for time.
OWN = ("local", "onprem")
GBIT_PER_GB = 8
# Gbit/s of a lane that nobody measured: nine in ten of the 3,356 measured pairs of regions of two providers are faster.
USUAL_GBPS = 2.0
# Of the time that data needs to arrive when it is read while the work goes on: what reading ahead does not hide. An
# assumption, to be replaced by what jobs report.
UNHIDDEN = 0.25
MOST = 9 * 10**18  # micro-dollars; stands for what is never paid off, and leaves room to add to it
LONGEST_H = 1e15  # stands for inf where that times zero would be NaN


# --- bills --------------------------------------------------------------------------------------------


def billed_hours(hours: Floats, unit_s: Ints, minimum_s: Ints) -> Floats:
    """Of a machine that lives for so long: whole units, and never less than the minimum. One that never lived is
    free."""
    seconds = np.maximum(hours * HOUR_S, minimum_s)
    units = np.ceil(seconds / unit_s * (1 - 1e-12))  # sixty minutes are an hour, whatever the last bit says
    return np.where(hours == 0, 0.0, units * unit_s / HOUR_S)


def expected_billed_hours(hours: Floats, lives: Floats, unit_s: Ints, minimum_s: Ints) -> Floats:
    """The same for `lives` machines one after the other; both numbers are expected ones. Without interruption there is
    one life and its end is known; with some, each ends at random."""
    known_hours, known_lives = np.minimum(hours, LONGEST_H), np.minimum(lives, LONGEST_H)
    calm = np.exp(1 - known_lives)
    rounding = calm * (billed_hours(known_hours, unit_s, minimum_s) - known_hours)
    rounding += (known_lives - calm) * _rounding(known_hours / known_lives, unit_s / HOUR_S, minimum_s / HOUR_S)
    return hours + np.where(hours == 0, 0.0, rounding)


def _rounding(mean: Floats, unit: Floats, minimum: Floats) -> Floats:
    """Hours that rounding adds to a life that ends at random, with that mean: exact if it is exponential."""
    mean = np.maximum(mean, 1e-9)
    least = np.ceil(minimum / unit * (1 - 1e-12)) * unit
    return least + np.exp(-least / mean) * unit / -np.expm1(-unit / mean) - mean


def machine_cost(price: Ints, machines: Ints, billed_h: Floats) -> Ints:
    """Micro-dollars, half to even; UNKNOWN where price or hours are, MOST where it would never end."""
    exact = np.rint(price.astype(np.float64) * machines * np.minimum(billed_h, LONGEST_H))
    is_known = (price != UNKNOWN) & ~np.isnan(exact)
    return np.where(is_known, np.minimum(np.where(is_known, exact, 0), MOST).astype(np.int64), UNKNOWN)


# --- data ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """Bringing a dataset from where it is to each place."""

    usd: Floats  # NaN: nobody says
    hours: Floats


def moves(table: OfferTable, home: int, size_gib: float) -> Moves:
    """`home` is an index of `table.places`, or UNKNOWN. Its own region is free. Elsewhere the lane's price holds, and
    to other providers without one what the home's provider charges for traffic to the internet."""
    places = table.places
    if home == UNKNOWN:
        unknown = np.full(len(places.region), np.nan)
        return Moves(usd=unknown, hours=unknown)
    size_bytes = round(size_gib * GIB)
    return Moves(
        usd=egress(table, home, size_bytes) / MICRO, hours=lane_hours(places.gbps[home], home) * (size_bytes / GB)
    )


def lane_hours(gbps: Floats, home: int) -> Floats:
    """Hours per GB from `home`, whose lanes `gbps` are, to each place."""
    hours = GBIT_PER_GB / np.where(gbps > 0, gbps, USUAL_GBPS) / HOUR_S
    hours[home] = 0.0
    return hours


def egress(table: OfferTable, home: int, size_bytes: int) -> Floats:
    """Micro-dollars for so many bytes from `home` to each place, half to even. The plan's estimate and the ledger's
    charge are both this."""
    return np.rint(lane_usd(table, home) * size_bytes * (MICRO / GB))


def lane_usd(table: OfferTable, home: int) -> Floats:
    """Dollars per GB from `home` to each place; NaN: nobody says."""
    places = table.places
    seller = places.seller[home]
    lane, internet = places.usd_per_gb[home], table.sellers.egress_usd_per_gb[seller]
    rate = np.where(np.isnan(lane) & (places.seller != seller), internet, lane)
    if table.sellers.name[seller] in OWN:
        rate = np.nan_to_num(rate)  # own machines send for nothing
    return np.where(np.arange(len(rate)) == home, 0.0, rate)


@dataclass(frozen=True, slots=True)
class Lanes:
    """From each place to each, by the GB; what nobody states costs nothing."""

    usd: Floats
    hours: Floats


def lanes(table: OfferTable) -> Lanes:
    """Worked out once per table."""
    known = table.worked_out
    if "lane usd" not in known:
        homes = range(len(table.places.region))
        square = (len(homes), len(homes))
        known["lane usd"] = np.nan_to_num(np.array([lane_usd(table, home) for home in homes])).reshape(square)
        hours = [lane_hours(table.places.gbps[home], home) for home in homes]
        known["lane hours"] = np.array(hours).reshape(square)
    return Lanes(known["lane usd"], known["lane hours"])


def transfer_cost(table: OfferTable, home: str, target: str, size_bytes: int) -> MicroUsd | None:
    """Of so many bytes that were moved, each place as "provider/region"; None: nobody says."""
    if home == target:
        return NOTHING
    source, where = place_of(table, home), place_of(table, target)
    if source == UNKNOWN or where == UNKNOWN:
        return NOTHING if home.partition("/")[0] in OWN else None
    found = egress(table, source, size_bytes)[where]
    return None if np.isnan(found) else MicroUsd(int(found))


def place_of(table: OfferTable, name: str) -> int:
    """An index of `table.places`, or UNKNOWN."""
    provider, _, region = name.partition("/")
    return table.places.find(table.seller_code(provider), region)


@dataclass(frozen=True, slots=True, kw_only=True)
class Staging:
    """What a replication policy makes of the moves."""

    usd: Floats
    before_h: Floats  # until the job can start
    during_h: Floats  # by which its work takes longer


def with_brought(staged: Staging, table: OfferTable, brought: Sequence[Brought]) -> Staging:
    """With inputs, which machines fetch while they are paid for; one whose home or lane nobody knows costs nothing."""
    for one in brought:
        moved = moves(table, place_of(table, one.home), one.size_gib)
        staged = Staging(
            usd=staged.usd + np.nan_to_num(moved.usd),
            before_h=staged.before_h,
            during_h=staged.during_h + np.nan_to_num(moved.hours),
        )
    return staged


def staging(moved: Moves, policy: Replication) -> Staging:
    """`pre-stage` copies first, then starts. `on-demand-cache` copies what is read for the first time. `none` reads
    where the data is: the lane is paid for once here, and again for every further pass over the data."""
    nothing = np.zeros_like(moved.hours)
    if policy is Replication.PRE_STAGE:
        return Staging(usd=moved.usd, before_h=moved.hours, during_h=nothing)
    return Staging(usd=moved.usd, before_h=nothing, during_h=UNHIDDEN * moved.hours)
