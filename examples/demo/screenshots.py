"""Pictures of every page, for `make screenshots`: light and dark, on a desk and on a phone, of a demo that is started
for it or runs already."""

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from itertools import product
from pathlib import Path
from typing import Any

import click
from examples.demo.pages import pages
from examples.demo.story import FILE, FOLDER
from playwright.sync_api import Browser, Page, sync_playwright

SIZES = {"1440": (1440, 900), "360": (360, 740)}
THEMES = ("light", "dark")
CHROMIUM = "/usr/bin/chromium"
# Root has no sandbox, and a browser that phones home finds nobody.
FLAGS = ("--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking")
# Where the page keeps its token: web/src/session/token.ts.
KEY = "crucible.token"
READY_WITHIN_S = 300.0
SHOWN_WITHIN_MS = 30_000.0
# Of a long page, on a computer that does other things as well.
TAKEN_WITHIN_MS = 180_000.0
# Charts are drawn when what they show has come.
DRAWN_MS = 400.0
SETTLED = "() => document.querySelector('h1') !== null && document.querySelector('[aria-busy=true]') === null"


# What the documentation shows, as much of it as fits on a screen.
PICTURES: dict[tuple[str, str], tuple[str, ...]] = {
    ("1440", "light"): ("overview", "job-timeline", "submit-job", "costs"),
    ("1440", "dark"): ("job-metrics", "sweeps-search"),
    ("360", "light"): (),
    ("360", "dark"): ("job-log",),
}
PACKED = """async png => {
    const [image, canvas] = [new Image(), document.createElement("canvas")];
    image.src = `data:image/png;base64,${png}`;
    await image.decode();
    [canvas.width, canvas.height] = [image.width, image.height];
    canvas.getContext("2d").drawImage(image, 0, 0);
    return canvas.toDataURL("image/webp", 0.86).split(",")[1];
}"""


@click.command()
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path("build/screenshots"))
@click.option("--only", default="*", help="Pages whose names are so: job-*, costs.")
@click.option("--size", type=click.Choice(list(SIZES)), multiple=True, default=list(SIZES), show_default=True)
@click.option("--theme", type=click.Choice(THEMES), multiple=True, default=THEMES, show_default=True)
@click.option(
    "--pictures",
    type=click.Path(path_type=Path, file_okay=False),
    help="Instead, the few that the documentation shows, as WebP: docs/pictures.",
)
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False), default=FOLDER, show_default=True)
def main(
    out: Path, only: str, size: tuple[str, ...], theme: tuple[str, ...], pictures: Path | None, folder: Path
) -> None:
    """Look at every page of a demo."""
    (pictures or out).mkdir(parents=True, exist_ok=True)
    with a_demo(folder.absolute()) as told, sync_playwright() as playwright:
        token = (folder.absolute() / "home" / "admin-token").read_text().strip()
        wanted = {name: path for name, path in pages(told["jobs"]).items() if fnmatch(name, only)}
        path = CHROMIUM if Path(CHROMIUM).exists() else None
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        for scheme, width in product(theme, size):
            shown = {name: wanted[name] for name in PICTURES[width, scheme]} if pictures else wanted
            print(f"{scheme}, {width} px: {len(shown)} pages", flush=True)
            for name, page in looked_at(browser, told["url"], token, shown, width, scheme):
                if pictures is None:
                    page.screenshot(path=out / f"{name}-{width}-{scheme}.png", full_page=True, timeout=TAKEN_WITHIN_MS)
                elif name in shown:
                    (pictures / f"{name}.webp").write_bytes(as_webp(browser, page.screenshot()))
        browser.close()
    print(f"they are in {pictures or out}")


def as_webp(browser: Browser, png: bytes) -> bytes:
    """A third as large, by the browser itself."""
    with browser.new_page() as page:
        return base64.b64decode(page.evaluate(PACKED, base64.b64encode(png).decode()))


def looked_at(
    browser: Browser, url: str, token: str, wanted: dict[str, str], size: str, theme: str
) -> Iterator[tuple[str, Page]]:
    """Every page that is wanted; without a token the way in, too."""
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="Europe/Zurich",
    )
    context.set_default_timeout(SHOWN_WITHIN_MS)
    page = context.new_page()
    page.goto(f"{url}/ui/")
    page.wait_for_function(SETTLED)
    yield "sign-in", page
    page.evaluate("([key, token]) => localStorage.setItem(key, token)", [KEY, token])
    for name, path in wanted.items():
        page.goto(f"{url}/ui/{path}")
        page.wait_for_function(SETTLED)
        page.wait_for_timeout(DRAWN_MS)
        yield name, page
    context.close()


@contextmanager
def a_demo(folder: Path) -> Iterator[dict[str, Any]]:
    """One that runs there, or a new one, which is gone afterwards."""
    written = folder / FILE
    if written.exists():
        yield json.loads(written.read_text())
        return
    argv = [sys.executable, "-m", "examples.demo.story", "--no-open", "--folder", str(folder)]
    demo = subprocess.Popen(argv, env={**os.environ, "PYTHONUNBUFFERED": "1"}, start_new_session=True)
    try:
        deadline = time.monotonic() + READY_WITHIN_S
        while not written.exists():
            if demo.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("the demo did not get ready: see above")
            time.sleep(0.2)
        yield json.loads(written.read_text())
    finally:
        demo.terminate()
        demo.wait()


if __name__ == "__main__":
    main()
