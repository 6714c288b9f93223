"""Which mode a job runs in (requirement B6)."""

import pytest

from crucible.model.errors import InvalidSpec
from crucible.model.spec import Framework, JobType, Mode
from crucible.spec import load, select_mode

SYNCHRONOUS = ["pytorch_ddp", "horovod", "horovod_elastic", "tensorflow_multiworker"]
INDEPENDENT = ["hpo", "inference", "eval", "preprocessing"]


@pytest.mark.parametrize("framework", list(Framework))
@pytest.mark.parametrize("job_type", INDEPENDENT)
def test_independent_work_is_multi_task_whatever_its_framework(job_type: str, framework: Framework) -> None:
    assert select_mode(JobType(job_type), framework, None) is Mode.MULTI_TASK
    assert select_mode(JobType(job_type), framework, Mode.SINGLE_CLUSTER) is Mode.SINGLE_CLUSTER


@pytest.mark.parametrize("framework", list(Framework))
def test_training_is_single_cluster_unless_told_otherwise(framework: Framework) -> None:
    assert select_mode(JobType.TRAINING, framework, None) is Mode.SINGLE_CLUSTER


@pytest.mark.parametrize("framework", SYNCHRONOUS)
def test_synchronous_training_cannot_be_spread(framework: str) -> None:
    with pytest.raises(InvalidSpec, match="must share one provider, region and network"):
        select_mode(JobType.TRAINING, Framework(framework), Mode.MULTI_TASK)


@pytest.mark.parametrize("framework", ["plain", "pytorch", "tensorflow"])
def test_other_training_may_be_spread(framework: str) -> None:
    assert select_mode(JobType.TRAINING, Framework(framework), Mode.MULTI_TASK) is Mode.MULTI_TASK


@pytest.mark.parametrize("job_type", INDEPENDENT)
def test_the_mode_of_a_loaded_spec_is_chosen(job_type: str) -> None:
    sweep = ", sweep: {parameters: {lr: [1]}}" if job_type == "hpo" else ""
    assert load(f"job: {{type: {job_type}, command: x{sweep}}}").spec.execution.mode is Mode.MULTI_TASK
    assert load("job: {framework: horovod, command: x}").spec.execution.mode is Mode.SINGLE_CLUSTER
