"""What is wrong with a cluster, and what would mend it, for `crucible doctor`."""

from collections.abc import Mapping
from typing import Any

from crucible.model.errors import CredentialsRejected, ProviderError
from crucible.providers.slurm.door import Door
from crucible.providers.slurm.settings import VARIABLE, ClusterSettings
from crucible.providers.slurm.stock import is_too_short, is_usable, is_wanted, offers_of

REACH = f"check `login`, `url` and `token_file` of the cluster in the file that {VARIABLE} names; try `scontrol ping`"

RECENTLY_S = 60
FORGOTTEN = "jobs that slurmctld has forgotten (MinJobAge) while no server looked are taken for lost"


async def examined(settings: ClusterSettings, door: Door) -> Mapping[str, Any]:
    """Never raises."""
    try:
        version = await door.version()
        nodes, partitions = await door.nodes(), await door.partitions()
        folder = await door.folder(settings.workdir)
    except (ProviderError, OSError, TimeoutError) as error:
        said = error.message if isinstance(error, ProviderError) else str(error) or type(error).__name__
        fix = "renew the login or the token" if isinstance(error, CredentialsRejected) else REACH
        problem = {"problem": said, "fix": fix}
        return {"status": "down", "region": settings.name, "place": door.place, "problems": [problem]}
    problems = []
    out = [node for node in nodes if not is_usable(node)]
    if out:
        names = ", ".join(f"{node.name} ({node.state})" for node in out[:10])
        problems.append({"problem": f"{len(out)} nodes are out: {names}", "fix": "sinfo -R says why"})
    missing = sorted(set(settings.partitions) - {partition.name for partition in partitions if partition.is_up})
    if missing:
        problems.append({"problem": f"no partition {', '.join(missing)} is up", "fix": "sinfo -s lists them"})
    short = [one.name for one in partitions if is_wanted(settings, one) and is_too_short(settings, one)]
    if short:
        said = f"time_limit is {settings.time_limit}, which {', '.join(short)} does not allow: nothing is offered there"
        problems.append({"problem": said, "fix": "give less time_limit, or name other partitions"})
    offers = offers_of(settings, partitions, nodes)
    if not offers:
        problems.append({"problem": "no node can be used", "fix": "sinfo -R says why"})
    return {
        "status": "healthy" if not problems else "degraded" if offers else "down",
        "region": settings.name,
        "place": door.place,
        "version": version,
        "folder": folder,
        "accounting": await accounts_said(door),
        "nodes": len(nodes),
        "gpus": sum(sum(node.gpus.values()) for node in nodes),
        "free_gpus": sum(sum(node.free_gpus.values()) for node in nodes if is_usable(node)),
        "problems": problems,
    }


async def accounts_said(door: Door) -> str:
    """Not a problem: most of the time slurmctld remembers for long enough."""
    try:
        kept = await door.records(RECENTLY_S)
    except (ProviderError, OSError, TimeoutError) as error:
        said = error.message if isinstance(error, ProviderError) else str(error) or type(error).__name__
        return f"cannot be read now ({said}): {FORGOTTEN}"
    return f"none is kept: {FORGOTTEN}" if kept is None else "answers"
