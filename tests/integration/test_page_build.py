"""The page as it is built and packed: what the first look at it costs, and that a wheel brings it along."""

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "src" / "crucible" / "web"
# Of what a browser fetches before the overview is there, packed.
FIRST_LOAD_BYTES = 250_000
ENTRY, OVERVIEW = "index.html", "src/pages/overview/OverviewPage.tsx"


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """From the sources of now."""
    subprocess.run([sys.executable, ROOT / "web" / "build.py"], check=True)


def needed(manifest: dict[str, Any], *names: str) -> set[str]:
    """Files of these chunks and of all that they import at once."""
    files: set[str] = set()
    waiting, seen = list(names), set[str]()
    while waiting:
        chunk = manifest[name := waiting.pop()]
        seen.add(name)
        files |= {chunk["file"], *chunk.get("css", ())}
        waiting += set(chunk.get("imports", ())) - seen
    return files


def test_the_first_load_stays_within_its_bound() -> None:
    manifest = json.loads((BUILT / ".vite" / "manifest.json").read_text())
    files = {*needed(manifest, ENTRY, OVERVIEW), "theme.js", "icon.svg"}
    sizes = {name: (BUILT / f"{name}.gz").stat().st_size for name in files}
    assert sum(sizes.values()) <= FIRST_LOAD_BYTES, sorted(sizes.items(), key=lambda each: -each[1])


def test_nothing_is_sent_unpacked_but_what_is_written_anew() -> None:
    served = {path.relative_to(BUILT).as_posix() for path in files_below(BUILT) if path.suffix != ".gz"}
    assert served == {"index.html", ".sources", ".vite/manifest.json"}


def test_a_build_of_the_same_sources_does_nothing() -> None:
    index = BUILT / "index.html"
    before = index.stat().st_mtime_ns
    subprocess.run([sys.executable, ROOT / "web" / "build.py"], check=True)
    assert index.stat().st_mtime_ns == before


def test_a_wheel_brings_the_page(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(argv, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    within = set(zipfile.ZipFile(wheel).namelist())
    assert {f"crucible/web/{path.relative_to(BUILT).as_posix()}" for path in files_below(BUILT)} <= within


def files_below(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())
