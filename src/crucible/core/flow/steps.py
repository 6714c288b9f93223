"""From the steps of a workflow's spec to what is asked about them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from crucible.core.flow.question import Flow, FlowStep
from crucible.core.plan import Question
from crucible.core.proposal import Candidate
from crucible.model.spec import JobSpec, Step, Strategy, When
from crucible.model.steps import layers


def expected(steps: Sequence[Step]) -> list[int]:
    """Numbers of the steps that run if nothing fails, each after those that it needs."""
    by_name = {step.name: number for number, step in enumerate(steps)}
    runs: dict[str, bool] = {}
    for layer in layers({step.name: step.needs for step in steps}):
        for name in layer:
            step = steps[by_name[name]]
            needed = all(runs[need] for need in step.needs)
            runs[name] = step.when is When.ENDED or (step.when is When.SUCCEEDED and needed)
    return [number for number, step in enumerate(steps) if runs.get(step.name)]


def flow_of(
    spec: JobSpec,
    jobs: Sequence[JobSpec],
    given: Mapping[int, Candidate],
    *,
    now: datetime,
    enabled: frozenset[str],
    strategy: Strategy | None = None,
) -> Flow:
    """`jobs` are what planning sees of the steps, all of them; `given` are those that were planned by themselves. What
    a step needs that does not run is no reason to wait."""
    steps = spec.steps
    numbers = expected(steps)
    at = {steps[number].name: index for index, number in enumerate(numbers)}
    limits = spec.constraints
    made = [
        FlowStep(
            name=steps[number].name,
            question=Question(spec=jobs[number], now=now, enabled=enabled, strategy=strategy),
            needs=tuple(at[need] for need in steps[number].needs if need in at),
            reads=read_by(steps[number], at),
            leaves_gib=steps[number].output_gib,
            given=given.get(number),
        )
        for number in numbers
    ]
    objective = strategy or limits.strategy or Strategy.BALANCED
    return Flow(steps=tuple(made), limits=replace(limits, strategy=objective), objective=objective, now=now)


def read_by(step: Step, at: Mapping[str, int]) -> tuple[int, ...]:
    """A tree is fetched once, however many inputs name a part of it."""
    names = dict.fromkeys(source.partition("/")[0] for source in step.inputs.values())
    return tuple(at[name] for name in names if name in at)
