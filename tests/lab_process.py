"""A real Lab: the daemon as a process of its own, on a free port, in a folder of the test, gone when the test is."""

import os
from pathlib import Path
from types import TracebackType
from typing import Any

from crucible.lab.running import Control, LocalLab, Running

# Machines boot in 0.2 to 0.6 s: soon, but not at once.
BOOT_SCALE = 0.01


class RunningLab:
    """`with RunningLab(tmp_path) as lab: …`. `options` are those of `crucible lab up`, with _ for -. Spot machines are
    not taken by chance unless `hazard` says so; prices are made up, so that every computer has the same."""

    def __init__(
        self,
        folder: Path,
        *,
        seed: int = 0,
        boot_scale: float = BOOT_SCALE,
        speed: float = 1.0,
        hazard: float = 0.0,
        regions: str = "us-east-1,us-west-2",
        **options: Any,
    ) -> None:
        self.home = folder / "lab"
        self._lab = LocalLab(self.home)
        self._running: Running | None = None
        self._control: Control | None = None
        self._options = {
            "seed": seed,
            "boot_scale": boot_scale,
            "speed": speed,
            "hazard": hazard,
            "regions": regions,
            "data": folder / "no-recorded-prices",
            **options,
        }

    def __enter__(self) -> "RunningLab":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        self._close()
        words = [(f"--{name.replace('_', '-')}", str(value)) for name, value in self._options.items()]
        self._running, _ = self._lab.start([word for pair in words for word in pair])
        self._control = Control(self._running)

    def stop(self) -> None:
        self._close()
        self._lab.stop()

    def _close(self) -> None:
        if self._control is not None:
            self._control.close()

    @property
    def running(self) -> Running:
        assert self._running is not None, "the Lab was not started"
        return self._running

    @property
    def control(self) -> Control:
        assert self._control is not None, "the Lab was not started"
        return self._control

    @property
    def url(self) -> str:
        return self.running.url

    @property
    def pid(self) -> int:
        return self.running.pid

    @property
    def environment(self) -> dict[str, str]:
        """AWS_* and CRUCIBLE_*, to be laid over `os.environ` of a client."""
        return self.running.environment()

    def environ(self) -> dict[str, str]:
        """The whole environment of a client of the Lab: without proxies and profiles of this computer."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CRUCIBLE_"))}
        return {**kept, **self.environment, "NO_PROXY": "127.0.0.1", "AWS_CONFIG_FILE": os.devnull}

    def log(self) -> str:
        return self._lab.log.read_text(errors="replace")
