"""JSON to a program of theirs, signed so that it knows from whom it is. `verified` is what a receiver does, as the page
of alerts shows it."""

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from crucible.model.alert import Destination, Message
from crucible.model.encoding import encode
from crucible.model.errors import InvalidRequest
from crucible.model.notice import Notice
from crucible.notify.posting import Poster

# So far may two clocks be apart; a request that somebody caught is worth nothing later.
TOLERANCE_S = 300
MIN_SECRET = 16
MAX_SECRETS = 2  # the new one, and the old one until every receiver knows the new


class Webhook:
    def __init__(self, poster: Poster, now: Callable[[], datetime]) -> None:
        self._poster = poster
        self._now = now

    def check(self, destination: Destination) -> str:
        origin = self._poster.outside.check(destination.address)
        secrets = destination.secrets
        if not 1 <= len(secrets) <= MAX_SECRETS or any(len(one) < MIN_SECRET for one in secrets):
            raise InvalidRequest(
                f"a webhook is signed: give it a secret of at least {MIN_SECRET} characters", field="secret"
            )
        return str(origin)

    async def send(self, destination: Destination, message: Message) -> None:
        body = json.dumps(payload(message), separators=(",", ":")).encode()
        timestamp = str(int(self._now().timestamp()))  # of this try: a receiver refuses what is old
        headers = {
            "Content-Type": "application/json",
            "X-Crucible-Delivery": message.id,
            "X-Crucible-Timestamp": timestamp,
            "X-Crucible-Signature": signature(destination.secrets, timestamp, body),
        }
        await self._poster.post(destination.address, body, headers)


def signature(secrets: Sequence[str], timestamp: str, body: bytes) -> str:
    """One for each secret: a receiver that knows the old or the new one finds its own."""
    return ",".join(f"v1={_mac(secret, timestamp, body)}" for secret in secrets)


def _mac(secret: str, timestamp: str, body: bytes) -> str:
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def verified(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> bool:
    """Is it from a server that knows the secret, and from now? `headers` by their names in lower case."""
    timestamp = headers.get("x-crucible-timestamp", "")
    if not timestamp.isdecimal() or abs(now - int(timestamp[:20])) > TOLERANCE_S:
        return False
    expected = "v1=" + hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    given = headers.get("x-crucible-signature", "").split(",")
    return any(hmac.compare_digest(expected.encode(), one.strip().encode()) for one in given)


def payload(message: Message) -> Mapping[str, object]:
    return {
        "delivery": message.id,
        "at": encode(message.at),
        "severity": message.severity,
        "title": message.title,
        "text": message.text,
        "is_test": message.is_test,
        "notices": [item(one) for one in message.notices],
        "more": message.more,
    }


def item(notice: Notice) -> Mapping[str, object]:
    return {
        "key": notice.key,
        "at": encode(notice.at),
        "kind": notice.kind,
        "severity": notice.severity,
        "title": notice.title,
        "text": notice.text,
        "team": notice.team,
        "project": notice.project,
        "user": notice.user_id,
        "job": notice.job_id,
        "details": encode(notice.details),
    }
