"""Well-known models, found by whatever people call them: `llama2-7b`, `Llama-2-7b`, `meta-llama/Llama-2-7b-hf`."""

import re
from collections.abc import Iterable, Iterator, Mapping

from crucible.model.catalog import Architecture

# Parts of a name that do not change the size: how it was tuned, stored or numbered.
_DRESS = frozenset(
    {"hf", "chat", "instruct", "it", "uncased", "cased", "meta", "pytorch", "torch", "v0", "v1", "v2", "fp16", "bf16"}
)
_VERSION = re.compile(r"v?[0-9]+\.[0-9]+")
_LONGEST_NAME = 200


class Architectures(Mapping[str, Architecture]):
    """By name; `find` also takes aliases and other spellings."""

    def __init__(self, known: Iterable[Architecture] = ()) -> None:
        self._by_name = {architecture.name: architecture for architecture in known}
        self._by_spelling: dict[str, Architecture] = {}
        for architecture in self._by_name.values():
            for name in (architecture.name, *architecture.aliases):
                self._by_spelling.setdefault(_compact(name), architecture)

    def __getitem__(self, name: str) -> Architecture:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def find(self, name: str) -> Architecture | None:
        """None if nothing sure is known under that name."""
        if len(name) > _LONGEST_NAME:
            return None
        last = name.rpartition("/")[2]
        keys = (_compact(name), _compact(last), _undressed(last))
        return next((self._by_spelling[key] for key in keys if key in self._by_spelling), None)


def _compact(name: str) -> str:
    """Without what people write or leave out as they like. The dot stays: opt-1.3b is not opt-13b."""
    return re.sub(r"[^a-z0-9.]", "", name.lower())


def _undressed(name: str) -> str:
    parts = re.split(r"[-_ /]", name.lower())
    kept = [part for part in parts if part not in _DRESS and not (part[:1] == "v" and _VERSION.fullmatch(part))]
    return _compact("".join(kept))
