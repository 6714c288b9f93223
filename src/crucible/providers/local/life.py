"""How a machine on this computer lives and ends. It is gone when nothing of it runs any more, and gone is for ever.

starting   its agent has not taken the lock yet, and is young
running    the agent holds the lock
stopping   asked to end, or the agent ended and left processes behind, which are killed
gone       recorded in gone.json; a late agent finds no boot.json and ends
"""

import signal
import time
from collections.abc import Callable
from datetime import timedelta

from crucible.agent import private
from crucible.model.ids import MachineId, OrderId
from crucible.model.lease import Machine, MachineState
from crucible.providers.local import containers, processes
from crucible.providers.local.folder import Ending, MachineFolder

ADDRESS = "127.0.0.1"
# Passes over all processes when a tree is killed: it may fork in between.
KILL_PASSES = 5
KILL_PAUSE_S = 0.02


class Life:
    """To be used by one at a time: under the provider's lock."""

    def __init__(self, boot_time: timedelta, stop_grace: timedelta, now: Callable[[], float]) -> None:
        self._boot_time_s = boot_time.total_seconds()
        self._stop_grace_s = stop_grace.total_seconds()
        self._now = now

    def look(self, folder: MachineFolder) -> Machine:
        """Its state, having ended what is left of a machine whose agent is dead or never came."""
        ending = folder.ending()
        if ending is not None:
            return machine(folder, MachineState.GONE, ending.reason)
        # Asked once: an agent may take its lock between two questions.
        if folder.has_run():
            return self._look_at_run(folder)
        return self._look_at_start(folder)

    def stop(self, folder: MachineFolder) -> None:
        """SIGTERM to the agent; once the grace is over, SIGKILL to everything that carries the machine's id."""
        asked_at = folder.ask_delete(self._now())
        if self.look(folder).state is MachineState.GONE:
            return
        if self._now() - asked_at >= self._stop_grace_s:
            self._kill(folder)
            self.look(folder)
        else:
            self._signal_agent(folder, signal.SIGTERM)

    def destroy(self, folder: MachineFolder) -> bool:
        """Undo a purchase that was never reported; False if something of it cannot be killed."""
        if not folder.prevent_start():
            self._signal_agent(folder, signal.SIGKILL)
        if not self._kill(folder):
            return False
        containers.remove_left(folder.path)
        private.remove_left(str(folder.path))
        folder.remove()
        return True

    def _look_at_run(self, folder: MachineFolder) -> Machine:
        is_deleted = folder.delete_asked_at() is not None
        if folder.is_locked():
            return machine(folder, MachineState.STOPPING if is_deleted else MachineState.RUNNING)
        if not self._kill(folder):
            return machine(folder, MachineState.STOPPING, "processes that its agent left behind are being killed")
        containers.remove_left(folder.path)
        private.remove_left(str(folder.path))
        said = folder.exit_reason() or ("deleted" if is_deleted else "its agent ended")
        return machine(folder, MachineState.GONE, self._end(folder, said).reason)

    def _look_at_start(self, folder: MachineFolder) -> Machine:
        is_deleted = folder.delete_asked_at() is not None
        age = self._now() - folder.record.created_at
        if age < self._boot_time_s and not is_deleted:
            return machine(folder, MachineState.STARTING)
        # It may win the race after all: then it is as good as started, and the next look finds it running.
        if not folder.prevent_start() or not self._kill(folder):
            return machine(folder, MachineState.STARTING)
        late = f"its agent did not start within {self._boot_time_s:g} s: {folder.last_output()}"
        reason = "deleted before its agent started" if is_deleted else late
        return machine(folder, MachineState.GONE, self._end(folder, reason).reason)

    def _end(self, folder: MachineFolder, reason: str) -> Ending:
        return folder.end(self._now(), reason)

    def _signal_agent(self, folder: MachineFolder, signum: signal.Signals) -> None:
        """The pid in the lock file is the agent's as long as the lock is held."""
        pid = folder.agent_pid()
        if pid is None or not folder.is_locked():
            return
        if processes.HAS_PROC:
            processes.signal_carrier(pid, folder.record.id, signum)
        else:
            processes.signal_group(pid, signum)

    def _kill(self, folder: MachineFolder) -> bool:
        """True when nothing carries the machine's id any more."""
        machine_id = folder.record.id
        if not processes.HAS_PROC:
            self._signal_agent(folder, signal.SIGKILL)
            return not folder.is_locked()
        for attempt in range(KILL_PASSES):
            if attempt:
                time.sleep(KILL_PAUSE_S)
            pids = processes.carriers([machine_id])[machine_id]
            if not pids:
                return True
            for pid in pids:
                processes.signal_carrier(pid, machine_id, signal.SIGKILL)
        return False


def machine(folder: MachineFolder, state: MachineState, reason: str | None = None) -> Machine:
    return Machine(
        id=MachineId(folder.record.id),
        order_id=OrderId(folder.record.order_id),
        index=folder.record.index,
        state=state,
        devices=folder.record.devices,
        address=ADDRESS,
        reason=reason,
    )
