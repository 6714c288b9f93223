"""Walks through the page in a real browser, before a real server that buys in a Lab."""

import re
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from browser_engine import visiting
from doubles.prefix_proxy import prefix_proxy
from lab_site import LabSite
from oidc_engine import OidcEngine

from .conftest import COMPANY
from .walking import (
    copied_log,
    editor,
    figure,
    log_of,
    micro,
    paste,
    retype,
    short_walk,
    spec,
    stands_at,
    submit,
    tab,
    told,
)

# Until the file is there.
TRAINING = """
import os, pathlib, time
from crucible import train
found = train.latest_checkpoint()
step = found.step if found else 0
print("begins after step", step, flush=True)
while not os.path.exists({end!r}):
    step += 1
    print("step", step, flush=True)
    train.progress(step, 5000)
    time.sleep(0.3)
    if train.should_stop() or step % 20 == 0:
        pathlib.Path("state.bin").write_bytes(bytes(1000))
        train.save_checkpoint("state.bin", step)
    if train.should_stop():
        raise SystemExit(143)
print("done after step", step, flush=True)
"""

COUNTING = """
import itertools, os, time
for number in itertools.count():
    if os.path.exists({stop!r}):
        break
    print("line", number, flush=True)
    time.sleep(0.1)
print("the last line", flush=True)
"""


@pytest.fixture(autouse=True)
def calm(site: LabSite) -> Iterator[None]:
    """Every walk leaves nothing that costs money, and what it cost is in the books to the micro-dollar."""
    yield
    site.cancel()
    site.lab.control.clear_faults()
    site.settle()


def test_a_job_is_written_bought_watched_taken_resumed_and_paid(
    site: LabSite, chromium: Browser, tmp_path: Path
) -> None:
    end = tmp_path / "end"
    with visiting(chromium, site.url) as visitor:
        page = visitor.sign_in(site.token)
        page.get_by_role("link", name="Submit", exact=True).click()
        write_with_an_error_and_mend_it(page, spec("walk", sys.executable, TRAINING.format(end=str(end))))
        see_the_plan_change(page)
        job_id = submit(page)
        watch_log_and_cost(page)
        take_its_machine(page, job_id)
        see_the_resume(page, job_id)
        end.touch()
        stands_at(page, "completed")
        expect(log_of(page)).to_contain_text("done after step")
        site.settle()
        the_costs_add_up(page, site, job_id)


def write_with_an_error_and_mend_it(page: Page, text: str) -> None:
    paste(page, text.replace("allow_spot", "allow_spots"))
    problem = page.get_by_role("button", name="unknown field 'allow_spots'")
    expect(problem).to_contain_text("did you mean 'allow_spot'?")
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "allow_spot" in line)
    expect(problem).to_contain_text(f"{line}:5")
    expect(page.locator(".cm-lintRange-error")).to_have_text("allow_spots")
    expect(page.locator(".cm-lint-marker-error")).to_be_visible()
    expect(page.get_by_role("button", name="Submit job")).to_be_disabled()
    problem.click()
    retype(page, "allow_spot: true")
    expect(problem).to_have_count(0)
    expect(page.get_by_role("button", name="Submit job")).to_be_enabled()


def see_the_plan_change(page: Page) -> None:
    """On demand it costs more, eight GPUs are another machine, and back again."""
    choice = page.get_by_role("region", name="What would be bought")
    per_hour, saving = figure(choice, "Per hour"), figure(choice, "Saving")
    expect(choice).to_contain_text("1 T4 · spot")
    expect(saving).to_contain_text(re.compile(r"[1-9]\d%"))
    spot = dollars(per_hour.inner_text())
    retype(page, "allow_spot: false")
    expect(choice).to_contain_text("1 T4 · on-demand")
    assert dollars(per_hour.inner_text()) > spot
    retype(page, "allow_spot: true")
    expect(choice).to_contain_text("1 T4 · spot")
    editor(page).get_by_text("gpus: 1").click()
    retype(page, "gpus: 8")
    expect(choice).to_contain_text("8 T4 · spot")
    assert dollars(per_hour.inner_text()) > spot
    ways = page.get_by_role("region", name="Where it could run").get_by_role("row", selected=True)
    expect(ways).to_contain_text("g4dn.metal")


def dollars(text: str) -> Decimal:
    found = re.search(r"\$([\d.]+)", text)
    assert found is not None, text
    return Decimal(found[1])


def watch_log_and_cost(page: Page) -> None:
    """Both grow before one's eyes."""
    stands_at(page, "running")
    expect(page.locator("[data-connection=live]")).to_be_visible()
    expect(log_of(page)).to_contain_text("step 3")
    lines = log_of(page).get_attribute("data-lines") or ""
    cost = page.locator('[data-figure="cost.so_far_usd"]')
    expect(cost).not_to_have_text("$0.00")
    before = cost.inner_text()
    expect(cost).not_to_have_text(before)
    expect(log_of(page)).not_to_have_attribute("data-lines", lines)
    assert dollars(cost.inner_text()) > dollars(before)


def take_its_machine(page: Page, job_id: str) -> None:
    page.get_by_role("link", name="Lab", exact=True).click()
    machines = page.get_by_role("region", name="Machines of the Lab")
    mine = machines.get_by_role("row", name=job_id[:13])
    expect(mine).to_contain_text("spot")
    name = mine.get_by_role("cell").first.inner_text()
    page.get_by_role("switch", name="ended ones, too").check()
    machine = machines.get_by_role("row", name=name)
    machine.get_by_role("button", name="Preempt").click()
    dialog = page.get_by_role("dialog", name=f"Take {name}")
    dialog.get_by_role("textbox", name="Notice").fill("300")
    expect(dialog).to_contain_text(f"crucible lab preempt {name} --notice 300s")
    dialog.get_by_role("button", name="Preempt", exact=True).click()
    expect(dialog).to_have_count(0)
    expect(machine).to_contain_text(re.compile("taken in|shutting-down|terminated"))
    machine.get_by_role("link", name=job_id[:13]).click()


def see_the_resume(page: Page, job_id: str) -> None:
    log = log_of(page)
    expect(log).to_contain_text(re.compile(r"begins after step [1-9]"))
    lines = copied_log(page)
    (resumed,) = [int(line.split()[-1]) for line in lines if re.fullmatch(r"begins after step [1-9]\d*", line)]
    stands_at(page, "running")
    timeline = tab(page, "Timeline")
    picture = timeline.get_by_role("img", name="attempts over time")
    expect(picture).to_contain_text(f"goes on from step {resumed}")
    timeline.get_by_role("button", name="show as a table").click()
    first, second = timeline.get_by_role("row").all()[1:]
    expect(first).to_contain_text("lost")
    expect(second).to_contain_text(f"step {resumed}")
    attempts = tab(page, "Attempts")
    expect(attempts.get_by_role("button", name="Attempt 1")).to_contain_text(f"from step {resumed}")
    tab(page, "Log")


def the_costs_add_up(page: Page, site: LabSite, job_id: str) -> None:
    """What the page shows of the ledger, the ledger, the Lab's own bill and the command line."""
    expect(figure(page, "Per hour now")).to_contain_text("$0.00/h")
    costs = tab(page, "Cost")
    costs.get_by_text(re.compile(r"ledger \(\d+\)")).click()
    ledger = costs.get_by_role("row").filter(has_text="provider:")
    posted = -sum(micro(row.get_by_role("cell").last.inner_text()) for row in ledger.all())
    assert posted == site.client.costs(job_id)["posted_microusd"]
    page.get_by_role("link", name="Costs", exact=True).click()
    page.get_by_role("combobox", name="Period (UTC)").click()
    page.get_by_role("option", name="30d", exact=True).click()
    page.get_by_role("combobox", name="By", exact=True).click()
    page.get_by_role("option", name="job", exact=True).click()
    table = page.get_by_role("region", name="costs by job")
    row, total = table.get_by_role("row", name="walk"), table.get_by_role("row", name="total")
    expect(row).to_have_count(1)
    assert told(row, "rows.0.cost_usd") * 1_000_000 == posted
    spent = int(told(total, "total.cost_usd") * 1_000_000)
    assert spent == site.posted() == site.invoiced()
    said = site.person.json("costs", "--by", "job", "--for", "30d")
    assert said["total"]["cost_microusd"] == spent  # type: ignore[index]
    expect(figure(page, "Spent")).to_contain_text(f"${spent / 1e6:.{4 if spent >= 10_000 else 6}f}")


# --- two tabs, a restart, a token that is revoked -------------------------------------------------------------------


def test_what_is_done_in_one_tab_the_other_sees(site: LabSite, chromium: Browser) -> None:
    job_id = waiting_job(site, "two-tabs")
    with visiting(chromium, site.url) as visitor:
        first = visitor.sign_in(site.token)
        other = visitor.tab()
        second = other.go("jobs")
        row = second.get_by_role("row", name="two-tabs")
        expect(row).to_be_visible()
        visitor.go(f"jobs/{job_id}")
        expect(first.get_by_text("It has written nothing yet.")).to_be_visible()
        first.get_by_role("button", name="Cancel", exact=True).click()
        dialog = first.get_by_role("dialog", name="Cancel two-tabs?")
        expect(dialog).to_contain_text(f"crucible cancel {job_id}")
        dialog.get_by_role("button", name="Cancel", exact=True).click()
        stands_at(first, "cancelled")
        expect(row).to_contain_text("cancelled")
        second.get_by_role("button", name="account").click()
        second.get_by_role("menuitem", name="Sign out").click()
        expect(first.get_by_label("Token", exact=True)).to_be_visible()
        assert "signed out" not in first.locator("main").inner_text()
        assert other.complaints == []


def test_a_watch_goes_on_where_it_was_when_the_server_comes_back(
    site: LabSite, chromium: Browser, tmp_path: Path
) -> None:
    stop = tmp_path / "stop"
    job_id = site.submit("counting", spec("counting", sys.executable, COUNTING.format(stop=str(stop))))
    with visiting(chromium, site.url, site.token) as visitor:
        page = visitor.go(f"jobs/{job_id}")
        expect(log_of(page)).to_contain_text("line 20\n")
        site.server.kill()
        expect(page.locator("[data-connection=reconnecting]")).to_be_visible()
        expect(page.get_by_text("stale: as of").first).to_be_visible()
        expect(page.get_by_role("banner").get_by_text("reconnecting…")).to_be_visible()
        site.server.start().wait_ready()
        expect(page.locator("[data-connection=live]")).to_be_visible()
        expect(page.get_by_text("stale: as of")).to_have_count(0)
        expect(page.get_by_role("banner").get_by_text("reconnecting…")).to_have_count(0)
        stop.touch()
        stands_at(page, "completed")
        expect(log_of(page)).to_contain_text("the last line")
        *lines, last = copied_log(page)
        assert (lines, last) == ([f"line {number}" for number in range(len(lines))], "the last line")
        assert len(lines) > 20


def test_a_token_that_is_revoked_signs_every_tab_out_and_each_says_why(site: LabSite, chromium: Browser) -> None:
    made = site.client.create_token("for a while")
    job_id = waiting_job(site, "waiting")
    with visiting(chromium, site.url) as visitor:
        visitor.page.clock.install()
        page = visitor.sign_in(made["token"])
        visitor.go(f"jobs/{job_id}")
        expect(page.locator("[data-connection=live]")).to_be_visible()
        other = visitor.tab()
        other.go("costs")
        site.client.revoke_token(made["id"])
        for one in (page, other.page):
            expect(one.get_by_role("status").filter(has_text="expired or was revoked")).to_be_visible()
            expect(one.get_by_role("button", name=f"Sign in with {COMPANY}")).to_be_visible()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("websocket", lambda socket: asked.append(socket.url))
        page.clock.run_for(300_000)
        assert asked == [], "nobody is signed in, and the page still asks"
        visitor.sign_in(site.token)
        assert other.complaints == []


# --- ways in --------------------------------------------------------------------------------------------------------


def test_one_signs_in_where_their_company_does_and_comes_to_where_they_wanted(
    site: LabSite, company: OidcEngine, chromium: Browser
) -> None:
    with visiting(chromium, site.url, others=[company.issuer]) as visitor:
        page = visitor.go("costs?by=user")
        sign_in_elsewhere(page, "ada")
        page.wait_for_url(f"{site.url}/ui/costs?by=user")
        page.get_by_role("button", name="account").click()
        expect(page.get_by_role("menu")).to_contain_text("ada@example.org · member")


def test_who_is_not_let_in_reads_why(site: LabSite, company: OidcEngine, chromium: Browser) -> None:
    with visiting(chromium, site.url, others=[company.issuer]) as visitor:
        page = visitor.go()
        sign_in_elsewhere(page, "bob")
        expect(page.get_by_role("alert")).to_contain_text("not let in here: ask an admin")
        expect(page.get_by_role("alert")).to_contain_text("forbidden")
        assert "error" not in page.url, "what the address carried is taken out of it"


def sign_in_elsewhere(page: Page, person: str) -> None:
    page.get_by_role("button", name=f"Sign in with {COMPANY}").click()
    page.locator("input[name=login]").fill(person)
    page.locator("input[name=password]").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()


def test_the_command_opens_the_page_signed_in(site: LabSite, chromium: Browser, tmp_path: Path) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    ran = site.person.run("dashboard", BROWSER=str(browser))
    assert (ran.returncode, ran.stdout) == (0, f"{site.url}/ui/\n"), ran.stderr
    with visiting(chromium, site.url) as visitor:
        visitor.page.goto(opened.read_text().strip())
        visitor.page.wait_for_url(f"{site.url}/ui/")
        visitor.page.get_by_role("button", name="account").click()
        expect(visitor.page.get_by_role("menu")).to_contain_text("admin · admin")


def test_where_no_browser_is_wanted_the_address_leads_to_the_page(site: LabSite, chromium: Browser) -> None:
    ran = site.person.run("dashboard", "--no-browser")
    assert ran.returncode == 0, ran.stderr
    with visiting(chromium, site.url) as visitor:
        visitor.page.goto(ran.stdout.strip())
        expect(visitor.page.get_by_label("Token", exact=True)).to_be_visible()


# --- behind a prefix ------------------------------------------------------------------------------------------------


def test_everything_works_behind_a_prefix(site: LabSite, chromium: Browser) -> None:
    with prefix_proxy(site.url, "/tools/crucible") as proxy, visiting(chromium, proxy.url) as visitor:
        short_walk(visitor, site, "prefixed")
        assert proxy.strays == []


def waiting_job(site: LabSite, name: str) -> str:
    """For which nothing is bought."""
    site.lab.control.fail("no-capacity", operation="RunInstances")
    return site.submit(name, spec(name, "sleep", "60"))
