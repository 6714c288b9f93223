"""Scenarios: what is read from a file, what is said of a bad one, and what happens when."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible import spec
from crucible.lab.fault_rules import Rule
from crucible.lab.faults import MOST_RULES, FaultKind, Faults
from crucible.lab.scenario import Preempt, PriceSpike, Scenario, SetCapacity, Strike, Timed, carry_out
from crucible.lab.scenario_file import BadScenario, load, read
from crucible.spec.text import MAX_BYTES
from crucible.world.facts import Account, Facts, MachineType, Market, PricePoint, Sale, Zone
from crucible.world.machine import Launch, Machine, Refused, State
from crucible.world.world import World

START = 1_800_000_000.0
FOLDER = Path(__file__).parents[3] / "examples/lab"
JOB = FOLDER / "hello_gpu.yaml"
EXAMPLES = sorted({*FOLDER.glob("*.yaml")} - {JOB})


def machine(name: str, **said: object) -> Machine:
    fields = dict(
        id=name,
        launch_id="r-1",
        index=0,
        account="1",
        region="us-east-1",
        zone="us-east-1a",
        type="g5.xlarge",
        market=Market.SPOT,
        launched_at=int(START),
        boots_at=START,
        visible_at=START,
        tags={},
        user_data=b"",
        private_address="127.64.0.1",
        public_address=None,
        disk_id="vol-1",
        state=State.RUNNING,
    )
    return Machine(**{**fields, **said})  # type: ignore[arg-type]


# --- reading -----------------------------------------------------------------------------------------------------


def test_a_scenario_in_full() -> None:
    scenario = read(
        """
        name: storm
        faults:
          - kind: slow
            operation: Describe*
            probability: 0.5
            at: 1m
            for: 30s
            seconds: [1, 2]
        events:
          - {at: 10s, do: preempt, tag: team=vision, count: 2, notice: 0s}
          - {at: 15s, do: preempt, machine: i-0}
          - {at: 20s, for: 1m, do: capacity, zone: us-east-1a, type: p4d.*, market: spot, machines: 3}
          - {at: 30s, for: 1m, do: price, type: g5.*, times: 2}
          - {at: 40s, do: price, usd_per_hour: 1.50}
        """
    )
    rule = Rule(kind=FaultKind.SLOW, operation="Describe*", probability=0.5, since=60.0, until=90.0, seconds=(1.0, 2.0))
    limited = SetCapacity(zone="us-east-1a", type="p4d.*", market=Market.SPOT, machines=3)
    assert scenario.name == "storm"
    assert scenario.timed == (
        Timed(10.0, Preempt(tag=("team", "vision"), count=2, notice_s=0.0)),
        Timed(15.0, Preempt(machines=("i-0",))),
        Timed(20.0, limited),
        Timed(60.0, Strike(rule=rule)),
        Timed(80.0, SetCapacity(zone="us-east-1a", type="p4d.*", market=Market.SPOT, machines=None)),
    )
    assert scenario.spikes == (
        PriceSpike(at=30.0, lasts_s=60.0, type="g5.*", times=2.0),
        PriceSpike(at=40.0, lasts_s=None, microusd_per_hour=1_500_000),
    )


def test_a_scenario_without_a_name_is_called_after_its_file(tmp_path: Path) -> None:
    path = tmp_path / "storm.yaml"
    path.write_text("events: [{at: 1s, do: preempt}]")
    assert load(path).name == "storm"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_can_be_played(path: Path) -> None:
    scenario = load(path)
    scenario.start(START)
    assert len(scenario.due(START + 86_400)) == len(scenario.timed) > 0
    assert scenario.spikes


def test_there_are_examples_and_a_job_to_try_them_on() -> None:
    assert len(EXAMPLES) >= 2
    assert spec.load(JOB.read_text()).spec.constraints.providers == ("aws",)


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("", "1:1: scenario", "the scenario is empty"),
        ("# only\n\n# words\n", "1:1: scenario", "the scenario is empty"),
        ("[]", "1:1: scenario", "expected a mapping, found a list"),
        ("name: x", "1:1: scenario", "nothing happens"),
        ("fault: []", "1:1: fault", "did you mean 'faults'?"),
        ("faults: slow", "1:9: faults", "expected a list, found 'slow'"),
        ("faults:\n  - slow", "2:5: faults[0]", "expected a mapping"),
        ("faults:\n  - operation: X", "2:5: faults[0].kind", "is missing (one of error-before-effect"),
        ("faults:\n  - kind: slo", "2:11: faults[0].kind", "did you mean slow?"),
        ("faults:\n  - kind: slow\n    count: 0", "3:12: faults[0].count", "is not above 0"),
        ("faults:\n  - kind: slow\n    count:", "3:11: faults[0].count", "has no value"),
        ("faults:\n  - kind: slow\n    at: {a: b}", "3:9: faults[0].at", "found a mapping"),
        ("faults:\n  - kind: slow\n    seconds: [1, 2, 3]", "3:14: faults[0].seconds", "has 3 figures"),
        ("events:\n  - at: 1s", "2:5: events[0].do", "one of preempt, price, capacity"),
        ("events:\n  - {at: 1s, do: premept}", "2:18: events[0].do", "did you mean 'preempt'?"),
        ("events:\n  - do: preempt", "2:5: events[0].at", "is missing, expected a duration"),
        ("events:\n  - {at: 1:30, do: preempt}", "2:10: events[0].at", "is that hours or minutes?"),
        ("events:\n  - {at: 1s, do: preempt, times: 2}", "2:27: events[0].times", "fields here: do, at, machine"),
        ("events:\n  - {at: 1s, do: price}", "2:5: events[0]", "needs one of times, usd_per_hour"),
        ("events:\n  - {at: 1s, do: price, times: 2, usd_per_hour: 1}", "2:5: events[0]", "exclude each other"),
        ("events:\n  - {at: 1s, do: capacity}", "2:5: events[0]", "needs one of machines"),
        ("events:\n  - {at: 1s, do: capacity, machines: -1}", "2:38: events[0].machines", "a whole number"),
        ("a: !!python/object:os.system x", "1:4: a", "tags such as"),
        ("a: [", "1:5: a[0]", "check the brackets"),
        ("a: 1\n---\nb: 2", "2:1: scenario", "several documents"),
    ],
)
def test_a_bad_scenario_is_told_where_and_how_to_fix_it(text: str, place: str, says: str) -> None:
    with pytest.raises(BadScenario) as caught:
        read(text, "s.yaml")
    assert str(caught.value).startswith(f"s.yaml:{place}: ")
    assert says in str(caught.value)


def test_all_problems_are_told_at_once_in_order() -> None:
    text = "faults:\n  - kind: slo\n  - kind: slow\n    count: 0\nevents:\n  - {at: 1s, do: preem}\n  - {do: price}\n"
    with pytest.raises(BadScenario) as caught:
        read(text)
    assert [(problem.line, problem.field) for problem in caught.value.problems] == [
        (2, "faults[0].kind"),
        (4, "faults[1].count"),
        (6, "events[0].do"),
        (7, "events[1].at"),
        (7, "events[1]"),
    ]


def test_a_file_that_is_too_long_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "long.yaml"
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(BadScenario, match="longer than 256 KiB"):
        load(path)


@given(st.text() | st.binary())
def test_whatever_is_read_is_a_scenario_or_a_reason(text: str | bytes) -> None:
    with pytest.raises(BadScenario) as caught:
        read(text)
    assert caught.value.problems


# --- playing -----------------------------------------------------------------------------------------------------


def test_each_thing_is_due_once_at_its_time() -> None:
    first, second = Preempt(count=1), Preempt(count=2)
    scenario = Scenario("two", [Timed(20.0, second), Timed(10.0, first)])
    assert scenario.next_at() is None
    assert scenario.due(START + 100) == ()
    scenario.start(START)
    assert scenario.next_at() == START + 10
    assert scenario.due(START + 9.9) == ()
    assert scenario.due(START + 10) == (first,)
    assert scenario.due(START + 10) == ()
    assert scenario.due(START + 100) == (second,)
    assert scenario.next_at() is None


def test_what_is_late_comes_in_order() -> None:
    actions = [Preempt(count=count) for count in (1, 2, 3)]
    scenario = Scenario("late", [Timed(5.0, actions[0]), Timed(1.0, actions[1]), Timed(5.0, actions[2])])
    scenario.start(START)
    assert scenario.due(START + 60) == (actions[1], actions[0], actions[2])


def test_a_fault_stands_in_the_time_of_the_world() -> None:
    scenario = read("faults: [{kind: throttle, at: 1m, for: 30s}]")
    scenario.start(START)
    assert scenario.due(START + 59) == ()
    (strike,) = scenario.due(START + 61)
    assert strike == Strike(rule=Rule(kind=FaultKind.THROTTLE, since=START + 60, until=START + 90))


@pytest.mark.parametrize(
    ("preempt", "taken"),
    [
        (Preempt(), ["i-old", "i-a", "i-b"]),
        (Preempt(count=2), ["i-old", "i-a"]),
        (Preempt(machines=("i-b", "i-old")), ["i-old", "i-b"]),
        (Preempt(machines=("i-demand",)), []),
        (Preempt(tag=("team", None)), ["i-a", "i-b"]),
        (Preempt(tag=("team", "vision")), ["i-a"]),
        (Preempt(region="eu-*"), ["i-old"]),
        (Preempt(type="p4d.*"), ["i-b"]),
    ],
)
def test_spot_machines_that_live_and_know_nothing_yet_are_taken(preempt: Preempt, taken: list[str]) -> None:
    machines = [
        machine("i-b", tags={"team": "speech"}, type="p4d.24xlarge"),
        machine("i-a", tags={"team": "vision"}, state=State.PENDING),
        machine("i-old", launched_at=int(START) - 1, region="eu-west-1"),
        machine("i-demand", market=Market.ON_DEMAND),
        machine("i-told", notice_at=START),
        machine("i-stopping", state=State.STOPPING),
        machine("i-ended", state=State.ENDED),
    ]
    assert [one.id for one in preempt.chosen(machines)] == taken


def line(*points: tuple[int, int]) -> tuple[PricePoint, ...]:
    return tuple(PricePoint(int(START) + at, price) for at, price in points)


def price_at(points: Sequence[PricePoint], at: int) -> int | None:
    return next((point.microusd_per_hour for point in reversed(points) if point.at <= START + at), None)


def shaped(spike: PriceSpike, points: tuple[PricePoint, ...], zone: str = "z") -> tuple[PricePoint, ...]:
    facts = Facts(types=(), zones=(), accounts=(Account(id="1"),), sales=(sale(zone, points),))
    return Scenario("price", spikes=[spike]).shaped(facts, START).sales[0].spot


def sale(zone: str, points: tuple[PricePoint, ...]) -> Sale:
    return Sale(zone=zone, type="t", on_demand=1_000, spot=points)


def test_a_price_is_higher_for_a_while_and_then_what_it_would_have_been() -> None:
    points = shaped(PriceSpike(at=10, lasts_s=20, times=3.0), line((-5, 100), (20, 200), (25, 50), (40, 70)))
    assert points == line((-5, 100), (10, 300), (20, 600), (25, 150), (30, 50), (40, 70))


def test_a_price_stays_where_it_was_put() -> None:
    assert shaped(PriceSpike(at=10, lasts_s=None, microusd_per_hour=9), line((-5, 100), (20, 200))) == line(
        (-5, 100), (10, 9), (20, 9)
    )


def test_other_zones_and_what_is_not_sold_as_spot_keep_their_prices() -> None:
    spike = PriceSpike(at=10, lasts_s=None, times=2.0, zone="us-*")
    assert shaped(spike, line((0, 1)), zone="eu-west-1a") == line((0, 1))
    assert shaped(spike, (), zone="us-east-1a") == ()


@given(
    points=st.dictionaries(st.integers(-50, 50), st.integers(1, 1_000), min_size=1),
    at=st.integers(0, 40),
    lasts=st.none() | st.integers(1, 40),
)
def test_in_a_spike_every_price_is_doubled_and_no_other(points: dict[int, int], at: int, lasts: int | None) -> None:
    usual = line(*sorted(points.items()))
    bent = shaped(PriceSpike(at=at, lasts_s=lasts, times=2.0), usual)
    for second in range(-60, 100):
        was = price_at(usual, second)
        is_inside = second >= at and (lasts is None or second < at + lasts)
        assert price_at(bent, second) == (was * 2 if was is not None and is_inside else was)
    assert list(bent) == sorted(bent, key=lambda point: point.at)


# --- what a world sees of it ---------------------------------------------------------------------------------------


def a_world(scenario: Scenario | None = None) -> World:
    facts = Facts(
        types=(MachineType(name="t", vcpus=4, memory_mib=1),),
        zones=(Zone(name="za", id="z1", region="r"), Zone(name="zb", id="z2", region="r")),
        sales=tuple(Sale(zone=zone, type="t", on_demand=1_000, spot=line((-60, 300))) for zone in ("za", "zb")),
        accounts=(Account(id="1"),),
    )
    return World(scenario.shaped(facts, START) if scenario else facts)


def launched(world: World, zone: str = "za", count: int = 1, **said: object) -> tuple[Machine, ...]:
    fields: dict[str, object] = dict(account="1", region="r", zone=zone, type="t", market=Market.SPOT)
    return world.launch(Launch(**{**fields, "least": count, "most": count, **said}), START)  # type: ignore[arg-type]


def test_machines_are_told_that_they_will_be_taken() -> None:
    world = a_world()
    ids = [machine.id for machine in launched(world, count=3)]
    assert carry_out(Preempt(count=2, notice_s=30.0), world, Faults(), START + 60) == "2 machines are to be taken"
    told = [machine for machine in map(world.machine, ids) if machine.taken_at == START + 90]
    assert len(told) == 2
    assert carry_out(Preempt(), world, Faults(), START + 61) == "1 machine is to be taken"


def test_a_fault_of_the_scenario_is_added_to_the_rules() -> None:
    faults = Faults()
    carry_out(Strike(rule=Rule(kind=FaultKind.THROTTLE)), a_world(), faults, START)
    assert [standing.rule.kind for standing in faults.rules()] == [FaultKind.THROTTLE]


def test_a_rule_too_many_is_told_and_does_not_stop_the_lab() -> None:
    faults = Faults()
    strike = Strike(rule=Rule(kind=FaultKind.THROTTLE))
    world = a_world()
    said = [carry_out(strike, world, faults, START) for _ in range(MOST_RULES + 1)]
    assert said[-2] == f"throttle may strike (rule f-{MOST_RULES})"
    assert "clear some" in said[-1]


def test_capacity_drops_where_it_was_said_and_comes_back() -> None:
    world, faults = a_world(), Faults()
    carry_out(SetCapacity(zone="za", machines=0), world, faults, START)
    for market in Market:
        with pytest.raises(Refused, match="no room"):
            launched(world, market=market)
    assert launched(world, zone="zb")
    carry_out(SetCapacity(zone="za", machines=None), world, faults, START)
    assert launched(world)


def test_a_price_above_its_limit_takes_a_machine_and_the_bill_knows_both_prices() -> None:
    scenario = read("events: [{at: 2h, do: price, zone: za, usd_per_hour: 0.002}]")
    world = a_world(scenario)
    dear, steady = launched(world)[0], launched(world, zone="zb")[0]
    world.tick(START + 7_200)
    assert world.spot_price("za", "t", START + 7_200) == 2_000
    assert world.machine(dear.id).notice_at is not None
    world.tick(START + 7_400)
    assert world.machine(dear.id).ended_at == START + 7_320
    assert world.machine(steady.id).ended_at is None
    charged = [
        entry.microusd
        for entry in world.invoice("1", START + 7_400).lines
        if (entry.resource, entry.kind) == (dear.id, "machine")
    ]
    assert sum(charged) == 600 + round(2_000 * 120 / 3_600)
