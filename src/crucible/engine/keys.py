"""Tokens of machines. They are derived from the server's key, so the same order always boots the same way, a lost reply
can be answered again, and nothing of them is stored."""

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

    def order_of(self, token: str) -> OrderId:
        return OrderId(self._open("cre", token))

    def node_of(self, token: str) -> NodeId:
        return NodeId(self._open("crn", token))

    def attempt_of(self, token: str) -> AttemptId:
        return AttemptId(self._open("cra", token))

    def _sign(self, kind: str, name: str) -> str:
        mac = hmac.new(self._secret, f"{kind}.{name}".encode(), hashlib.sha256)
        return f"{kind}.{name}.{mac.hexdigest()}"

    def _open(self, kind: str, token: str) -> str:
        parts = token.split(".")
        if len(parts) != 3 or parts[0] != kind or not hmac.compare_digest(self._sign(kind, parts[1]), token):
            raise Unauthenticated("the token is not valid here")
        return parts[1]
