"""Debian's chromium, driven by Playwright: somebody who looks at the page. Whoever visits also hears what the browser
complains of: errors of scripts, what the page's policy forbids, and requests to any other host."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response, ViewportSize, sync_playwright

DESKTOP = ViewportSize(width=1440, height=900)
PHONE = ViewportSize(width=360, height=740)
Theme = Literal["light", "dark"]
# Root has no sandbox, and a browser that phones home finds nobody.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
LIMIT_MS = 90_000.0
ASKING = ("http:", "https:", "ws:", "wss:")
REFUSALS = ("Failed to load resource", "Error in connection establishment")
# Where the page keeps its token: web/src/session/token.ts.
KEY = "crucible.token"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """No longer than a module: meanwhile no other test of this process may run a loop of its own."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=list(FLAGS))
        yield browser
        browser.close()


@dataclass
class Visitor:
    """Somebody in front of a browser. `url` is the server's own, or a proxy's with its prefix."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)  # answers from 400 on, as "404 GET /v1/…"

    def go(self, path: str = "") -> Page:
        self.page.goto(f"{self.url}/ui/{path}")
        return self.page

    def sign_in(self, token: str) -> Page:
        """As a person does."""
        self.go()
        self.page.get_by_label("Token", exact=True).fill(token)
        self.page.get_by_role("button", name="Sign in", exact=True).click()
        self.page.get_by_role("navigation").first.wait_for()
        return self.page

    def tab(self) -> "Visitor":
        """Another one of the same browser."""
        return _listening(self.page.context.new_page(), self.url)


@contextmanager
def visiting(
    browser: Browser,
    url: str,
    token: str | None = None,
    *,
    size: ViewportSize = DESKTOP,
    theme: Theme = "light",
    is_still: bool = True,
    headers: Mapping[str, str] | None = None,
    others: Sequence[str] = (),
) -> Iterator[Visitor]:
    """With `token` the browser is signed in already. Whatever it complained of fails the test, at the end. `others` are
    addresses that it may go to besides; what is asked for there is not the page's."""
    context = browser.new_context(
        viewport=size,
        color_scheme=theme,
        reduced_motion="reduce" if is_still else "no-preference",
        timezone_id="Europe/Zurich",
        locale="en-GB",
        extra_http_headers=dict(headers or {}),
    )
    context.set_default_timeout(LIMIT_MS)
    if token is not None:
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(url))
        script = f"if (location.origin === {origin!r} && !sessionStorage.getItem('visited')) {{"
        script += f"localStorage.setItem({KEY!r}, {token!r}); sessionStorage.setItem('visited', '1'); }}"
        context.add_init_script(script)
    visitor = _listening(context.new_page(), url, others)
    try:
        yield visitor
        assert visitor.complaints == []
    finally:
        context.close()


def _listening(page: Page, url: str, others: Sequence[str] = ()) -> Visitor:
    visitor = Visitor(page, url)
    elsewhere = {urlsplit(one).netloc for one in others}
    known = {urlsplit(url).netloc, *elsewhere}

    def on_console(message: ConsoleMessage) -> None:
        # A refused request is told as an error too; whether it was meant is for the test to say.
        if message.type == "error" and not any(words in message.text for words in REFUSALS):
            visitor.complaints.append(f"{message.text} ({message.location['url']})")

    def on_request(request: Request) -> None:
        is_foreign = request.url.startswith(ASKING) and urlsplit(request.url).netloc not in known
        if is_foreign and (request.is_navigation_request() or urlsplit(request.frame.url).netloc not in elsewhere):
            visitor.complaints.append(f"asked another host: {request.url}")

    def on_response(response: Response) -> None:
        if response.status >= 400:
            visitor.refused.append(f"{response.status} {response.request.method} {urlsplit(response.url).path}")

    page.on("console", on_console)
    page.on("request", on_request)
    page.on("response", on_response)
    page.on("pageerror", lambda error: visitor.complaints.append(str(error)))
    return visitor
