"""The page in a real browser, before a server with ten thousand jobs and a million lines in a log: what the first load
carries and how soon it can be used, and the longest time for which the browser's main thread is busy while one works.
The bounds are on the clock, so it wants a computer that does nothing else; `cpu_ms` is what the thread did work."""

import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, sync_playwright

from benchmarks import crowded, server, timing
from benchmarks.figure import Figure
from benchmarks.thread_watch import watching
from benchmarks.wire_watch import Fetched
from crucible.testing import long_log, years

CHROMIUM = "/usr/bin/chromium"
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
LONG_MS = 200.0
FIRST_LOAD_KB, INTERACTIVE_S = 250.0, 2.0
LIST_MB, LOG_MB = 40.0, 200.0
LOADS = 5
WITHIN_MS = 300_000.0
# When the first figure of the overview stands there.
THERE = """
new MutationObserver((_, observer) => {
  const figure = document.querySelector('h1') && document.querySelector('[aria-label="Spend now"]');
  if (!figure?.textContent.includes('$')) return;
  window.thereAt = performance.now();
  observer.disconnect();
}).observe(document, { subtree: true, childList: true, characterData: true });
"""


def measure() -> Iterator[Figure]:
    with _site() as (one, crowd), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield from _first_loads(browser, one)
        with _page(browser, one) as page:
            yield from _jobs(page, one)
        with _page(browser, one) as page:
            yield from _log(page, one, crowd)
        browser.close()


@contextlib.contextmanager
def _site() -> Iterator[tuple[server.Server, crowded.Crowd]]:
    with tempfile.TemporaryDirectory(prefix="crucible-bench-") as folder:
        crowd = crowded.fill(Path(folder))
        with contextlib.closing(server.launch(Path(folder))) as one:
            timing.until(one.is_ready, "the server")
            yield one, crowd


def _first_loads(browser: Browser, one: server.Server) -> Iterator[Figure]:
    began, times, carried = time.perf_counter(), [], 0
    for _ in range(LOADS):
        with _page(browser, one) as page:
            fetched = Fetched(page)
            page.add_init_script(THERE)
            page.goto(_url(one))
            page.get_by_label("Spend now").filter(has_text="$").wait_for()
            times.append(float(page.evaluate("window.thereAt")) / 1000)
            page.get_by_role("figure").first.wait_for()  # what it draws last
            carried = max(carried, fetched.bytes)
    spent = {"cpu_s": 0.0, "wall_s": time.perf_counter() - began}
    yield Figure(name="page, first load over the wire", value=carried / 1000, unit="kB", bound=FIRST_LOAD_KB, **spent)
    yield Figure(
        name="page, from nothing to its first figures",
        value=statistics.median(times),
        unit="s",
        bound=INTERACTIVE_S,
        context={"loads": LOADS, "longest": max(times)},
        **spent,
    )


def _jobs(page: Page, one: server.Server) -> Iterator[Figure]:
    page.goto(_url(one, "jobs"))
    box = page.get_by_role("region", name="jobs")
    box.wait_for()

    def listed() -> None:
        page.get_by_label("find a job").fill(years.job_id(42))
        page.get_by_text("1 match among 10,000 jobs").wait_for(timeout=WITHIN_MS)
        page.get_by_label("find a job").fill("")
        page.get_by_text("10,000 jobs", exact=True).wait_for()

    yield _longest(page, "ten thousand jobs are listed", listed)
    yield _longest(page, "one scrolls through ten thousand jobs", lambda: _scroll(page, box))
    yield _memory(page, "ten thousand jobs", LIST_MB)


def _log(page: Page, one: server.Server, crowd: crowded.Crowd) -> Iterator[Figure]:
    page.goto(_url(one, f"jobs/{crowd.talkative}"))
    box = page.get_by_role("region", name="log", exact=True)
    last = box.get_by_text(f"line {crowd.lines - 1}:")
    last.wait_for()
    current = box.locator("[data-current]")

    def fetched() -> None:
        page.get_by_role("button", name="First error").click()
        current.get_by_text(long_log.TRACE).wait_for(timeout=WITHIN_MS)
        page.get_by_text("1 of 2", exact=True).wait_for(timeout=WITHIN_MS)

    def searched() -> None:
        page.get_by_label("find in the log").fill(f"step {crowd.lines // 4} ")
        current.get_by_text(f"step {crowd.lines // 4}").wait_for(timeout=WITHIN_MS)
        page.get_by_role("button", name="find nothing").click()

    def wrapped() -> None:
        page.get_by_role("button", name="Wrap").click()
        page.locator(f'[data-rows]:not([data-rows="{crowd.lines}"])').wait_for(timeout=WITHIN_MS)
        last.wait_for(timeout=WITHIN_MS)
        _scroll(page, box)

    def scrolled() -> None:
        _scroll(page, box)
        last.wait_for(timeout=WITHIN_MS)

    for words, work in (
        ("a million lines are fetched", fetched),
        ("a million lines are searched", searched),
        ("one scrolls through a million lines", scrolled),
        ("a million lines are wrapped", wrapped),
    ):
        yield _longest(page, words, work)
    yield _memory(page, "a million lines", LOG_MB)


# --- how it is measured -----------------------------------------------------------------------------------------------


def _longest(page: Page, words: str, work: Callable[[], None]) -> Figure:
    """Of the tasks of the main thread."""
    began = time.perf_counter()
    with watching(page) as tasks:
        work()
    return Figure(
        name=f"page, longest task while {words}",
        value=tasks.wall_ms[0],
        unit="ms",
        bound=LONG_MS,
        cpu_s=sum(tasks.cpu_ms) / 1000,
        wall_s=time.perf_counter() - began,
        context={"cpu_ms": tasks.cpu_ms[0], "tasks": len(tasks.wall_ms)},
    )


def _memory(page: Page, what: str, bound: float) -> Figure:
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    return Figure(
        name=f"page, memory with {what}",
        value=metrics["JSHeapUsedSize"] / 1e6,
        unit="MB",
        bound=bound,
        cpu_s=0.0,
        wall_s=0.0,
        context={"elements": page.locator("*").count()},
    )


def _scroll(page: Page, box: Locator) -> None:
    for share in (0.5, 0.1, 0.9, 0.33, 0.66, 0.0, 1.0):
        box.evaluate("(box, share) => { box.scrollTop = share * box.scrollHeight; }", share)
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


@contextlib.contextmanager
def _page(browser: Browser, one: server.Server) -> Iterator[Page]:
    """In a browser that has seen nothing yet, signed in."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.add_init_script(f"localStorage.setItem('crucible.token', {one.token!r})")
    try:
        yield context.new_page()
    finally:
        context.close()


def _url(one: server.Server, path: str = "") -> str:
    host, port = one.address
    return f"http://{host}:{port}/ui/{path}"
