"""The Lab itself: a world whose machines are processes. One loop lets the world's time pass and does what follows from
it; front ends ask the world directly and `wake` the loop when they changed something."""

import asyncio
import logging
from collections.abc import Coroutine

from crucible import catalog
from crucible.lab import geography, history, scenario_file
from crucible.lab.clock import LabClock
from crucible.lab.enclosure import Enclosure, probe
from crucible.lab.faults import Context, Fault, FaultKind, Faults, Moment
from crucible.lab.guests import Guests
from crucible.lab.journal import Journal
from crucible.lab.scenario import Action, Scenario, carry_out
from crucible.lab.settings import GUESTS, LabAccount, Settings
from crucible.world.machine import End, Happening, Machine, State, What
from crucible.world.world import World

log = logging.getLogger("crucible.lab")

# The loop looks at least so often, in real seconds: nothing depends on it but how soon a mistake mends itself.
LONGEST_NAP_S = 5.0
# A machine that stops has this share of its time to end by itself; what is left then is killed, so that nothing of it
# runs when the world says that it has ended.
GRACE = 0.6
BROKEN_USER_DATA = b"#!/bin/sh\necho 'cloud-init: user-data failed: exit status 1'\nexit 1\n"
AT_WORK = (State.PENDING, State.RUNNING)


class Lab:
    """`details` is what a front end knows of a machine and the world does not (its image, say), for the metadata."""

    def __init__(
        self,
        settings: Settings,
        world: World,
        clock: LabClock,
        account: LabAccount,
        *,
        enclosure: Enclosure,
        scenario: Scenario,
        has_recorded_prices: bool = False,
    ) -> None:
        self.settings = settings
        self.world = world
        self.clock = clock
        self.account = account
        self.faults = Faults(settings.seed)
        self.guests = Guests(settings.home / GUESTS, enclosure, self._hear)
        self.has_recorded_prices = has_recorded_prices
        self.journal = Journal()
        self.details: dict[str, dict[str, str]] = {}
        self.url = ""  # known once the port is
        self._scenario = scenario
        self._ailments: dict[str, dict[FaultKind, Fault]] = {}  # of machines, from their boot on
        self._struck = 0
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopping = False

    # --- life -----------------------------------------------------------------------------------------------

    async def run(self, url: str) -> None:
        """Until cancelled; then every machine is gone."""
        self.url = url
        self.guests.prepare()
        self._scenario.start(self.clock.now())
        try:
            while True:
                self._changed.clear()
                self.advance()
                await self._nap()
        finally:
            self._is_stopping = True
            await self.guests.stop()

    def wake(self) -> None:
        self._changed.set()

    def now(self) -> float:
        return self.clock.now()

    def advance(self) -> None:
        """Everything that is due by now has happened afterwards, or is under way."""
        now = self.now()
        for action in self._scenario.due(now):
            self._play(action, now)
        for happening in self.world.tick(now):
            self._follow(happening)
        for number, fault in self.faults.struck(self._struck):
            self._struck = number
            self.journal.write(fault.at, "fault", fault.chosen or fault.operation, fault.note())

    async def settle(self) -> None:
        """The same, and nothing runs any more of machines that have ended."""
        self.advance()
        await self.guests.settled()

    async def _nap(self) -> None:
        dues = [at for at in (self.world.next_at(), self._scenario.next_at()) if at is not None]
        delay = min((self.clock.real_delay(at - self.now()) for at in dues), default=LONGEST_NAP_S)
        try:
            async with asyncio.timeout(min(delay, LONGEST_NAP_S)):
                await self._changed.wait()
        except TimeoutError:
            pass

    # --- what follows from what happens ------------------------------------------------------------------------

    def _follow(self, happening: Happening) -> None:
        if happening.what is not What.PRICE_CHANGED:  # so many that they would hide the rest; there is a history
            self.journal.write(happening.at, happening.what, happening.subject, happening.note)
        match happening.what:
            case What.BOOTED:
                self._spawn(self._boot(happening.subject))
            case What.STOPPING:
                self.guests.press_power(happening.subject)
                self._spawn(self._end_in_time(happening.subject))
            case What.SHUT_DOWN:
                self.guests.kill(happening.subject)
            case What.ENDED:
                self.guests.kill(happening.subject)
                self._forget_later(happening.subject)
            case _:
                pass

    async def _boot(self, machine_id: str) -> None:
        machine = self.world.machine(machine_id)
        if machine.state is not State.RUNNING:  # it ended before its turn came
            return
        ailments = self._fall_ill(machine)
        user_data = BROKEN_USER_DATA if FaultKind.USER_DATA_FAILS in ailments else machine.user_data
        try:
            await self.guests.start(machine_id, user_data, self.url)
        except OSError as error:
            log.error("%s cannot be started: %s", machine_id, error)
            self._hear(machine_id, f"dead: {error}")
        death = ailments.get(FaultKind.SUDDEN_DEATH)
        if death is not None:
            self._spawn(self._die(machine, death.seconds))

    def _fall_ill(self, machine: Machine) -> dict[FaultKind, Fault]:
        """What is wrong with it from its boot on."""
        if self.faults.is_quiet(Moment.BOOT):
            return {}
        context = Context(
            now=self.now(),
            region=machine.region,
            type=machine.type,
            tags=machine.tags,
            machines={machine.id: machine.tags},
        )
        found = {fault.kind: fault for fault in self.faults.at_boot(context)}
        self._ailments[machine.id] = found
        if FaultKind.ORPHAN_DISK in found:
            self.world.keep_disk(machine.disk_id)
        if (late := found.get(FaultKind.NOTICE)) is not None:
            self.world.set_notice(machine.id, late.seconds, self.now())
        return found

    async def _die(self, machine: Machine, after_s: float) -> None:
        """Without notice, as hardware does."""
        await asyncio.sleep(self.clock.real_delay(after_s))
        self.world.end(machine.account, machine.id, self.now(), by=End.SELLER)
        self.advance()

    def _forget_later(self, machine_id: str) -> None:
        """When the world no longer shows it, nobody asks for what it printed either."""
        delay = self.clock.real_delay(self.world.facts.remember_s)
        asyncio.get_running_loop().call_later(delay, self._forget, machine_id)

    def _forget(self, machine_id: str) -> None:
        self.guests.forget(machine_id)
        self.details.pop(machine_id, None)
        self._ailments.pop(machine_id, None)

    async def _end_in_time(self, machine_id: str) -> None:
        stops_at = self.world.machine(machine_id).stops_at or self.now()
        await asyncio.sleep(self.clock.real_delay((stops_at - self.now()) * GRACE))
        self.guests.kill(machine_id)

    def _hear(self, machine_id: str, word: str) -> None:
        """What a machine says of itself: that its user-data ended, that it switches itself off, or its last."""
        if self._is_stopping:
            return
        if word.startswith("exit "):
            self.journal.write(self.now(), "user-data-ended", machine_id, f"with exit code {word[5:]}")
            return
        self.journal.write(self.now(), "switched-off", machine_id, "by itself" if word == "off" else word)
        self.world.shut_down(machine_id, self.now())
        self.advance()
        self.wake()

    def _play(self, action: Action, now: float) -> None:
        self.journal.write(now, "scenario", self._scenario.name, carry_out(action, self.world, self.faults, now))

    # --- what others ask ----------------------------------------------------------------------------------------

    def ailment(self, machine_id: str, kind: FaultKind) -> Fault | None:
        return self._ailments.get(machine_id, {}).get(kind)

    def preempt(self, machine_id: str, notice_s: float | None) -> None:
        """Raises Refused."""
        self.world.preempt(machine_id, self.now(), notice_s)
        self.advance()
        self.wake()

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("the Lab stumbled", exc_info=error)


def make(settings: Settings, account: LabAccount) -> Lab:
    """Reads the catalog and the recorded prices, which takes most of a second. Raises InvalidRequest for a region that
    nobody knows, and BadScenario."""
    scenario = scenario_file.load(settings.scenario) if settings.scenario else Scenario("nothing")
    clock = LabClock(settings.speed)
    prices = history.History(clock.started_at, settings.seed, history.read(settings.data, settings.regions))
    facts = geography.facts(
        catalog.load(),
        settings.regions,
        account.id,
        prices.line,
        boot_scale=settings.boot_scale,
        hazard=settings.hazard,
    )
    # Every Lab has an account of its own, and so names of its own: what two of them sell is never mistaken.
    world = World(scenario.shaped(facts, clock.started_at), seed=settings.seed, salt=account.id)
    return Lab(
        settings,
        world,
        clock,
        account,
        enclosure=probe(),
        scenario=scenario,
        has_recorded_prices=prices.is_recorded,
    )
