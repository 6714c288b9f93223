"""A server that buys in the Lab while requests fail, replies get lost, listings lie and machines die; and somebody who
watches the Lab's own inventory all the time, so that nothing that was ever there is forgotten."""

import gzip
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crash.database import Rows
from crash.harness import World
from crash.hasty_server import HASTE
from crash.lab_stories import LAB_MENU
from crash.lab_verdict import judge_lab
from crash.server_process import until
from crucible.catalog.spot_history import FILE
from crucible.client.errors import ServerTimeout, ServerUnreachable
from crucible.lab.history import RECORDED_S
from crucible.lab.running import Control
from lab_process import RunningLab

HASTY = (str(Path(__file__).with_name("hasty_server.py")), "server")

# What goes wrong: about every tenth request, and every third machine. Not `auth-expired`: nothing is bought for minutes
# after it, and that is as it should be.
FAULTS: tuple[dict[str, Any], ...] = (
    {"kind": "lost-reply", "operation": "RunInstances", "probability": 0.1},
    {"kind": "lost-reply", "operation": "TerminateInstances", "probability": 0.1},
    {"kind": "error-before-effect", "probability": 0.03},
    {"kind": "server-error", "probability": 0.02},
    {"kind": "server-error-after", "operation": "RunInstances", "probability": 0.05},
    {"kind": "throttle", "probability": 0.02},
    {"kind": "slow", "probability": 0.03, "seconds": [0.2, 2.0]},
    {"kind": "no-capacity", "operation": "RunInstances", "probability": 0.05, "type": "g*"},
    {"kind": "quota", "operation": "RunInstances", "probability": 0.02, "type": "g*"},
    {"kind": "late-visibility", "probability": 0.1, "seconds": [0, 60 / HASTE]},
    {"kind": "lying-terminate", "probability": 0.1},
    {"kind": "duplicate-delivery", "operation": "RunInstances", "probability": 0.1},
    {"kind": "duplicate-delivery", "operation": "TerminateInstances", "probability": 0.1},
    {"kind": "empty-listing", "operation": "DescribeInstances", "probability": 0.1},
    {"kind": "address-reuse", "probability": 0.1},
    {"kind": "user-data-fails", "probability": 0.05},
    {"kind": "sudden-death", "probability": 0.1, "seconds": [0, 20]},
    {"kind": "notice", "probability": 0.3, "seconds": [0, 10]},
    {"kind": "clock-skew", "probability": 0.1},
)
# Soon, and not often: what outlives its machine is nobody's when it is a quarter of a minute old, and the end waits.
ORPHANS = {"kind": "orphan-disk", "probability": 0.3}
DEATHS_PER_ORPHAN = 5
# How often, between two deaths of the server, the seller wants a machine back, and how long ahead it says so.
TAKES = 0.3
NOTICES_S = (0.0, 2.0, 30.0, 120.0)

# The Lab starts its machines in 0.2 to 0.6 s; what has not reported after so long never will.
BOOT_LIMIT_S = 20
# A server that talks to a cloud needs a moment before it has said anything; so long it lives at most.
LIFE_S = 2.0
PEOPLE = 8
WATCH_EVERY_S = 1.0

# Spot prices that move every few seconds, in every zone, far below what machines cost on demand.
RESTLESS = {"g4dn.xlarge": 0.16, "g5.xlarge": 0.4, "g6.xlarge": 0.32, "p4d.24xlarge": 9.0}
ZONES = {"us-east-1": "use1-az", "us-west-2": "usw2-az"}
MOVES_EVERY_S, MOVES_FOR_S = 7, 2 * 3600


class LabWorld(World):
    carries_checkpoints = True

    def __init__(self, folder: Path, lab: RunningLab, **options: Any) -> None:
        environment = {**lab.environ(), "CRUCIBLE_AWS_BOOT_LIMIT_S": str(BOOT_LIMIT_S)}
        super().__init__(folder, environment=environment, port=free_port(), **options)
        self.lab = lab
        self.inventory: dict[str, dict[str, Any]] = {}  # every machine that the Lab ever had, as last seen
        self.faults_struck = 0
        self._window = Control(lab.running)  # the watcher's own
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def trouble(self, orphans: int = 1) -> None:
        for rule in (*FAULTS, {**ORPHANS, "count": orphans}):
            self.lab.control.fail(**rule)

    def mend(self) -> None:
        self.faults_struck += sum(rule["struck"] for rule in self.lab.control.faults())
        self.lab.control.clear_faults()

    def kill_at_random(self, kills: int, people: int = PEOPLE, menu: tuple = LAB_MENU, life_s: float = LIFE_S) -> None:
        self.trouble(orphans=1 + kills // DEATHS_PER_ORPHAN)
        super().kill_at_random(kills, people, menu, life_s)
        self.mend()

    def mishap(self) -> None:
        if self.random.random() < TAKES:
            self.lab.control.preempt(count=1, notice_s=self.random.choice(NOTICES_S))

    def settle(self) -> None:
        """Until the Lab has nothing left that costs money and the books know it; then the server is stopped."""
        until("every machine in the Lab is gone", lambda: not self.alive(), QUIET_WITHIN_S)
        until("every disk in the Lab is gone", lambda: self.lab.control.status()["disks"] == 0, DISKS_WITHIN_S)
        super().settle()

    def alive(self) -> list[dict[str, Any]]:
        return [one for one in self._look(self.lab.control) if one["state"] != "terminated"]

    def _look(self, door: Control) -> list[dict[str, Any]]:
        machines: list[dict[str, Any]] = door.status(is_everything=True)["machines"]
        self.inventory |= {one["id"]: one for one in machines}
        return machines

    def _watch(self) -> None:
        while not self.is_over.wait(WATCH_EVERY_S):
            try:
                self._look(self._window)
            except (ServerUnreachable, ServerTimeout):
                continue

    def close(self) -> None:
        super().close()
        self._watcher.join()
        self._window.close()

    def judge(self, found: Any, rows: Rows) -> None:
        door = self.lab.control
        judge_lab(found, rows, list(self.inventory.values()), door.bill(), door.status()["disks"])
        found.faults = self.faults_struck

    def describe(self) -> str:
        alive = [f"{one['id']} {one['state']} {one['tags']}" for one in self.inventory.values()]
        return "\n".join([super().describe(), *alive, self.lab.log()[-2000:]])


# From the end of the last job: deletes that were lied about are repeated after up to a minute.
QUIET_WITHIN_S = 90.0
# A disk is nobody's when it is a minute old, and looked at twice.
DISKS_WITHIN_S = 120.0


@contextmanager
def lab_world(
    folder: Path, *, seed: int, database: str | None = None, program: tuple[str, ...] = HASTY, **options: Any
) -> Iterator[LabWorld]:
    """On failure everybody's last words are shown."""
    folder.mkdir(parents=True)
    with RunningLab(folder, seed=seed, data=restless_prices(folder / "prices")) as lab:
        made = LabWorld(folder / "world", lab, seed=seed, database=database, program=program, **options)
        try:
            yield made
        except BaseException:
            print(made.describe())
            raise
        finally:
            made.close()


def free_port() -> int:
    """Machines are told once where their server is: it must be there again."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def restless_prices(data: Path) -> Path:
    """A record for the Lab to play: its end meets the Lab's start, and then it begins again."""
    began, path = 1_700_000_000, data / FILE
    moments = [*range(began, began + MOVES_FOR_S, MOVES_EVERY_S), began + RECORDED_S]
    lines = ["ts_unix,instance_type,region,az_id,spot_price,od"]
    for at in moments:
        for kind, price in RESTLESS.items():
            moved = price * (1 + (7919 * at % 9973) / 50_000)
            lines += [
                f"{at},{kind},{region},{zone}{n},{moved:.6f}," for region, zone in ZONES.items() for n in range(1, 7)
            ]
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress("\n".join(lines).encode(), compresslevel=1))
    return data
