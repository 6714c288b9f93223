"""TensorFlow's MultiWorkerMirroredStrategy: one process for each node, all named in TF_CONFIG. Worker 0 is chief."""

import json

from crucible.core.launchers.member import Member, Start, program


def start(member: Member) -> Start:
    workers = sorted((rank for rank in member.attempt.ranks if rank.local_rank == 0), key=lambda rank: rank.node_rank)
    config = {
        "cluster": {"worker": [f"{rank.address}:{rank.port}" for rank in workers]},
        "task": {"type": "worker", "index": member.rank.node_rank},
    }
    return Start(program(member.spec), {"TF_CONFIG": json.dumps(config)})
