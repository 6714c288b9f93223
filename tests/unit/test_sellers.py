"""Providers by name: ours, those of other packages, and names that nobody knows. A copy of the template is one more."""

import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from crucible.model.errors import InvalidRequest
from crucible.ports.provider import Surroundings
from crucible.sellers import GROUP, OURS, load, open_providers

TEMPLATE = Path(__file__).parents[2] / "templates" / "provider"


def surroundings(folder: Path, **environ: str) -> Surroundings:
    return Surroundings(
        deployment="d",
        url="http://127.0.0.1:1",
        data_dir=folder,
        agent=folder / "agent.pyz",
        server_file=folder / "server.json",
        now=lambda: datetime.now(UTC),
        environ=environ,
    )


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The template, copied and renamed as its page says, and installed."""
    for path in (TEMPLATE / "crucible_tiny").glob("*.py"):
        target = tmp_path / "crucible_acme" / path.name
        target.parent.mkdir(exist_ok=True)
        target.write_text(renamed(path))
    (tmp_path / "pyproject.toml").write_text(renamed(TEMPLATE / "pyproject.toml"))
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]
    points = project["entry-points"][GROUP].items()
    installed = tmp_path / "crucible_acme-0.1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0.1.0\n")
    (installed / "entry_points.txt").write_text(
        "\n".join([f"[{GROUP}]", *(f"{name} = {place}" for name, place in points)])
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("crucible_acme")]:
        del sys.modules[name]


def renamed(path: Path) -> str:
    text = path.read_text()
    return text.replace("tiny", "acme").replace("Tiny", "Acme").replace("TINY", "ACME")


def test_a_copy_of_the_template_is_a_provider(acme: Path) -> None:
    here = surroundings(acme, CRUCIBLE_ACME_URL="http://127.0.0.1:9", CRUCIBLE_ACME_KEY="key")
    opened = open_providers(["local", "acme", "local"], here)
    assert [(name, [seller.name for seller in one.sellers]) for name, one in opened.items()] == [
        ("local", ["local"]),
        ("acme", ["acme"]),
    ]


def test_settings_that_a_provider_cannot_use_are_the_operators_to_mend(acme: Path) -> None:
    with pytest.raises(InvalidRequest, match="set CRUCIBLE_ACME_URL"):
        open_providers(["acme"], surroundings(acme))


def test_a_name_that_nobody_knows_lists_the_ones_that_are_known(acme: Path) -> None:
    with pytest.raises(InvalidRequest, match="no provider 'amazon': choose from acme, aws, local"):
        load("amazon")


def test_nothing_of_a_provider_is_imported_before_it_is_enabled(acme: Path) -> None:
    open_providers(["local"], surroundings(acme))
    assert not [name for name in sys.modules if name.startswith("crucible_acme")]


@pytest.mark.parametrize("name", sorted(OURS))
def test_ours_are_where_the_table_says(name: str) -> None:
    assert callable(load(name))
