"""Which of the two ways to run a job has: one cluster for work that must be together, tasks for work that need not."""

from crucible.model.spec import Framework, JobType, Mode
from crucible.spec.problems import NOWHERE, Problem, invalid_spec

_INDEPENDENT = frozenset((JobType.HPO, JobType.INFERENCE, JobType.EVAL, JobType.PREPROCESSING))
_SYNCHRONOUS = frozenset(
    (Framework.PYTORCH_DDP, Framework.HOROVOD, Framework.HOROVOD_ELASTIC, Framework.TENSORFLOW_MULTIWORKER)
)
MODE_HINT = "use single_cluster, or leave mode out"


def select_mode(spec_type: JobType, framework: Framework, explicit: Mode | None) -> Mode:
    """Seed 000's rule. The tasks of a sweep are independent even if each of them trains synchronously inside."""
    conflict = mode_conflict(spec_type, framework, explicit)
    if conflict:
        raise invalid_spec([Problem(*NOWHERE, "job.execution.mode", conflict, MODE_HINT)])
    if explicit is not None:
        return explicit
    return Mode.MULTI_TASK if spec_type in _INDEPENDENT else Mode.SINGLE_CLUSTER


def mode_conflict(spec_type: JobType, framework: Framework, explicit: Mode | None) -> str:
    """Why `explicit` cannot be, or ""."""
    if explicit is not Mode.MULTI_TASK or spec_type in _INDEPENDENT or framework not in _SYNCHRONOUS:
        return ""
    return (
        f"multi_task cannot run {framework}: its workers exchange gradients at every step, so they must share one "
        "provider, region and network"
    )
