"""How often and when a message is tried."""

from datetime import UTC, datetime, timedelta

from crucible.core.delivery import LONGEST_S, MAX_TRIES, begun, failed, is_due, next_try, refused, sent
from crucible.model.alert import Delivery, DeliveryState
from crucible.model.ids import AlertChannelId, AlertRuleId, DeliveryId
from crucible.model.notice import Severity

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
ONE = Delivery(
    id=DeliveryId("c.1"),
    channel_id=AlertChannelId("c"),
    rule_id=AlertRuleId("r"),
    subject="s",
    severity=Severity.INFO,
    created_at=NOW,
    not_before=NOW,
)


def test_a_try_is_recorded_before_it_is_made_and_not_repeated_meanwhile() -> None:
    tried = begun(ONE, NOW)
    assert is_due(ONE, NOW) and not is_due(tried, NOW + timedelta(seconds=30)) and is_due(tried, NOW + timedelta(60))
    assert not is_due(sent(tried, NOW), NOW + timedelta(days=9))


def test_waits_grow_and_are_spread_and_bounded() -> None:
    def longest(tries: int) -> float:
        return (next_try(tries, NOW, 1.0) - NOW).total_seconds()

    assert [longest(n) for n in (1, 2, 3)] == [10, 20, 40] and longest(40) == LONGEST_S
    assert next_try(5, NOW, 0.0) == NOW + timedelta(seconds=1)
    assert next_try(1, NOW, 0.5) == NOW + timedelta(seconds=5)


def test_a_receiver_may_ask_for_patience_but_not_for_ever() -> None:
    assert next_try(1, NOW, 0.5, 120.0) == NOW + timedelta(seconds=120)
    assert next_try(1, NOW, 0.5, 1e9) == NOW + timedelta(hours=6)
    assert next_try(1, NOW, 0.5, -5.0) == NOW + timedelta(seconds=5)


def test_it_is_given_up_after_about_a_day_with_the_reason() -> None:
    one, now = ONE, NOW
    while one.state is DeliveryState.WAITING:
        one = failed(begun(one, now), "nobody listens", now, chance=0.5)
        now = max(now, one.not_before)
    assert one.tries == MAX_TRIES and one.error == f"given up after {MAX_TRIES} tries: nobody listens"
    assert timedelta(hours=16) < now - NOW < timedelta(hours=36)


def test_what_would_be_refused_again_is_not_tried_again() -> None:
    dead = refused(begun(ONE, NOW), "x" * 10_000, NOW)
    assert dead.state is DeliveryState.DEAD and dead.ended_at == NOW and dead.error is not None
    assert len(dead.error) == 500
