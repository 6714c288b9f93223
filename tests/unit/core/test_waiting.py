"""Every sentence that says why a task waits is of one kind, and of the right one."""

import pytest

from crucible.core.waiting import Waits, kind_of


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("waits: needs 4 free GPUs, 1 are free (local)", Waits.CAPACITY),
        ("waits: needs 2 machines, there are 1 free (onprem)", Waits.CAPACITY),
        ("waits: needs 3 machines, 0 can be had (aws p4d.24xlarge)", Waits.CAPACITY),
        ("waits: sold out; asked again after 10:00:00 UTC (aws p4d.24xlarge)", Waits.CAPACITY),
        ("waits: others are using up the quota vCPUs", Waits.QUOTA),
        ("waits: all tasks together would pass a quota (aws x)", Waits.QUOTA),
        ("waits: costs more per hour than the spec allows (aws x)", Waits.PRICE),
        ("waits: would cost more than the budget (aws x)", Waits.BUDGET),
        ("waits: would not finish before the deadline (aws x)", Waits.DEADLINE),
        ("waits: is too likely to miss: less than 0.9 to finish within the limits (aws x)", Waits.DEADLINE),
        (
            "waits: of the budget team:vision:once of $10.00 less is left than the $6.09 that its machines need to "
            "begin; `crucible budget top-up team:vision:once` adds to it",
            Waits.BUDGET,
        ),
        ("needs H100, it has T4 (local)", Waits.NOTHING_FITS),
        ("waits: needs 80 GB per GPU, it has 16 (aws x)", Waits.NOTHING_FITS),
        ("nothing is for sale: no provider is enabled", Waits.NOTHING_FITS),
    ],
)
def test_a_sentence_is_of_its_kind(sentence: str, kind: Waits) -> None:
    assert kind_of(sentence, has_run=False) is kind


def test_a_task_that_nobody_looked_at_is_new() -> None:
    assert kind_of(None, has_run=False) is Waits.NEW


def test_a_task_that_ran_and_says_why_that_ended_waits_for_its_retry() -> None:
    assert kind_of("machine m-1 is gone", has_run=True) is Waits.RETRY
    assert kind_of(None, has_run=True) is Waits.RETRY


def test_a_task_that_ran_and_finds_no_room_waits_for_room() -> None:
    assert kind_of("waits: needs 4 free GPUs, 1 are free (local)", has_run=True) is Waits.CAPACITY
