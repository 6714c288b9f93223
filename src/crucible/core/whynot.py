"""Why not this one: what stands against an offer that somebody expected to win."""

from dataclasses import dataclass

import numpy as np

from crucible.core import plan
from crucible.core.offers import Bools, Ints, Listing, OfferTable
from crucible.core.perf import SpeedBook
from crucible.core.plan import Question, Study
from crucible.core.proposal import Rule
from crucible.core.wording import other_why
from crucible.model.errors import InvalidRequest
from crucible.model.offer import Market

MOST = 10


@dataclass(frozen=True, slots=True)
class Told:
    listing: Listing
    rule: Rule  # NONE: it fits, and something else is better
    reason: str


def explain(question: Question, words: str, table: OfferTable, book: SpeedBook) -> tuple[Told, ...]:
    """About some offers that `words` name: provider, region, zone, instance type, GPU, spot or on-demand. First what
    fits, then what came nearest, and the cheapest of those."""
    rows = named(words, table)
    if not len(rows) or not words.split():
        raise InvalidRequest(f"no offer is called {words!r}; `crucible offers` lists them")
    found = plan.study(question, table, book)
    pool = plan.pick(found, plan.everything(found))
    far = np.where(found.rule[rows] == Rule.NONE, 0, len(Rule) - found.rule[rows])
    return tuple(tell(found, pool, int(row)) for row in rows[np.argsort(far, kind="stable")][:MOST])


def tell(found: Study, pool: plan.Pool, row: int) -> Told:
    rule, offer = Rule(int(found.rule[row])), found.table.listing(row)
    if rule is not Rule.NONE:
        return Told(offer, rule, plan.reason(found, rule, offer))
    ways = plan.ways_at(found, np.flatnonzero(found.rough.row == row))
    refused = plan.turned_down(found, ways, plan.odds_of(found, ways))
    if refused[0]:
        rule = Rule(int(refused[0]))
        return Told(offer, rule, plan.reason(found, rule, offer))
    own, best = plan.tell(found, plan.gathered([plan.pool_of(found, ways), plan.subset(pool, np.arange(1))]))
    if own.parts == best.parts:
        return Told(offer, rule, "it is the choice")
    return Told(offer, rule, f"it fits, and the choice is better: {other_why(own, best)}")


def named(words: str, table: OfferTable) -> Ints:
    """Rows that every word fits, cheapest first."""
    fits = np.ones(len(table), dtype=bool)
    for word in words.lower().split():
        fits &= fitting(word, table)
    rows = np.flatnonzero(fits)
    price = table.price[rows]
    return rows[np.lexsort((rows, price, price < 0))]


def fitting(word: str, table: OfferTable) -> Bools:
    def among(names: tuple[str, ...]) -> Bools:
        return np.array([name.lower() == word for name in (*names, "")], dtype=bool)

    shapes = table.shapes
    markets = np.array([m.name.lower().replace("_", "-") == word for m in Market], dtype=bool)
    by_shape = among(table.sellers.name)[shapes.seller] | among(shapes.name)[:-1]
    by_shape |= np.array([name.lower() == word or name.lower().startswith(f"{word}-") for name in (*table.gpus, "")])[
        shapes.gpu
    ]
    by_place = among(table.places.region)[:-1]
    found: Bools = by_shape[table.shape] | by_place[table.place]
    found |= among(table.zones)[table.zone] | markets[table.market]
    return found
