"""A cancel in every state ends CANCELLED and leaves nothing alive, whatever the job is doing at that moment."""

import os
import signal
from pathlib import Path

from crash.harness import World, world
from crash.server_process import until
from crash.stories import Story, blocked, cancelled_running, occupying, stubborn
from crash.verdict import judge
from crucible.providers.local import processes
from crucible.providers.local.folder import MachineFolder

# Catching an agent between its start and its first words is a matter of luck.
TRIES = 3


def test_a_cancel_in_any_state_ends_cancelled_and_leaves_nothing_alive(tmp_path: Path) -> None:
    with world(tmp_path) as made:
        made.server.start().wait_ready()
        occupier = made.tell(occupying)
        made.wait_for_witness(occupier)
        made.tell(stubborn)  # takes its whole grace: the others go on meanwhile
        made.tell(blocked)
        made.tell(cancelled_running)
        made.begin(cancelled("saving", "slow-save", deed_when="checkpointing"))
        made.begin(cancelled("held", "until-told"), lambda story, job: cancel_held(made, job))
        retrying = cancelled("retrying", "fail-below:9", limit=5, delay="1h")
        made.begin(retrying, lambda story, job: cancel_retrying(made, story, job))
        cancel_while_its_agent_starts(made)
        made.permit(occupier)
        made.wait_for_people()
        verdict = judge(made, 0)
        verdict.assert_good()


def cancelled(name: str, *verbs: str, **more: object) -> Story:
    return Story(name, verbs, ends="cancelled", deed="cancel", **more)  # type: ignore[arg-type]


def cancel_held(made: World, job_id: str) -> None:
    made.wait(job_id, {"running"})
    made.insist(lambda c: c.hold(job_id))
    made.wait(job_id, {"pending"})
    made.insist(lambda c: c.cancel(job_id))


def cancel_retrying(made: World, story: Story, job_id: str) -> None:
    made.wait_for_witness(story, "end")
    until("it waits for its retry", lambda: made.insist(lambda c: c.job(job_id))["attempts"]["failures"] == 1)
    made.insist(lambda c: c.cancel(job_id))


# --- between scheduled and running -------------------------------------------------------------------------


def cancel_while_its_agent_starts(made: World) -> None:
    statuses = [cancel_one_that_starts(made, f"starting-{number}") for number in range(TRIES)]
    assert {"scheduled", "provisioning"} & set(statuses), f"no agent was caught in time: {statuses}"


def cancel_one_that_starts(made: World, name: str) -> str:
    """The status of the job when it was cancelled."""
    story = Story(name, ("until-told",), ends="cancelled", starts=(0, 1))
    caught: list[str] = []
    made.begin(story, lambda _, job: caught.append(cancel_stopped(made, job)))
    until(f"{name} is cancelled", lambda: bool(caught))
    return caught[0]


def cancel_stopped(made: World, job_id: str) -> str:
    """Stop the agent as soon as it is there."""
    os.kill(first_process(machine_of(made, job_id)), signal.SIGSTOP)
    status = made.insist(lambda c: c.job(job_id))["status"]
    made.insist(lambda c: c.cancel(job_id))
    return status


def machine_of(made: World, job_id: str) -> str:
    found: list[str] = []

    def is_made() -> bool:
        events = made.insist(lambda c: c.events(job_id, everything=True))
        orders = {event["id"] for event in events if event["kind"] == "order"}
        folders = filter(None, map(MachineFolder.read, made.machines() if orders else ()))
        found.extend(folder.record.id for folder in folders if folder.record.order_id in orders)
        return bool(found)

    until("a machine is made", is_made, every_s=0.001)
    return found[0]


def first_process(machine: str) -> int:
    until("its agent starts", lambda: bool(processes.carriers([machine])[machine]), every_s=0.001)
    return processes.carriers([machine])[machine][0]
