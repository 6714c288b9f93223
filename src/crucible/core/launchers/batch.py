"""Workers of a job that works on items: how they hear that there are some. An entrypoint asks for them itself
(`crucible.train.items`); a command knows nothing of it, and is run once for each shard."""

from crucible.core.launchers.member import Start
from crucible.model.spec import JobSpec

# Says that there are items; where the server is and who asks stands in files.
VARIABLE = "CRUCIBLE_SHARDS"
RUNNER = ("python", "-m", "crucible.train.shard_command", "--")


def worker(spec: JobSpec, started: Start) -> Start:
    if spec.shards is None:
        return started
    argv = (*RUNNER, *started.argv) if spec.command else started.argv
    return Start(argv, {**started.env, VARIABLE: "1"})
