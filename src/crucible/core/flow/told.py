"""From a choice to what is said of it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from crucible.core import candidates, plan
from crucible.core.flow.problem import Choice, Problem, Worth, worth
from crucible.core.flow.proposal import Carried, FlowPlan, Placed
from crucible.core.flow.question import Studied, is_timed
from crucible.core.flow.search import Found
from crucible.core.plan import Pool, Study
from crucible.core.proposal import Candidate
from crucible.core.wording import chosen_why
from crucible.model.spec import Strategy
from crucible.model.units import MicroUsd

# Names that a note lists.
SHOWN = 5


def told(studied: Studied, problem: Problem, found: Found, objective: Strategy) -> FlowPlan:
    flow = studied.flow
    came = worth(problem, found.choice)
    candidates_by_step = chosen_candidates(studied, problem, found, objective)
    steps = []
    for number, step in enumerate(flow.steps):
        candidate = candidates_by_step[number]
        steps.append(
            Placed(
                name=step.name,
                candidate=candidate,
                home=step.home or home_of(candidate),
                begins_h=came.begins_h[number],
                fetch_h=came.fetch_h[number],
                ends_h=came.ends_h[number],
                fetch_cost=MicroUsd(round(came.fetched[number])),
                cost=cost_of(candidate, came.fetched[number]),
            )
        )
    costs = [step.cost for step in steps]
    is_timed = all(one is not None for one in costs)
    return FlowPlan(
        strategy=objective,
        steps=tuple(steps),
        carried=tuple(carried(studied, problem, came, steps, found.choice)),
        cost=MicroUsd(sum(one or 0 for one in costs) + round(came.moved)) if is_timed else None,
        moved=MicroUsd(round(came.moved)),
        fetched=MicroUsd(round(sum(came.fetched))),
        makespan_h=came.makespan_h if is_timed else None,
        bound=found.distance,
        notes=notes_of(studied),
    )


def chosen_candidates(studied: Studied, problem: Problem, found: Found, objective: Strategy) -> list[Candidate | None]:
    """Steps of one study are told together: odds of a few cost no more than odds of one."""
    made: list[Candidate | None] = [step.given for step in studied.flow.steps]
    rows = [int(labels.row[way]) for labels, way in zip(problem.labels, found.choice, strict=True)]
    for study in {id(one): one for one in studied.studies if one is not None}.values():
        mine = [number for number, one in enumerate(studied.studies) if one is study]
        for number, candidate in zip(mine, tell(study, [rows[number] for number in mine]), strict=True):
            made[number] = replace(candidate, why=why_of(problem, found, number, candidate, objective, studied))
    return made


def tell(found: Study, rows: list[int]) -> list[Candidate]:
    ways = candidates.ways_of(found.question.spec, found.table, found.basis, np.array(rows))
    odds = plan.odds_of(found, ways)
    return plan.tell(found, Pool(ways, odds, plan.scored(found, ways, odds.reliability)))


def why_of(
    problem: Problem, found: Found, number: int, candidate: Candidate, objective: Strategy, studied: Studied
) -> str:
    """Who does not take what is best for itself does so for its data, or for a limit."""
    labels, way = problem.labels[number], found.choice[number]
    if labels.value[way] <= labels.value.min() * (1 + 1e-9):
        return chosen_why(candidate, objective)
    beside = [studied.flow.steps[other].name for other in around(problem, number)
              if int(problem.labels[other].place[found.choice[other]]) == int(labels.place[way])]  # fmt: skip
    return f"beside {', '.join(beside[:SHOWN])}" if beside else f"{chosen_why(candidate, objective)} of all together"


def around(problem: Problem, number: int) -> list[int]:
    """Steps that it hands something, or that hand it something."""
    found: list[int] = []
    for tree in problem.trees:
        if tree.source == number:
            found += tree.readers
        elif number in tree.readers:
            found.append(tree.source)
    return sorted(set(found))


def home_of(candidate: Candidate | None) -> str:
    if candidate is None:
        return ""
    target = max(candidate.parts, key=lambda part: part.count).listing.target
    return f"{target.provider}/{target.region}"


def cost_of(candidate: Candidate | None, fetched: float) -> MicroUsd | None:
    if candidate is None:
        return MicroUsd(0)
    return None if candidate.cost is None else MicroUsd(candidate.cost + round(fetched))


def carried(studied: Studied, problem: Problem, came: Worth, steps: Sequence[Placed], choice: Choice) -> list[Carried]:
    made = []
    for number, reader in came.carried:
        tree = problem.trees[number]
        source, target = (int(problem.labels[step].place[choice[step]]) for step in (tree.source, reader))
        made.append(
            Carried(
                step=steps[tree.source].name,
                source=steps[tree.source].home,
                target=steps[reader].home,
                size_gib=studied.flow.steps[tree.source].leaves_gib or 0.0,
                hours=tree.hours_of(source, target),
                cost=MicroUsd(round(tree.usd_of(source, target))),
            )
        )
    return made


def notes_of(studied: Studied) -> tuple[str, ...]:
    """What a person should know before believing the figures."""
    steps, notes = studied.flow.steps, []
    sizeless = [
        step.name
        for number, step in enumerate(steps)
        if step.leaves_gib is None and any(number in other.reads for other in steps)
    ]
    if sizeless:
        notes.append(f"what carrying the outputs of {named(sizeless)} costs is not counted: give output_size")
    if not studied.is_timed:
        untimed = [step.name for step, found in zip(steps, studied.studies, strict=True) if not is_timed(step, found)]
        notes.append(f"no estimate of the hours of {named(untimed)}: budget and deadline cannot be checked")
    alone = [step.name for step in steps if step.given is not None]
    if alone:
        notes.append(f"the tasks of {named(alone)} are planned by themselves, and the other steps around them")
    return tuple(notes)


def named(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"
