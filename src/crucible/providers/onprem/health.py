"""How own hosts are, for `crucible doctor`."""

from collections.abc import Mapping, Sequence
from typing import Any

from crucible.model.host import HostState
from crucible.providers.onprem.fleet import Sight

# Less is used up by the first log.
LEAST_DISK_BYTES = 1 << 30


def examined(sights: Sequence[Sight]) -> Mapping[str, Any]:
    problems = [problem for sight in sights for problem in problems_of(sight)]
    if not sights:
        problems = [{"problem": "no host is registered", "fix": "crucible hosts add NAME user@address"}]
    is_down = bool(sights) and all(sight.problem for sight in sights)
    return {
        "status": "down" if is_down else "degraded" if problems else "healthy",
        "hosts": len(sights),
        "machines": sum(sight.live for sight in sights),
        "problems": problems,
    }


def problems_of(sight: Sight) -> list[dict[str, str]]:
    host, found = sight.host, []
    if sight.problem is not None:
        fix = f"ssh to {host.address} from this server and look; then crucible hosts check {host.name}"
        found.append({"problem": f"host {host.name} does not answer: {sight.problem}", "fix": fix})
    if host.state is HostState.QUARANTINED:
        fix = f"mend it, then crucible hosts resume {host.name}"
        found.append({"problem": f"host {host.name} is in quarantine: {host.reason}", "fix": fix})
    if host.facts.get("disk_free_bytes", LEAST_DISK_BYTES) < LEAST_DISK_BYTES:
        free_mib = host.facts["disk_free_bytes"] >> 20
        fix = "make room in the home folder there"
        found.append({"problem": f"host {host.name} has {free_mib} MiB of disk left", "fix": fix})
    return found
