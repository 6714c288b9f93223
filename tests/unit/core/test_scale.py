from dataclasses import replace
from datetime import timedelta

from crucible.core.scale import Course, is_elastic, resized, sizes, wanted_nodes
from crucible.model.spec import Constraints, Execution, Framework, JobSpec, Resources
from crucible.model.units import MicroUsd
from making import NOW

SPEC = JobSpec(
    entrypoint="train.py",
    framework=Framework.PYTORCH_DDP,
    resources=Resources(nodes=2, gpus=2),
    execution=Execution(min_nodes=1, max_nodes=6),
)
FINE = Course(spent=MicroUsd(0), is_late=False)
LATE = Course(spent=MicroUsd(0), is_late=True)
LIMITED = replace(SPEC, constraints=Constraints(budget=MicroUsd(100), deadline=NOW + timedelta(hours=1)))


def test_only_frameworks_that_can_change_their_size_are_elastic() -> None:
    assert is_elastic(SPEC)
    assert not is_elastic(replace(SPEC, framework=Framework.HOROVOD))
    assert not is_elastic(replace(SPEC, execution=Execution()))


def test_an_elastic_job_begins_as_large_as_it_can_and_no_smaller_than_its_least() -> None:
    assert sizes(SPEC) == (2, 1)
    assert sizes(replace(SPEC, execution=Execution(min_nodes=2, max_nodes=6))) == (2,)
    assert sizes(replace(SPEC, execution=Execution())) == (2,)


def test_machines_keep_their_size_when_their_number_changes() -> None:
    more = resized(replace(SPEC, resources=Resources(nodes=2, gpus=8)), 3)
    assert (more.resources.nodes, more.resources.gpus) == (3, 12)


def test_without_a_deadline_or_a_budget_it_takes_all_that_it_may() -> None:
    assert wanted_nodes(SPEC, 1, FINE) == 6


def test_in_time_it_only_gets_back_what_it_lost() -> None:
    assert wanted_nodes(LIMITED, 1, FINE) == 2
    assert wanted_nodes(LIMITED, 4, FINE) == 4


def test_late_it_grows_by_two_gpus_at_a_time_up_to_its_most() -> None:
    assert wanted_nodes(LIMITED, 2, LATE) == 4
    assert wanted_nodes(LIMITED, 5, LATE) == 6
    without_gpus = replace(LIMITED, resources=Resources(nodes=2))
    assert wanted_nodes(without_gpus, 2, LATE) == 3


def test_past_four_fifths_of_its_budget_it_buys_nothing_more() -> None:
    assert wanted_nodes(LIMITED, 1, Course(spent=MicroUsd(80), is_late=True)) == 1
    assert wanted_nodes(LIMITED, 1, Course(spent=MicroUsd(79), is_late=True)) == 3
