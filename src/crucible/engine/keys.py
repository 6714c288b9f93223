"""Tokens of machines, and of the objects they carry. They are derived from the server's key, so the same order always
boots the same way, a lost reply can be answered again, and nothing of them is stored."""

import base64
import hashlib
import hmac

from crucible.model.errors import Unauthenticated
from crucible.model.ids import AttemptId, NodeId, OrderId


class Keys:
    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    @property
    def deployment(self) -> str:
        """Marks what servers with this key have bought. It says nothing about the key."""
        return hmac.new(self._secret, b"deployment", hashlib.sha256).hexdigest()[:16]

    def enrolment(self, order: OrderId) -> str:
        return self._sign("cre", order)

    def node(self, node: NodeId) -> str:
        return self._sign("crn", node)

    def attempt(self, attempt: AttemptId) -> str:
        return self._sign("cra", attempt)

    def address(self, right: str) -> str:
        """Of one object on this server's disk. `right` can be read by whoever has it, and changed by nobody."""
        return self.ticket("cro", right)

    def ticket(self, kind: str, text: str) -> str:
        """Whoever has it can read `text`, and nobody can change it or use it for another kind."""
        return self._sign(kind, base64.urlsafe_b64encode(text.encode()).decode().rstrip("="))

    def text_of(self, kind: str, ticket: str) -> str:
        sealed = self._open(kind, ticket)
        return base64.urlsafe_b64decode(sealed + "=" * (-len(sealed) % 4)).decode()

    def hidden(self, name: str) -> str:
        """A secret that belongs to `name`; nothing of it need be kept."""
        return hmac.new(self._secret, f"hidden.{name}".encode(), hashlib.sha256).hexdigest()

    def slot(self, attempt: AttemptId, number: int, rank: int, nonce: str) -> str:
        """The name of a place for a checkpoint; it shows whom it was given to. `nonce` is ten hex digits."""
        mac = hmac.new(self._secret, f"slot.{attempt}.{rank}.{nonce}".encode(), hashlib.sha256)
        return f"{number:05d}-{rank:05d}-{nonce}{mac.hexdigest()[:6]}"

    def owns_slot(self, attempt: AttemptId, number: int, slot: str) -> bool:
        _, rank, tail = slot.split("-")
        return hmac.compare_digest(self.slot(attempt, number, int(rank), tail[:10]), slot)

    def order_of(self, token: str) -> OrderId:
        return OrderId(self._open("cre", token))

    def node_of(self, token: str) -> NodeId:
        return NodeId(self._open("crn", token))

    def attempt_of(self, token: str) -> AttemptId:
        return AttemptId(self._open("cra", token))

    def right_of(self, token: str) -> str:
        return self.text_of("cro", token)

    def _sign(self, kind: str, name: str) -> str:
        mac = hmac.new(self._secret, f"{kind}.{name}".encode(), hashlib.sha256)
        return f"{kind}.{name}.{mac.hexdigest()}"

    def _open(self, kind: str, token: str) -> str:
        parts = token.split(".")
        if not token.isascii() or len(parts) != 3 or parts[0] != kind:
            raise Unauthenticated("the token is not valid here")
        if not hmac.compare_digest(self._sign(kind, parts[1]), token):
            raise Unauthenticated("the token is not valid here")
        return parts[1]
