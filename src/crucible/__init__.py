"""Crucible: one place to run GPU work anywhere.

The names below are imported on first use: `crucible.train` runs on nodes that have nothing but this package and Python
3.8, and a command must not pay for what it does not use. For type checkers they are in `__init__.pyi`.
"""

__version__ = "0.1.0"

_HOMES = {
    "AsyncClient": "crucible.client.async_client",
    "Client": "crucible.client.api",
    "Job": "crucible.client.handle",
    "MLPlatform": "crucible.client.platform",
    "PlatformError": "crucible.model.errors",
    "Requirements": "crucible.client.requirements",
    "Result": "crucible.client.handle",
    "Status": "crucible.client.status",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'crucible' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> "list[str]":
    return sorted({*globals(), *_HOMES})
