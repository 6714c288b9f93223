"""Every page there is, of a small demo, in both schemes and on a phone: no finding of axe that is serious, nothing that
the browser complains of, nothing that must be scrolled sideways, and each with its heading and title. And that demo's
own promises."""

import subprocess
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from examples.demo.pages import pages
from playwright.sync_api import Browser, Page, expect

from browser_engine import DESKTOP, PHONE, Visitor, visiting
from crucible.client.api import TERMINAL
from demo_process import Demo, a_demo, argv, environ

# The demo is started in the first test's time.
pytestmark = pytest.mark.timeout(900)

AXE = Path(__file__).resolve().parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
# What WCAG 2.2 AA asks for, and what is good practice; of a page that was looked at in the other scheme only colours.
RULES = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
COLOURS = {"type": "rule", "values": ["color-contrast"]}
GRAVE = ("serious", "critical")
SETTLED = "() => document.querySelector('h1') !== null && document.querySelector('[aria-busy=true]') === null"
LOOK = """async ([only, isPart]) => {
    const part = isPart ? document.querySelector("[role=tabpanel]") : null;
    const { violations } = await axe.run(part ?? document, { runOnly: only, resultTypes: ["violations"] });
    return violations.map(({ id, impact, nodes }) =>
        ({ id, impact, where: nodes.slice(0, 3).map(node => node.target.join(" ")) }));
}"""

GROUPS = ("jobs and their parts", "money, machines and the Lab", "settings")


def group_of(name: str) -> str:
    if name.startswith("settings"):
        return GROUPS[2]
    return GROUPS[0] if name.startswith(("overview", "job", "sweeps", "submit")) else GROUPS[1]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with a_demo(tmp_path_factory.mktemp("demo")) as running:
        yield running


@pytest.fixture(scope="module")
def visitor(demo: Demo, chromium: Browser) -> Iterator[Visitor]:
    with visiting(chromium, demo.url, demo.token) as signed_in:
        signed_in.page.context.add_init_script(path=AXE)
        yield signed_in


@pytest.mark.parametrize("group", GROUPS)
def test_every_page_can_be_read_by_everybody(demo: Demo, visitor: Visitor, group: str) -> None:
    page, found, seen = visitor.page, defaultdict[str, list[Any]](list), set[str]()
    for name, path in pages(demo.jobs).items():
        if group_of(name) != group:
            continue
        visitor.go(path).wait_for_function(SETTLED)
        found[name] += wrong_with(page, is_part=name.partition("-")[0] in seen)
        seen.add(name.partition("-")[0])
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    assert visitor.complaints == []


@pytest.mark.parametrize("path", ["sign-in", "nowhere"])
def test_pages_for_strangers_can_be_read_too(demo: Demo, chromium: Browser, path: str) -> None:
    with visiting(chromium, demo.url) as stranger:
        stranger.page.context.add_init_script(path=AXE)
        stranger.go(path)
        stranger.page.locator("h1").wait_for()
        assert wrong_with(stranger.page) == []


def wrong_with(page: Page, *, is_part: bool = False) -> list[Any]:
    """In light, then in dark, then on a phone; it is left as it was. Of another part of a page that was looked at, axe
    looks at that part alone."""
    found: list[Any] = [] if page.locator("h1").count() == 1 else ["not one heading"]
    if not page.title().endswith("Crucible") or (page.title() == "Crucible" and "sign-in" not in page.url):
        found.append(f"called {page.title()!r}")
    found += looked_at(page, RULES, is_part)
    page.emulate_media(color_scheme="dark")
    page.locator("html[data-mantine-color-scheme=dark]").wait_for()
    found += looked_at(page, COLOURS, is_part)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(PHONE)
    page.wait_for_function("width => innerWidth === width", arg=PHONE["width"])
    wide = page.evaluate("document.documentElement.scrollWidth")
    page.set_viewport_size(DESKTOP)
    return found + ([f"{wide} px wide on a phone"] if wide > PHONE["width"] else [])


def looked_at(page: Page, rules: dict[str, Any], is_part: bool) -> list[Any]:
    return [one for one in page.evaluate(LOOK, [rules, is_part]) if one["impact"] in GRAVE]


# --- the demo ---------------------------------------------------------------------------------------------------------


def test_the_demo_says_that_it_is_one(visitor: Visitor, demo: Demo) -> None:
    visitor.go()
    expect(visitor.page.get_by_role("banner").get_by_text("Demo", exact=True)).to_be_visible()
    with demo.client() as client:
        assert all(project["name"].startswith("demo-") for project in client.projects())


def test_the_demo_has_teams_history_money_and_jobs_of_every_kind(demo: Demo) -> None:
    with demo.client() as client:
        jobs = list(client.all_jobs())
        states = {job["name"]: job["status"] for job in jobs}
        assert {"completed", "failed", "running"} <= set(states.values())
        assert states["assistant-70b-sft"] not in TERMINAL and states["nmt-fr-en"] not in TERMINAL
        assert {job["team"] for job in jobs} == {"vision", "language"} and len({job["user_id"] for job in jobs}) >= 5
        resumed = client.attempts(demo.jobs["unet-cityscapes-live"])
        assert [one["outcome"] for one in resumed][:1] == ["lost"] and resumed[1]["resume_step"] > 0
        assert client.sweep(demo.jobs["detr-search"])["best"] is not None
        assert client.workflow(demo.jobs["assistant-refresh"])["steps"][-1]["phase"] == "succeeded"
        assert client.evaluation(demo.jobs["ring-evaluation"])["rows"] != []
        assert client.shards(demo.jobs["label-texts"])["counts"]["done"] == 5
        begun = datetime.fromisoformat(client.job(demo.jobs["detr-search"])["timestamps"]["created_at"])
        assert datetime.now(UTC) - begun > timedelta(hours=5)
        assert client.costs(demo.jobs["detr-search"])["posted_microusd"] > 100_000
        assert client.budgets() and client.alert_rules() and client.alert_channels() and client.secrets()


def test_a_second_demo_in_the_same_folder_says_where_the_first_one_is(demo: Demo) -> None:
    again = subprocess.run(argv(demo.folder), env=environ(), capture_output=True, text=True, timeout=120, check=False)
    assert again.returncode == 1
    assert f"a demo runs already at {demo.url}/ui/" in again.stderr


def test_a_port_that_somebody_else_has_is_said_before_anything_starts(demo: Demo, tmp_path: Path) -> None:
    port = demo.url.rpartition(":")[2]
    refused = subprocess.run(
        argv(tmp_path, "--port", port), env=environ(), capture_output=True, text=True, timeout=120, check=False
    )
    assert refused.returncode == 1
    assert f"port {port} cannot be had" in refused.stderr
