"""The sealed form. A value is under a random key of its own, that key under the key of the server; both are bound to
whose secret it is, its name and its version. Pure: keys and randomness are arguments.

    01 | nonce (12 bytes) | ciphertext and tag of AES-256-GCM

Every value has a fresh key, and every wrapping a fresh nonce of 96 random bits: up to 2^32 wrappings under one key of a
server make a repetition negligible."""

import struct
from collections.abc import Callable

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from crucible.model.secret import SecretLabel

KEY_BYTES = 32
_FORM = b"\x01"
_NONCE_BYTES = 12
_VALUE, _KEY = b"crucible secret value 1", b"crucible secret key 1"

Random = Callable[[int], bytes]


class NotOpened(Exception):
    """Another key, another label, or not what was sealed: AES-GCM does not say which."""


def seal_value(label: SecretLabel, value: bytes, random: Random) -> tuple[bytes, bytes]:
    """The key made for it, and the sealed value."""
    key = random(KEY_BYTES)
    return key, _encrypt(key, value, _bound(_VALUE, label), random)


def open_value(key: bytes, label: SecretLabel, sealed: bytes) -> bytes:
    """Raises NotOpened."""
    return _decrypt(key, sealed, _bound(_VALUE, label))


def wrap(outer: bytes, key_id: str, label: SecretLabel, key: bytes, random: Random) -> bytes:
    return _encrypt(outer, key, _bound(_KEY, label, key_id), random)


def unwrap(outer: bytes, key_id: str, label: SecretLabel, wrapped: bytes) -> bytes:
    """Raises NotOpened."""
    return _decrypt(outer, wrapped, _bound(_KEY, label, key_id))


def _encrypt(key: bytes, plain: bytes, bound: bytes, random: Random) -> bytes:
    nonce = random(_NONCE_BYTES)
    return _FORM + nonce + AESGCM(key).encrypt(nonce, plain, bound)


def _decrypt(key: bytes, box: bytes, bound: bytes) -> bytes:
    start = len(_FORM) + _NONCE_BYTES
    if box[: len(_FORM)] != _FORM or len(box) < start:
        raise NotOpened
    try:
        return AESGCM(key).decrypt(box[len(_FORM) : start], box[start:], bound)
    except InvalidTag:
        raise NotOpened from None


def _bound(purpose: bytes, label: SecretLabel, *more: str) -> bytes:
    """Each part with its length: no two labels give the same bytes."""
    parts = [purpose, *(text.encode() for text in (label.owner.kind, label.owner.name, label.name, *more))]
    return b"".join(struct.pack(">I", len(part)) + part for part in parts) + struct.pack(">Q", label.version)
