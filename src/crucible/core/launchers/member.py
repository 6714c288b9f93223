"""One rank of a gang, as the recipes see it, and what they make of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from crucible.core.scale import least_nodes, most_nodes
from crucible.model.attempt import Attempt, Rank
from crucible.model.spec import JobSpec

# Stands for the agent's file on the machine; whoever starts the rank there puts the path in its place.
AGENT = "@crucible-agent"


@dataclass(frozen=True, slots=True)
class Start:
    """What a rank runs. `env` goes before what the user gave."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Member:
    spec: JobSpec
    attempt: Attempt
    rank: Rank

    @property
    def is_first(self) -> bool:
        """Its node is where the others meet."""
        return self.rank.node_rank == 0 and self.rank.local_rank == 0

    @property
    def nodes(self) -> int:
        return 1 + max(rank.node_rank for rank in self.attempt.ranks)

    @property
    def master(self) -> tuple[str, int]:
        return self.attempt.master_addr or "", self.attempt.master_port or 0

    @property
    def processes(self) -> int:
        return processes_of(self.spec, self.rank)


def processes_of(spec: JobSpec, rank: Rank) -> int:
    """What a launcher starts on the node of `rank`: as many as were asked for, else one for each GPU."""
    return spec.execution.processes_per_node or max(1, len(rank.devices))


def node_limits(spec: JobSpec) -> tuple[int, int]:
    """The fewest and the most machines. Neither may follow from who is there just now."""
    most = most_nodes(spec)
    return min(least_nodes(spec) or most, most), most


def program(spec: JobSpec) -> tuple[str, ...]:
    """What the user wants to run, without any launcher."""
    if spec.command:
        return (*spec.command, *spec.args)
    if spec.entrypoint is None:
        return ("python", "-m", "crucible.train.run", *spec.args)
    if spec.entrypoint.endswith(".py"):
        return ("python", spec.entrypoint, *spec.args)
    if spec.entrypoint.endswith(".sh"):
        return ("/bin/sh", spec.entrypoint, *spec.args)
    return (f"./{spec.entrypoint}", *spec.args)


def launcher(name: str, *arguments: str) -> tuple[str, ...]:
    """A program of the agent's archive, run by the user's Python: the frameworks are installed there."""
    return ("python", AGENT, "--launch", name, *arguments)
