"""SQL is the memory: `open_store` opens one on SQLite or PostgreSQL. Nothing here decides anything."""

from crucible.store.opening import open_store

__all__ = ["open_store"]
