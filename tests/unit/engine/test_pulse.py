"""Silence is counted only while somebody listened."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from crucible.engine.pulse import BLIND_AFTER, Pulse
from making import NOW


class Time:
    def __init__(self) -> None:
        self.at = 0.0
        self.clock: Any = SimpleNamespace(monotonic=lambda: self.at, now=lambda: NOW + timedelta(seconds=self.at))
        self.pulse = Pulse(self.clock)


def test_who_looks_every_second_has_listened_since_the_start() -> None:
    time = Time()
    for _ in range(100):
        time.at += 1.0
        time.pulse.beat()
    assert time.pulse.since == NOW


def test_who_stood_still_has_listened_since_it_goes_on_whoever_asks_first() -> None:
    for is_asked_first in (True, False):
        time = Time()
        time.pulse.beat()
        time.at = BLIND_AFTER.total_seconds() + 1
        if not is_asked_first:
            time.pulse.beat()
        assert time.pulse.since == NOW + timedelta(seconds=time.at)
        time.pulse.beat()
        time.at += 5
        assert time.pulse.since == NOW + timedelta(seconds=time.at - 5)


def test_a_server_that_has_not_begun_to_look_has_listened_since_it_was_made() -> None:
    time = Time()
    time.at = 1000.0
    assert time.pulse.since == NOW
