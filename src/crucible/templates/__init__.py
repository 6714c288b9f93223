"""Job templates that come with Crucible: a folder each, with the template and the code that its jobs ship."""

from functools import cache
from pathlib import Path

FILE = "template.yaml"

_HERE = Path(__file__).parent


@cache
def names() -> tuple[str, ...]:
    return tuple(sorted(path.parent.name for path in _HERE.glob(f"*/{FILE}")))


def text(name: str) -> str:
    return (folder(name) / FILE).read_text(encoding="utf-8")


def folder(name: str) -> Path:
    """What stands in it is relative to here, as in a job file."""
    assert name in names()
    return _HERE / name
