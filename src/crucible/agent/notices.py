"""Asks the cloud's metadata service whether it is about to take the machine back, and leaves word. It decides nothing,
and a service that does not answer changes nothing."""

from __future__ import annotations

import calendar
import http.client
import json
import threading
import time
import urllib.parse
from email.utils import mktime_tz, parsedate_tz

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Optional, Tuple

    from .words import Words

# Clouds ask for a look every five seconds; notices may be as short as thirty.
_EVERY_S = 2.0
# While the service does not answer.
_SLOWEST_S = 10.0
_TIMEOUT_S = 2.0
# A hint is only told to people: one look in so many is enough.
_LOOKS_PER_HINT = 10
_TOKEN_TTL_S = 21600
_MAX_BYTES = 1 << 16
# What clouds promise at most, and what is assumed where the notice does not say.
LONGEST_S = 120.0
_NO_DATE = (1970, 1, 1, 0, 0, 0, 0, 1, 0, 0)


class _Silence(Exception):
    """No answer, or one that makes no sense."""


class Notices:
    """Calls `on_notice` once, with when the machine goes in the cloud's words and the seconds left, then ends."""

    def __init__(self, metadata: Dict[str, Any], words: Words, on_notice: Callable[[str, float], None]) -> None:
        self._metadata = metadata
        self._words = words
        self._on_notice = on_notice
        self._connection: Optional[http.client.HTTPConnection] = None
        self._token = ""
        self._token_until = 0.0

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True, name="notices").start()

    def _run(self) -> None:
        pause_s, looks = _EVERY_S, 0
        while True:
            wait_s = _EVERY_S
            try:
                if self._look():
                    return
                if looks % _LOOKS_PER_HINT == 0:
                    self._look_for_hint()
                pause_s, looks = _EVERY_S, looks + 1
            except _Silence as error:
                self._words.say_once("metadata", str(error))
                wait_s, pause_s = pause_s, min(_SLOWEST_S, 2 * pause_s)
            time.sleep(wait_s)

    def _look(self) -> bool:
        body, now = self._get(self._metadata["notice_path"])
        if body is None:
            return False
        at = _text(body, "time") or "once"
        self._on_notice(at, seconds_left(at, now))
        return True

    def _look_for_hint(self) -> None:
        body, _ = self._get(self._metadata["hint_path"])
        if body is not None:
            since = _text(body, "noticeTime") or "now"
            self._words.say_once("metadata", "the cloud may soon take the machine back (it says so since %s)" % since)

    # --- the service ------------------------------------------------------------------------

    def _get(self, path: str) -> Tuple[Optional[bytes], Optional[str]]:
        """What is there, or None, and the time by the service's own clock. Raises _Silence."""
        is_new = time.monotonic() >= self._token_until
        if is_new:
            self._renew_token()
        status, body, now = self._ask("GET", path, {self._metadata["token_header"]: self._token})
        if status == 401:
            self._token_until = 0.0
            if not is_new:
                return self._get(path)
        if status not in (200, 404):
            raise _Silence("the metadata service says HTTP %d" % status)
        return (body if status == 200 else None), now

    def _renew_token(self) -> None:
        headers = {self._metadata["token_ttl_header"]: str(_TOKEN_TTL_S)}
        status, body, _ = self._ask("PUT", self._metadata["token_path"], headers)
        token = body.decode("ascii", "replace").strip()
        if status != 200 or not token.isprintable():
            raise _Silence("the metadata service gives no token: HTTP %d" % status)
        self._token = token
        self._token_until = time.monotonic() + _TOKEN_TTL_S / 2

    def _ask(self, method: str, path: str, headers: Dict[str, str]) -> Tuple[int, bytes, Optional[str]]:
        parts = urllib.parse.urlsplit(self._metadata["endpoint"])
        if self._connection is None:
            self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_TIMEOUT_S)
        try:
            self._connection.request(method, parts.path.rstrip("/") + path, headers=headers)
            answer = self._connection.getresponse()
            return answer.status, answer.read(_MAX_BYTES), answer.getheader("Date")
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._connection.close()
            self._connection = None
            raise _Silence("the metadata service does not answer: %s" % (error or type(error).__name__)) from error


def seconds_left(at: str, now: Optional[str]) -> float:
    """Until the machine goes. Both times are the cloud's: this machine's clock may be wrong by hours. Where they make
    no sense the longest time is hoped for: hope costs nothing, if there is none left."""
    said = parsedate_tz(now) if now is not None else None
    try:
        left_s = calendar.timegm(time.strptime(at, "%Y-%m-%dT%H:%M:%SZ")) - mktime_tz(said or _NO_DATE)
    except (ValueError, OverflowError):
        return LONGEST_S
    return float(left_s) if 0 < left_s <= LONGEST_S else LONGEST_S


def _text(body: bytes, name: str) -> Optional[str]:
    try:
        value = json.loads(body).get(name)
    except (ValueError, AttributeError):
        return None
    return value[:100] if isinstance(value, str) else None
