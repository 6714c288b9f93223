"""Secrets that a job wants: by name alone, as the variable of that name; or with a variable or a file of its own."""

import re
from dataclasses import dataclass
from typing import Any

from crucible.model.secret import SECRET_NAME, SecretUse
from crucible.spec.kinds import NAME_LENGTH, Bad, Kind, Schema, Text
from crucible.spec.problems import Reading
from crucible.spec.table import Field, Group
from crucible.spec.yaml_nodes import Entries, Node, Scalar

MOST_SECRETS = 100

ENV_NAME = Text(
    "a variable name",
    pattern=r"(?!CRUCIBLE_)[A-Za-z_][A-Za-z0-9_]*",
    hint="letters, digits and _; names that start with CRUCIBLE_ are ours",
    max_length=NAME_LENGTH,
)


@dataclass(frozen=True, slots=True)
class SecretName(Text):
    """Whoever writes the value instead of the name does not find it in a message."""

    def parse(self, scalar: Scalar) -> str:
        if not re.fullmatch(self.pattern, scalar.text):
            raise Bad(f"expected {self.what}", self.hint)
        return scalar.text


_NAME = SecretName(
    "the name of a secret",
    pattern=SECRET_NAME,
    hint="letters, digits and _, as `crucible secret ls` shows it; never the value",
    max_length=128,
)
_FILE = Text(
    "a path below $CRUCIBLE_SECRETS",
    pattern=r"(?!/)(?!(?:.*/)?\.{1,2}(?:/|$))(?!.*//)[A-Za-z0-9._/-]*[A-Za-z0-9._-]",
    hint="relative, of letters, digits, . _ - and /, without ..; the folder is made for the job and goes with it",
    max_length=NAME_LENGTH,
)


def used(name: str, env: str | None = None, file: str | None = None) -> SecretUse:
    return SecretUse(name=name, env=name if env is None and file is None else env, file=file)


_WHOLE = Group(
    make=used,
    fields=(
        Field(name="name", kind=_NAME, is_required=True, example="HF_TOKEN", doc="the name of the secret"),
        Field(name="env", kind=ENV_NAME, example="TOKEN", doc="the variable that holds it, or the path of its file"),
        Field(name="file", kind=_FILE, example="gcp.json", doc="its file below $CRUCIBLE_SECRETS"),
    ),
)


@dataclass(frozen=True, slots=True)
class SecretEntry:
    @property
    def words(self) -> str:
        return "the name of a secret, or {name, env} or {name, file}"

    def read(self, node: Node, path: str, reading: Reading) -> Any:
        kind: Kind = _WHOLE if isinstance(node, Entries) else _NAME
        found = kind.read(node, path, reading)
        return used(found) if isinstance(found, str) else found

    def schema(self) -> Schema:
        return {"anyOf": [_NAME.schema(), _WHOLE.schema()]}


def check(uses: tuple[SecretUse, ...], env: set[str], path: str, reading: Reading) -> None:
    """No variable and no file is given twice."""
    at = reading.given.get(path)
    if at is None or not reading.is_sound(path):
        return
    if len(uses) > MOST_SECRETS:
        reading.add(at, path, f"names {len(uses)} secrets, at most {MOST_SECRETS} may be", "remove some")
    variables, files = set(env), set[str]()
    for number, use in enumerate(uses):
        here = f"{path}[{number}]"
        if use.env is not None and use.env in variables:
            reading.add(at, here, f"the variable {use.env} is given twice", "remove it from env, or choose another one")
        if use.file is not None and any(_clash(use.file, other) for other in files):
            reading.add(at, here, f"the file {use.file} is given twice", "choose another path")
        variables |= {use.env} if use.env else set()
        files |= {use.file} if use.file else set()


def _clash(one: str, other: str) -> bool:
    """The same file, or one that is a folder of the other."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")
