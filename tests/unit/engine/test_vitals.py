"""What a process counts of itself."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from crucible.engine.vitals import MOST_SERIES, Kind, Vitals
from crucible.model.errors import ProviderError
from crucible.ports.clock import Clock

START = datetime(2026, 1, 1, tzinfo=UTC)
PLACE = "aws/us-east-1"


@dataclass
class Hands:
    """A clock that is moved by hand."""

    s: float = 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.s)

    def monotonic(self) -> float:
        return self.s


def vitals(hands: Hands) -> Vitals:
    return Vitals(cast(Clock, hands))


def told(of: Vitals) -> dict[tuple[str, Any], float]:
    return {(one.name, tuple(one.labels.values())): one.value for one in of.samples()}


def test_a_loop_is_late_only_after_the_time_that_it_named() -> None:
    hands = Hands()
    of = vitals(hands)
    of.beat("placing", within_s=5)
    hands.s = 4
    assert of.loops["placing"].late_s(hands.s) == 0
    hands.s = 12
    assert of.loops["placing"].late_s(hands.s) == 7
    of.beat("placing", within_s=5)
    assert of.loops["placing"].late_s(hands.s) == 0
    assert told(of)["loop_turns", ("placing",)] == 2


def test_a_loop_that_waits_for_news_is_never_late() -> None:
    of = vitals(Hands())
    of.beat("working")
    assert of.loops["working"].late_s(1e9) == 0


def test_a_restart_is_counted_with_its_reason() -> None:
    of = vitals(Hands())
    of.restarted("prices", ValueError("no"))
    of.restarted("prices", ValueError("still no"))
    assert (of.loops["prices"].restarts, of.loops["prices"].error) == (2, "ValueError: still no")


def test_a_seller_fails_since_its_first_failure_until_it_answers_again() -> None:
    hands = Hands()
    of = vitals(hands)
    of.listed(PLACE, 0.3, 4)
    for hands.s in (10.0, 20.0):
        of.unlisted(PLACE, ProviderError("away"))
    seen = of.places[PLACE]
    assert seen.failing_since == START + timedelta(seconds=10) and seen.failures_in_a_row == 2
    assert seen.last_good_at == START and seen.error == "away"
    of.listed(PLACE, 0.2, 4)
    assert seen.failing_since is None and seen.error is None and (seen.listings, seen.failures) == (2, 2)


def test_everything_is_told_as_samples_with_labels() -> None:
    of = vitals(Hands())
    of.listed(PLACE, 0.3, 4)
    of.refused(PLACE, "no_capacity")
    of.removed(PLACE)
    of.count("reports")
    of.count("reports")
    of.gauge("streams_bytes", 17, channel="log")
    found = told(of)
    assert found["refusals", (PLACE, "no_capacity")] == found["machines_removed", (PLACE,)] == 1
    assert found["reports", ()] == 2 and found["streams_bytes", ("log",)] == 17
    kinds = {one.name: one.kind for one in of.samples()}
    assert kinds["reports"] is Kind.COUNTER and kinds["streams_bytes"] is Kind.GAUGE


def test_labels_without_end_do_not_fill_the_memory() -> None:
    of = vitals(Hands())
    for number in range(MOST_SERIES + 10):
        of.count("codes", code=str(number))
    assert sum(one.name == "codes" for one in of.samples()) == MOST_SERIES
