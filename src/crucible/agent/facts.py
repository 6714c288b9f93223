"""What this machine is and how busy it is: /proc, its disk and nvidia-smi. A hung or missing driver is a fact, not a
failure."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple

    from .meter import Meter

_NVIDIA_TIMEOUT_S = 5.0
_GPU_EVERY_S = 10.0
_USAGE_EVERY_S = 2.0


def gather() -> Dict[str, Any]:
    gpus, reason = find_gpus()
    facts: Dict[str, Any] = {
        "python": "%d.%d.%d" % sys.version_info[:3],
        "hostname": socket.gethostname(),
        "cpus": os.cpu_count() or 1,
        "memory_bytes": memory().get("MemTotal", 0),
        "gpus": gpus,
    }
    if reason is not None:
        facts["gpus_reason"] = reason
    return facts


def find_gpus() -> Tuple[List[Dict[str, Any]], Optional[str]]:
    """The GPUs, or none and the reason."""
    rows, reason = _nvidia_smi(["index", "name", "memory.total"])
    gpus = [{"index": int(row[0]), "name": row[1], "memory_mib": int(row[2])} for row in rows if row[0].isdigit()]
    return gpus, reason


class Usage:
    """Figures of the whole node: `cpu_percent`, `memory_used_bytes`, `memory_total_bytes`, `disk_used_bytes` and
    `disk_total_bytes` of the disk that `folder` is on, `network_received_bytes_per_s`, `network_sent_bytes_per_s`,
    `gpu<i>_percent`, `gpu<i>_memory_mib`, `gpu<i>_memory_total_mib`, what this node's clock says (`clock_s`), and what
    `meter` says."""

    def __init__(self, meter: Meter, folder: str) -> None:
        self._meter = meter
        self._folder = folder
        self._looked_at = 0.0
        self._cpu: Optional[Tuple[int, int]] = None
        self._network: Optional[Tuple[float, int, int]] = None
        self._figures: Dict[str, float] = {}
        self._gpus: Dict[str, float] = {}

    def watch_gpus(self) -> None:
        """In a thread of its own: a driver may take seconds to answer."""
        threading.Thread(target=self._watch_gpus, daemon=True, name="gpus").start()

    def figures(self) -> Dict[str, float]:
        if time.monotonic() - self._looked_at >= _USAGE_EVERY_S:
            self._looked_at = time.monotonic()
            self._figures = {
                **self._cpu_figures(),
                **_memory_figures(),
                **_disk_figures(self._folder),
                **self._network_figures(),
            }
        return {**self._figures, **self._gpus, **self._meter.figures(), "clock_s": time.time()}

    def _cpu_figures(self) -> Dict[str, float]:
        before, self._cpu = self._cpu, _cpu_times()
        if before is None or self._cpu is None or self._cpu[1] <= before[1]:
            return {}
        busy, whole = self._cpu[0] - before[0], self._cpu[1] - before[1]
        return {"cpu_percent": round(100.0 * busy / whole, 1)}

    def _network_figures(self) -> Dict[str, float]:
        before, self._network = self._network, _network_bytes()
        if before is None or self._network is None or self._network[0] <= before[0]:
            return {}
        seconds = self._network[0] - before[0]
        moved = [max(0, new - old) / seconds for new, old in zip(self._network[1:], before[1:])]
        return {"network_received_bytes_per_s": round(moved[0]), "network_sent_bytes_per_s": round(moved[1])}

    def _watch_gpus(self) -> None:
        while True:
            rows, _ = _nvidia_smi(["index", "utilization.gpu", "memory.used", "memory.total"])
            figures: Dict[str, float] = {}
            for index, percent, memory, total in rows:
                for name, value in (("percent", percent), ("memory_mib", memory), ("memory_total_mib", total)):
                    if value.isdigit():
                        figures["gpu%s_%s" % (index, name)] = float(value)
            self._gpus = figures
            time.sleep(_GPU_EVERY_S)


def _nvidia_smi(columns: List[str]) -> Tuple[List[List[str]], Optional[str]]:
    argv = ["nvidia-smi", "--query-gpu=" + ",".join(columns), "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=_NVIDIA_TIMEOUT_S
        )
    except FileNotFoundError:
        return [], "nvidia-smi is not installed"
    except subprocess.TimeoutExpired:
        return [], "nvidia-smi did not answer within %g s" % _NVIDIA_TIMEOUT_S
    except OSError as error:
        return [], "nvidia-smi could not be started: %s" % error
    if done.returncode != 0:
        words = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        return [], "nvidia-smi failed (exit %d): %s" % (done.returncode, words[:200])
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    rows = [[cell.strip() for cell in line.split(",")] for line in lines]
    return [row for row in rows if len(row) == len(columns)], None


def _cpu_times() -> Optional[Tuple[int, int]]:
    """Busy and all ticks of all CPUs since boot."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            ticks = [int(each) for each in file.readline().split()[1:9]]
    except (OSError, ValueError):
        return None
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def _network_bytes() -> Optional[Tuple[float, int, int]]:
    """Now, and all that was received and sent since boot, but over the loopback."""
    received = sent = 0
    try:
        with open("/proc/net/dev", encoding="ascii") as file:
            for line in file:
                name, colon, figures = line.partition(":")
                if colon and name.strip() != "lo":
                    cells = figures.split()
                    received, sent = received + int(cells[0]), sent + int(cells[8])
    except (OSError, ValueError, IndexError):
        return None
    return time.monotonic(), received, sent


def _disk_figures(folder: str) -> Dict[str, float]:
    """What is left for others than root is what counts."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return {}
    used = (found.f_blocks - found.f_bfree) * found.f_frsize
    return {"disk_used_bytes": float(used), "disk_total_bytes": float(used + found.f_bavail * found.f_frsize)}


def _memory_figures() -> Dict[str, float]:
    found = memory()
    if "MemTotal" not in found or "MemAvailable" not in found:
        return {}
    return {
        "memory_used_bytes": float(found["MemTotal"] - found["MemAvailable"]),
        "memory_total_bytes": float(found["MemTotal"]),
    }


def memory() -> Dict[str, int]:
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            pairs = [line.split()[:2] for line in file]
        return {name.rstrip(":"): int(value) * 1024 for name, value in pairs}
    except (OSError, ValueError):
        return {}
