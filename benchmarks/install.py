"""The thin client, installed as a newcomer would: how many packages, and how much disk."""

import shutil
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

from benchmarks import timing
from benchmarks.figure import Figure

ROOT = Path(__file__).parent.parent


def measure() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="crucible-bench-") as folder:
        ours, spent = _install(Path(folder))
        packages = sorted(path.name.split("-")[0] for path in ours if path.suffix == ".dist-info")
        size = sum(_size(path) for path in ours)
    yield Figure(
        name="thin client, disk",
        value=size / 1e6,
        unit="MB",
        bound=21,
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"with": "compiled files, as pip leaves them"},
    )
    yield Figure(
        name="thin client, packages",
        value=len(packages),
        unit="packages",
        bound=15,
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"packages": packages},
    )


def _install(folder: Path) -> tuple[list[Path], timing.Spent]:
    """What came to lie in site-packages. A copy of the sources is built, so that nothing is left behind among them."""
    venv.create(folder / "venv", with_pip=True)
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    before = set(site.iterdir())
    (folder / "source").mkdir()
    for name in ("src", "pyproject.toml", "README.md", "LICENSE"):
        _copy(ROOT / name, folder / "source" / name)
    python = folder / "venv" / "bin" / "python"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    spent = timing.run_child([*pip, "--constraint", str(ROOT / "constraints.txt"), str(folder / "source")])
    return sorted(set(site.iterdir()) - before), spent


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def _size(path: Path) -> int:
    if not path.is_dir():
        return path.stat().st_size
    return sum(one.stat().st_size for one in path.rglob("*") if one.is_file())
