"""The meter as Prometheus reads it."""

import pytest

from crucible.exporting.prometheus import PrometheusMeter
from crucible.model.errors import InvariantBroken
from crucible.ports.meter import Kind, Metric

CALLS = Metric(name="calls_total", kind=Kind.COUNTER, help="Calls.", labels=("who",))
TIME = Metric(name="time_seconds", kind=Kind.HISTOGRAM, help="Time.", buckets=(0.1, 1.0))
HELD = Metric(name="held", kind=Kind.GAUGE, help="Held.", labels=("where",))


def lines(meter: PrometheusMeter) -> list[str]:
    return [line for line in meter.text()[0].decode().splitlines() if not line.startswith(("#", "process_"))]


def test_a_bound_counter_is_shown_at_nothing_and_grows() -> None:
    meter = PrometheusMeter()
    add = meter.counter(CALLS, "ann")
    assert 'calls_total{who="ann"} 0.0' in lines(meter)
    add(2)
    meter.counter(CALLS, "ann")(1)
    assert 'calls_total{who="ann"} 3.0' in lines(meter)


def test_a_histogram_counts_into_its_buckets() -> None:
    meter = PrometheusMeter()
    meter.histogram(TIME)(0.5)
    assert {'time_seconds_bucket{le="0.1"} 0.0', 'time_seconds_bucket{le="1.0"} 1.0', "time_seconds_count 1.0"} <= set(
        lines(meter)
    )


def test_a_gauge_is_a_whole_picture() -> None:
    meter = PrometheusMeter()
    meter.show(HELD, {("here",): 1, ("there",): 2})
    meter.show(HELD, {("here",): 3})
    assert [line for line in lines(meter) if line.startswith("held")] == ['held{where="here"} 3.0']


def test_a_counter_that_is_counted_elsewhere_keeps_its_name() -> None:
    meter = PrometheusMeter()
    meter.show(CALLS, {("ann",): 7})
    assert 'calls_total{who="ann"} 7.0' in lines(meter)


@pytest.mark.parametrize("labels", [(), ("a", "b")])
def test_labels_are_those_of_the_metric(labels: tuple[str, ...]) -> None:
    with pytest.raises(InvariantBroken):
        PrometheusMeter().counter(CALLS, *labels)


def test_a_gauge_is_not_counted() -> None:
    with pytest.raises(InvariantBroken):
        PrometheusMeter().counter(HELD, "here")
