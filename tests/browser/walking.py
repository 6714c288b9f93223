"""What people do on the page, step by step, and how they read its figures."""

import re
from decimal import Decimal

from playwright.sync_api import Locator, Page, expect

from browser_engine import Visitor
from lab_site import LabSite

SPEC = """\
job:
  name: {name}
  command:
    - {python}
    - -c
    - |
{program}
  resources:
    gpus: 1
    gpu_type: T4
    estimated_hours: 0.5
  constraints:
    providers: [aws]
    strategy: cheapest
    allow_spot: true
"""


def spec(name: str, python: str, program: str) -> str:
    indented = "".join(f"      {line}\n" for line in program.strip().splitlines())
    return SPEC.format(name=name, python=python, program=indented.rstrip())


def editor(page: Page) -> Locator:
    return page.get_by_role("textbox", name="job file")


def paste(page: Page, text: str) -> None:
    """In place of what stands in the editor."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate("text => navigator.clipboard.writeText(text)", text)
    editor(page).click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Control+v")


def retype(page: Page, line: str) -> None:
    """In place of what stands on the cursor's line behind its indent."""
    for key in ("End", "Home", "Shift+End"):
        page.keyboard.press(key)
    page.keyboard.type(line)
    page.keyboard.press("Escape")  # whatever was offered meanwhile


def submit(page: Page) -> str:
    """What the editor holds; returns the id of the job whose page it leads to."""
    page.get_by_role("button", name="Submit job").click()
    dialog = page.get_by_role("dialog", name="Submit this job?")
    expect(dialog.get_by_role("row", name="Per hour")).to_contain_text("$")
    dialog.get_by_role("button", name="Confirm and submit").click()
    page.wait_for_url(re.compile(r"/ui/jobs/[0-9a-f-]{36}$"))
    return page.url.rpartition("/")[2]


def figure(page: Page, label: str) -> Locator:
    return page.get_by_role("group", name=label, exact=True)


def told(place: Locator, name: str) -> Decimal:
    """A figure as the API told it to the page."""
    return Decimal(place.locator(f'[data-figure="{name}"]').first.get_attribute("data-value") or "0")


def tab(page: Page, name: str) -> Locator:
    """Goes there; returns what it shows."""
    page.get_by_role("tab", name=name, exact=True).click()
    return page.get_by_role("tabpanel", name=name, exact=True)


def log_of(page: Page) -> Locator:
    return page.get_by_role("region", name="log", exact=True)


def copied_log(page: Page) -> list[str]:
    """Every line that the page has, wherever one has scrolled to."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_text("copied", exact=False).last).to_be_visible()
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text.splitlines()


def stands_at(page: Page, state: str) -> None:
    expect(page.locator("main h1 ~ *").get_by_text(state, exact=True)).to_be_visible()


def micro(written: str) -> int:
    """−$0.001234, as a number of micro-dollars."""
    amount = Decimal(written.strip().lstrip("−$").replace(",", ""))
    return int(amount * 1_000_000) * (-1 if written.strip().startswith("−") else 1)


def short_walk(visitor: Visitor, site: LabSite, name: str) -> None:
    """Sign in, submit, see it end, and what it cost; a page that is asked for anew is the same one."""
    page = visitor.sign_in(site.token)
    page.get_by_role("link", name="Submit", exact=True).click()
    paste(page, spec(name, "sh", "echo hello from a machine"))
    job_id = submit(page)
    stands_at(page, "completed")
    expect(log_of(page)).to_contain_text("hello from a machine")
    site.settle()
    page.reload()
    expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
    posted = site.client.costs(job_id)["posted_usd"]
    cost = figure(page, "Cost so far")
    expect(cost.locator("[data-value]").first).to_have_attribute("data-value", str(posted))
    page.get_by_role("link", name="Costs", exact=True).click()
    page.goto(f"{page.url}?for=30d&by=job")
    row = page.get_by_role("region", name="costs by job").get_by_role("row", name=name)
    expect(row.locator('[data-figure$=".cost_usd"]')).to_have_attribute("data-value", str(posted))
    assert page.url.startswith(f"{visitor.url}/ui/")
