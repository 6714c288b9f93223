"""This computer as a seller: a machine is a folder and an agent that runs in it, at no price."""

from crucible.providers.local.provider import LocalProvider

__all__ = ["LocalProvider"]
