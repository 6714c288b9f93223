"""The meter as Prometheus reads it. Counters and histograms are its own client library's; gauges are kept as whole
pictures, so that a label that is gone is gone. Figures of the process itself (memory, CPU, files) come along."""

import threading
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from crucible.model.errors import InvariantBroken
from crucible.ports.meter import Instrument, Kind, Metric, Values


class PrometheusMeter:
    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call] # when each series was made: a third of the text, and nobody asks
        self._registry = CollectorRegistry()
        self._counters: dict[str, Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        self._pictures = Pictures()
        self._registry.register(self._pictures)
        ProcessCollector(registry=self._registry)

    def counter(self, metric: Metric, *labels: str) -> Instrument:
        check(metric, Kind.COUNTER, labels)
        found = self._counters.get(metric.name)
        if found is None:
            found = Counter(metric.name, metric.help, metric.labels, registry=self._registry)
            self._counters[metric.name] = found
        return (found.labels(*labels) if labels else found).inc

    def histogram(self, metric: Metric, *labels: str) -> Instrument:
        check(metric, Kind.HISTOGRAM, labels)
        found = self._histograms.get(metric.name)
        if found is None:
            found = Histogram(metric.name, metric.help, metric.labels, registry=self._registry, buckets=metric.buckets)
            self._histograms[metric.name] = found
        return (found.labels(*labels) if labels else found).observe

    def show(self, metric: Metric, values: Values) -> None:
        for labels in values:
            check(metric, Kind.GAUGE if metric.kind is Kind.GAUGE else Kind.COUNTER, labels)
        self._pictures.show(metric, values)

    def text(self) -> tuple[bytes, str]:
        return generate_latest(self._registry), CONTENT_TYPE_PLAIN_0_0_4


class Pictures:
    """The last picture of each."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[Metric, Values]] = {}
        self._lock = threading.Lock()  # the text is made on a thread of its own

    def show(self, metric: Metric, values: Values) -> None:
        with self._lock:
            self._shown[metric.name] = metric, dict(values)

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        with self._lock:
            shown = list(self._shown.values())
        for metric, values in shown:
            kind = GaugeMetricFamily if metric.kind is Kind.GAUGE else CounterMetricFamily
            family = kind(metric.name, metric.help, labels=metric.labels)
            for labels, value in values.items():
                family.add_metric(labels, value)
            yield family


def check(metric: Metric, kind: Kind, labels: tuple[str, ...]) -> None:
    if metric.kind is not kind or len(labels) != len(metric.labels):
        raise InvariantBroken(f"{metric.name} is a {metric.kind} with labels {metric.labels}, not a {kind} {labels}")
