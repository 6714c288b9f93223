"""What sacct and slurmrestd print of jobs that slurmctld has forgotten, and when they are asked."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest

from crucible.model.errors import ProviderError
from crucible.model.ids import OrderId
from crucible.model.lease import Machine, MachineState
from crucible.providers.slurm.accounting import COLUMNS, is_final, jobs_of, read_records
from crucible.providers.slurm.door import Door, Job, Record
from crucible.providers.slurm.listing import machines, purchases
from crucible.providers.slurm.recall import (
    ASK_EVERY_S,
    AWAY_S,
    GIVE_UP_S,
    KEEP_S,
    LOOK_BACK_S,
    MARGIN_S,
    NONE_KEPT_PAUSE_S,
    Recall,
)
from crucible.providers.slurm.request import machine_id
from crucible.providers.slurm.rest import record_of

FIRST, SECOND = (machine_id("d", OrderId("o1"), index) for index in (0, 1))
SUBMITTED = "sbatch --parsable --constraint=a|b --comment=crucible d o1 {} --output=/o"


def line(**said: str) -> str:
    usual = {"JobID": "7", "JobName": "crucible-o1", "State": "COMPLETED", "ExitCode": "0:0", "Start": "100"}
    usual |= {"End": "200", "NNodes": "2", "NodeList": "n[1-2]", "Comment": "crucible d o1 g2 0+101 1+102"}
    return "|".join(said.get(column, usual.get(column, "")) for column in COLUMNS)


def found(*lines: str) -> list[Machine]:
    jobs = [job for job in jobs_of(read_records(lines), "d") if is_final(job)]
    return [one for bought in purchases(jobs, "d", queues=True) for one in machines(bought, {})]


def ends(listed: Sequence[Machine]) -> list[int | None]:
    return [None if one.ended_at is None else int(one.ended_at.timestamp()) for one in listed]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"State": "COMPLETED"}, "its job ended (COMPLETED)"),
        ({"State": "CANCELLED by 0"}, "its job was cancelled (CANCELLED)"),
        ({"State": "NODE_FAIL"}, "its node failed (NODE_FAIL)"),
        ({"State": "FAILED", "ExitCode": "3:0"}, "its job ended with exit code 3 (FAILED)"),
        ({"State": "FAILED", "ExitCode": "0:9"}, "its job ended by signal 9 (FAILED)"),
        ({"State": "FAILED", "ExitCode": "0:127"}, "its job ended with exit code 0 (FAILED)"),
        ({"State": "FAILED", "ExitCode": ""}, "its job ended with exit code 0 (FAILED)"),
        ({"State": "OUT_OF_ME+"}, "(OUT_OF_ME+)"),
        ({"Comment": "crucible d o1 g2 0+101 ünï|code"}, "its job ended (COMPLETED)"),
        ({"Comment": "", "SubmitLine": SUBMITTED.format("g2")}, "its job ended (COMPLETED)"),
    ],
)
def test_a_job_that_has_ended_is_told_with_its_reason_and_its_end(said: dict[str, str], reason: str) -> None:
    listed = found(line(**said))
    assert [one.state for one in listed] == [MachineState.GONE] * 2 and ends(listed) == [200, 200]
    assert all(reason in (one.reason or "") for one in listed)
    assert [one.started_at.timestamp() for one in listed if one.started_at] == [100, 100]


@pytest.mark.parametrize(
    "text",
    [
        *(line(State=state, End="Unknown") for state in ("RUNNING", "PENDING", "COMPLETING", "COMPLETED", "NODE_FAIL")),
        line(End="None"),
        line(End="-5"),
        line(JobName="other"),
        line(JobID="x7"),
        line(JobID="7+0"),
        line(Comment="crucible other o1 g2"),
        line(Comment=""),
        line(Comment="", SubmitLine="sbatch --comment=crucible other o1 g2"),
        line(Comment="", SubmitLine="sbatch --comment=crucible d o1 g2x"),
        line().rpartition("|")[0],  # cut off
        "7|crucible-o1|COMP",
        "|" * 20,
        "",
        "sacct: error: slurmdbd is away",
    ],
)
def test_what_proves_no_end_of_ours_is_passed_over(text: str) -> None:
    assert found(text, line(JobID="7.0", JobName="slurm-0")) == []


def test_a_job_that_never_ran_costs_nothing() -> None:
    for said in ({"JobID": "7"}, {"JobID": "7_[0-1]", "Comment": "crucible d o1 a2"}, {"JobID": "7_[0,1%1]"}):
        given = {"Comment": "crucible d o1 a2", **said} if "_" in said["JobID"] else said
        listed = found(line(State="CANCELLED by 0", Start="None", NodeList="None assigned", **given))
        assert len(listed) == 2 and all(one.started_at is None and one.ended_at is None for one in listed)


def test_elements_of_an_array_are_jobs_of_their_own() -> None:
    given = {"Comment": "", "SubmitLine": SUBMITTED.format("a2"), "NNodes": "1", "NodeList": "n1"}
    listed = found(line(JobID="7_0", End="150", **given), line(JobID="7_1", State="TIMEOUT", End="180", **given))
    assert ends(listed) == [150, 180] and "(TIMEOUT)" in (listed[1].reason or "")


def test_of_a_job_that_was_put_back_into_the_queue_the_first_life_counts() -> None:
    lives = [line(State="REQUEUED", End="120"), line(Start="300", End="301", State="FAILED", ExitCode="1:0")]
    for told in (lives, lives[::-1], lives[:1]):
        listed = found(*told)
        assert ends(listed) == [120, 120] and "runs once" in (listed[0].reason or "")


def test_where_comments_are_not_stored_steps_tell_when_machines_ended() -> None:
    steps = [
        line(JobID="7.batch", JobName="batch"),
        line(JobID="7.0", JobName=FIRST, Start="101", End="150", State="CANCELLED by 0", ExitCode="0:15"),
        line(JobID="7.1", JobName=SECOND, Start="101", End="203"),
    ]
    for submitted in (SUBMITTED.format("g2"), ""):  # else nothing but their names tells whose they are
        listed = found(line(Comment="", SubmitLine=submitted), *steps)
        assert ends(listed) == [150, 200], "a step may be seen to end after its job"
        assert [one.reason for one in listed] == ["its step ended by signal 15", "its job ended (COMPLETED)"]
    assert found(line(Comment="", JobName="crucible-o2"), *steps) == []


def test_slurmrestd_tells_the_same_but_for_the_exit_code() -> None:
    said = {
        "job_id": 9, "array": {"job_id": 7, "task": None, "task_id": 1}, "name": "crucible-o1", "nodes": "n1",
        "comment": {"administrator": None, "job": "crucible d o1 a2", "system": None}, "allocation_nodes": 1,
        "exit_code": {"status": "SUCCESS", "return_code": 0}, "state": {"current": "FAILED", "reason": "None"},
        "time": {"start": 100, "end": 200}, "user": "ann", "steps": [],
    }  # fmt: skip
    (job,) = jobs_of([record_of(said)], "d")
    assert (job.handle, job.ended_at, is_final(job)) == ("7_1", 200, True)
    (bought,) = purchases([job], "d", queues=True)
    (machine,) = machines(bought, {})
    assert "nobody says with which exit code (FAILED)" in (machine.reason or "")
    never = {**said, "array": {"job_id": 7, "task": "0x5", "task_id": None}, "nodes": "None assigned"}
    assert [one.handle for one in jobs_of([record_of(never)], "d")] == ["7_0", "7_2"]


# --- when they are asked ------------------------------------------------------------------------------------------

RECORD = read_records([line()])[0]
(ENDED,) = jobs_of([RECORD], "d")
ALIVE = replace(ENDED, state="RUNNING", ended_at=None)


class Accounts:
    """A door that has nothing but accounts, and a clock."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.told: list[Record] | None = []
        self.is_away = False
        self.windows: list[int] = []
        self.recall = Recall("lake", cast(Door, self), "d", lambda: self.now)

    async def records(self, within_s: int) -> list[Record] | None:
        self.windows.append(within_s)
        if self.is_away:
            raise ProviderError("slurmdbd is away", provider="slurm")
        return self.told

    def look(self, *listed: Job, after_s: float = 2.0) -> list[Job]:
        self.now += after_s
        return asyncio.run(self.recall.forgotten(listed))


def test_the_accounts_are_asked_at_the_start_and_then_only_for_what_is_missing() -> None:
    accounts = Accounts()
    for _ in range(100):
        assert accounts.look(ALIVE) == []
    assert accounts.windows == [LOOK_BACK_S]
    accounts.told = [RECORD]
    assert accounts.look() == [ENDED] and accounts.windows[1:] == [MARGIN_S + 2]
    for _ in range(int(KEEP_S / 2) - 1):
        assert accounts.look() == [ENDED], "as long as slurmctld would have remembered it"
    assert accounts.look() == [] and len(accounts.windows) == 2


def test_an_end_that_slurmctld_has_told_is_asked_for_by_nobody() -> None:
    accounts = Accounts()
    accounts.look(ALIVE)
    accounts.look(replace(ALIVE, state="COMPLETED", ended_at=200))
    accounts.look()
    accounts.look(replace(ALIVE, id=8, comment="crucible other o1 g2"))
    accounts.look()
    assert len(accounts.windows) == 1


def test_who_was_away_asks_for_that_time() -> None:
    accounts = Accounts()
    accounts.look()
    accounts.told = [RECORD]
    assert accounts.look(after_s=AWAY_S - 1) == [] and len(accounts.windows) == 1
    assert accounts.look(after_s=1000) == [ENDED] and accounts.windows[1:] == [1000 + MARGIN_S]
    accounts.look(after_s=100 * LOOK_BACK_S)
    assert accounts.windows[2:] == [LOOK_BACK_S]


def test_an_end_that_is_not_in_the_accounts_yet_is_asked_for_again_but_not_for_ever() -> None:
    accounts = Accounts()
    accounts.told = [replace(RECORD, state="RUNNING", ended_at=None)]
    for _ in range(int(2 * GIVE_UP_S / 2)):
        assert accounts.look() == []
    assert 10 < len(accounts.windows) <= GIVE_UP_S / ASK_EVERY_S + 1
    accounts = Accounts()
    accounts.look(ALIVE)
    accounts.look()
    accounts.told = [RECORD]
    accounts.look(after_s=ASK_EVERY_S)
    assert accounts.look() == [ENDED]


def test_accounts_that_cannot_be_read_are_asked_ever_more_slowly() -> None:
    accounts = Accounts()
    accounts.is_away = True
    for _ in range(1800):
        assert accounts.look() == []
    assert 5 <= len(accounts.windows) <= 15 and set(accounts.windows) == {LOOK_BACK_S}
    accounts.is_away, accounts.told = False, [RECORD]
    assert [bool(accounts.look()) for _ in range(400)][-1] or accounts.windows[-1] == LOOK_BACK_S


def test_a_cluster_without_accounts_is_as_it_always_was() -> None:
    accounts = Accounts()
    accounts.told = None
    for _ in range(int(NONE_KEPT_PAUSE_S / 2) - 1):
        assert accounts.look(ALIVE) == [] and accounts.look(after_s=0) == []
    assert len(accounts.windows) == 1


def test_what_slurmctld_lists_is_what_counts() -> None:
    accounts = Accounts()
    accounts.told = [RECORD]
    younger = replace(ALIVE, id=8)
    assert accounts.look(younger) == [], "an order that runs has not ended"
    assert accounts.look(ALIVE) == []
    assert accounts.look() == [ENDED]
