"""What machines of the past ran: ranks that learn along a curve, say so, save, and end as their script wants. Nothing
is computed; what they tell of it goes through the same gateway as the words of real agents."""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from crucible.testing.fake_agents import PretendRank
from crucible.wire import agent as wire

STEP_S = 2.0
# A line and a point of each curve every so many steps.
TOLD_EVERY = 60
CHECKPOINT_BYTES = 3_221_225_472
STOPPED = 143
OUT_OF_MEMORY = (
    "Traceback (most recent call last):",
    '  File "train.py", line 214, in <module>',
    "    loss.backward()",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB. GPU 0 has a total capacity of 39.50 GiB "
    "of which 1.12 GiB is free.",
)
NOT_A_NUMBER = ("RuntimeError: the loss is nan at step {step}: lower the learning rate",)


@dataclass(frozen=True, kw_only=True)
class Script:
    """How one rank of a job goes. `loss_from` falls to `loss_to`; of a trial to what its parameters are worth."""

    minutes: float
    loss_from: float = 4.0
    loss_to: float = 1.2
    samples_per_s: float = 1800.0
    fails_at: float | None = None  # after this share of the work
    last_words: tuple[str, ...] = OUT_OF_MEMORY
    save_every_min: float = 15.0
    worth: Callable[[Mapping[str, Any]], float] | None = None  # where the loss of a trial ends

    @property
    def steps(self) -> int:
        return max(1, round(self.minutes * 60 / STEP_S))


@dataclass(kw_only=True)
class Learner(PretendRank):
    script: Script
    now_ms: Callable[[float], int]  # a moment of the loop as milliseconds since 1970
    step: int = 0
    told: list[tuple[int, int]] = field(default_factory=list)  # step, when
    said: tuple[str, ...] = ()
    ended_ms: int = 0

    def live(self, now: float) -> None:
        if self.state != "started":
            return
        until = now if self.stop_at is None else min(now, self.stop_at)
        last = self._last_step()
        self.step = min(last, self.first_step + int((until - self.started_at) / STEP_S))
        first = (len(self.told) + self.first_step // TOLD_EVERY + 1) * TOLD_EVERY
        for step in range(first, self.step + 1, TOLD_EVERY):
            self.told.append((step, self.now_ms(self.started_at + (step - self.first_step) * STEP_S)))
        if self.launch.rank == 0:
            every = round(self.script.save_every_min * 60 / STEP_S)
            self.saved = [step for step in range(self.first_step + 1, self.step + 1) if step % every == 0]
        if self.step == last:
            self._end(now)
        elif self.stop_at is not None and now >= self.stop_at:
            self._save_last()
            self.state, self.exit_code = "exited", STOPPED
        self.lines = len(self.told) + len(self.said)

    def _last_step(self) -> int:
        share = self.script.fails_at
        return self.script.steps if share is None else max(1, round(self.script.steps * share))

    def _end(self, now: float) -> None:
        if self.script.fails_at is not None:
            self.said = tuple(line.format(step=self.step) for line in self.script.last_words)
            self.state, self.exit_code = "exited", 1
        else:
            self._save_last()
            self.said = (f"done: {self.step} steps, loss {self.loss(self.step):.4f}",)
            self.state, self.exit_code = "exited", 0
        self.ended_ms = self.now_ms(now)

    def _save_last(self) -> None:
        if self.launch.rank == 0 and self.step > self.first_step and self.step not in self.saved:
            self.saved.append(self.step)

    # --- what it tells ------------------------------------------------------------------------------------------

    def loss(self, step: int) -> float:
        script, params = self.script, self.launch.params
        floor = script.loss_to if script.worth is None or params is None else script.worth(params)
        noise = random.Random(f"{self.launch.task_id}/{step}").gauss(0, 0.02)
        fallen = math.exp(-4.5 * step / script.steps)
        return max(0.01, (floor + (script.loss_from - floor) * fallen) * (1 + noise))

    def report(self) -> wire.RankReport:
        return super().report().model_copy(update={"last_lines": list(self.said)})

    def batch(self) -> wire.StreamBatch | None:
        lines, metrics = self._lines(self.acked), self._metrics(self.acked_metrics)
        if not lines and not metrics:
            return None
        launch = self.launch
        return wire.StreamBatch(
            attempt_id=launch.attempt_id, number=launch.number, rank=launch.rank, log=lines, metrics=metrics
        )

    def _lines(self, first: int) -> list[wire.LogRecord]:
        steps, curve = self.script.steps, self.told[first:]
        lines = [
            (at, "out", f"step {step:>6,}/{steps:,}  loss {self.loss(step):.4f}  {self._rate(step):,.0f} samples/s")
            for step, at in curve
        ]
        way = "out" if self.exit_code == 0 else "err"
        lines += [(self.ended_ms, way, line) for line in self.said[max(0, first - len(self.told)) :]]
        return [
            wire.LogRecord.model_validate({"n": n, "t": t, "s": s, "x": x}) for n, (t, s, x) in enumerate(lines, first)
        ]

    def _metrics(self, first: int) -> list[wire.MetricRecord]:
        curve = self.told[first:] if self.launch.rank == 0 else []
        return [
            wire.MetricRecord(n=n, t=at, step=step, v=self._figures(step)) for n, (step, at) in enumerate(curve, first)
        ]

    def _figures(self, step: int) -> dict[str, float | None]:
        share = step / self.script.steps
        rate = 3e-4 * min(1.0, share / 0.05) * (0.5 + 0.5 * math.cos(math.pi * share))
        return {"loss": self.loss(step), "learning_rate": rate, "samples_per_s": self._rate(step)}

    def _rate(self, step: int) -> float:
        return self.script.samples_per_s * (1 + random.Random(f"rate/{self.launch.task_id}/{step}").gauss(0, 0.03))

    def checkpoint(self, step: int) -> wire.CheckpointReport:
        saved = super().checkpoint(step)
        told = {"loss": round(self.loss(step), 4)}
        return saved.model_copy(update={"size_bytes": CHECKPOINT_BYTES, "metadata": told})

    def progress(self) -> wire.ProgressReport | None:
        if self.launch.rank != 0:
            return None
        return wire.ProgressReport(
            attempt_id=self.launch.attempt_id, rank=0, step=self.step, total_steps=self.script.steps
        )

    def usage(self) -> dict[str, float]:
        dice = random.Random(f"use/{self.launch.attempt_id}/{self.launch.rank}/{self.step}")
        figures = {"cpu_percent": dice.uniform(18, 42)}
        for device in self.launch.devices:
            figures[f"gpu{device}_percent"] = min(100.0, dice.gauss(91, 4))
            figures[f"gpu{device}_memory_mib"] = 31_000 + dice.uniform(0, 900)
            figures[f"gpu{device}_memory_total_mib"] = 40_960
        return figures
