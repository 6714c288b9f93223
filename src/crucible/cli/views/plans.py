"""A plan as text: what was chosen, what else there is, and why the rest was not."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from crucible.cli import wording
from crucible.cli.table import Column, Row, draw, printable
from crucible.client.shapes import Plan

# Reasons that a person reads; more is for -o json.
SHOWN_REJECTIONS = 5
SHOWN_OTHERS = 5
# Narrower than this, a row has only what one decides by.
WIDE = 110


def plan_lines(plan: Plan, *, width: int | None, tick: str = "✓", is_for_submit: bool = False) -> list[str]:
    """`is_for_submit`: the tick stands at what would really be bought."""
    if plan.get("steps"):
        return _workflow_lines(plan, width, is_for_submit)
    ticked = plan.get("runnable") if is_for_submit and "runnable" in plan else plan["chosen"]
    others = [one for one in (*plan["alternatives"], *plan.get("others", ())[:SHOWN_OTHERS]) if one != ticked]
    if is_for_submit and plan["chosen"] not in (None, ticked):
        others.insert(0, plan["chosen"])
    is_wide = width is None or width >= WIDE
    shown = [("", one) for one in others] if ticked is None else [(tick, ticked), *(("", one) for one in others)]
    # Said of single rows only where it tells them apart.
    is_mixed = len({one.get("is_enabled", True) for _, one in shown}) > 1
    is_timed = any(one.get("estimated_cost_usd") is not None for _, one in shown)
    make = _wide_row if is_wide else (_timed_row if is_timed else _untimed_row)
    rows = [row for mark, one in shown for row in ([mark, *make(one, is_mixed)], *_part_rows(one, make))]
    columns = _WIDE if is_wide else (_TIMED if is_timed else _UNTIMED)
    lines = draw(columns, rows, width) if rows else []
    if not plan["chosen"]:
        lines.append(printable(f"no place now: {plan.get('reason') or 'nothing fits'}"))
    return [
        *lines,
        *_figures(plan, len(shown)),
        *(_about(ticked) if ticked else []),
        *_enabling(plan),
        *_rejections(plan["rejections"]),
        *(_why_not(one) for one in plan.get("why_not", ())),
        *(f"note: {printable(note)}" for note in plan.get("notes", ())),
        *(f"warning: {printable(w)}" for w in plan.get("warnings", ())),
    ]


def _workflow_lines(plan: Plan, width: int | None, is_for_submit: bool) -> list[str]:
    """What each step would run on, and what all of them would cost."""
    named = ("runnable", "chosen") if is_for_submit else ("chosen",)
    steps = [(step, next((step[name] for name in named if step.get(name)), None)) for step in plan["steps"]]
    rows = [
        [step["name"], *(_timed_row(one, True) if one else ["", "", "", "", "", step.get("reason") or "nothing fits"])]
        for step, one in steps
    ]
    total = plan.get("runnable_total") if is_for_submit else plan.get("total")
    reason = plan.get("reason")
    said = _together(total) if total else _added_up([one for _, one in steps])
    return [
        *draw((Column("STEP", shrinks=True), *_TIMED[1:]), rows, width),
        f"{wording.plural(len(steps), 'step')}, {said}",
        *(_carried(one) for one in (total or {}).get("carried", ())),
        *([f"nothing keeps the limits of all steps: {printable(reason)}"] if reason else []),
        *(f"note: {printable(note)}" for note in plan.get("notes", ())),
        *(f"warning: {printable(w)}" for w in plan.get("warnings", ())),
    ]


def _added_up(chosen: Sequence[Mapping[str, Any] | None]) -> str:
    """Of steps that were planned by themselves."""
    costs = [float(one["estimated_cost_usd"]) for one in chosen if one and one.get("estimated_cost_usd") is not None]
    unknown = len(chosen) - len(costs)
    return f"of {unknown} nobody knows what it costs" if unknown else f"total {wording.money(sum(costs))}"


def _together(total: Mapping[str, Any]) -> str:
    cost, hours = total.get("estimated_cost_usd"), total.get("estimated_hours")
    said = ["nobody knows what all of them cost" if cost is None else f"total {wording.money(cost)}"]
    moved = (total.get("moved_usd") or 0) + (total.get("fetch_usd") or 0)
    if moved:
        said.append(f"of it {wording.money(moved)} to carry data between them")
    if hours is not None:
        said.append(f"done after {hours:.3g} h")
    return "; ".join([*said, f"at most {total.get('bound') or 0:.0%} from the optimum"])


def _carried(one: Mapping[str, Any]) -> str:
    lasts = wording.duration(one["hours"] * 3600)
    what = f"{one['size_gb']:.3g} GB of {one['step']} go from {one['from']} to {one['to']}"
    return printable(f"data: {what}, {wording.money(one['cost_usd'])}, {lasts}")


_MARK, _WHERE, _INSTANCE = Column(""), Column("WHERE", shrinks=True), Column("INSTANCE", shrinks=True)
_GPUS, _PRICE = Column("GPUS"), Column("$/H", is_right=True)
_HOURS, _TOTAL, _WHY = Column("HOURS", is_right=True), Column("TOTAL", is_right=True), Column("WHY", shrinks=True)
_WIDE = (
    _MARK, _WHERE, _INSTANCE, _GPUS, Column("MARKET"), _PRICE, Column("START", is_right=True), _HOURS, _TOTAL,
    Column("RISK", is_right=True), _WHY,
)  # fmt: skip
_TIMED = (_MARK, _WHERE, _INSTANCE, _GPUS, _HOURS, _TOTAL, _WHY)
_UNTIMED = (_MARK, _WHERE, _INSTANCE, _GPUS, _PRICE, _WHY)


def _wide_row(option: Mapping[str, Any], names_enabled: bool) -> Row:
    where, machines, gpus = _what(option)
    begin = wording.duration(option.get("start_s"))
    figures = [_market(option), _hourly(option), begin, _hours(option), _total(option), _risk(option)]
    return [where, machines, gpus, *figures, _why(option, names_enabled)]


def _timed_row(option: Mapping[str, Any], names_enabled: bool) -> Row:
    total = wording.money(option.get("estimated_cost_usd"))
    return [*_what(option), _hours(option), total, _why(option, names_enabled)]


def _untimed_row(option: Mapping[str, Any], names_enabled: bool) -> Row:
    return [*_what(option), _hourly(option), _why(option, names_enabled)]


def _part_rows(option: Mapping[str, Any], make: Callable[[Mapping[str, Any], bool], Row]) -> list[Row]:
    """What tasks in several places have in each."""
    if not _is_scattered(option):
        return []
    rows = [
        make({**part, "total_per_hour_usd": part["count"] * part["price_per_hour_usd"]}, False)
        for part in option["parts"]
    ]
    return [["", f"  {row[0]}", *("" if cell == wording.NONE else cell for cell in row[1:])] for row in rows]


def _is_scattered(option: Mapping[str, Any]) -> bool:
    """A gang with some machines on demand stands in one place; tasks need not."""
    return len({(part.get("zone"), part.get("region"), part.get("instance_type")) for part in _parts(option)}) > 1


def _parts(option: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return option.get("parts") or [option]


def _what(option: Mapping[str, Any]) -> tuple[str, str, str]:
    gpus = sum(int(part.get("count") or 1) * int(part.get("gpus") or 0) for part in _parts(option))
    if _is_scattered(option):
        return f"{len(_parts(option))} places", wording.plural(int(option["count"]), "machine"), str(gpus)
    where = f"{option.get('provider')}/{option.get('zone') or option.get('region')}"
    return where, _machines(option), f"{gpus} {option.get('gpu') or ''}".rstrip()


def _hourly(option: Mapping[str, Any]) -> str:
    return wording.money(option.get("total_per_hour_usd", option.get("price_per_hour_usd")))


def _hours(option: Mapping[str, Any]) -> str:
    hours = option.get("estimated_hours")
    return wording.NONE if hours is None else f"{hours:.3g}"


def _why(option: Mapping[str, Any], names_enabled: bool) -> str:
    is_out = names_enabled and not option.get("is_enabled", True)
    return (str(option.get("why") or "") + (" (not enabled)" if is_out else "")).strip()


def _machines(option: Mapping[str, Any]) -> str:
    return f"{option.get('count') or 1} × {option.get('instance_type')}"


def _market(option: Mapping[str, Any]) -> str:
    """Of a mixed gang: how many of each."""
    parts = _parts(option)
    markets = {str(part.get("market") or ("spot" if part.get("is_spot") else "on-demand")) for part in parts}
    if len(markets) == 1:
        return markets.pop()
    if _is_scattered(option):
        return "several"
    return " + ".join(f"{part.get('count')} {part.get('market')}" for part in parts)


def _total(option: Mapping[str, Any]) -> str:
    low, high = option.get("cost_p50_usd"), option.get("cost_p90_usd")
    if low is None or high is None or wording.money(low) == wording.money(high):
        return wording.money(option.get("estimated_cost_usd"))
    return f"{wording.money(low)}–{wording.money(high)}"


def _risk(option: Mapping[str, Any]) -> str:
    """How likely it misses deadline or budget; a dash where nothing can."""
    if "reliability" not in option:
        return ""
    risk = 1 - float(option.get("reliability") or 0.0)
    return wording.NONE if risk < 0.0005 else f"{risk:.1%}"


# --- what stands below the table ------------------------------------------------------------------------


def _figures(plan: Plan, shown: int) -> list[str]:
    if not plan.get("considered"):
        return []
    said = [f"{shown} of {plan['considered']:,} offers; {plan['feasible']:,} fit"]
    age = plan.get("price_age_s")
    if age is not None:
        said.append(f"prices {wording.duration(age)} old" + (" (stale)" if plan.get("is_price_stale") else ""))
    if plan["chosen"]:
        said.append(f"at most {plan.get('bound') or 0:.0%} from the optimum")
    said.append(f"planned in {plan.get('plan_cpu_ms'):g} ms")
    return ["; ".join(said)]


def _about(chosen: Mapping[str, Any]) -> list[str]:
    lines = []
    if chosen.get("saving"):
        full = wording.money(chosen.get("on_demand_cost_usd"))
        lines.append(f"saves {chosen['saving']:.0%} against {full} on demand")
    if chosen.get("interruptions") and chosen["interruptions"] >= 0.005:
        often = f"{chosen['interruptions']:.2g} interruptions expected"
        every = chosen.get("checkpoint_interval_s")
        lines.append(often + (f"; checkpoint every {wording.duration(every)}" if every else ""))
    if chosen.get("egress_usd") or chosen.get("staging_hours"):
        moved = f"data: {wording.money(chosen.get('egress_usd'))} to move"
        staging_s = (chosen.get("staging_hours") or 0) * 3600
        lines.append(moved + (f", {wording.duration(staging_s)} before the work starts" if staging_s else ""))
    for unit, many in (("token", 1_000_000), ("step", 1_000)):
        if chosen.get(f"usd_per_{unit}"):
            lines.append(f"{wording.money(chosen[f'usd_per_{unit}'] * many)} per {many:,} {unit}s")
    return lines


def _enabling(plan: Plan) -> list[str]:
    chosen, runnable = plan["chosen"], plan.get("runnable")
    if not chosen or chosen.get("is_enabled", True):
        return []
    provider = _place(chosen)
    if runnable is None and any(one.get("rule") == "sold_out" for one in plan["rejections"]):
        return [f"{provider} is not enabled, and what is has nothing free: submit would wait"]
    if runnable is None:
        return [f"{provider} is not enabled, and nothing that is could run it: submit would be refused"]
    return [f"{provider} is not enabled: submit would use {_place(runnable)} {runnable.get('instance_type')}"]


def _place(option: Mapping[str, Any]) -> str:
    """A cloud is enabled region by region; this computer is one place."""
    provider, region = option.get("provider"), option.get("region")
    return f"{provider} {region}" if region and region != provider else f"{provider}"


def _rejections(rejections: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rules are asked in order: what the last of them turned down came nearest."""
    shown = [printable(_rejection(one)) for one in [*reversed(rejections)][:SHOWN_REJECTIONS]]
    more = len(rejections) - SHOWN_REJECTIONS
    return [*shown, f"and {wording.plural(more, 'more reason')}: -o json"] if more > 0 else shown


def _rejection(one: Mapping[str, Any]) -> str:
    name = f"{one.get('provider')}/{one.get('region')} {one.get('instance_type')}"
    count = int(one.get("offers") or 1)
    if count == 1:
        return f"not {name}: {one.get('reason')}"
    return f"not {count:,} offers such as {name}: {one.get('reason')}"


def _why_not(one: Mapping[str, Any]) -> str:
    name = (
        f"{one.get('provider')}/{one.get('zone') or one.get('region')} {one.get('instance_type')} {one.get('market')}"
    )
    return printable(f"why not {name}: {one.get('reason')}")
