"""Secrets sealed with AES-256-GCM, by keys that lie in a file outside the database."""

from crucible.seal.keyring import KeyRing as KeyRing
