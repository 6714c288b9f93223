"""A thousand machines and a thousand people who watch, a tenth of whom do not read: what that costs the server, and how
late news are for those who do. Machines are pretended by this process, over the agents' own protocol, each with a long
poll and a report every ten seconds; the first of every gang prints the time once a second. Its log is long already, so
that whoever does not read soon holds up whoever writes to it."""

import asyncio
import json
import resource
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import uvloop

from benchmarks import gangs, server, timing
from benchmarks.figure import Figure
from benchmarks.line import Line, Refused, deaf

GANGS, NODES = 10, 100
WATCHERS = 1000
DEAF = 100  # of these
SILENCE_S = 100  # a node is asked for ten reports in that time
REPORT_EVERY_S = 10.0
SPEAK_EVERY_S = 1.0
WARM_UP_S = 10.0
MEASURE_S = 30.0  # less than it takes the server to hang up on those who do not read
SET_UP_S = 300.0
BACKLOG, AT_ONCE = 10_000, 1000  # lines of 100 bytes
FILES = 10_000
BUSY = (409, 429, 503)
GANG = f"job: {{name: a gang, command: [sleep, '600'], resources: {{nodes: {NODES}}}}}"


def measure() -> Iterator[Figure]:
    _allow_files()
    more = {"CRUCIBLE_BENCH_MACHINES": str(GANGS * NODES)}
    with server.running("--silence", str(SILENCE_S), more=more, program=gangs.PROGRAM) as one:
        crowd = Crowd(one, [Machine(one, boot) for boot in _boots(one)])
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(crowd.live())
        yield from crowd.figures()


def _allow_files() -> None:
    """For this process and the server that it starts."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(FILES, most), most))


def _boots(one: server.Server) -> Sequence[dict[str, Any]]:
    for _ in range(GANGS):
        one.submit(GANG)
    machines = one.home / "local" / "machines"

    def made() -> list[Path]:
        return sorted(machines.glob("*/boot.json"))

    timing.until(lambda: len(made()) == GANGS * NODES, "the machines", SET_UP_S)
    return [json.loads(path.read_text()) for path in made()]


class Machine:
    """An agent with one rank, which never ends."""

    def __init__(self, one: server.Server, boot: dict[str, Any]) -> None:
        self._one = one
        self._boot = boot
        self._key = ""
        self._said = 0
        self.launch: dict[str, Any] = {}
        self.has_begun = asyncio.Event()
        self.reports = 0

    async def live(self) -> None:
        line = await Line.open(self._one)
        message, token = gangs.enrolment_of(self._boot), self._boot["enrolment_token"]
        self._key = (await self._asked(line, "POST", "/agent/v1/enrol", token, message))["node_key"]
        async with asyncio.TaskGroup() as group:
            group.create_task(self._poll(line))
            group.create_task(self._report(await Line.open(self._one)))

    async def _poll(self, line: Line) -> None:
        seen = ""
        while True:
            work = await self._asked(line, "GET", f"/agent/v1/work?wait=30&seen={seen}", self._key)
            seen = work["version"]
            if work["ranks"] and not self.launch:
                self.launch = work["ranks"][0]["launch"]
                await self._tell(line, ranks=[{**self._rank(), "state": "started", "log_lines": 0}])
                self.has_begun.set()

    async def _report(self, line: Line) -> None:
        while True:
            await asyncio.sleep(REPORT_EVERY_S)
            await self._tell(line, usage={"cpu_percent": 50.0, "memory_bytes": 1e9})
            self.reports += 1

    async def say_much(self) -> None:
        line = await Line.open(self._one)
        for _ in range(BACKLOG // AT_ONCE):
            await self._say(line, ["x" * 100] * AT_ONCE)

    async def speak(self) -> None:
        line = await Line.open(self._one)
        while True:
            await self._say(line, [f"{time.time():.6f}"])
            await asyncio.sleep(SPEAK_EVERY_S)

    async def _say(self, line: Line, texts: Sequence[str]) -> None:
        now, first = int(time.time() * 1000), self._said
        self._said += len(texts)
        log = [{"n": first + number, "t": now, "s": "out", "x": text} for number, text in enumerate(texts)]
        rank = {name: self.launch[name] for name in ("attempt_id", "rank", "number")}
        await self._tell(line, streams=[{**rank, "log": log, "metrics": []}])

    def _rank(self) -> dict[str, Any]:
        return {name: self.launch[name] for name in ("attempt_id", "rank", "generation")}

    async def _tell(self, line: Line, **said: object) -> None:
        await self._asked(line, "POST", "/agent/v1/report", self._key, {"boot_id": "b", **said})

    async def _asked(self, line: Line, method: str, path: str, token: str, body: object = None) -> Any:
        while True:
            try:
                return await line.ask(method, path, token, body)
            except Refused as refused:
                if refused.status not in BUSY:
                    raise
                await asyncio.sleep(0.2)


class Crowd:
    def __init__(self, one: server.Server, machines: Sequence[Machine]) -> None:
        self._one = one
        self._machines = machines
        self._late: list[float] = []
        self._watching = asyncio.Semaphore(0)  # one for each who does
        self._is_measuring = False
        self._spent = timing.Spent(0, 0)
        self._reports = 0
        self._deaf: list[socket.socket] = []
        self._rss_mb = 0.0

    async def live(self) -> None:
        """Whoever fails ends all of it."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(machine.live()) for machine in self._machines]
            async with asyncio.timeout(SET_UP_S):
                await asyncio.gather(*(machine.has_begun.wait() for machine in self._machines))
            first = [machine for machine in self._machines if machine.launch["rank"] == 0]
            await asyncio.gather(*(machine.say_much() for machine in first))
            tasks += [group.create_task(machine.speak()) for machine in first]
            paths = [f"/v1/jobs/{job_id}/stream" for job_id in sorted({m.launch["job_id"] for m in self._machines})]
            tasks += [group.create_task(self._watch(paths[n % GANGS])) for n in range(WATCHERS - DEAF)]
            async with asyncio.timeout(SET_UP_S):
                for _ in range(WATCHERS - DEAF):
                    await self._watching.acquire()
            await asyncio.sleep(WARM_UP_S)
            self._deaf = [deaf(self._one, paths[n % GANGS], self._one.token) for n in range(DEAF)]
            await self._measure()
            for task in tasks:
                task.cancel()

    async def _measure(self) -> None:
        before, reports, self._is_measuring = self._one.spent(), self._reported(), True
        await asyncio.sleep(MEASURE_S)
        self._spent, self._is_measuring = self._one.spent() - before, False
        self._reports = self._reported() - reports
        self._rss_mb = timing.memory_mb(self._one.pid, "VmHWM")

    def _reported(self) -> int:
        return sum(machine.reports for machine in self._machines)

    async def _watch(self, path: str) -> None:
        line = await Line.open(self._one)
        await line.upgrade(f"{path}?tail=0", self._one.token)
        self._watching.release()
        while True:
            message = await line.message()
            if message["type"] == "log" and self._is_measuring:
                now = time.time()
                self._late += [now - float(one["x"]) for one in message["lines"]]

    def figures(self) -> Iterator[Figure]:
        news = {"news": len(self._late), "p50_s": timing.percentile(self._late, 0.5), "most_s": max(self._late)}
        yield self._figure("news to those who read, p99", timing.percentile(self._late, 0.99), "s", 1.0, **news)
        yield self._figure("memory with the crowd", self._rss_mb, "MB", 1073.0)
        share = self._spent.cpu_s / self._spent.wall_s * 100
        yield self._figure("server with the crowd", share, "% of a core", None, reports=self._reports)

    def _figure(self, name: str, value: float, unit: str, bound: float | None, **more: object) -> Figure:
        context = {"agents": len(self._machines), "watchers": WATCHERS, "deaf": DEAF, **more}
        spent = self._spent
        return Figure(
            name=name, value=value, unit=unit, bound=bound, cpu_s=spent.cpu_s, wall_s=spent.wall_s, context=context
        )
