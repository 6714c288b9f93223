"""The keys of the server, in a file that only its owner may read: one in hex on each line, the newest first. Servers
that share a database share the file; each reads it again when it meets a key that it does not know."""

import base64
import binascii
import contextlib
import fcntl
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from crucible.model.errors import SecretDamaged, SecretsKeyMissing, StorageFailed
from crucible.model.secret import SealedValue, Secret, SecretLabel
from crucible.seal import envelope

_KEY = re.compile(r"[0-9a-f]{64}")
_MOST_BYTES = 1 << 16  # a thousand keys


class KeyRing:
    """Keeps the port `Sealer`."""

    def __init__(self, path: Path) -> None:
        """Raises SecretsKeyMissing if there is no such file, or it is not one of keys."""
        self.path = path
        self._keys: Mapping[str, bytes] = {}
        self._read()

    @classmethod
    def made_in(cls, path: Path) -> "KeyRing":
        """With one new key, unless the file is there: of several servers that start at once the first one's stays."""
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            _write(part, [secrets.token_bytes(envelope.KEY_BYTES)])
            with contextlib.suppress(FileExistsError):
                os.link(part, path)
            part.unlink()
        except OSError as error:
            raise _unwritable(path, error) from error
        return cls(path)

    # --- keys ---------------------------------------------------------------------------------------------------

    def knows(self, key_id: str) -> bool:
        if key_id not in self._keys:
            self._read()
        return key_id in self._keys

    def newest(self) -> str:
        return next(iter(self._keys))

    def add_key(self) -> str:
        with self._changing():
            self._replace([secrets.token_bytes(envelope.KEY_BYTES), *self._keys.values()])
        return self.newest()

    def forget_keys(self, kept: Collection[str]) -> Sequence[str]:
        self._read()
        if set(self._keys) <= set(kept):
            return []
        with self._changing():
            gone = [key_id for key_id in self._keys if key_id not in kept]
            left = [key for key_id, key in self._keys.items() if key_id in kept]
            if gone and left:
                self._replace(left)
        return gone if left else []

    def _read(self) -> None:
        try:
            mode = stat.S_IMODE(self.path.stat().st_mode)
            with self.path.open(encoding="ascii") as file:
                lines = file.read(_MOST_BYTES).split()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it holds something else than keys"
            raise SecretsKeyMissing(f"the keys of the secrets cannot be read from {self.path}: {reason}") from error
        if not lines or not all(_KEY.fullmatch(line) for line in lines):
            raise SecretsKeyMissing(f"{self.path} is no file of keys: each line is one key, 64 hexadecimal digits")
        if mode & 0o077:
            raise SecretsKeyMissing(f"others may read the keys of the secrets: chmod 600 {self.path}")
        self._keys = {id_of(key): key for key in map(bytes.fromhex, lines)}

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """One at a time, on what the file holds now."""
        try:
            lock = os.open(self.path.with_name(f"{self.path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise _unwritable(self.path, error) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._read()
            yield
        finally:
            os.close(lock)

    def _replace(self, keys: Sequence[bytes]) -> None:
        part = self.path.with_name(f"{self.path.name}.{os.getpid()}.part")
        try:
            _write(part, keys)
            part.replace(self.path)
            _sync(self.path.parent)
        except OSError as error:
            raise _unwritable(self.path, error) from error
        self._read()

    # --- values -------------------------------------------------------------------------------------------------

    def seal(self, key_id: str, label: SecretLabel, value: Secret) -> SealedValue:
        key, sealed = envelope.seal_value(label, value.reveal(), secrets.token_bytes)
        wrapped = envelope.wrap(self._key(key_id), key_id, label, key, secrets.token_bytes)
        return SealedValue(key_id=key_id, wrapped=_text(wrapped), sealed=_text(sealed))

    def open(self, label: SecretLabel, sealed: SealedValue) -> Secret:
        try:
            return Secret(envelope.open_value(self._inner(label, sealed), label, _bytes(sealed.sealed)))
        except (envelope.NotOpened, binascii.Error, ValueError) as error:
            raise _damaged(label) from error

    def rewrap(self, key_id: str, label: SecretLabel, sealed: SealedValue) -> SealedValue:
        try:
            inner = self._inner(label, sealed)
        except (envelope.NotOpened, binascii.Error, ValueError) as error:
            raise _damaged(label) from error
        wrapped = envelope.wrap(self._key(key_id), key_id, label, inner, secrets.token_bytes)
        return SealedValue(key_id=key_id, wrapped=_text(wrapped), sealed=sealed.sealed)

    def _inner(self, label: SecretLabel, sealed: SealedValue) -> bytes:
        return envelope.unwrap(self._key(sealed.key_id), sealed.key_id, label, _bytes(sealed.wrapped))

    def _key(self, key_id: str) -> bytes:
        if not self.knows(key_id):
            raise SecretsKeyMissing(f"{self.path} lacks the key {key_id}, with which a secret is sealed")
        return self._keys[key_id]


def id_of(key: bytes) -> str:
    return hashlib.sha256(b"crucible secrets key id" + key).hexdigest()[:16]


def _write(path: Path, keys: Sequence[bytes]) -> None:
    with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
        file.writelines(f"{key.hex()}\n" for key in keys)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _text(box: bytes) -> str:
    return base64.b64encode(box).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _damaged(label: SecretLabel) -> SecretDamaged:
    return SecretDamaged(f"the secret {label.name} of {label.owner} does not open: set it anew")


def _unwritable(path: Path, error: OSError) -> StorageFailed:
    return StorageFailed(f"the keys of the secrets cannot be written to {path}: {error.strerror}; nothing was changed")
