"""What keeps secrets: the book of sealed ones, and whoever seals and opens them with keys that are in no database."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from crucible.model.account import Standing
from crucible.model.audit import AuditEntry
from crucible.model.errors import SecretsKeyMissing
from crucible.model.ids import UserId
from crucible.model.secret import SealedValue, Secret, SecretFacts, SecretLabel, SecretOwner, StoredSecret

if TYPE_CHECKING:
    from crucible.ports.store import Claim


class Sealer(Protocol):
    """Keys are known by ids that say nothing about them. A key is durable before anything is sealed with it."""

    def knows(self, key_id: str) -> bool: ...

    def newest(self) -> str:
        """The id of the key to begin with, where nothing has been sealed yet."""
        ...

    def seal(self, key_id: str, label: SecretLabel, value: Secret) -> SealedValue:
        """Raises SecretsKeyMissing."""
        ...

    def open(self, label: SecretLabel, sealed: SealedValue) -> Secret:
        """Raises SecretsKeyMissing, SecretDamaged."""
        ...

    def rewrap(self, key_id: str, label: SecretLabel, sealed: SealedValue) -> SealedValue:
        """The same value under another key; what is sealed does not change. Raises as `open`."""
        ...

    def add_key(self) -> str:
        """A new one, on disk when this returns. Raises StorageFailed."""
        ...

    def forget_keys(self, kept: Collection[str]) -> Sequence[str]:
        """All but these; returns the ids of those that went. Raises StorageFailed."""
        ...


class NoSealer:
    """Of a server that was given no keys: it keeps no secrets."""

    def knows(self, key_id: str) -> bool:
        return False

    def newest(self) -> str:
        raise self._missing()

    def seal(self, key_id: str, label: SecretLabel, value: Secret) -> SealedValue:
        raise self._missing()

    def open(self, label: SecretLabel, sealed: SealedValue) -> Secret:
        raise self._missing()

    def rewrap(self, key_id: str, label: SecretLabel, sealed: SealedValue) -> SealedValue:
        raise self._missing()

    def add_key(self) -> str:
        raise self._missing()

    def forget_keys(self, kept: Collection[str]) -> Sequence[str]:
        raise self._missing()

    def _missing(self) -> SecretsKeyMissing:
        return SecretsKeyMissing("this server has no keys for secrets")


class SecretBook(Protocol):
    async def secrets(self, owners: Collection[SecretOwner] | None = None) -> Sequence[SecretFacts]:
        """Of these owners, or all; by owner and name."""
        ...

    async def secret(self, owner: SecretOwner, name: str) -> StoredSecret | None: ...

    async def save_secret(
        self, owner: SecretOwner, name: str, make: Callable[[int, str | None], StoredSecret], entry: AuditEntry
    ) -> StoredSecret:
        """One transaction: `make` gets the next version and the id of the key that seals now, None if there is none
        yet; the key that it used first stays. Raises Conflict if the owner has too many."""
        ...

    async def remove_secret(self, owner: SecretOwner, name: str, entry: AuditEntry) -> bool:
        """False if there was none; then nothing is written."""
        ...

    async def secrets_used(self, used: Collection[tuple[SecretOwner, str]], now: datetime) -> None:
        """Not durable: it may be lost with the power."""
        ...

    async def standing(self, user_id: UserId) -> Standing | None:
        """None: no such user, or one who may do nothing any more."""
        ...

    async def team_of_project(self, project: str) -> str | None: ...

    # --- keys ---------------------------------------------------------------------------------------------------

    async def secrets_key(self) -> str | None:
        """The id of the key that seals now; None: nothing was ever sealed."""
        ...

    async def secret_keys(self) -> frozenset[str]:
        """Of every key that something is sealed with, and of the one that seals now."""
        ...

    async def seal_with(self, key_id: str, entry: AuditEntry, *, claim: "Claim") -> None:
        """From now on. Raises StaleClaim."""
        ...

    async def sealed_otherwise(self, key_id: str, limit: int) -> Sequence[StoredSecret]:
        """Those whose key is not this one."""
        ...

    async def rewrap_secret(self, before: StoredSecret, after: SealedValue) -> bool:
        """False if it was changed or removed meanwhile."""
        ...
