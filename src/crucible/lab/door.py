"""The Lab's own door, opened for a server on the same computer. It is found by its folder, each time anew: a Lab comes
and goes as it likes. Only the Lab that the server buys in is asked: another one is nobody's business here."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from crucible.client.errors import ServerTimeout, ServerUnreachable
from crucible.lab.fault_kinds import KINDS, FaultKind, Moment
from crucible.lab.running import Control, LocalLab
from crucible.model.errors import Busy, NoLab, Unreachable
from crucible.model.units import MicroUsd
from crucible.ports.lab import BillLine, FaultKindWords, LabBill, LabFault, LabMachine, LabNote, LabStatus

# It lives on this computer and answers within milliseconds, unless its disk or its owner stopped it.
TIMEOUT_S = 5.0
# More people than this do not look at once; a Lab that stands still must not gather requests without end.
THREADS, MOST_WAITING = 2, 32

START = 'crucible lab up; eval "$(crucible lab env aws)"; then start the server in that shell'


class LocalDoor:
    def __init__(self, environ: Mapping[str, str], url: str) -> None:
        """`url` is where the server buys."""
        self._lab = LocalLab.of(environ)
        self._url = url.rstrip("/")
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="lab")
        self._waiting = 0

    async def status(self, *, has_ended: bool) -> LabStatus:
        return _status(await self._asked(lambda door: door.status(is_everything=has_ended)))

    async def bill(self) -> LabBill:
        return _bill(await self._asked(lambda door: door.bill()))

    async def notes(self, after: int, machine: str | None) -> Sequence[LabNote]:
        said = await self._asked(lambda door: door.events(after, machine))
        return [LabNote(**{**one, "at": _time(one["at"])}) for one in said]

    async def console(self, machine: str) -> str:
        return str(await self._asked(lambda door: door.console(machine)))

    def kinds(self) -> Sequence[FaultKindWords]:
        return [_kind(kind) for kind in FaultKind]

    async def faults(self) -> Sequence[LabFault]:
        return [_fault(one) for one in await self._asked(lambda door: door.faults())]

    async def fail(self, rule: Mapping[str, Any]) -> LabFault:
        return _fault(await self._asked(lambda door: door.fail(**rule)))

    async def mend(self, rule: str) -> None:
        await self._asked(lambda door: door.clear_faults(rule))

    async def preempt(
        self, machines: Sequence[str], notice_s: float | None, **fitting: str | int | None
    ) -> Sequence[LabMachine]:
        said = await self._asked(lambda door: door.preempt(*machines, notice_s=notice_s, **fitting))
        return [_machine(one) for one in said]

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _asked(self, ask: Callable[[Control], Any]) -> Any:
        if self._waiting >= MOST_WAITING:
            raise Busy("the Lab is asked by too many at once; try again")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._ask, ask)
        finally:
            self._waiting -= 1

    def _ask(self, ask: Callable[[Control], Any]) -> Any:
        running = self._lab.running()
        if running is None:
            raise NoLab(f"no Lab is running in {self._lab.home}", hint=START)
        if running.url != self._url:
            raise NoLab(
                f"a Lab runs at {running.url}, but this server buys at {self._url}: start the server anew", hint=START
            )
        control = Control(running, timeout_s=TIMEOUT_S)
        try:
            return ask(control)
        except (ServerUnreachable, ServerTimeout) as error:
            raise Unreachable(f"the Lab at {running.url} does not answer: see {self._lab.log}") from error
        finally:
            control.close()


# --- from its words to ours -----------------------------------------------------------------------------------


def _status(said: Mapping[str, Any]) -> LabStatus:
    kept = ("url", "version", "account", "regions", "seed", "speed", "boot_scale", "enclosure", "prices", "counts")
    return LabStatus(
        **{name: said[name] for name in (*kept, "disks", "faults")},
        started_at=_time(said["started_at"]),
        now=_time(said["now"]),
        cost=MicroUsd(said["microusd"]),
        machines=[_machine(one) for one in said["machines"]],
    )


def _machine(said: Mapping[str, Any]) -> LabMachine:
    kept = ("id", "type", "market", "region", "zone", "state", "end", "private_address", "tags")
    return LabMachine(
        **{name: said[name] for name in kept},
        launched_at=_time(said["launched_at"]),
        ended_at=_maybe_time(said["ended_at"]),
        notice_at=_maybe_time(said["notice_at"]),
        taken_at=_maybe_time(said["taken_at"]),
        cost=MicroUsd(said["microusd"]) if "microusd" in said else None,
    )


def _bill(said: Mapping[str, Any]) -> LabBill:
    return LabBill(
        account=said["account"],
        until=_time(said["until"]),
        cost=MicroUsd(said["microusd"]),
        lines=[
            BillLine(
                resource=line["resource"],
                kind=line["kind"],
                from_at=_time(line["from_at"]),
                to_at=_time(line["to_at"]),
                cost=MicroUsd(line["microusd"]),
                note=line["note"],
            )
            for line in said["lines"]
        ],
    )


def _fault(said: Mapping[str, Any]) -> LabFault:
    optional = ("operation", "count", "status", "machine", "tag", "region", "type")
    return LabFault(
        id=said["id"],
        kind=said["kind"],
        probability=said["probability"],
        **{name: said.get(name) for name in optional},
        since=_maybe_time(said.get("since")),
        until=_maybe_time(said.get("until")),
        seconds=tuple(said["seconds"]) if "seconds" in said else None,
        asked=said.get("asked", 0),
        struck=said.get("struck", 0),
    )


def _kind(kind: FaultKind) -> FaultKindWords:
    known = KINDS[kind]
    return FaultKindWords(
        kind=kind.value,
        does=known.does,
        strikes="machines" if known.moment is Moment.BOOT else "requests",
        operations=() if known.operations == ("*",) else known.operations,
        seconds=known.seconds.default if known.seconds else None,
        statuses=known.statuses,
    )


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _maybe_time(seconds: float | None) -> datetime | None:
    return None if seconds is None else _time(seconds)
