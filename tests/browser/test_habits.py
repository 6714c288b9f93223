"""What people are used to: the page keeps what they chose, obeys keys, says times twice, shows the command beside each
action, offers to a viewer nothing that would be refused, and says what to do about an error."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Page, expect

from browser_engine import Visitor, visiting
from crash.server_process import ServerProcess, until
from crucible.client.api import TERMINAL, Client
from crucible.client.endpoint import Endpoint
from crucible.client.transport import Transport

SPEC = "job: {name: hello, team: vision, command: [echo, hello]}"
# Where something can be changed.
PAGES = ("jobs", "submit", "nodes", "budgets", "alerts?tab=rules", "alerts?tab=channels", "lab", "settings?tab=secrets")
# How buttons begin that change something. Everybody has tokens, viewers too.
CHANGES = re.compile(
    r"(Cancel|Hold|Release|Retry|Resume|Keep|Do not|Submit|Set|New|Add|Make|Change|Edit|Remove|Delete|Top|Mute|Test"
    r"|Preempt|Take|Inject|Clear|Drain|Disable|Enable|Ask|Refresh|Invite)\b(?! token)"
)
# Who has no hosts of their own asks for them nevertheless.
NO_HOSTS = "409 GET /v1/hosts"


@dataclass(frozen=True, slots=True)
class Site:
    url: str
    token: str
    viewer: str
    job: str


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("habits")
    server = ServerProcess(folder / "data", gpus=1, environment={"HOME": str(folder)})
    server.start().wait_ready()
    try:
        token = (folder / "data" / "admin-token").read_text().strip()
        with Client(Transport(Endpoint(server.url, token), timeout_s=60.0)) as client:
            client.create_team("vision")
            client.create_user("eve", role="viewer", team="vision")
            viewer = client.create_token("page", user="eve")["token"]
            job = str(client.submit("hello", SPEC)["id"])
            until("the job is over", lambda: client.job(job)["status"] in TERMINAL)
            yield Site(server.url, token, viewer, job)
            until("its machine is given back", lambda: client.nodes() == [])
    finally:
        server.stop()


@pytest.fixture
def visitor(chromium: Browser, site: Site) -> Iterator[Visitor]:
    with visiting(chromium, site.url, site.token) as made:
        yield made


def test_colours_stay_as_they_were_chosen(visitor: Visitor) -> None:
    page = visitor.go()
    scheme = page.locator("html")
    expect(scheme).to_have_attribute("data-mantine-color-scheme", "light")
    page.emulate_media(color_scheme="dark")
    expect(scheme).to_have_attribute("data-mantine-color-scheme", "dark")
    page.get_by_role("button", name="colours: as the system has it; change").click()
    expect(scheme).to_have_attribute("data-mantine-color-scheme", "light")
    page.reload()
    expect(page.get_by_role("button", name="colours: light; change")).to_be_visible()
    expect(scheme).to_have_attribute("data-mantine-color-scheme", "light")


def test_keys_lead_everywhere_and_the_focus_is_seen(site: Site, visitor: Visitor) -> None:
    page = visitor.go()
    expect(page.get_by_role("heading", level=1, name="Overview")).to_be_visible()
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    assert skip.evaluate("one => getComputedStyle(one).outlineStyle") == "solid"
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("g j")
    page.keyboard.press("Escape")
    for keys, title in (("gj", "Jobs"), ("gm", "Costs"), ("gt", "Settings")):
        for key in keys:
            page.keyboard.press(key)
        expect(page.get_by_role("heading", level=1, name=title)).to_be_visible()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("hello")
    expect(page.get_by_role("option", name="hello")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{site.url}/ui/jobs/{site.job}")


def test_a_moment_is_told_in_local_time_and_in_utc(site: Site, visitor: Visitor) -> None:
    page = visitor.go(f"jobs/{site.job}")
    submitted = page.get_by_text("submitted").locator("time")
    submitted.hover()
    tooltip = page.get_by_role("tooltip")
    expect(tooltip).to_have_text(re.compile(r"^\d+ \w+ \d{4}, [\d:]{8} · \d{4}-\d\d-\d\d [\d:]{8} UTC$"))
    here, utc = (int(clock[:2]) for clock in re.findall(r"\d\d:\d\d:\d\d", tooltip.inner_text()))
    assert (here - utc) % 24 in (1, 2), "Zurich is ahead of UTC by one hour, or two in summer"
    page.mouse.move(0, 0)
    expect(tooltip).to_have_count(0)


def test_an_action_shows_its_command_to_copy(site: Site, visitor: Visitor) -> None:
    page = visitor.go(f"jobs/{site.job}")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Retry").click()
    dialog = page.get_by_role("dialog", name="Retry hello?")
    dialog.get_by_role("button", name=f"copy: crucible retry {site.job}").click()
    expect(dialog.get_by_role("button", name="copied")).to_be_visible()
    assert page.evaluate("() => navigator.clipboard.readText()") == f"crucible retry {site.job}"
    page = visitor.go("budgets")
    expect(page.get_by_role("button", name=re.compile("^copy: crucible budget set"))).to_be_visible()


def test_an_error_says_its_code_and_what_to_do(visitor: Visitor) -> None:
    page = visitor.go("jobs/01a1eeb9-8ae6-7298-8898-f1f05f6f9d3b")
    note = page.get_by_role("alert")
    expect(note).to_contain_text("not_found")
    expect(note.get_by_role("button", name="copy: crucible ps -a")).to_be_visible()
    assert set(visitor.refused) == {"404 GET /v1/jobs/01a1eeb9-8ae6-7298-8898-f1f05f6f9d3b"}


def test_whoever_wants_no_motion_sees_none(visitor: Visitor) -> None:
    page = visitor.go()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    moving = "all => all.filter(one => getComputedStyle(one).transitionDuration !== '0s').map(one => one.className)"
    until("nothing moves", lambda: page.locator("*").evaluate_all(moving) == [])
    page.emulate_media(reduced_motion="no-preference")
    until("something moves", lambda: page.locator("*").evaluate_all(moving) != [])


def test_a_viewer_is_offered_nothing_that_would_be_refused(chromium: Browser, site: Site, visitor: Visitor) -> None:
    assert {"Retry", "Resume"} <= set(offered(visitor.go(f"jobs/{site.job}"))), "others are"
    with visiting(chromium, site.url, site.viewer) as viewer:
        for path in (*PAGES, f"jobs/{site.job}"):
            assert offered(viewer.go(path)) == [], path
        assert set(viewer.refused) <= {NO_HOSTS}


def offered(page: Page) -> list[str]:
    """Buttons that might change something."""
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator("#content [aria-busy=true]")).to_have_count(0)
    names = page.locator("#content button:visible").evaluate_all(
        "all => all.map(one => (one.getAttribute('aria-label') ?? one.textContent).replace(/\\s+/g, ' ').trim())"
    )
    return [name for name in names if CHANGES.match(name)]
