"""Every figure of a job's page and of the costs page is the API's own, to the last digit and as it is written: the
header, each part of a job that was taken and went on, its charts by the tables behind them, and what it all came to."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from browser_engine import Visitor, visiting
from lab_site import LabSite, lab_site

from .figures import Ear, compare
from .spent import trained, waiting
from .writing import moment, significant, size, usd

PATIENCE_MS = 60_000
# Of a job's page, whatever part is shown.
HEADER = {"gpus", "selected.count", "cost.so_far_usd", "cost.per_hour_usd", "cost.estimated_usd", "progress.fraction"}
PX = 1.0


@dataclass(frozen=True, slots=True)
class Past:
    """What was done before anybody looked."""

    site: LabSite
    job: str


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    folder = tmp_path_factory.mktemp("spent")
    with lab_site(folder) as site:
        job, patient = trained(site, folder), waiting(site)
        yield Past(site, job)
        site.client.cancel(patient)
        site.lab.control.clear_faults()


@dataclass(frozen=True, slots=True)
class Reader:
    visitor: Visitor
    ear: Ear
    past: Past

    @property
    def page(self) -> Page:
        return self.visitor.page

    def part(self, tab: str) -> Page:
        page = self.visitor.go(f"jobs/{self.past.job}?tab={tab}")
        expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true", timeout=PATIENCE_MS)
        expect(page.get_by_role("group", name="Cost so far").locator("[data-figure]").first).to_contain_text("$")
        return page


@pytest.fixture
def reader(chromium: Browser, past: Past) -> Iterator[Reader]:
    with visiting(chromium, past.site.url, past.site.token) as visitor:
        yield Reader(visitor, Ear(visitor.page, past.site.url, past.site.token), past)
        assert visitor.refused == []


def test_costs_of_a_job_are_the_ledgers(reader: Reader) -> None:
    page = reader.part("cost")
    expect(page.get_by_role("heading", name="To the last digit")).to_be_visible()
    seen = compare(page, reader.ear)
    page.get_by_text("ledger (").click()
    expect(page.get_by_role("cell", name=re.compile("^provider:aws")).first).to_be_visible()
    seen |= compare(page, reader.ear)
    assert seen >= HEADER | {
        *("so_far_usd", "posted_usd", "per_hour_usd", "useful_usd", "idle_usd", "saved_usd", "per_step_usd"),
        *("by_kind.so_far_usd", "idle_by.amount_usd", "machines.so_far_usd", "budget_usd"),
        *("prediction.estimated_cost_usd", "prediction.actual_cost_usd", "prediction.actual_hours"),
        *("intervals.amount_microusd", "intervals.rate_usd", "postings.entries.amount_microusd"),
    }


def test_a_figure_that_is_off_by_a_digit_is_found(reader: Reader) -> None:
    """What this file looks with sees something."""
    page = reader.part("cost")
    figure = page.locator("[data-figure=saved_usd]")
    expect(figure).to_contain_text("$")
    shown = figure.evaluate("one => { one.firstChild.data += '1'; return one.textContent; }")
    with pytest.raises(AssertionError, match=re.escape(f"not '{shown}'")):
        compare(page, reader.ear)
    figure.evaluate("one => one.replaceWith('$1.23')")
    with pytest.raises(AssertionError, match="do not say where they are from"):
        compare(page, reader.ear)


def test_attempts_and_checkpoints_are_those_that_were(reader: Reader) -> None:
    page = reader.part("attempts")
    page.get_by_role("button", name=re.compile("^Attempt 0")).click()
    expect(page.get_by_role("table")).to_have_count(1)
    seen = compare(page, reader.ear)
    page.get_by_role("button", name=re.compile("^Attempt 1")).click()
    expect(page.get_by_role("table")).to_have_count(1)
    seen |= compare(page, reader.ear)
    page = reader.part("checkpoints")
    expect(page.get_by_role("table")).to_be_visible()
    seen |= compare(page, reader.ear)
    assert seen >= {
        *("items.number", "items.resume_step", "items.started_at..items.ended_at", "items.machines.length"),
        *("items.ranks.rank", "items.ranks.exit_code", "items.step", "items.size_bytes", "items.metadata.loss"),
    }


def test_the_timeline_is_drawn_to_scale_and_its_table_is_true(reader: Reader) -> None:
    page = reader.part("timeline")
    attempts = reader.ear.ask(f"/v1/jobs/{reader.past.job}/attempts")["items"]
    expect(page.get_by_role("img", name=re.compile("^attempts over time"))).to_be_visible()
    assert_to_scale(page, attempts)
    show_tables(page)
    assert compare(page, reader.ear) >= {
        *("items.number", "items.created_at..items.started_at", "items.started_at..items.ended_at"),
        *("items.resume_step", "items.step"),
    }


def assert_to_scale(page: Page, attempts: list[Any]) -> None:
    """Where bars begin and end is as far apart as the moments are, to a pixel."""
    spans = {}
    for one in attempts:
        moments = [moment(one[name]).timestamp() for name in ("created_at", "started_at", "ended_at")]
        spans |= {
            f"attempt {one['number']}: provisioning": moments[:2],
            f"attempt {one['number']}: running": moments[1:],
        }
    bars = page.locator("rect:has(title)").evaluate_all(
        "bars => bars.map(bar => [bar.querySelector('title').textContent, +bar.getAttribute('x'), "
        "+bar.getAttribute('x') + +bar.getAttribute('width')])"
    )
    drawn = {title.partition(" for ")[0]: edges for title, *edges in bars}
    assert spans.keys() <= drawn.keys() and len(spans) == 4
    moments = [at for name in spans for at in spans[name]]
    places = [x for name in spans for x in drawn[name]]
    per_s = (max(places) - min(places)) / (max(moments) - min(moments))
    for at, x in zip(moments, places, strict=True):
        assert abs(min(places) + (at - min(moments)) * per_s - x) <= PX


def test_metrics_are_drawn_of_what_was_measured(reader: Reader) -> None:
    page = reader.part("metrics")
    job = f"/v1/jobs/{reader.past.job}"
    for chart in ("loss", "lr", "Memory", "Disk"):
        expect(page.get_by_role("heading", name=chart, exact=True)).to_be_visible(timeout=PATIENCE_MS)
    show_tables(page)
    compare(page, reader.ear)
    attempts = reader.ear.ask(f"{job}/attempts")["items"]
    answers = page.locator("[data-answer*='/metrics?']").evaluate_all("all => all.map(one => one.dataset.answer)")
    series = {one["name"]: one["points"] for answer in answers for one in reader.ear.ask(answer)["series"]}
    for name in ("loss", "lr"):
        assert rows_of(page, name) == measured(series[name], attempts)
    for name in ("Memory", "Disk"):
        kinds = sorted(one for one in series if re.fullmatch(rf"{name.lower()}_(used|total)_bytes", one))
        values = [[size(point["mean"]) for point in series[kind]] for kind in kinds]
        assert columns_of(page, f"{name} of its machines") == values


def measured(points: list[Any], attempts: list[Any]) -> list[list[str]]:
    """A row for each step: what each attempt measured there."""
    began = [moment(one["started_at"]).timestamp() * 1000 for one in attempts]
    cells: dict[int, list[str]] = {}
    for point in points:
        attempt = max(number for number, at in enumerate(began) if at <= point["last_t"] or number == 0)
        row = cells.setdefault(point["step"], ["–"] * len(attempts))
        row[attempt] = significant(point["mean"])
    return [[str(step), *row] for step, row in sorted(cells.items())][:500]


# --- the costs page ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["team", "job"])
def test_the_costs_page_shows_what_reports_say(reader: Reader, by: str) -> None:
    page = reader.visitor.go(f"costs?for=24h&by={by}")
    for table in (f"costs by {by}", "saved", "could be saved", "estimated against actual"):
        expect(page.get_by_role("region", name=table, exact=True)).to_be_visible(timeout=PATIENCE_MS)
    show_tables(page)
    assert compare(page, reader.ear) >= {
        *("total.cost_usd", "total.useful_usd/total.cost_usd", "total.idle_usd", "total.gpu_hours", "total.jobs"),
        *("rows[kind=compute].cost_usd", "rows[kind=transfer].cost_usd", "per_hour_usd", "forecast.total_usd"),
        *("rows.cost_usd", "rows.useful_usd", "rows.saved_usd", "rows.gpu_hours", "total.unpriced_usd"),
        *("available.jobs", "available.ideas.now_usd", "available.ideas.saves_usd"),
        *("jobs", "groups.hours.median_error", "overall.cost.within", "overall.within_range", "overall.cost.goal"),
    }
    assert_adds_up(page, reader.ear, by)


def assert_adds_up(page: Page, ear: Ear, by: str) -> None:
    """The table behind the columns over time."""
    figure = page.get_by_role("figure", name=re.compile(f"^spent per (hour|day) by {by}$"))
    report = ear.ask(figure.evaluate("one => one.closest('[data-answer]').dataset.answer"))
    (step,) = {"hour", "day"} & report["rows"][0]["key"].keys()
    sums = {row["key"][step]: usd(row["cost_usd"]) for row in report["rows"]}
    drawn = {name: cost for name, cost, total in cells_of(figure) if cost != "$0.00" and cost == total}
    assert drawn == sums
    assert sum(row["cost_microusd"] for row in report["rows"]) == report["total"]["cost_microusd"] > 0


# --- tables behind charts ---------------------------------------------------------------------------------------------


def show_tables(page: Page) -> None:
    """What is pressed goes by another name."""
    closed = page.get_by_role("button", name="show as a table")
    for _ in range(closed.count()):
        closed.first.click()
    expect(closed).to_have_count(0)


def rows_of(page: Page, label: str) -> list[list[str]]:
    return cells_of(page.get_by_role("figure", name=label, exact=True))


def columns_of(page: Page, label: str) -> list[list[str]]:
    """Without the first, which is the time."""
    _, *columns = zip(*rows_of(page, label), strict=True)
    return [list(column) for column in columns]


def cells_of(figure: Locator) -> list[list[str]]:
    expect(figure.get_by_role("table")).to_be_visible()
    rows: list[list[str]] = figure.locator("tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    return rows
