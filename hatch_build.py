"""Puts the page into what is installed: `pip install .` builds it, with no Node of the system's."""

import importlib.util
import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before files are collected, of a wheel and of an editable installation alike."""
        builder = module(Path(self.root) / "web" / "build.py")
        if not os.environ.get(builder.WITHOUT):
            builder.build()


def module(path: Path) -> Any:
    found = importlib.util.spec_from_file_location("page_build", path)
    assert found is not None
    assert found.loader is not None
    loaded = importlib.util.module_from_spec(found)
    found.loader.exec_module(loaded)
    return loaded
