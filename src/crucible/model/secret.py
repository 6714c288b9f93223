"""Secrets of people, teams and projects. What is stored is sealed; a value in memory never shows itself."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from crucible.model.ids import UserId

# A name is a variable's, so that it may stand for one; those that start with CRUCIBLE_ are ours.
SECRET_NAME = r"(?!CRUCIBLE_)[A-Za-z_][A-Za-z0-9_]{0,127}"  # noqa: S105 (a pattern)
MOST_BYTES = 64 << 10
# Of one owner: a list stays short, and sealing all of them anew quick.
MOST_SECRETS = 200
# What is shorter would be found everywhere in a log: it is not hidden there.
LEAST_HIDDEN = 8


class Secret:
    """Bytes that no print, log line, traceback or message shows by accident. Whoever needs them says `reveal`."""

    __slots__ = ("_value",)

    def __init__(self, value: bytes) -> None:
        self._value = value

    def reveal(self) -> bytes:
        return self._value

    def __len__(self) -> int:
        return len(self._value)

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__

    def __format__(self, how: str) -> str:
        return repr(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> Any:
        raise TypeError("a secret is not written anywhere")


class OwnerKind(StrEnum):
    USER = "user"
    PROJECT = "project"
    TEAM = "team"


@dataclass(frozen=True, slots=True)
class SecretOwner:
    kind: OwnerKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedValue:
    """The value under a key of its own, and that key under the one with this id; both as base64."""

    key_id: str
    wrapped: str
    sealed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretFacts:
    """All that people see of one. `version` counts the values that the name has had."""

    owner_kind: OwnerKind
    owner: str
    name: str
    version: int
    key_id: str
    set_by: UserId
    set_at: datetime
    used_at: datetime | None = None  # by an attempt; may be a minute late

    @property
    def whose(self) -> SecretOwner:
        return SecretOwner(self.owner_kind, self.owner)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSecret(SecretFacts):
    wrapped: str
    sealed: str

    @property
    def value(self) -> SealedValue:
        return SealedValue(key_id=self.key_id, wrapped=self.wrapped, sealed=self.sealed)

    @property
    def label(self) -> "SecretLabel":
        return SecretLabel(self.whose, self.name, self.version)


@dataclass(frozen=True, slots=True)
class SecretLabel:
    """What a sealed value is bound to: moved to another name, owner or version it does not open."""

    owner: SecretOwner
    name: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretUse:
    """How a job wants one: as the variable `env`; or in a file below $CRUCIBLE_SECRETS, whose path is then in `env`."""

    name: str
    env: str | None = None
    file: str | None = None
