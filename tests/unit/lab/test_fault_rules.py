"""Rules as people and programs write them, and what they are told when that means nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.lab.fault_rules import BadRule, Rule, read_duration, read_rule
from crucible.lab.faults import FaultKind

NOW = 1_800_000_000.0


def test_a_rule_in_full() -> None:
    rule = read_rule(
        {
            "kind": "slow",
            "operation": "Describe*",
            "probability": 0.25,
            "count": 7,
            "at": "1m",
            "for": "1h30m",
            "seconds": "1s..5s",
            "tag": "team=vision",
            "region": "us-*",
            "type": "g5.*",
        },
        NOW,
    )
    assert rule == Rule(
        kind=FaultKind.SLOW,
        operation="Describe*",
        probability=0.25,
        count=7,
        since=NOW + 60,
        until=NOW + 60 + 5400,
        seconds=(1.0, 5.0),
        tag=("team", "vision"),
        region="us-*",
        type="g5.*",
    )


def test_a_rule_without_times_stands_at_once_and_for_good() -> None:
    rule = read_rule({"kind": "throttle"}, NOW)
    assert (rule.since, rule.until, rule.probability, rule.count) == (None, None, 1.0, None)


def test_for_counts_from_now_without_at() -> None:
    assert read_rule({"kind": "throttle", "for": 60}, NOW).until == NOW + 60


def test_what_a_command_line_leaves_out_is_left_out() -> None:
    assert read_rule({"kind": "throttle", "count": None, "tag": None}, NOW) == Rule(kind=FaultKind.THROTTLE)


def test_figures_of_a_command_line_are_text() -> None:
    rule = read_rule({"kind": "slow", "probability": "0.5", "count": "3", "seconds": "2"}, NOW)
    assert (rule.probability, rule.count, rule.seconds) == (0.5, 3, (2.0, 2.0))


@pytest.mark.parametrize(
    ("fields", "field", "hint"),
    [
        ({}, "kind", "one of error-before-effect"),
        ({"kind": "trottle"}, "kind", "did you mean throttle?"),
        ({"kind": 7}, "kind", "one of error-before-effect"),
        ({"kind": "slow", "probabilty": 1}, "probabilty", "did you mean probability?"),
        ({"kind": "slow", "zzz": 1}, "zzz", "fields of a rule: kind, operation"),
        ({"kind": "slow", "probability": 0}, "probability", "every tenth time"),
        ({"kind": "slow", "probability": 1.5}, "probability", "every tenth time"),
        ({"kind": "slow", "probability": "often"}, "probability", "in decimal"),
        ({"kind": "slow", "probability": True}, "probability", "in decimal"),
        ({"kind": "slow", "probability": float("nan")}, "probability", "in decimal"),
        ({"kind": "slow", "count": 0}, "count", "leave it out"),
        ({"kind": "slow", "count": 1.5}, "count", "no whole number"),
        ({"kind": "slow", "for": 0}, "for", "above 0"),
        ({"kind": "slow", "for": "1x"}, "for", "1h30m"),
        ({"kind": "slow", "at": -5}, "at", "from now on"),
        ({"kind": "slow", "seconds": [5, 1]}, "seconds", "the least first"),
        ({"kind": "slow", "seconds": [1, 2, 3]}, "seconds", "[0, 60] or 0..60"),
        ({"kind": "slow", "seconds": 10_000}, "seconds", "a bare number is seconds"),
        ({"kind": "late-visibility", "seconds": -1}, "seconds", "between 0 and 3600"),
        ({"kind": "throttle", "seconds": 1}, "seconds", "leave it out"),
        ({"kind": "server-error", "status": 404}, "status", "500 or 503"),
        ({"kind": "throttle", "status": 500}, "status", "leave it out"),
        ({"kind": "quota", "operation": "DescribeInstances"}, "operation", "it strikes RunInstances"),
        ({"kind": "notice", "operation": "RunInstances"}, "operation", "choose machines by tag"),
        ({"kind": "slow", "operation": ""}, "operation", "one line"),
        ({"kind": "slow", "operation": "a\nb"}, "operation", "one line"),
        ({"kind": "slow", "operation": "x" * 300}, "operation", "one line"),
        ({"kind": "slow", "tag": "=vision"}, "tag", "name=value"),
    ],
)
def test_a_rule_that_means_nothing_is_told_where_and_how_to_fix_it(
    fields: dict[str, object], field: str, hint: str
) -> None:
    with pytest.raises(BadRule) as caught:
        read_rule(fields, NOW)
    assert caught.value.field == field
    assert hint in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("5m", 300), ("1h30m", 5400), ("1d", 86_400), ("0.5s", 0.5), ("-10m", -600), (7, 7)],
)
def test_durations(text: object, seconds: float) -> None:
    assert read_duration("for", text) == seconds


@pytest.mark.parametrize("text", ["", "s", "1m2h", "5ms", "1:30", "١s", "1e3", "nan", None, [], True, float("inf")])
def test_what_is_no_duration(text: object) -> None:
    with pytest.raises(BadRule, match="is no duration"):
        read_duration("for", text)


json_values = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers(), max_size=3)


@given(st.dictionaries(st.sampled_from(["kind", "count", "for", "at", "seconds", "tag", "type"]), json_values))
def test_whatever_is_sent_is_a_rule_or_a_reason(fields: dict[str, object]) -> None:
    try:
        read_rule({"kind": "slow", **fields}, NOW)
    except BadRule as bad:
        assert bad.field in fields


def test_a_rule_that_is_shown_can_be_read_again() -> None:
    fields = {"kind": "slow", "operation": "Run*", "probability": 0.5, "count": 2, "seconds": [1.0, 2.0], "tag": "a=b"}
    assert read_rule(fields, NOW).fields() == fields
