"""PyTorch: one torchrun for each node, which starts the node's processes.

A gang of fixed size meets by node rank, so that the ranks of processes are the same in every attempt: sums of gradients
are added in the same order, and a run that lost a machine ends with the same bits. An elastic gang meets at a c10d
store in a process of its own, because a torchrun that hosted it could not leave."""

from crucible.core.launchers.member import Member, Start, launcher, node_limits, program
from crucible.core.scale import is_elastic
from crucible.model.spec import Framework

TORCHRUN = ("python", "-m", "torch.distributed.run")
# Nodes prepare apart: one may unpack an image for minutes while the others wait.
JOIN_S = 1800
# Each loss of a peer fails a node's processes once. More would let a script that always fails go on for very long.
ELASTIC_RESTARTS = 20
# Newcomers of the same moment are waited for; a node is given up after three missed seconds; the store may come late.
ELASTIC_CONF = (
    f"is_host=0,join_timeout={JOIN_S},last_call_timeout=5,keep_alive_interval=1,keep_alive_max_attempt=3,"
    "read_timeout=300"
)


def start(member: Member) -> Start:
    spec, flags = member.spec, flags_of(member)
    if spec.command:
        return hosted(member, Start(program(spec), as_variables(flags)))
    if spec.framework is Framework.PYTORCH and not is_elastic(spec) and (member.nodes, member.processes) == (1, 1):
        return Start(program(spec))
    given = [f"--{name}={value}" for name, value in flags.items()]
    return hosted(member, Start((*TORCHRUN, *given, *script(program(spec)))))


def script(argv: tuple[str, ...]) -> tuple[str, ...]:
    """As torchrun wants it: a Python file or module goes to an interpreter of its own."""
    if argv[:2] == ("python", "-m"):
        return ("--module", *argv[2:])
    return argv[1:] if argv[0] == "python" else ("--no-python", *argv)


def flags_of(member: Member) -> dict[str, str]:
    address, port = member.master
    flags = {"nproc-per-node": str(member.processes)}
    if port == 0:  # alone on its machine, beside others: torchrun finds itself a port
        alone = {"nnodes": "1", "rdzv-backend": "c10d", "rdzv-endpoint": "localhost:0", "rdzv-id": member.attempt.id}
        return flags | alone
    if is_elastic(member.spec):
        least, most = node_limits(member.spec)
        return flags | {
            "nnodes": f"{least}:{most}",
            "max-restarts": str(ELASTIC_RESTARTS),
            "rdzv-backend": "c10d",
            "rdzv-endpoint": f"{address}:{port}",
            "rdzv-id": member.attempt.id,
            "rdzv-conf": ELASTIC_CONF,
            "local-addr": member.rank.address,
        }
    return flags | {
        "nnodes": str(member.nodes),
        "node-rank": str(member.rank.node_rank),
        "master-addr": address,
        "master-port": str(port),
        "rdzv-conf": f"timeout={JOIN_S}",
    }


def as_variables(flags: dict[str, str]) -> dict[str, str]:
    """torchrun's own names: a bare `torchrun train.py` is distributed by itself, and flags of the user win."""
    return {f"PET_{name.upper().replace('-', '_')}": value for name, value in flags.items()}


def hosted(member: Member, started: Start) -> Start:
    """The first node of an elastic gang keeps the store beside its torchrun."""
    if not is_elastic(member.spec):
        return started
    env = {**started.env, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    if not member.is_first:
        return Start(started.argv, env)
    return Start((*launcher("torch-store", f"--port={member.master[1]}"), "--", *started.argv), env)
