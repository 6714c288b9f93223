"""`python -m crucible.train.run`: trains the model plugin that the environment names (JOB_ID, MODEL_PLUGIN, CONFIG,
DATASET). Decides nothing about the training itself."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict, Mapping, Tuple

from . import plugins
from .callback import callbacks

# A wrong environment is a usage error, as opposed to a training that failed.
USAGE = 2


class BadEnvironment(ValueError):
    """A variable of the contract is missing or malformed."""


def main(env: Mapping[str, str]) -> int:
    try:
        name = _required(env, "MODEL_PLUGIN")
        config = _config(env.get("CONFIG", ""))
        model = plugins.get(name)(config)
    except (BadEnvironment, plugins.UnknownPlugin) as error:
        print("crucible.train.run: {}".format(error), file=sys.stderr)
        return USAGE
    train_loader, val_loader = _loaders(model, env.get("DATASET"), config)
    print("Starting training job {} with {}".format(env.get("JOB_ID", "(none)"), name), flush=True)
    model.train(train_loader, val_loader, callbacks())
    print("Training completed", flush=True)
    return 0


def _required(env: Mapping[str, str], name: str) -> str:
    value = env.get(name, "").strip()
    if not value:
        raise BadEnvironment("{} is not set; it names the model plugin, as module:Class".format(name))
    return value


def _config(text: str) -> Dict[str, Any]:
    try:
        config = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise BadEnvironment("CONFIG is not JSON: {}".format(error)) from error
    if not isinstance(config, dict):
        raise BadEnvironment("CONFIG must be a JSON object, it is {}".format(type(config).__name__))
    return config


def _loaders(model: Any, dataset: Any, config: Dict[str, Any]) -> Tuple[Any, Any]:
    make = getattr(model, "loaders", None)
    if make is None:
        return None, None
    train_loader, val_loader = make(dataset, config)
    return train_loader, val_loader


if __name__ == "__main__":
    sys.exit(main(os.environ))
