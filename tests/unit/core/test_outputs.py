"""What a task leaves behind and what a job is given of it, without storage."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from crucible.core import outputs
from crucible.model.attempt import Rank
from crucible.model.ids import Digest, JobId, NodeId
from crucible.model.job import Desired, Job
from crucible.model.launch import DatasetWork, OutputWork
from crucible.model.outputs import Input, OutputTotals, output_named, tree_named
from crucible.model.policy import Policy
from crucible.model.record import ArtifactType
from crucible.model.spec import Brought
from crucible.model.storage import parse
from crucible.model.task import Verdict
from crucible.spec import load
from crucible.testing.specimens import a_job, a_task

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SHA = Digest("ab" * 32)
WEIGHTS = Input(name="weights", digest=SHA, uri="s3://bucket/outputs/j1", size_bytes=3 << 30, home="aws/us-east-1")


def a_rank(number: int) -> Rank:
    return Rank(rank=number, node_id=NodeId("n"), node_rank=0, local_rank=number, devices=())


def test_the_first_rank_may_leave_something_within_the_limits() -> None:
    policy = Policy(output_bytes=7)
    assert outputs.work_of(a_rank(0), policy) == OutputWork(max_bytes=7, max_files=400_000, within_s=21600.0)
    assert outputs.work_of(a_rank(1), policy) is None


@pytest.mark.parametrize(
    ("verdict", "desired", "are_kept"),
    [
        (Verdict.PRUNED, Desired.RUN, True),
        (None, Desired.RUN, False),
        (Verdict.PRUNED, Desired.CANCEL, False),
        (Verdict.PRUNED, Desired.HOLD, False),
        (Verdict.SKIPPED, Desired.RUN, False),
    ],
)
def test_of_what_is_stopped_only_a_pruned_trial_leaves_something(
    verdict: Verdict | None, desired: Desired, are_kept: bool
) -> None:
    job = a_job(desired=desired)
    assert outputs.are_kept(job, a_task(job, verdict=verdict)) == are_kept


@pytest.mark.parametrize(
    ("uri", "home"),
    [
        ("file:///data/objects", "local/local"),
        ("s3://bucket/root", "aws/us-east-1"),
        ("s3://bucket/root/outputs/j1", "aws/us-east-1"),
        ("s3://bucket/rooted", "aws/"),
        ("gs://bucket", "gcp/"),
    ],
)
def test_the_home_of_storage_is_known_where_somebody_said_it(uri: str, home: str) -> None:
    assert outputs.home_of(parse(uri), {"aws/us-east-1": parse("s3://bucket/root")}) == home


def test_each_job_keeps_its_trees_apart() -> None:
    assert outputs.place_of(parse("s3://bucket/root"), JobId("j1")).uri == "s3://bucket/root/outputs/j1"


def test_a_spec_gets_digests_and_what_bringing_them_costs() -> None:
    spec = load("job: {command: [train], inputs: {weights: output://j1/0}}").spec
    given = outputs.with_inputs(spec, [WEIGHTS])
    assert given.inputs == {"weights": f"tree://{SHA}"}
    assert given.data == replace(spec.data, brought=(Brought(home="aws/us-east-1", size_gib=3.0),))
    assert outputs.with_inputs(spec, []) is spec


def test_a_launch_names_what_must_be_on_the_node() -> None:
    assert outputs.inputs_of(a_job(inputs=(WEIGHTS,))) == (DatasetWork(name="weights", digest=SHA),)


def test_a_job_that_left_something_has_one_artifact() -> None:
    job: Job = a_job()
    (said,) = outputs.artifact_of(job, OutputTotals(tasks=2, files=7, size_bytes=9), NOW)
    assert said.type is ArtifactType.OUTPUT and said.uri == "/v1/jobs/j1/outputs"
    assert said.meta == {"tasks": 2, "files": 7, "size_bytes": 9}
    assert outputs.artifact_of(job, OutputTotals(tasks=0, files=0, size_bytes=0), NOW) == ()


def test_what_belongs_to_no_tree_is_waste() -> None:
    stored = ["manifests/a", "manifests/b", "objects/1", "objects/2"]
    assert outputs.digests_in(stored, "manifests/") == ["a", "b"]
    assert outputs.waste(stored, {"manifests/a", "objects/1"}) == ["manifests/b", "objects/2"]


@pytest.mark.parametrize(
    ("address", "tree", "output"),
    [
        (f"tree://{SHA}", SHA, None),
        ("output://j1", None, ("j1", None)),
        ("output://j1/12", None, ("j1", 12)),
        ("output://j1/x", None, None),
        ("output://../j1", None, None),
        ("s3://bucket", None, None),
    ],
)
def test_an_address_names_a_tree_or_an_output(address: str, tree: str | None, output: Any) -> None:
    assert tree_named(address) == tree and output_named(address) == output
