"""Horovod over gloo, without SSH between nodes: each node has a launcher of ours that starts its workers. The first one
also keeps Horovod's own rendezvous; for an elastic gang, Horovod's own driver."""

from crucible.core.launchers.member import Member, Start, launcher, node_limits, processes_of, program


def start(member: Member) -> Start:
    """Who is where is known to all: ranks follow from the slots of each node, in their order."""
    nodes = sorted((rank for rank in member.attempt.ranks if rank.local_rank == 0), key=lambda rank: rank.node_rank)
    slots = ",".join(str(processes_of(member.spec, rank)) for rank in nodes)
    where = (f"--master={address(member)}", f"--node={member.rank.node_rank}", f"--slots={slots}")
    return Start((*launcher("horovod", *where), "--", *program(member.spec)))


def start_elastic(member: Member) -> Start:
    """Who is there is known to the driver alone: runners of nodes come to it, and go."""
    least, most = node_limits(member.spec)
    where = (f"--master={address(member)}", f"--node={member.rank.node_rank}", f"--slots={member.processes}")
    limits = (f"--min={least * member.processes}", f"--max={most * member.processes}")
    driver = ("--drive", *limits) if member.is_first else ()
    return Start((*launcher("horovod-elastic", *where, *driver), "--", *program(member.spec)))


def address(member: Member) -> str:
    host, port = member.master
    return f"{host}:{port}"
