"""Every job in tests/golden/plans has its plan beside it, as `crucible plan` prints it on a wide terminal, with all
rejections and, where nothing fits, what would help. The offers are those of the shipped catalog and the own machines
that the first lines of a job name; the time is always the same. CRUCIBLE_REWRITE_GOLDEN=1 writes the plans anew: read
the diff as a user would."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from crucible import catalog
from crucible import spec as specs
from crucible.catalog.benchmarks import architectures, benchmarks
from crucible.cli.views import plans as views
from crucible.core import admission, plan, spread, whynot
from crucible.core.check import check_proposal
from crucible.core.offers import OfferTable, with_live
from crucible.core.perf import SpeedBook, make_book
from crucible.core.plan import Question
from crucible.core.proposal import Candidate, Proposal
from crucible.core.remedy import remedies
from crucible.engine.plan_view import listing_view, plan_view
from crucible.model.errors import InfeasibleJob
from crucible.model.ids import OfferId
from crucible.model.offer import Offer, Target
from crucible.model.spec import JobSpec, Strategy
from crucible.model.units import MicroUsd

HERE = Path(__file__).parent / "plans"
EXAMPLES = Path(__file__).parents[2] / "examples"
CUSTOMERS = [EXAMPLES / f"{name}.yaml" for name in ("llm_finetune", "hpo_sweep", "batch_inference")]
SCENARIOS = [*CUSTOMERS, *sorted(HERE.glob("*.yaml"))]
NOW = datetime(2026, 11, 16, tzinfo=UTC)
WIDTH = 140
# In a comment of a job:  own: onprem, 16 A100-80GB of which 8 are free, 8 in a machine   why not: gcp a3-highgpu-8g
OWN = re.compile(r"^# own: (\w+), (\d+) (\S+) of which (\d+) are free, (\d+) in a machine", re.MULTILINE)
ENABLED = re.compile(r"^# enabled: (.+)$", re.MULTILINE)
WHY_NOT = re.compile(r"^# why not: (.+)$", re.MULTILINE)
MEMORY = {"A100-80GB": 80.0, "H100-SXM": 80.0, "slot": 1000.0}


@dataclass(frozen=True)
class Scenario:
    text: str
    spec: JobSpec
    table: OfferTable
    enabled: frozenset[str]

    def ask(self, spec: JobSpec, strategy: Strategy | None = None, table: OfferTable | None = None) -> Proposal:
        """As the server does."""
        question, tasks = self.question(spec, strategy), spread.task_count(spec)
        offers = self.table if table is None else table
        if tasks > 1:
            made = spread.propose_tasks(question, tasks, offers, book())
        else:
            made = plan.propose(question, offers, book())
        check_proposal(made, spec, NOW)
        return made

    def question(self, spec: JobSpec, strategy: Strategy | None = None) -> Question:
        return Question(spec=spec, now=NOW, enabled=self.enabled, strategy=strategy)


@cache
def shipped() -> catalog.Catalog:
    return catalog.load()


@cache
def book() -> SpeedBook:
    return make_book(benchmarks(), shipped().gpus.values(), architectures().values())


def read(path: Path) -> Scenario:
    text = path.read_text(encoding="utf-8")
    offers = [offer for found in OWN.finditer(text) for offer in own_machines(*found.groups())]
    table = with_live(shipped().table, offers, NOW)
    enabled = ENABLED.search(text)
    names = enabled.group(1).split() if enabled else table.sellers.name
    return Scenario(text, specs.load(text).spec, table, frozenset(names))


def own_machines(provider: str, total: str, gpu: str, free: str, most: str) -> Iterator[Offer]:
    """Cut to measure, as a provider of own machines lists them: one offer per number of GPUs."""
    for gpus in range(1, int(most) + 1):
        yield Offer(
            id=OfferId(f"{provider}/{gpu}/{gpus}"),
            target=Target(provider, "local" if provider == "local" else "dc1", "vm"),
            instance_type=f"{provider}-{gpus}gpu",
            gpu=gpu,
            gpus=gpus,
            gpu_memory_gib=MEMORY[gpu],
            cpus=64,
            memory_gib=1024.0,
            price_per_hour=MicroUsd(0),
            stock=f"{provider}/{gpu}/{total}",
            free_gpus=int(free),
        )


# --- as text ------------------------------------------------------------------------------------------------


def report(one: Scenario) -> str:
    made = one.ask(one.spec)
    # Through JSON, as a client sees it.
    view: Any = json.loads(json.dumps(plan_view(made, NOW, 0.0), default=str))
    view["why_not"] = [told for words in WHY_NOT.findall(one.text) for told in why_not(one, words)]
    lines = [line.replace("; planned in 0 ms", "").rstrip() for line in plan_lines(view)]
    return "\n".join([one.text.rstrip(), "", "--- plan", *lines, "", *submitted(one, made)]) + "\n"


def plan_lines(view: Any) -> list[str]:
    """With every rejection; a person at a terminal sees the first few."""
    few, views.SHOWN_REJECTIONS = views.SHOWN_REJECTIONS, 99
    try:
        return views.plan_lines(view, width=WIDTH)
    finally:
        views.SHOWN_REJECTIONS = few


def why_not(one: Scenario, words: str) -> list[dict[str, Any]]:
    told = whynot.explain(one.question(one.spec), words, one.table, book())
    return [{**listing_view(each.listing), "reason": each.reason} for each in told]


def submitted(one: Scenario, made: Proposal) -> list[str]:
    """What submit does about it, and everything that would help."""
    try:
        bought = admission.feasible(
            one.spec, one.table, lambda s, how, table: one.ask(s, how, table), NOW, one.enabled
        ).runnable
    except InfeasibleJob as refused:
        said = [f"--- submit is refused: {refused.details['field']}: {refused}"]
        said += [f"hint: {refused.details['hint']}"]
    else:
        said = [f"--- submit buys: {names(bought)}" if bought else "--- submit waits: what fits is taken now"]
    if made.chosen is None:
        helpful = remedies(one.spec, lambda other, how: one.ask(other, how).chosen, NOW)
        said += [f"would help: {remedy.field}: {remedy.change}" for remedy in helpful]
    return said


def names(candidate: Candidate) -> str:
    return " + ".join(f"{part.count} × {part.listing.id}" for part in candidate.parts)


# --- tests --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda p: p.stem)
def test_the_plan_is_the_one_that_was_read_and_found_good(path: Path) -> None:
    text = report(read(path))
    golden = HERE / f"{path.stem}.txt"
    if os.environ.get("CRUCIBLE_REWRITE_GOLDEN") == "1":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_there_are_the_three_customer_jobs_and_at_least_twenty_others() -> None:
    assert all(path.exists() for path in CUSTOMERS)
    assert len(SCENARIOS) >= 23


def test_every_plan_belongs_to_a_job() -> None:
    assert {p.stem for p in HERE.glob("*.txt")} == {p.stem for p in SCENARIOS}


@pytest.mark.parametrize("path", CUSTOMERS, ids=lambda p: p.stem)
def test_the_shipped_examples_are_valid(path: Path) -> None:
    assert specs.load(path.read_bytes()).warnings == ()
