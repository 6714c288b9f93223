"""The tasks of a job: how many, who gives them machines, and what each of them is given."""

from collections.abc import Sequence

from crucible.core import sweep
from crucible.core.cycle import shape
from crucible.core.scale import is_elastic
from crucible.model.errors import InfeasibleJob
from crucible.model.spec import Framework, JobSpec, Mode
from crucible.model.sweep import Params
from crucible.model.task import TaskKind

MOST_TASKS = 100_000
# Several of one job on one machine do not get in each other's way.
_SEATABLE = frozenset({Framework.PLAIN, Framework.PYTORCH, Framework.PYTORCH_DDP, Framework.TENSORFLOW})
# Workers of a job whose items nobody limits: more than a plan would buy, fewer than would cost anything to keep.
MOST_WORKERS = 256


def kind_of(spec: JobSpec) -> TaskKind:
    """Tasks that fit on one machine share machines of the job, one after another or side by side. Gangs do not."""
    if spec.steps:
        return TaskKind.STEP
    is_many = spec.sweep is not None or spec.evaluation is not None or spec.shards is not None
    is_small = shape(spec.resources).nodes == 1 and not is_elastic(spec) and spec.framework in _SEATABLE
    is_apart = spec.execution.mode is Mode.MULTI_TASK
    return TaskKind.SEATED if is_many and is_small and is_apart else TaskKind.ALONE


def given(spec: JobSpec, shards: int = 0) -> Sequence[Params | None]:
    """What each task is given, in their order. `shards` are those that the workers of the job share. Raises
    InfeasibleJob."""
    if spec.steps:
        return [{"step": step.name} for step in spec.steps]
    if spec.sweep is not None:
        found: Sequence[Params | None] = sweep.trials(spec.sweep)
    elif spec.evaluation is not None:
        found = sweep.pairs(spec.evaluation)
    elif spec.shards is not None:
        found = [None] * min(shards, spec.shards.workers or spec.execution.parallelism or MOST_WORKERS)
    else:
        found = [None]
    if not found:
        raise InfeasibleJob("it has no tasks: give at least one trial, item or step", field="job")
    if len(found) > MOST_TASKS:
        raise InfeasibleJob(f"it has {len(found):,} tasks, and {MOST_TASKS:,} are the most", field="job")
    return found


def tolerated(spec: JobSpec) -> int:
    """Tasks that may fail without failing the job. Workers may: whether every item is done decides."""
    if spec.shards is not None:
        return MOST_TASKS
    many = spec.sweep or spec.evaluation
    if many is None:
        return 0
    return MOST_TASKS if many.max_failures is None else many.max_failures
