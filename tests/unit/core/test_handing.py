"""What a step is given: items of a list, folders, and whose result stands for it."""

import pytest

from crucible.core.handing import MOST_ITEMS, Handed, is_in, items_of, source_of, variable
from crucible.core.workflow import Part
from crucible.model.dataset_tree import Entry, tree_of
from crucible.model.errors import InvalidRequest
from crucible.model.ids import JobId
from crucible.model.spec import JobSpec, Step
from crucible.model.task import TaskPhase
from making import a_job, a_task

STEP = Step(name="a", job=JobSpec(command=("x",)))


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"one\ntwo\n\nthree", [{"item": "one"}, {"item": "two"}, {"item": "three"}]),
        (b' ["a", 1, 2.5, true]', [{"item": "a"}, {"item": 1}, {"item": 2.5}, {"item": True}]),
        (b'[{"lr": 0.1, "model": "x"}]', [{"lr": 0.1, "model": "x"}]),
    ],
)
def test_a_list_is_json_or_lines(data: bytes, found: list[object]) -> None:
    assert items_of(data, "a/list") == found


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "has 0 items"),
        (b"[]", "has 0 items"),
        (b"x\n" * (MOST_ITEMS + 1), f"has {MOST_ITEMS + 1} items; a step takes 1 to {MOST_ITEMS}"),
        (b"[1, 2", "neither a JSON list nor lines"),
        (b"\xff\xfe", "neither a JSON list nor lines"),
        (b'[["nested"]]', "item 0 is neither"),
        (b"[1, null]", "item 1 is neither"),
        (b"[{}]", "item 0 is neither"),
        (b'[{"a": [1]}]', "item 0 is neither"),
    ],
)
def test_a_list_that_is_none_is_told(data: bytes, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        items_of(data, "a/list")


def test_a_path_is_a_file_or_a_folder_of_the_tree() -> None:
    tree, _ = tree_of([Entry("data/a.csv", 1, "0" * 64), Entry("b", 1, "1" * 64)])
    assert is_in(tree, "data") and is_in(tree, "data/a.csv") and is_in(tree, "b")
    assert not is_in(tree, "dat") and not is_in(tree, "data/a.csv/x") and not is_in(tree, "c")


def test_a_reused_step_has_another_job_s_result_and_one_that_failed_has_none() -> None:
    done = a_task(phase=TaskPhase.SUCCEEDED)
    assert source_of(Part(STEP, done, a_job(id=JobId("child")))) == "child"
    assert source_of(Part(STEP, a_task(phase=TaskPhase.SUCCEEDED, params={"job": "older"}), None)) == "older"
    assert source_of(Part(STEP, a_task(phase=TaskPhase.FAILED), a_job())) is None
    assert source_of(Part(STEP, a_task(), a_job())) is None


def test_what_is_handed_over_becomes_fields_of_a_spec() -> None:
    assert Handed().fields() == {}
    told = Handed({"data": "output://j/0"}, {"INPUT_DATA": "data"}, [{"item": 1}]).fields()
    assert told == {
        "inputs": {"data": "output://j/0"},
        "env": {"INPUT_DATA": "data"},
        "sweep": {"method": "list", "trials": [{"item": 1}], "max_failures": 0},
    }
    assert variable("my-data") == "INPUT_MY_DATA"
