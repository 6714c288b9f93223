"""The page of metrics lists every metric as it is. CRUCIBLE_REWRITE_GOLDEN=1 writes the table anew."""

import os
from pathlib import Path

from crucible.engine import metrics
from crucible.ports.meter import Kind, Metric

PAGE = Path(__file__).parents[2] / "docs" / "prometheus.md"
MARK = "<!-- metrics: written by tests/unit/test_metrics_page.py, CRUCIBLE_REWRITE_GOLDEN=1 -->\n"


def row(metric: Metric) -> str:
    labels = " ".join(f"`{label}`" for label in metric.labels)
    return f"| `{metric.name}` | {metric.kind} | {labels} | {metric.source} | {metric.help} |\n"


def table() -> str:
    head = "\n| metric | kind | labels | source | what it says |\n|---|---|---|---|---|\n"
    return head + "".join(row(metric) for metric in metrics.ALL)


def test_the_page_lists_every_metric_and_no_other() -> None:
    head, mark, found = PAGE.read_text().partition(MARK)
    if os.environ.get("CRUCIBLE_REWRITE_GOLDEN") == "1":
        PAGE.write_text(head + mark + table())
    else:
        assert found == table()


def test_names_say_what_they_count() -> None:
    for metric in metrics.ALL:
        assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER), metric.name
        assert bool(metric.buckets) == (metric.kind is Kind.HISTOGRAM), metric.name
    assert len({metric.name for metric in metrics.ALL}) == len(metrics.ALL)
