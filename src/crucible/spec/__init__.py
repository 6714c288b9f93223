"""The job spec: YAML that people write to `JobSpec`, with every problem at its line. Works offline, in the thin client
and in the server; knows nothing of prices, machines or jobs. Imports on first use, since most commands read no spec."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crucible.spec.examples import example, minimal_example
    from crucible.spec.inherit import step_text
    from crucible.spec.mode import select_mode
    from crucible.spec.problems import Problem, format_problems
    from crucible.spec.reader import Loaded, load
    from crucible.spec.reference import reference
    from crucible.spec.schema import schema

__all__ = [
    "Loaded",
    "Problem",
    "example",
    "format_problems",
    "load",
    "minimal_example",
    "reference",
    "schema",
    "select_mode",
    "step_text",
]

_HOMES = {
    "Loaded": "reader",
    "Problem": "problems",
    "example": "examples",
    "format_problems": "problems",
    "load": "reader",
    "minimal_example": "examples",
    "reference": "reference",
    "schema": "schema",
    "select_mode": "mode",
    "step_text": "inherit",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'crucible.spec' has no attribute {name!r}")
    value = getattr(import_module(f"crucible.spec.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
