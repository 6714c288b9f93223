"""The function that the page of alerts gives to whoever receives a webhook: copied from there, it does what it says."""

import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crucible.notify.webhook import signature

PAGE = Path(__file__).parents[3] / "docs" / "alerts.md"
OLD, NEW = "the-old-secret-of-ours", "the-new-secret-of-ours"


def documented() -> Callable[[str, dict[str, str], bytes], bool]:
    text = PAGE.read_text(encoding="utf-8")
    code = text[text.index("    import hashlib, hmac, time") : text.index("\nThe body:")]
    names: dict[str, Any] = {}
    exec(textwrap.dedent(code), names)
    found: Callable[[str, dict[str, str], bytes], bool] = names["is_from_crucible"]
    return found


def test_it_takes_what_we_sign_and_nothing_else() -> None:
    is_ours, body = documented(), b'{"title":"x"}'
    for age, is_good in ((0, True), (200, True), (400, False), (-400, False)):
        timestamp = str(int(time.time()) - age)
        headers = {"x-crucible-timestamp": timestamp, "x-crucible-signature": signature([NEW, OLD], timestamp, body)}
        assert is_ours(OLD, headers, body) is is_ours(NEW, headers, body) is is_good
        assert not is_ours(OLD, headers, body + b" ") and not is_ours("another-secret-of-theirs", headers, body)
    assert not is_ours(OLD, {}, body)


def test_it_refuses_whatever_a_stranger_may_write_into_the_headers() -> None:
    now = str(int(time.time()))
    for timestamp in ("²", "-1", "1e9", "9" * 5000, "", " ", now + "²"):
        assert not documented()(OLD, {"x-crucible-timestamp": timestamp, "x-crucible-signature": "v1=00"}, b"{}")
    for written in ("é", "v1=é", ",,,", "v1=", "\ud800"[:0] + "ÿ" * 64):
        assert not documented()(OLD, {"x-crucible-timestamp": now, "x-crucible-signature": written}, b"{}")
