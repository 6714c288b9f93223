"""What `import crucible` brings, and what it costs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import crucible

STUB = Path(crucible.__file__).with_suffix(".pyi")
FORBIDDEN = ("crucible.engine", "crucible.core", "crucible.wire", "crucible.store", "crucible.api", "crucible.main",
             "pydantic", "fastapi", "sqlalchemy", "numpy")  # fmt: skip


def loaded_by(statement: str) -> set[str]:
    """The modules that a fresh interpreter has after it, beyond those it starts with."""
    program = f"import sys; before = set(sys.modules); {statement}; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


def test_importing_crucible_imports_nothing_else() -> None:
    assert loaded_by("import crucible") == {"crucible"}
    assert not any("client" in name for name in loaded_by("from crucible import train"))


def test_the_platform_brings_nothing_of_the_server() -> None:
    loaded = loaded_by("from crucible import MLPlatform, AsyncClient")
    assert [name for name in loaded if name.startswith(FORBIDDEN)] == []


@pytest.mark.parametrize("name", crucible.__all__)
def test_every_name_is_there_and_is_listed(name: str) -> None:
    assert getattr(crucible, name).__name__ == name
    assert name in dir(crucible)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'MLPlatfrom'"):
        crucible.MLPlatfrom  # type: ignore[attr-defined]  # noqa: B018


def test_type_checkers_see_the_same_names_from_the_same_places() -> None:
    stub = {
        alias.name: node.module
        for node in ast.walk(ast.parse(STUB.read_text()))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert stub == crucible._HOMES  # type: ignore[attr-defined]
