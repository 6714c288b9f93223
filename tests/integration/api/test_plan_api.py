"""POST /v1/plan over the shipped catalog: the answer to whatever is asked is a plan or a reason, never a traceback."""

from collections.abc import Iterator
from typing import Any

import pytest

from crucible import catalog, spec
from crucible.api.app import ApiSettings
from crucible.catalog.benchmarks import architectures, benchmarks
from crucible.core.offers import make_table
from crucible.core.perf import make_book
from crucible.engine.planner import Knowledge
from crucible.wire.plans import Plan

from .conftest import Reply, Server


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    shipped = catalog.load()
    book = make_book(benchmarks(), shipped.gpus.values(), architectures().values())
    yield from running(tmp_path_factory, Knowledge(shipped.table, book))


@pytest.fixture(scope="module")
def unpriced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A catalog in which nobody states a price."""
    shipped = catalog.load()
    prices = [price for price in shipped.prices() if price.price is None]
    table = make_table(shipped.types(), prices, shipped.billing())
    yield from running(tmp_path_factory, Knowledge(table, make_book((), ())))


def running(tmp_path_factory: pytest.TempPathFactory, knowledge: Knowledge) -> Iterator[Server]:
    server = Server(
        folder=tmp_path_factory.mktemp("plans"),
        settings=ApiSettings(version="9.9.9", providers=("fake",)),
        knowledge=knowledge,
    )
    server.start()
    yield server
    server.stop()


def ask(server: Server, job: str, **more: Any) -> Reply:
    text = "job:\n  command: [python, train.py]\n  framework: pytorch_ddp\n" + job
    return server.call("POST", "/v1/plan", json_body={"spec_yaml": text, **more})


def test_a_plan_says_everything_that_programs_ask_for(market: Server) -> None:
    plan = ask(market, "  resources: {gpus: 8, gpu_type: A100, estimated_hours: 6}\n").json
    keys = {"chosen", "alternatives", "rejections", "bound", "price_age_s", "catalog_rows", "plan_cpu_ms", "notes"}
    assert keys <= plan.keys()
    assert plan["chosen"]["gpus"] == 8 and plan["chosen"]["estimated_cost_usd"] > 0
    assert plan["catalog_rows"] == plan["considered"] > 10_000
    assert not plan["chosen"]["is_enabled"] and plan["runnable"] is None


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ("  resources: {gpus: 1000000}\n", "joins at most"),
        ("  resources: {gpus: 8, gpu_type: Z900}\n", "needs Z900"),
        ("  resources: {gpus: 8, gpu_memory: 4096GB}\n", "GB per GPU"),
        ("  resources: {gpus: 8, estimated_hours: 87600}\n  constraints: {budget: 1}\n", "the budget"),
        ("  resources: {gpus: 8}\n  constraints: {deadline: 2024-01-01T00:00:00Z}\n", "the deadline"),
        (
            "  resources: {gpus: 8, estimated_hours: 1}\n  constraints: {deadline: 2024-01-01T00:00:00Z}\n",
            "the deadline",
        ),
        ("  resources: {gpus: 8}\n  constraints: {providers: alibaba}\n", "its price is not known"),
        ("  resources: {gpus: 8}\n  constraints: {providers: nobody}\n", "only nobody is asked for"),
        ("  resources: {gpus: 8}\n  constraints: {max_price_per_hour: 0.01}\n", "more per hour"),
        (
            "  resources: {gpus: 8}\n  constraints: {max_price_age: 1s, providers: [aws, runpod]}\n",
            "older than the spec allows",
        ),
        (
            "  resources: {gpus: 8}\n"
            "  data: {dataset: 's3://b/d', size: 1GB, region: atlantis-1, locality: required}\n",
            "the data is in aws atlantis-1",
        ),
    ],
)
def test_what_nothing_fits_has_a_reason(market: Server, job: str, said: str) -> None:
    reply = ask(market, job)
    assert reply.status == 200, reply.text
    assert reply.json["chosen"] is None and reply.json["alternatives"] == []
    assert said in reply.json["reason"] + " ".join(one["reason"] for one in reply.json["rejections"])


def plain(server: Server, job: str, **more: Any) -> Reply:
    """Without a framework that trains in one cluster."""
    text = "job:\n  command: [python, train.py]\n" + job
    return server.call("POST", "/v1/plan", json_body={"spec_yaml": text, **more})


@pytest.mark.parametrize(
    "job",
    [
        "  resources: {gpus: 8, estimated_hours: 0.000001}\n",
        "  resources: {gpus: 8, estimated_hours: 87600}\n",
        "  resources: {gpus: 8, estimated_hours: 87600}\n  constraints: {allow_spot: true}\n"
        "  checkpoint: {interval: 1s}\n",
        "  resources: {gpus: 64, estimated_hours: 80000}\n  constraints: {allow_spot: true, strategy: cheapest}\n"
        "  checkpoint: {interval: 30d}\n",
        "  resources: {gpus: 8, estimated_hours: 5}\n"
        "  data: {dataset: 's3://b/d', size: 1000000TB, region: us-east-1, replication_policy: pre-stage}\n",
        "  resources: {gpus: 8, estimated_hours: 5}\n"
        "  data: {dataset: 's3://b/d', size: 5GB, region: atlantis-1, replication_policy: pre-stage}\n",
        "  resources: {gpus: 8, estimated_hours: 5}\n  constraints: {preferred_regions: [atlantis-1]}\n",
        "  resources: {gpus: 8, estimated_hours: 5}\n  constraints: {min_reliability: 1, allow_spot: true}\n",
        "  resources: {gpus: 8}\n  constraints: {providers: azure, allow_spot: true}\n",
        "  resources: {gpus: 8}\n  workload: {model_class: llm, parameters: 1, tokens: 1T}\n",
    ],
)
def test_odd_jobs_have_figures_that_are_numbers(market: Server, job: str) -> None:
    reply = ask(market, job)
    assert reply.status == 200, reply.text
    chosen = reply.json["chosen"]
    assert chosen is not None, reply.json["reason"]
    assert "Infinity" not in reply.text and "NaN" not in reply.text
    assert chosen["estimated_hours"] is None or chosen["estimated_hours"] > 0
    assert 0 <= chosen["reliability"] <= 1


@pytest.mark.parametrize(
    ("job", "field"),
    [
        ("  resources: {gpus: 1000001}\n", "job.resources.gpus"),
        ("  resources: {gpus: 8, estimated_hours: 0}\n", "job.resources.estimated_hours"),
        ("  resources: {gpus: 8, estimated_hours: .nan}\n", "job.resources.estimated_hours"),
        ("  resources: {gpus: 8, estimated_hours: 1e9}\n", "job.resources.estimated_hours"),
        ("  resources: {gpus: 8}\n  constraints: {strategy: luckiest}\n", "job.constraints.strategy"),
    ],
)
def test_what_is_no_job_is_refused_at_its_field(market: Server, job: str, field: str) -> None:
    reply = ask(market, job)
    assert reply.status == 422
    assert [problem["field"] for problem in reply.json["details"]["problems"]] == [field]


def test_an_unknown_strategy_is_refused(market: Server) -> None:
    reply = ask(market, "  resources: {gpus: 8}\n", strategy="luckiest")
    assert reply.status == 422
    assert "strategy" in reply.text and "Traceback" not in reply.text


@pytest.mark.parametrize("words", ["gcp z9-nothing-8g", "aws gcp", "   ", "", "\u202e\x00"])
def test_a_question_about_no_offer_is_refused_with_what_to_do(market: Server, words: str) -> None:
    reply = ask(market, "  resources: {gpus: 8}\n", why_not=words)
    assert reply.status in (400, 422), reply.text
    assert "crucible offers" in reply.json["message"]


def test_why_not_names_what_stands_against_it(market: Server) -> None:
    reply = ask(market, "  resources: {gpus: 8, estimated_hours: 5}\n", why_not="gcp a3-highgpu-8g us-central1")
    told = reply.json["why_not"]
    assert told and {one["provider"] for one in told} == {"gcp"}
    assert {one["rule"] for one in told} == {"none", "spot"}
    assert all(one["reason"] for one in told)


@pytest.mark.parametrize("trials", ["100001", "9000000000000000000", "0", "-5", "many", "2.5", "true", "[1]", "null"])
def test_a_number_of_trials_that_is_none_or_too_many_is_refused(market: Server, trials: str) -> None:
    reply = plain(market, f"  type: hpo\n  sweep: {{trials: {trials}}}\n  resources: {{gpus: 1}}\n")
    assert reply.status == 422, reply.text
    assert reply.json["error"] == "invalid_spec" and "job.sweep.trials" in reply.json["message"]


def test_a_catalog_without_prices_has_a_reason(unpriced: Server) -> None:
    job = "  resources: {gpus: 8, estimated_hours: 5}\n  constraints: {providers: [alibaba, tencent, modal]}\n"
    reply = ask(unpriced, job)
    assert reply.status == 200 and reply.json["chosen"] is None
    assert "its price is not known" in reply.json["reason"]


def test_without_a_catalog_what_is_at_hand_is_planned(server: Server) -> None:
    reply = plain(server, "  resources: {gpus: 1, estimated_hours: 5}\n")
    assert reply.json["chosen"]["provider"] == "fake" and reply.json["chosen"]["is_enabled"]


def test_the_schema_and_the_examples_of_a_spec_are_those_of_the_command_line(market: Server) -> None:
    described = market.call("GET", "/v1/spec/schema").json
    assert (
        described == spec.schema() and "gpus" in described["properties"]["job"]["properties"]["resources"]["properties"]
    )
    shown = {one["name"]: one["spec_yaml"] for one in market.call("GET", "/v1/spec/examples").json["items"]}
    assert shown == {"minimal": spec.minimal_example(), "full": spec.example()}


@pytest.mark.parametrize(
    "job",
    [
        "  resources: {gpus: 8, gpu_type: A100, estimated_hours: 6}\n  constraints: {allow_spot: true}\n",
        "  resources: {gpus: 1, gpu_type: NoSuch}\n",
        "  resources: {gpus: 1}\n  shards: {count: 400}\n",
    ],
)
def test_a_plan_is_as_described(market: Server, job: str) -> None:
    made = ask(market, job, why_not="aws").json
    assert Plan.model_validate(made).model_extra == {}


def test_the_plan_of_a_workflow_is_as_described(market: Server) -> None:
    steps = "[{name: a, command: x, output_size: 5GB}, {name: b, needs: [a], command: y}]"
    text = f"job:\n  resources: {{gpus: 1, estimated_hours: 2}}\n  steps: {steps}\n"
    made = market.call("POST", "/v1/plan", json_body={"spec_yaml": text}).json
    read = Plan.model_validate(made)
    assert read.model_extra == {} and read.total and read.steps
    assert [step.name for step in read.steps if step.model_extra == {} and step.chosen] == ["a", "b"]
