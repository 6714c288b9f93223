"""What machines said before their agents could: the end of a console tells why a machine never became a node."""

from dataclasses import replace

from crucible.engine.context import Context, log
from crucible.model.errors import ProviderError
from crucible.model.ids import MachineId
from crucible.model.lease import Lease, LeasePhase, Machine, MachineState
from crucible.ports.seller import Remembers, Seller

WORDS_TIMEOUT_S = 15.0
LAST_LINES = 3
# Of the time that an agent has: in the last part of it, it is late.
LATE = 1 / 4


class Consoles:
    def __init__(self, context: Context, seller: Seller) -> None:
        self._context = context
        self._seller = seller

    async def listen(self, lease: Lease, machine: Machine) -> Machine:
        """The machine with its last words, if it ended without an agent. Those of one whose agent is late are kept for
        whoever gives it up."""
        if lease.node_id is not None or not isinstance(self._seller, Remembers):
            return machine
        if machine.state is MachineState.GONE:
            said = await self._last_words(self._seller, machine.id)
            return replace(machine, reason=f"{machine.reason or 'the machine ended'}; {said}") if said else machine
        if self._is_late(lease):
            said = await self._last_words(self._seller, machine.id)
            self._context.last_words |= {lease.id: said} if said else {}
        return machine

    def forget(self, lease: Lease) -> None:
        self._context.last_words.pop(lease.id, None)

    def _is_late(self, lease: Lease) -> bool:
        if lease.deadline_at is None or lease.phase is not LeasePhase.ACTIVE:
            return False
        return lease.deadline_at - self._context.clock.now() <= self._seller.facts.boot_time * LATE

    async def _last_words(self, seller: Remembers, machine: MachineId) -> str | None:
        try:
            words = await self._context.clock.wait_for(seller.last_words(machine), WORDS_TIMEOUT_S)
        except (ProviderError, TimeoutError, OSError) as error:
            log.warning("the console of %s cannot be read: %s", machine, error)
            return None
        lines = [line.strip() for line in (words or "").splitlines() if line.strip()]
        return f"its console ends with: {' | '.join(lines[-LAST_LINES:])}" if lines else None
