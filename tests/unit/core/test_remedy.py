"""What would help: every change that is named has been planned and works."""

from datetime import timedelta
from typing import Any

import pytest

from crucible.core.offers import OfferTable
from crucible.core.remedy import largest, remedies
from crucible.model.offer import Fabric, Market
from crucible.model.spec import Data, JobSpec, Locality
from market import NOW, a_job, a_price, a_table, a_type, dollars, propose

TABLE = a_table(
    [a_type("box"), a_type("tub", gpu="T4", gpu_memory_gib=16.0, memory_gib=64.0, cpus=8.0, disk_gib=100.0)],
    [a_price("box", 10), a_price("box", 2, Market.SPOT), a_price("tub", 1)],
    hazard=0.01,
)


def help_for(spec: JobSpec, table: OfferTable = TABLE) -> dict[str, str]:
    assert propose(spec, table).chosen is None
    found = remedies(spec, lambda other, how: propose(other, table, how).chosen, NOW)
    return {remedy.field: remedy.change for remedy in found}


@pytest.mark.parametrize(
    ("spec", "field", "change"),
    [
        (a_job(budget=dollars(5)), "constraints.budget", "a budget of $10.00 or more"),
        (a_job(deadline=NOW + timedelta(hours=9)), "constraints.deadline", "a deadline of 2026-11-16T10:00Z or later"),
        (a_job(budget=dollars(30), need={"gpu_types": ("A100",)}), "constraints.allow_spot", "allow_spot: true"),
        (
            a_job(
                allow_spot=True,
                min_reliability=0.9999,
                deadline=NOW + timedelta(hours=10.1),
                budget=dollars(50),
                need={"gpu_types": ("A100",)},
            ),
            "constraints.min_reliability",
            "a lower min_reliability",
        ),
        (a_job(providers=("gcp",)), "constraints.providers", "other providers"),
        (a_job(max_price_per_hour=dollars(0.5)), "constraints.max_price_per_hour", "a higher max_price_per_hour"),
        (a_job(need={"gpu_types": ("H100",)}), "resources.gpu_type", "another gpu_type"),
        (a_job(need={"max_gpus_per_node": 4}), "resources.max_gpus_per_node", "no max_gpus_per_node"),
        (a_job(need={"cpu_memory_gib": 9999.0}), "resources.cpu_memory", "less cpu_memory"),
        (a_job(need={"cpus": 999}), "resources.cpus", "fewer cpus"),
        (
            a_job(need={"storage_gib": 9999.0, "gpu_types": ("T4",)}),
            "resources.storage",
            "less storage",
        ),
        (a_job(8 * 20), "resources.gpus", "at most 128 GPUs"),
        (a_job(need={"gpu_memory_gib": 141.0}), "resources.gpu_memory", "at most 80 GB per GPU"),
        (
            a_job(data=Data(dataset="gs://b/d", size_gib=1.0, locality=Locality.REQUIRED)),
            "data.locality",
            "locality: prefer with replication_policy: pre-stage",
        ),
        (
            a_job(data=Data(dataset="gs://b/d", size_gib=1.0)),
            "data.replication_policy",
            "replication_policy: pre-stage",
        ),
    ],
)
def test_the_change_that_helps_is_named(spec: JobSpec, field: str, change: str) -> None:
    assert help_for(spec).get(field) == change


def test_one_machine_helps_where_several_cannot_be_joined() -> None:
    table = a_table([a_type("box", fabric=Fabric.STANDARD)], [a_price("box", 4)])
    need = {"requires_multi_node": True}
    assert help_for(a_job(need=need), table) == {"resources.requires_multi_node": "one machine"}


def test_older_prices_help_where_none_is_fresh() -> None:
    table = a_table([a_type("box")], [a_price("box", 4, as_of=NOW - timedelta(days=9))])
    assert help_for(a_job(max_price_age=timedelta(days=1)), table) == {"constraints.max_price_age": "older prices"}


def test_nothing_is_promised_where_no_single_change_helps() -> None:
    assert help_for(a_job(providers=("gcp",), need={"gpu_types": ("H100",)})) == {}


def test_an_empty_market_has_no_remedy() -> None:
    assert help_for(a_job(budget=dollars(1), deadline=NOW + timedelta(hours=1)), a_table([], [])) == {}


@pytest.mark.parametrize(("asked", "possible", "found"), [(8, 5, 5), (8, 0, 0), (1, 1, 0), (10**6, 1, 1), (2, 1, 1)])
def test_the_largest_number_that_works_is_found(asked: int, possible: int, found: int) -> None:
    tried: list[Any] = []

    def is_possible(n: int) -> bool:
        tried.append(n)
        return n <= possible

    assert largest(asked, is_possible) == found
    assert len(tried) <= 22
