"""Prices, offers and providers as tables. A price is never shown without its age; one older than an hour carries a
mark, in colour or not."""

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import groupby

from crucible.cli import wording
from crucible.cli.sparkline import steps
from crucible.cli.table import Column, Row, draw
from crucible.client.price_shapes import (
    ComparedProvider,
    Comparison,
    Offer,
    OfferGroup,
    Offers,
    Price,
    PriceChange,
    PriceSource,
    PriceSummary,
    Quote,
    SourceRefreshed,
)

Paint = Callable[[str], str]

STALE = "!"  # after an age: older than an hour
# From so many columns on there is room for risk, and for where a price is from.
ROOMY = 110
UNITS = {1: "second", 60: "minute", 3600: "hour"}


def price_table(prices: Sequence[Price], width: int | None, paint: Paint = str) -> list[str]:
    is_roomy = roomy(width)
    columns = [
        Column("WHERE", shrinks=True),
        Column("INSTANCE", shrinks=True),
        Column("GPUS"),
        market_column(is_roomy),
        Column("$/H", is_right=True),
        age_column(paint),
        *([Column("SOURCE", shrinks=True)] if is_roomy else []),
    ]
    rows = [
        [
            where(price),
            price["instance_type"],
            gpus(price["gpu"], price["gpus"]),
            market(price["market"], is_roomy),
            money(price["price_per_hour_usd"]),
            age(price["age_s"], price["is_stale"]),
            *([price["source"]] if is_roomy else []),
        ]
        for price in prices
    ]
    return draw(columns, rows, width) if rows else []


def price_note(shown: int, summary: PriceSummary, now: datetime) -> str:
    if not summary["count"]:
        return "no such price is known; crucible offers --group-by gpu shows what there is"
    unknown = summary["count"] - summary["priced"]
    return (
        f"{shown:,} of {summary['count']:,} prices"
        + (f", {unknown:,} unknown (?)" if unknown else "")
        + f"; newest {wording.age(summary['newest'], now)}, oldest {wording.age(summary['oldest'], now)}"
        + stale_note(summary["stale"])
    )


# --- offers -----------------------------------------------------------------------------------------------------


def offer_table(offers: Sequence[Offer], width: int | None, tick: str = "✓", paint: Paint = str) -> list[str]:
    is_roomy, has_ticks = roomy(width), any(offer["is_enabled"] for offer in offers)
    columns = [
        *([Column("")] if has_ticks else []),
        Column("WHERE", shrinks=True),
        Column("INSTANCE", shrinks=True),
        Column("GPUS"),
        market_column(is_roomy),
        Column("$/H", is_right=True),
        Column("$/GPU-H", is_right=True),
        *(_RISK if is_roomy else ()),
        age_column(paint),
        *([Column("SOURCE", shrinks=True)] if width is None else []),
    ]
    rows = [
        [
            *([tick if offer["is_enabled"] else ""] if has_ticks else []),
            where(offer),
            offer["instance_type"],
            gpus(offer["gpu"], offer["gpus"]),
            market(offer["market"], is_roomy),
            money(offer["price_per_hour_usd"]),
            gpu_money(offer),
            *(risk(offer) if is_roomy else ()),
            age(offer["age_s"], offer["is_stale"]),
            *([offer["source"]] if width is None else []),
        ]
        for offer in offers
    ]
    return draw(columns, rows, width) if rows else []


def group_table(groups: Sequence[OfferGroup], by: str, width: int | None, paint: Paint = str) -> list[str]:
    is_roomy = roomy(width)
    columns = [
        Column(by.upper().replace("_", " "), shrinks=True),
        Column("OFFERS", is_right=True),
        Column("$/GPU-H", is_right=True),
        *([Column("$/H", is_right=True)] if is_roomy else []),
        market_column(is_roomy),
        Column("BEST", shrinks=True),
        Column("GPUS"),
        age_column(paint),
    ]
    rows = [_group_row(group, by, is_roomy) for group in groups]
    return draw(columns, rows, width) if rows else []


def _group_row(group: OfferGroup, by: str, is_roomy: bool) -> Row:
    best = group["best"]
    return [
        group["name"],
        f"{group['offers']:,}",
        gpu_money(best),
        *([money(best["price_per_hour_usd"])] if is_roomy else []),
        market(best["market"], is_roomy),
        _best(best, by),
        gpus(best["gpu"], best["gpus"]),
        age(best["age_s"], best["is_stale"]),
    ]


def _best(best: Offer, by: str) -> str:
    """Without what the group's name says already."""
    match by:
        case "provider":
            return f"{best['instance_type']} {where(best).removeprefix(best['provider'] + '/')}"
        case "region":
            return best["instance_type"]
        case "instance_type":
            return where(best)
        case _:
            return f"{where(best)} {best['instance_type']}"


def offer_note(found: Offers) -> str:
    """How much of it is shown."""
    best = [group["best"] for group in found["groups"]]
    shown = wording.plural(len(best), "group") if best else f"{len(found['items']):,}"
    said = f"{shown} of {found['matched']:,} offers that match, {found['total']:,} in all"
    return said + stale_note(sum(one["is_stale"] for one in best or found["items"]))


# --- providers --------------------------------------------------------------------------------------------------


def comparison_table(said: Comparison, width: int | None, tick: str = "✓", paint: Paint = str) -> list[str]:
    is_roomy, hours = roomy(width), said["hours"]
    has_ticks = any(one["is_enabled"] for one in said["items"])
    columns = [
        *([Column("")] if has_ticks else []),
        Column("PROVIDER"),
        market_column(is_roomy),
        Column("INSTANCE", shrinks=True),
        Column("REGION", shrinks=True),
        Column("$/H", is_right=True),
        *([] if hours is None else [Column(f"{hours:g} H", is_right=True)]),
        *(_RISK if is_roomy else ()),
        Column("START", is_right=True),
        *([Column("BILLED BY")] if is_roomy else []),
        age_column(paint),
    ]
    rows: list[Row] = []
    for one in said["items"]:
        lead = [*([tick if one["is_enabled"] else ""] if has_ticks else []), one["provider"]]
        rows += [[*lead, *cells] for cells in _quotes(one, hours is not None, is_roomy)]
    return draw(columns, rows, width) if rows else []


def _quotes(one: ComparedProvider, has_hours: bool, is_roomy: bool) -> list[Row]:
    known = [(word, quote) for word, quote in (("on_demand", one["on_demand"]), ("spot", one["spot"])) if quote]
    manner = [short(one["start_s"]), *([billed_by(one)] if is_roomy else [])]
    rows: list[Row] = [
        [
            market(word, is_roomy),
            (f"{quote['count']} × " if quote["count"] > 1 else "") + quote["instance_type"],
            quote["region"],
            money(quote["price_per_hour_usd"]),
            *([money(quote["total_usd"])] if has_hours else []),
            *(risk(quote) if is_roomy else ()),
            *manner,
            age(quote["age_s"], quote["is_stale"]),
        ]
        for word, quote in known
    ]
    gap = [wording.NONE] * (2 * int(is_roomy))
    unknown = ["?"] * (1 + int(has_hours))
    return rows or [[wording.NONE, "no price known", wording.NONE, *unknown, *gap, *manner, wording.NONE]]


def comparison_note(said: Comparison) -> str:
    quotes = [quote for one in said["items"] for quote in (one["on_demand"], one["spot"]) if quote is not None]
    machines = f"the cheapest {said['gpus']} × {said['gpu']} of each, on as few machines as possible"
    return machines + stale_note(sum(quote["is_stale"] for quote in quotes))


# --- history and sources ----------------------------------------------------------------------------------------


def history_table(
    changes: Sequence[PriceChange], now: datetime, width: int | None, *, is_plain: bool = False
) -> list[str]:
    """A line per place and market of one type: how its price went from the first change that is known until now."""
    columns = [
        Column("WHERE", shrinks=True),
        market_column(True),
        Column("PRICE"),
        Column("NOW", is_right=True),
        Column("LOW", is_right=True),
        Column("HIGH", is_right=True),
        Column("CHANGES", is_right=True),
        Column("LAST", is_right=True),
    ]
    rows = [_series(list(one), now, is_plain) for _, one in groupby(sorted(changes, key=_key), _key)]
    return draw(columns, rows, width) if rows else []


def _key(change: PriceChange) -> tuple[str, ...]:
    return change["provider"], change["region"], change["zone"], change["instance_type"], change["market"]


def _series(changes: Sequence[PriceChange], now: datetime, is_plain: bool) -> Row:
    """The changes come oldest first, and sorting by key keeps them so."""
    points = [(datetime.fromisoformat(one["as_of"]), one["price_per_hour_usd"]) for one in changes]
    known = [price for _, price in points if price is not None]
    last = changes[-1]
    return [
        where(last),
        market(last["market"], True),
        steps(points, now, is_plain=is_plain),
        money(last["price_per_hour_usd"]),
        money(min(known, default=None)),
        money(max(known, default=None)),
        str(len(changes) - 1),
        wording.age(last["as_of"], now),
    ]


def source_table(sources: Sequence[PriceSource], now: datetime, width: int | None) -> list[str]:
    columns = [
        Column("SOURCE", shrinks=True),
        Column("PRICES", is_right=True),
        Column("REFRESHED", is_right=True),
        Column("PROBLEM", shrinks=True),
    ]
    rows = [
        [
            source["name"],
            f"{source['rows']:,}",
            wording.age(source["refreshed_at"], now) + (STALE if source["is_stale"] and source["refreshed_at"] else ""),
            source["error"] or wording.NONE,
        ]
        for source in sources
    ]
    return draw(columns, rows, width) if rows else []


def refreshed_table(done: Sequence[SourceRefreshed], width: int | None) -> list[str]:
    columns = [
        Column("SOURCE", shrinks=True),
        Column("PRICES", is_right=True),
        Column("CHANGED", is_right=True),
        Column("PROBLEM", shrinks=True),
    ]
    rows = [[one["source"], f"{one['rows']:,}", f"{one['changed']:,}", one["error"] or wording.NONE] for one in done]
    return draw(columns, rows, width) if rows else []


# --- cells ------------------------------------------------------------------------------------------------------

_RISK = (Column("AVAILABLE", is_right=True), Column("LOST/H", is_right=True))


def roomy(width: int | None) -> bool:
    return width is None or width >= ROOMY


def market_column(is_roomy: bool) -> Column:
    return Column("MARKET" if is_roomy else "SPOT")


def market(word: str, is_roomy: bool) -> str:
    if not is_roomy and word == "on_demand":
        return wording.NONE
    return word.replace("_", "-")


def age_column(paint: Paint) -> Column:
    """Paints the ages that carry the mark."""
    return Column("AGE", is_right=True, paint=lambda cell: paint(cell) if STALE in cell else cell)


def age(seconds: float, is_stale: bool) -> str:
    return short(seconds) + (STALE if is_stale else "")


def short(seconds: float) -> str:
    """In one unit."""
    for unit, size in (("d", wording.DAY), ("h", wording.HOUR), ("m", wording.MINUTE)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def stale_note(count: int) -> str:
    return f"; {STALE} older than an hour" if count else ""


def where(one: Price | PriceChange) -> str:
    """A zone's name mostly begins with its region's."""
    zone = one["zone"]
    place = zone if zone.startswith(one["region"]) else "/".join(filter(None, (one["region"], zone)))
    return f"{one['provider']}/{place}"


def gpus(gpu: str | None, count: int) -> str:
    return wording.NONE if not gpu or not count else f"{count}×{gpu}"


def money(dollars: float | None) -> str:
    """The column's title says that it is dollars."""
    return "?" if dollars is None else wording.money(dollars).removeprefix("$")


def gpu_money(offer: Offer) -> str:
    return money(offer["price_per_gpu_hour_usd"]) if offer["gpus"] else wording.NONE


def risk(offer: Offer | Quote) -> Row:
    return [wording.percent(offer["availability"]), share(offer["interruptions_per_hour"])]


def share(rate: float | None) -> str:
    return wording.NONE if rate is None else f"{100 * rate:.2g}%"


def billed_by(one: ComparedProvider) -> str:
    unit, least = one["billing_unit_s"], one["billing_minimum_s"]
    return UNITS.get(unit, short(unit)) + (f", {short(least)} at least" if least > unit else "")
