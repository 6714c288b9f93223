"""Commands run in this process, against a server on loopback whose answers the test wrote."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from crucible.cli.run import run
from doubles.api_server import api
from doubles.http_server import Double


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Crucible = Callable[..., Ran]
Serve = Callable[[dict[str, Any]], Double]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("CRUCIBLE_SERVER", "CRUCIBLE_TOKEN", "XDG_CONFIG_HOME", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CRUCIBLE_HOME", str(tmp_path / "data"))


@pytest.fixture
def crucible(capsys: pytest.CaptureFixture[str]) -> Crucible:
    def call(*argv: str) -> Ran:
        capsys.readouterr()
        code = run(argv)
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return call


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(routes: dict[str, Any]) -> Double:
            server = stack.enter_context(api(routes))
            monkeypatch.setenv("CRUCIBLE_SERVER", server.url)
            monkeypatch.setenv("CRUCIBLE_TOKEN", "s3cret-token")
            return server

        yield start
