"""Signs of trouble with machines: GPUs that do nothing or are full, silence, a wrong clock, a full disk."""

from collections.abc import Iterator

from crucible.core.signs import Look, Sign, gpu_use, gpus_of, some, some_nodes
from crucible.model.health import FindingCode, HeldNode
from crucible.model.notice import Severity
from crucible.model.units import usd


def gpus_idle(seen: Look) -> Iterator[Sign]:
    long = {gpu for gpu, since in seen.memory.idle.items() if seen.now - since >= seen.limits.idle}
    measured = [gpu for gpu, _ in gpu_use(seen.signs.nodes)]
    if not long or not measured:
        return
    is_all = len(long) == len(measured)
    nodes = [node for node in seen.signs.nodes if any(gpu.startswith(f"{node.node_id}/") for gpu in long)]
    whose = "" if is_all else f" of {some('rank', [node.rank for node in nodes if node.rank is not None])}"
    yield Sign(
        code=FindingCode.GPUS_IDLE,
        severity=Severity.CRITICAL if is_all else Severity.WARNING,
        words=f"{len(long)} of {len(measured)} GPUs{whose} do nothing, though they are held",
        advice="does it wait for data, or run on the CPU? crucible logs, crucible metrics --usage; else ask for fewer",
        details={"gpus": sorted(long)[:100], "per_hour_usd": usd(seen.signs.per_hour)},
    )


def gpu_memory_full(seen: Look) -> Iterator[Sign]:
    limit = seen.limit(FindingCode.GPU_MEMORY_FULL, seen.limits.gpu_memory, seen.limits.gpu_memory_again)
    full = [node for node in seen.signs.nodes if any(share >= limit for share in gpu_memory(node))]
    if full:
        yield Sign(
            code=FindingCode.GPU_MEMORY_FULL,
            severity=Severity.INFO,
            words=f"the memory of GPUs of {some_nodes(full)} is nearly full",
            advice="some frameworks take all of it at once; else a larger batch will not fit",
            details={"nodes": [node.node_id for node in full[:100]]},
        )


def gpu_memory(node: HeldNode) -> Iterator[float]:
    for gpu in gpus_of(node):
        used, total = node.usage.get(f"gpu{gpu}_memory_mib"), node.usage.get(f"gpu{gpu}_memory_total_mib")
        if used is not None and total:
            yield used / total


def node_silent(seen: Look) -> Iterator[Sign]:
    limit = seen.signs.silence / 2
    silent = [node for node in seen.signs.nodes if node.heard_at is not None and seen.now - node.heard_at > limit]
    if silent:
        yield Sign(
            code=FindingCode.NODE_SILENT,
            severity=Severity.WARNING,
            words=f"{some_nodes(silent)} said nothing for a while",
            advice=f"wait: after {_seconds(seen)} its work is moved; if it repeats, look at the network",
            details={"nodes": [node.node_id for node in silent[:100]]},
        )


def _seconds(seen: Look) -> str:
    return f"{seen.signs.silence.total_seconds():g} s"


def clock_skewed(seen: Look) -> Iterator[Sign]:
    limits = seen.limits
    limit = seen.limit(FindingCode.CLOCK_SKEWED, limits.skew.total_seconds(), limits.skew_again.total_seconds())
    wrong = [node for node in seen.signs.nodes if abs(node.usage.get("clock_ahead_s", 0.0)) > limit]
    if wrong:
        yield Sign(
            code=FindingCode.CLOCK_SKEWED,
            severity=Severity.WARNING,
            words=f"the clock of {some_nodes(wrong)} is wrong",
            advice="set it (chrony, systemd-timesyncd): storage refuses requests whose time is minutes off",
            details={"ahead_s": {node.node_id: node.usage["clock_ahead_s"] for node in wrong[:100]}},
        )


def disk_full(seen: Look) -> Iterator[Sign]:
    limit = seen.limit(FindingCode.DISK_FULL, seen.limits.disk, seen.limits.disk_again)
    full = [node for node in seen.signs.nodes if (share := disk_use(node)) is not None and share >= limit]
    if full:
        yield Sign(
            code=FindingCode.DISK_FULL,
            severity=Severity.WARNING,
            words=f"the disk of {some_nodes(full)} is nearly full",
            advice="ask for more with resources.storage, keep fewer checkpoints, or write less to the machine",
            details={"nodes": [node.node_id for node in full[:100]]},
        )


def disk_use(node: HeldNode) -> float | None:
    used, total = node.usage.get("disk_used_bytes"), node.usage.get("disk_total_bytes")
    return used / total if used is not None and total else None
