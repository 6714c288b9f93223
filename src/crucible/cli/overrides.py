"""Options of `submit` and `plan` that change the spec. They change its text, so that what is stored is what runs:
values that are not touched keep their spelling; comments are lost, and the person is told."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import yaml

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    gpus: int | None = None
    budget: float | None = None
    deadline: str | None = None
    spot: bool | None = None
    max_price: float | None = None
    hours: float | None = None
    env: Mapping[str, str] = field(default_factory=dict)

    def values(self) -> dict[Path, int | float | str | bool]:
        """Field of the spec -> its new value."""
        wanted: dict[Path, int | float | str | bool | None] = {
            ("job", "resources", "gpus"): self.gpus,
            ("job", "constraints", "budget"): self.budget,
            ("job", "constraints", "deadline"): self.deadline,
            ("job", "constraints", "allow_spot"): self.spot,
            ("job", "constraints", "max_price_per_hour"): self.max_price,
            ("job", "resources", "estimated_hours"): self.hours,
            **{("job", "env", name): value for name, value in self.env.items()},
        }
        return {path: value for path, value in wanted.items() if value is not None}


def apply(text: str, values: Mapping[Path, int | float | str | bool]) -> str:
    """The text of a valid spec with `values` in it."""
    document = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(document, yaml.MappingNode)  # a valid spec is one
    for path, value in values.items():
        _put(document, path, _node(value))
    return str(yaml.serialize(document, Dumper=yaml.SafeDumper, allow_unicode=True))


def parse_env(words: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE words; raises ValueError with the word that is none."""
    env = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not name or not sign:
            raise ValueError(f"{word!r} is not NAME=VALUE")
        env[name] = value
    return env


def _put(mapping: yaml.MappingNode, path: Path, value: yaml.ScalarNode) -> None:
    name, *rest = path
    for i, (key, old) in enumerate(mapping.value):
        if key.value == name:
            if not rest:
                mapping.value[i] = key, value
                return
            below = old if isinstance(old, yaml.MappingNode) else _mapping()  # `env:` with nothing behind it
            mapping.value[i] = key, below
            _put(below, tuple(rest), value)
            return
    added = value if not rest else _mapping()
    mapping.value.append((_node(name), added))
    if isinstance(added, yaml.MappingNode):
        _put(added, tuple(rest), value)


def _mapping() -> yaml.MappingNode:
    return yaml.MappingNode("tag:yaml.org,2002:map", [], flow_style=False)


def _node(value: int | float | str | bool) -> yaml.ScalarNode:
    node = yaml.SafeDumper(io.StringIO()).represent_data(value)
    assert isinstance(node, yaml.ScalarNode)
    return node
