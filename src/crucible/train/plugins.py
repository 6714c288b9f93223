"""Model plugins by name. A plugin is a class: `Model(config)`, then `train(train_loader, val_loader, callbacks)`; it
may have `loaders(dataset, config)` that returns the two loaders."""

from __future__ import annotations

import importlib
from typing import Any, Callable, Dict, TypeVar

M = TypeVar("M")

_models: Dict[str, Any] = {}


class UnknownPlugin(LookupError):
    """Says which names are known and how else to name a plugin."""


def register(name: str) -> Callable[[M], M]:
    """Class decorator. A name belongs to one class; registering the same class again is fine."""

    def remember(model: M) -> M:
        other = _models.get(name)
        if other is not None and _place(other) != _place(model):
            raise ValueError("the plugin name {!r} is taken by {}".format(name, _place(other)))
        _models[name] = model
        return model

    return remember


def get(name: str) -> Any:
    """The class called `name`: registered, or written as `module:Class`. A plain name that is not registered yet may
    also be a module that registers it on import."""
    module, _, attribute = name.partition(":")
    if attribute:
        found = getattr(_imported(module, name), attribute, None)
        return found if found is not None else _registered(attribute, name)
    if name not in _models:
        _imported(module, name)
    return _registered(name, name)


def _registered(key: str, asked: str) -> Any:
    try:
        return _models[key]
    except KeyError:
        raise _unknown(asked) from None


def _imported(module: str, asked: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A plugin that exists but misses one of its own imports must say so itself.
        if error.name is None or not (module + ".").startswith(error.name + "."):
            raise
        raise _unknown(asked) from error


def _unknown(name: str) -> UnknownPlugin:
    known = ", ".join(sorted(_models)) or "none"
    return UnknownPlugin(
        "no model plugin {!r} (registered: {}); name it as module:Class, with the module in the job's code".format(
            name, known
        )
    )


def _place(model: Any) -> str:
    return "{}.{}".format(getattr(model, "__module__", "?"), getattr(model, "__qualname__", model))
