"""How the system is: every check says what is wrong and what to do; a provider that fails is told of once."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from crucible.core import places
from crucible.core.system_health import Check, FeedSeen, LoopSeen, SystemSeen, checks, overall
from crucible.model.health import Health, PlaceHealth, SystemFacts
from crucible.model.notice import Notice, Severity

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
GOOD = PlaceHealth(provider="aws", region="r1", looked_at=NOW, last_good_at=NOW, latency_ms=31, machines=4)
FACTS = SystemFacts(nodes=4, open_stretches=4, stretches=100, estimated_stretches=1, revision="0014")


def seen(**fields: Any) -> SystemSeen:
    given: dict[str, Any] = {
        "facts": FACTS,
        "database_s": 0.001,
        "places": ["aws/r1"],
        "healths": {"aws/r1": GOOD},
        "loops": [LoopSeen(name="placing", turns=9, restarts=0, age_s=1.0, late_s=0.0, error=None)],
        "room": (100 << 30, 50 << 30),
    }
    return SystemSeen(**{**given, **fields})


def check(name: str, **fields: Any) -> Check:
    (found,) = [one for one in checks(seen(**fields), NOW) if one.name == name]
    return found


def test_a_system_without_trouble_is_all_right() -> None:
    found = checks(seen(), NOW)
    assert overall(found) is Health.OK and all(one.status is Health.OK for one in found)
    assert check("provider").words == "answers in 31 ms, 4 machines"
    assert check("ledger").details["estimate_share"] == 0.01


def test_a_provider_that_fails_is_a_warning_and_after_a_while_critical() -> None:
    failing = replace(GOOD, failing_since=NOW, error="away")
    assert check("provider", healths={"aws/r1": failing}).status is Health.WARNING
    told = check("provider", healths={"aws/r1": replace(failing, noticed_at=NOW)})
    assert told.status is Health.CRITICAL and "away" in told.words and told.advice == "crucible doctor aws"
    assert check("provider", healths={}).status is Health.UNKNOWN
    assert check("provider", healths={"aws/r1": replace(GOOD, looked_at=NOW - 20 * MINUTE)}).status is Health.WARNING


def test_offers_that_rest_and_refusals_are_told_with_the_provider() -> None:
    found = check("provider", cooldowns={"aws/r1": 3}, refusals={"aws/r1": {"no_capacity": 7}})
    assert found.words.endswith("3 of its offers rest") and found.details["refusals"] == {"no_capacity": 7}


def test_a_loop_that_stands_still_is_critical() -> None:
    stuck = LoopSeen(name="due", turns=9, restarts=2, age_s=500.0, late_s=499.0, error="ValueError: no")
    found = check("loops", loops=[stuck])
    assert found.status is Health.CRITICAL and "due" in found.words and "restart is always safe" in found.advice
    assert "started again 2 times" in check("loops", loops=[replace(stuck, late_s=0.0)]).words


def test_tasks_that_wait_long_and_orders_without_an_answer_are_told() -> None:
    waits = replace(FACTS, waiting_tasks=3, oldest_waiting_at=NOW - timedelta(hours=2))
    assert check("queue", facts=waits).status is Health.WARNING and "one for 2h" in check("queue", facts=waits).words
    asked = replace(FACTS, unsettled_orders=1, oldest_order_at=NOW - 20 * MINUTE)
    assert check("orders", facts=asked).status is Health.WARNING
    assert check("orders", facts=replace(asked, oldest_order_at=NOW)).status is Health.OK


def test_accounts_that_do_not_come_to_nothing_are_critical() -> None:
    assert check("ledger", facts=replace(FACTS, balance_microusd=1)).status is Health.CRITICAL
    assert check("ledger", facts=replace(FACTS, stray_stretches=2)).status is Health.WARNING


def test_a_database_that_is_slow_or_away_is_told() -> None:
    assert check("database", database_s=2.0).status is Health.WARNING
    away = checks(seen(facts=None, database_s=None), NOW)
    assert [one.words for one in away if one.name == "database"] == ["does not answer"]
    assert overall(away) is Health.CRITICAL


def test_a_full_disk_silent_nodes_and_old_prices_are_told() -> None:
    assert check("streams", room=(100 << 30, 100 << 20)).status is Health.CRITICAL
    assert check("streams", room=None).status is Health.UNKNOWN
    assert check("agents", facts=replace(FACTS, silent_nodes=1)).words == "1 of 4 are silent"
    feed = FeedSeen(name="aws", rows=10, told_at=NOW - MINUTE, error=None)
    assert check("prices", feeds=[feed]).status is Health.OK
    assert check("prices", feeds=[replace(feed, told_at=NOW - timedelta(hours=3))]).status is Health.WARNING
    assert check("prices", feeds=[replace(feed, error="no such file")]).words == "no such file"


# --- notices -------------------------------------------------------------------------------------------------------


def test_a_provider_is_told_of_once_when_it_fails_for_long_and_once_when_it_answers() -> None:
    place, notices = GOOD, list[Notice]()
    for minute in range(12):
        place, notice = places.failed(place, NOW + minute * MINUTE, "away", timedelta(minutes=5))
        notices += [] if notice is None else [notice]
    assert [one.severity for one in notices] == [Severity.CRITICAL] and place.noticed_at == NOW + 5 * MINUTE
    assert "crucible doctor aws" in notices[0].text and "away" in notices[0].text
    place, notice = places.listed(place, NOW + 12 * MINUTE, latency_s=0.2, machines=1, removed=2)
    assert notice is not None and notice.severity is Severity.INFO and notice.key != notices[0].key
    assert (place.failing_since, place.error, place.noticed_at, place.removed, place.latency_ms) == (
        None,
        None,
        None,
        2,
        200,
    )
    assert places.listed(place, NOW + 13 * MINUTE, latency_s=0.2, machines=1, removed=0)[1] is None


def test_a_short_failure_is_nobodys_alarm() -> None:
    place, notice = places.failed(GOOD, NOW, "away", timedelta(minutes=5))
    assert notice is None
    assert places.listed(place, NOW + MINUTE, latency_s=0.1, machines=4, removed=0)[1] is None


def test_a_place_is_written_when_something_changes_and_else_once_in_a_while() -> None:
    same = replace(GOOD, looked_at=NOW + MINUTE / 2, latency_ms=55)
    assert not places.is_worth_writing(GOOD, same, MINUTE)
    assert places.is_worth_writing(GOOD, replace(same, looked_at=NOW + MINUTE), MINUTE)
    for change in ({"failing_since": NOW}, {"error": "x"}, {"machines": 5}, {"removed": 1}):
        assert places.is_worth_writing(GOOD, replace(same, **change), MINUTE)  # type: ignore[arg-type]
