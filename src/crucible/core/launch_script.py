"""The start of a job as a bash script, for people who want to run it by hand. Every word of the user's is quoted; what
looks like a secret is asked for, never written. Pure."""

import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime

from crucible.core.cycle import shape
from crucible.core.launch import ranks_per_node, share
from crucible.core.launchers.member import AGENT
from crucible.model.attempt import Attempt, Rank
from crucible.model.ids import AttemptId, NodeId, TaskId
from crucible.model.job import Job
from crucible.model.launch import Launch
from crucible.model.secret import SecretUse
from crucible.model.spec import JobSpec

# Where the sources of a launcher are written, below the folder that the script is run in.
FOLDER = ".crucible-launch"
# Of a job that has no machines yet.
PORT = 29500
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST_NODES = 64  # a script for more is no use to anybody


def imagined(job: Job, spec: JobSpec, task_id: TaskId, now: datetime) -> Attempt:
    """An attempt on machines that are not chosen yet: `node-0`, `node-1` … stand for their addresses."""
    made, processes = shape(spec.resources), ranks_per_node(spec)
    devices = tuple(str(device) for device in range(made.gpus_per_node))
    ranks = tuple(
        Rank(
            rank=node * processes + local,
            node_id=NodeId(f"node-{node}"),
            node_rank=node,
            local_rank=local,
            devices=share(devices, local, processes),
            address=f"node-{node}",
            port=PORT,
        )
        for node in range(min(made.nodes, _MOST_NODES))
        for local in range(processes)
    )
    return Attempt(
        id=AttemptId("attempt-by-hand"),
        task_id=task_id,
        job_id=job.id,
        number=0,
        leases=(),
        created_at=now,
        deadline_at=now,
        ranks=ranks,
        master_addr="node-0",
        master_port=PORT,
    )


def script(job: Job, launches: Sequence[Launch], sources: Mapping[str, str], is_placed: bool) -> str:
    """One function for each rank; the argument says which. `sources` are the files of the launchers."""
    needs_launcher = any(AGENT in launch.argv for launch in launches)
    return "\n".join(
        [
            *header(job, launches, is_placed),
            *(written(sources) if needs_launcher else ()),
            *(line for launch in launches for line in function(launch)),
            *choice(launches),
            "",
        ]
    )


def header(job: Job, launches: Sequence[Launch], is_placed: bool) -> list[str]:
    first = launches[0]
    lines = [
        "#!/bin/bash",
        f"# How Crucible starts the job {printable(job.name)} ({job.id}), for running it by hand.",
        "# Run it on the machine of each rank, in the folder of the job's code: bash script.sh RANK",
        "# Nothing of it needs a Crucible server. Secrets are not in it: set them before.",
    ]
    if not is_placed:
        lines.append("# The job has no machines yet: put the addresses of yours in place of node-0, node-1 …")
    if first.container is not None:
        lines.append(f"# It belongs into the image {printable(first.container.image)}: run it inside.")
    lines.append("# Crucible chooses the network by the machine's address; if gloo or NCCL take another one, set")
    lines.append("# GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME.")
    return [*lines, "set -euo pipefail", ""]


def written(sources: Mapping[str, str]) -> list[str]:
    """Here-documents; the quoted word keeps the shell from reading them."""
    lines = ["# The launcher, as it is in Crucible's agent."]
    for name, text in sorted(sources.items()):
        path = f"{FOLDER}/{name}"
        end = "CRUCIBLE_END_OF_FILE"
        lines += [f"mkdir -p {shlex.quote(path.rpartition('/')[0])}", f"cat > {shlex.quote(path)} <<'{end}'"]
        lines += [*text.rstrip("\n").split("\n"), end]
    return [*lines, ""]


def function(launch: Launch) -> list[str]:
    places = ("CRUCIBLE_CHECKPOINTS", "checkpoints"), ("CRUCIBLE_KEEP", "keep")
    lines = [f"rank_{launch.rank}() {{"]
    lines += [f"  {export(name, value)}" for name, value in sorted(launch.env.items())]
    lines += [f"  {line}" for line in wanted(launch.secrets)]
    lines += [f'  export {name}="${{{name}:-$PWD/{folder}}}"' for name, folder in places]
    lines.append(f"  export CUDA_VISIBLE_DEVICES={shlex.quote(','.join(launch.devices))}")
    lines.append('  mkdir -p "$CRUCIBLE_KEEP"')
    if launch.python is not None and "/" in launch.python:
        lines.append(f'  export PATH={shlex.quote(launch.python.rpartition("/")[0])}:"$PATH"')
    if "horovod-elastic" in launch.argv:
        words = "a file with a secret of your own, the same on all machines"
        lines.append(f'  : "${{CRUCIBLE_TOKEN_FILE:?{words}}}"')
        lines.append("  export CRUCIBLE_TOKEN_FILE")
    lines += [f"  {line}" for text in launch.setup for line in text.split("\n")]
    return [*lines, f"  exec {' '.join(shlex.quote(each) for each in command(launch))}", "}", ""]


def export(name: str, value: str) -> str:
    if not _NAME.fullmatch(name):
        return f"# the shell cannot set {printable(name)}"
    if _SECRET.search(name):
        return f'export {name}="${{{name}:?it looks like a secret, and is not written here}}"'
    return f"export {name}={shlex.quote(value)}"


def wanted(secrets: Sequence[SecretUse]) -> list[str]:
    """What must be set by hand."""
    lines = []
    if any(use.file is not None for use in secrets):
        lines.append('export CRUCIBLE_SECRETS="${CRUCIBLE_SECRETS:?a folder with the files of the secrets}"')
    for use in secrets:
        if use.file is not None:
            lines.append(f'test -f "$CRUCIBLE_SECRETS/{use.file}"  # the secret {use.name}')
        if use.env is not None and use.file is not None:
            lines.append(f'export {use.env}="$CRUCIBLE_SECRETS/{use.file}"')
        elif use.env is not None:
            lines.append(f'export {use.env}="${{{use.env}:?the secret {use.name}}}"')
    return lines


def command(launch: Launch) -> list[str]:
    argv = [FOLDER if each == AGENT else each for each in launch.argv]
    return [launch.python or "python", *argv[1:]] if argv[0] == "python" else argv


def choice(launches: Sequence[Launch]) -> list[str]:
    if len(launches) == 1:
        return [f"rank_{launches[0].rank}"]
    numbers = " ".join(str(launch.rank) for launch in launches)
    cases = [f"  {launch.rank}) rank_{launch.rank} ;;" for launch in launches]
    return [f'case "${{1:?which rank: {numbers}}}" in', *cases, f'  *) echo "ranks: {numbers}" >&2; exit 2 ;;', "esac"]


def printable(text: str) -> str:
    """On one line of a comment."""
    return "".join(each if each.isprintable() else "?" for each in text)
