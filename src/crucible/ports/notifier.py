"""Whoever carries messages to people: a mail server, a chat, a program of theirs. It translates and sends once; when
to try again is decided elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from crucible.model.alert import AlertChannelKind, Destination, Message
from crucible.model.errors import Conflict


class Notifier(Protocol):
    def check(self, destination: Destination) -> str:
        """What may be shown of it. Raises InvalidRequest for what can never work, or may not be used; asks nobody."""
        ...

    async def send(self, destination: Destination, message: Message) -> None:
        """Returns when the other side has taken it, with the message's id. Raises SendRefused where another try would
        end the same way, SendFailed otherwise; within half a minute."""
        ...


@dataclass(frozen=True, slots=True)
class Outlets:
    """Every way out that a server has."""

    notifiers: Mapping[AlertChannelKind, Notifier] = field(default_factory=dict)

    def of(self, kind: AlertChannelKind) -> Notifier:
        """Raises Conflict."""
        if kind not in self.notifiers:
            raise Conflict(f"this server sends nothing by {kind}")
        return self.notifiers[kind]
