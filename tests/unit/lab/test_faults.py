"""What goes wrong is decided by rules, a seed and the questions asked: nothing else."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.lab.fault_kinds import KINDS
from crucible.lab.faults import (
    MOST_REMEMBERED,
    MOST_RULES,
    BadRule,
    Context,
    Fault,
    FaultKind,
    Faults,
    Moment,
    Rule,
)

NOW = 1_800_000_000.0
WHERE = {moment: [kind for kind in FaultKind if KINDS[kind].moment is moment] for moment in Moment}


def about(**said: object) -> Context:
    return Context(now=NOW, **said)  # type: ignore[arg-type]


def asked(faults: Faults, kind: FaultKind, times: int = 1, operation: str = "") -> list[Fault | None]:
    """The answers to `times` questions that a rule of `kind` can be about."""
    known = KINDS[kind].operations[0]
    name = operation or ("RunInstances" if known == "*" else known)
    context = about(machines={"i-1": {}, "i-2": {}})
    return [faults.decide(name, KINDS[kind].moment, context) for _ in range(times)]


def with_rules(*rules: Rule, seed: int = 0) -> Faults:
    faults = Faults(seed)
    for rule in rules:
        faults.add(rule)
    return faults


# --- every kind --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FaultKind)
def test_every_kind_strikes_at_its_moment_and_is_remembered(kind: FaultKind) -> None:
    faults = with_rules(Rule(kind=kind))
    (fault,) = asked(faults, kind)
    assert fault is not None
    assert fault.kind is kind
    assert fault.at == NOW
    assert faults.struck() == ((1, fault),)


@pytest.mark.parametrize("kind", FaultKind)
def test_no_kind_strikes_at_another_moment(kind: FaultKind) -> None:
    faults = with_rules(Rule(kind=kind))
    for moment in Moment:
        if moment is not KINDS[kind].moment:
            assert faults.is_quiet(moment)
            assert faults.decide("RunInstances", moment, about()) is None
    assert not faults.is_quiet(KINDS[kind].moment)


@pytest.mark.parametrize("kind", [kind for kind in FaultKind if KINDS[kind].operations != ("*",)])
def test_a_kind_that_means_nothing_to_an_operation_leaves_it_alone(kind: FaultKind) -> None:
    assert asked(with_rules(Rule(kind=kind)), kind, operation="CreateTags") == [None]


@pytest.mark.parametrize("kind", [kind for kind in FaultKind if KINDS[kind].seconds])
@given(seed=st.integers(), data=st.data())
@settings(max_examples=20, deadline=None)
def test_seconds_lie_where_the_rule_says(kind: FaultKind, seed: int, data: st.DataObject) -> None:
    bounds = KINDS[kind].seconds
    assert bounds is not None
    figure = st.integers(int(bounds.least), int(bounds.most))
    low, high = sorted((data.draw(figure), data.draw(figure)))
    faults = with_rules(Rule(kind=kind, seconds=(float(low), float(high))), seed=seed)
    assert all(fault is not None and low <= fault.seconds <= high for fault in asked(faults, kind, 5))


def test_seconds_are_drawn_from_the_whole_span() -> None:
    faults = with_rules(Rule(kind=FaultKind.LATE_VISIBILITY))
    seconds = sorted(fault.seconds for fault in asked(faults, FaultKind.LATE_VISIBILITY, 200) if fault)
    assert seconds[0] < 2
    assert seconds[-1] > 58
    assert max(later - sooner for sooner, later in pairwise(seconds)) < 4


def test_a_clock_is_wrong_by_whole_seconds_to_either_side() -> None:
    faults = with_rules(Rule(kind=FaultKind.CLOCK_SKEW))
    seconds = [fault.seconds for fault in asked(faults, FaultKind.CLOCK_SKEW, 50) if fault]
    assert all(skew == int(skew) for skew in seconds)
    assert min(seconds) < 0 < max(seconds)


def test_an_internal_error_is_a_500_unless_the_rule_says_503() -> None:
    (usual,) = asked(with_rules(Rule(kind=FaultKind.SERVER_ERROR)), FaultKind.SERVER_ERROR)
    (other,) = asked(with_rules(Rule(kind=FaultKind.SERVER_ERROR, status=503)), FaultKind.SERVER_ERROR)
    assert usual is not None and usual.status == 500
    assert other is not None and other.status == 503


# --- whom ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "operation", "is_struck"),
    [
        ("*", "RunInstances", True),
        ("RunInstances", "RunInstances", True),
        ("RunInstances", "TerminateInstances", False),
        ("Describe*", "DescribeInstances", True),
        ("Describe*", "RunInstances", False),
        ("describe*", "DescribeInstances", False),
    ],
)
def test_a_pattern_chooses_the_operations(pattern: str, operation: str, is_struck: bool) -> None:
    faults = with_rules(Rule(kind=FaultKind.THROTTLE, operation=pattern))
    assert (faults.decide(operation, Moment.BEFORE, about()) is not None) == is_struck


@pytest.mark.parametrize(
    ("rule", "is_struck"),
    [
        (Rule(kind=FaultKind.NO_CAPACITY, region="us-east-1"), True),
        (Rule(kind=FaultKind.NO_CAPACITY, region="eu-*"), False),
        (Rule(kind=FaultKind.NO_CAPACITY, type="p4d.*"), True),
        (Rule(kind=FaultKind.NO_CAPACITY, type="g5.xlarge"), False),
        (Rule(kind=FaultKind.NO_CAPACITY, tag=("team", "vision")), True),
        (Rule(kind=FaultKind.NO_CAPACITY, tag=("team", None)), True),
        (Rule(kind=FaultKind.NO_CAPACITY, tag=("team", "speech")), False),
        (Rule(kind=FaultKind.NO_CAPACITY, tag=("owner", None)), False),
    ],
)
def test_a_purchase_is_chosen_by_region_type_and_tags(rule: Rule, is_struck: bool) -> None:
    purchase = about(region="us-east-1", type="p4d.24xlarge", tags={"team": "vision"})
    assert (with_rules(rule).decide("RunInstances", Moment.BEFORE, purchase) is not None) == is_struck


def test_a_fault_names_only_the_machines_that_the_rule_is_about() -> None:
    machines = {"i-1": {"team": "vision"}, "i-2": {"team": "speech"}, "i-3": {"team": "vision"}}
    faults = with_rules(Rule(kind=FaultKind.LYING_TERMINATE, tag=("team", "vision")))
    fault = faults.decide("TerminateInstances", Moment.BEFORE, about(machines=machines))
    assert fault is not None
    assert fault.machines == ("i-1", "i-3")


def test_a_rule_about_one_machine_leaves_requests_without_it_alone() -> None:
    faults = with_rules(Rule(kind=FaultKind.LYING_TERMINATE, machine="i-9"))
    assert asked(faults, FaultKind.LYING_TERMINATE) == [None]
    fault = faults.decide("TerminateInstances", Moment.BEFORE, about(machines={"i-8": {}, "i-9": {}}))
    assert fault is not None
    assert fault.machines == ("i-9",)


@given(seed=st.integers(), many=st.integers(1, 30))
def test_the_chosen_machine_is_one_of_those_meant(seed: int, many: int) -> None:
    machines: dict[str, dict[str, str]] = {f"i-{i}": {} for i in range(many)}
    faults = with_rules(Rule(kind=FaultKind.EMPTY_LISTING), seed=seed)
    fault = faults.decide("DescribeInstances", Moment.AFTER, about(machines=machines))
    assert fault is not None
    assert fault.chosen in machines


def test_nothing_is_chosen_from_an_empty_listing() -> None:
    fault = with_rules(Rule(kind=FaultKind.EMPTY_LISTING)).decide("DescribeInstances", Moment.AFTER, about())
    assert fault is not None
    assert fault.chosen is None


# --- how often and when --------------------------------------------------------------------------------------


@pytest.mark.parametrize("probability", [0.01, 0.1, 0.5, 0.9])
def test_over_many_questions_a_rule_strikes_as_often_as_it_says(probability: float) -> None:
    times = 20_000
    faults = with_rules(Rule(kind=FaultKind.THROTTLE, probability=probability))
    struck = sum(fault is not None for fault in asked(faults, FaultKind.THROTTLE, times))
    # Six standard deviations: wrong once in a billion seeds, and the seed is fixed.
    assert abs(struck - times * probability) < 6 * (times * probability * (1 - probability)) ** 0.5


def test_a_rule_strikes_no_oftener_than_its_count() -> None:
    faults = with_rules(Rule(kind=FaultKind.LYING_TERMINATE, count=3))
    answers = asked(faults, FaultKind.LYING_TERMINATE, 10)
    assert [answer is not None for answer in answers] == [True] * 3 + [False] * 7
    assert faults.rules()[0].is_over(NOW)


def test_a_rule_stands_from_its_start_to_just_before_its_end() -> None:
    faults = with_rules(Rule(kind=FaultKind.THROTTLE, since=NOW + 10, until=NOW + 20))
    struck = [
        second
        for second in range(30)
        if faults.decide("RunInstances", Moment.BEFORE, Context(now=NOW + second)) is not None
    ]
    assert struck == list(range(10, 20))


# --- the same again ------------------------------------------------------------------------------------------


some_rules = st.lists(
    st.builds(
        Rule,
        kind=st.sampled_from(WHERE[Moment.BEFORE]),
        probability=st.floats(0.05, 1.0),
        count=st.none() | st.integers(1, 5),
    ),
    max_size=5,
)
some_questions = st.lists(st.sampled_from(["RunInstances", "TerminateInstances", "DescribeInstances"]), max_size=30)


@given(seed=st.integers(), rules=some_rules, questions=some_questions)
def test_the_same_seed_and_questions_give_the_same_faults(seed: int, rules: list[Rule], questions: list[str]) -> None:
    first, second = with_rules(*rules, seed=seed), with_rules(*rules, seed=seed)
    for operation in questions:
        assert first.strikes(operation, Moment.BEFORE, about()) == second.strikes(operation, Moment.BEFORE, about())
    assert first.struck() == second.struck()


def test_another_seed_gives_other_faults() -> None:
    rule = Rule(kind=FaultKind.THROTTLE, probability=0.5)
    one, other = (asked(with_rules(rule, seed=seed), FaultKind.THROTTLE, 64) for seed in (1, 2))
    assert [fault is None for fault in one] != [fault is None for fault in other]


@given(seed=st.integers(), rules=some_rules, questions=some_questions)
def test_adding_a_rule_does_not_change_what_another_draws(seed: int, rules: list[Rule], questions: list[str]) -> None:
    watched = Rule(kind=FaultKind.SLOW, probability=0.5, type="watched*")
    context = about(type="watched.xlarge")

    def drawn(faults: Faults) -> list[tuple[float, ...]]:
        answers = (faults.strikes(operation, Moment.BEFORE, context) for operation in questions)
        return [tuple(fault.seconds for fault in found if fault.kind is FaultKind.SLOW) for found in answers]

    others = [rule for rule in rules if rule.kind is not FaultKind.SLOW]
    assert drawn(with_rules(watched, seed=seed)) == drawn(with_rules(*others, watched, seed=seed))


def test_when_a_rule_was_added_does_not_change_what_it_draws() -> None:
    rules = [Rule(kind=FaultKind.SLOW, since=NOW - age, until=NOW + 100 - age) for age in (1.0, 17.5)]
    one, other = (asked(with_rules(rule), FaultKind.SLOW, 10) for rule in rules)
    assert [fault and fault.seconds for fault in one] == [fault and fault.seconds for fault in other]


def test_two_equal_rules_draw_each_for_itself() -> None:
    rule = Rule(kind=FaultKind.SLOW, count=1)
    first, second = asked(with_rules(rule, rule), FaultKind.SLOW, 2)
    assert first is not None and second is not None
    assert first.rule != second.rule
    assert first.seconds != second.seconds


# --- several rules ---------------------------------------------------------------------------------------------


def test_one_answer_is_the_first_rule_and_only_it_is_spent() -> None:
    faults = with_rules(Rule(kind=FaultKind.THROTTLE, count=1), Rule(kind=FaultKind.QUOTA, count=1))
    kinds = [fault and fault.kind for fault in asked(faults, FaultKind.THROTTLE, 3)]
    assert kinds == [FaultKind.THROTTLE, FaultKind.QUOTA, None]


def test_a_machine_can_have_several_faults_but_one_of_a_kind() -> None:
    faults = with_rules(
        Rule(kind=FaultKind.ORPHAN_DISK),
        Rule(kind=FaultKind.NOTICE, seconds=(30.0, 30.0), count=1),
        Rule(kind=FaultKind.NOTICE, seconds=(0.0, 0.0), count=1),
    )
    first = faults.at_boot(about(machines={"i-1": {}}))
    second = faults.at_boot(about(machines={"i-2": {}}))
    assert [(fault.kind, fault.seconds) for fault in first] == [(FaultKind.ORPHAN_DISK, 0), (FaultKind.NOTICE, 30)]
    assert [(fault.kind, fault.seconds) for fault in second] == [(FaultKind.ORPHAN_DISK, 0), (FaultKind.NOTICE, 0)]
    assert [fault.machines for fault in first + second] == [("i-1",), ("i-1",), ("i-2",), ("i-2",)]


def test_a_rule_that_is_cleared_no_longer_strikes() -> None:
    faults = with_rules(Rule(kind=FaultKind.THROTTLE), Rule(kind=FaultKind.QUOTA))
    assert faults.clear("f-1") == 1
    assert [standing.id for standing in faults.rules()] == ["f-2"]
    assert [fault and fault.kind for fault in asked(faults, FaultKind.QUOTA)] == [FaultKind.QUOTA]
    assert faults.clear() == 1
    assert faults.is_quiet(Moment.BEFORE)
    assert asked(faults, FaultKind.QUOTA) == [None]


def test_clearing_what_is_not_there_says_so() -> None:
    with pytest.raises(BadRule, match="there is no rule 'f-7'"):
        Faults().clear("f-7")


def test_there_is_a_limit_to_rules() -> None:
    faults = with_rules(*[Rule(kind=FaultKind.THROTTLE)] * MOST_RULES)
    with pytest.raises(BadRule, match="clear some"):
        faults.add(Rule(kind=FaultKind.THROTTLE))


# --- the log ---------------------------------------------------------------------------------------------------


def test_the_log_goes_on_from_where_a_reader_was() -> None:
    faults = with_rules(Rule(kind=FaultKind.THROTTLE))
    asked(faults, FaultKind.THROTTLE, 5)
    assert [number for number, _ in faults.struck()] == [1, 2, 3, 4, 5]
    assert [number for number, _ in faults.struck(after=3)] == [4, 5]


def test_the_log_forgets_the_oldest_and_keeps_counting() -> None:
    faults = with_rules(Rule(kind=FaultKind.THROTTLE))
    asked(faults, FaultKind.THROTTLE, MOST_REMEMBERED + 2)
    numbers = [number for number, _ in faults.struck()]
    assert (numbers[0], numbers[-1], len(numbers)) == (3, MOST_REMEMBERED + 2, MOST_REMEMBERED)


def test_what_struck_can_be_read_by_people_and_machines() -> None:
    faults = with_rules(Rule(kind=FaultKind.LATE_VISIBILITY, seconds=(30.0, 30.0)))
    (fault,) = asked(faults, FaultKind.LATE_VISIBILITY)
    assert fault is not None
    assert fault.note() == "late-visibility 30s on RunInstances i-1, i-2 (rule f-1)"
    assert fault.fields() == {
        "kind": "late-visibility",
        "rule": "f-1",
        "operation": "RunInstances",
        "at": NOW,
        "seconds": 30.0,
        "machines": ["i-1", "i-2"],
    }
    assert faults.rules()[0].fields() == {
        "id": "f-1",
        "asked": 1,
        "struck": 1,
        "kind": "late-visibility",
        "probability": 1.0,
        "seconds": [30.0, 30.0],
    }
