"""What happens to a gang of spot machines, event by event: a second opinion on `core.risk` and `core.cost`. It knows no
formula: machines draw their lifetimes, work is done piece by piece, and every life of every machine is billed by
itself. Seconds throughout."""

import math
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Setting:
    machines: int
    losses_per_hour: float  # of one machine
    work_s: float
    interval_s: float  # of work between checkpoints
    checkpoint_s: float
    wait_s: float  # after a loss: until new machines are there, unpaid
    boot_s: float  # until they work; paid
    unit_s: int = 1
    minimum_s: int = 0


@dataclass(frozen=True)
class Run:
    wall_s: float
    alive_s: float  # of each machine, all lives
    billed_s: float  # of each machine, every life rounded
    losses: int


def run(setting: Setting, random: Random) -> Run:
    """One job. A gang dies with the first of its machines; the job goes on with a new one from its last checkpoint."""
    now = alive = billed = 0.0
    saved, losses = 0.0, 0
    boot_s = 0.0  # the clock starts when the first gang is ready to work
    while True:
        born = now
        dies = born + gang_life_s(setting, random)
        now, saved = work(setting, born + boot_s, dies, saved)
        alive += now - born
        billed += bill(now - born, setting)
        if saved >= setting.work_s:
            return Run(now, alive, billed, losses)
        losses += 1
        now += setting.wait_s
        boot_s = setting.boot_s


def gang_life_s(setting: Setting, random: Random) -> float:
    if setting.losses_per_hour == 0:
        return math.inf
    rate = setting.losses_per_hour / 3600
    return min(random.expovariate(rate) for _ in range(setting.machines))


def work(setting: Setting, now: float, dies: float, saved: float) -> tuple[float, float]:
    """Piece by piece until the work is done or the gang dies: when that was, and how much work is safe."""
    while True:
        piece = min(setting.interval_s, setting.work_s - saved)
        is_last = setting.work_s - saved <= setting.interval_s + 1e-6
        now += piece if is_last else piece + setting.checkpoint_s
        if now > dies:
            return dies, saved
        if is_last:
            return now, setting.work_s
        saved += piece


def bill(life_s: float, setting: Setting) -> float:
    paid = max(life_s, float(setting.minimum_s))
    return math.ceil(paid / setting.unit_s - 1e-9) * setting.unit_s
