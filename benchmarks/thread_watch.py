"""What a page does on its browser's main thread, task by task, as the browser itself records it: how long each took,
and how much of that the thread really worked. On a computer that others keep busy only the second is about us."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page

MAIN = "CrRendererMain"
TASK = "RunTask"
# Tasks, and the names of threads.
CATEGORIES = ("disabled-by-default-devtools.timeline", "__metadata")
GIVEN_WITHIN_MS = 60_000
LOOK_MS = 50


@dataclass
class Tasks:
    """Milliseconds of each task of the main thread, the longest first."""

    wall_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)

    def longer_than(self, ms: float) -> list[float]:
        return [one for one in self.cpu_ms if one > ms]


@contextmanager
def watching(page: Page) -> Iterator[Tasks]:
    """They are known when it is over."""
    tasks, events, ends = Tasks(), list[dict[str, Any]](), list[object]()
    session = page.context.new_cdp_session(page)
    session.on("Tracing.dataCollected", lambda told: events.extend(told["value"]))
    session.on("Tracing.tracingComplete", lambda told: ends.append(told))
    config = {"includedCategories": list(CATEGORIES)}
    session.send("Tracing.start", {"traceConfig": config, "transferMode": "ReportEvents"})
    try:
        yield tasks
    finally:
        session.send("Tracing.end")
        _await(page, ends)
        session.detach()
    ours = _main_thread(events)
    tasks.wall_ms = sorted((event["dur"] / 1000 for event in ours), reverse=True)
    tasks.cpu_ms = sorted((event.get("tdur", 0) / 1000 for event in ours), reverse=True)
    assert tasks.wall_ms, "the browser recorded nothing"


def _await(page: Page, ends: list[object]) -> None:
    for _ in range(GIVEN_WITHIN_MS // LOOK_MS):
        if ends:
            return
        page.wait_for_timeout(LOOK_MS)
    raise TimeoutError("the browser does not hand over what it recorded")


def _main_thread(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    threads = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == MAIN
    }
    return [
        event
        for event in events
        if event["ph"] == "X" and event["name"] == TASK and (event["pid"], event["tid"]) in threads
    ]
