"""Specs to start from."""

from importlib.resources import files


def example() -> str:
    """Every usual field, with comments."""
    return _text("example.yaml")


def minimal_example() -> str:
    """The least that is a job."""
    return _text("minimal.yaml")


def _text(name: str) -> str:
    return files("crucible.spec").joinpath(name).read_text("utf-8")
