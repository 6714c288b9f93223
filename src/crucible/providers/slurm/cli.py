"""A cluster by its command line, wherever that runs: here, or on a login node over SSH. Commands are argv lists, and
what they print is read by fields, not by columns."""

import hashlib
import re
from collections.abc import Mapping, Sequence

from crucible.model.errors import OutcomeUnknown, ProviderError
from crucible.ports.remote import Done, Remote
from crucible.providers.slurm import accounting
from crucible.providers.slurm.door import ClusterNode, Job, Partition, Record, Request
from crucible.providers.slurm.errors import PROVIDER, meant, translated, worded
from crucible.providers.slurm.hostlist import expand
from crucible.providers.slurm.request import NAME

TIMEOUT_S = 30.0
# slurmctld may be busy for a while; who stops waiting does not know what became of the job.
SUBMIT_TIMEOUT_S = 90.0
# A listing has a minute for everything; sacct is ended where it runs before nobody waits for it any more.
ACCOUNTS_LIMIT_S = 15.0
ACCOUNTS_TIMEOUT_S = 20.0
MAX_ACCOUNTS_BYTES = 4 << 20  # thousands of jobs of ours
NO_ACCOUNTS = ("accounting storage is disabled", "sacct is not installed")
# What squeue prints of a job. The comment is last: it alone is free text, and ours holds no bar.
COLUMNS = (
    "ArrayJobID",
    "ArrayTaskID",
    "Name",
    "State",
    "Reason",
    "StartTime",
    "EndTime",
    "NodeList",
    "exit_code",
    "RestartCnt",
    "Comment",
)
GRES = re.compile(r"gpu(?::(?P<kind>[A-Za-z][\w.-]*))?:(?P<count>\d+)")
_INDEX = re.compile(r"\(IDX:(?P<index>[^)]*)\)")
_NODE_DEVICES = re.compile(r"\bNodes=(?P<nodes>\S+) CPU_IDs=\S* Mem=\S* GRES=(?P<gres>\S*)")

# On the login node: files that nobody else can read, whole or not at all. What it is told comes as arguments and stdin.
DESK = """\
import hashlib, os, sys
what, paths = sys.argv[1], [os.path.abspath(os.path.expanduser(path)) for path in sys.argv[3:]]
if what == "where":
    print(paths[0])
elif what == "has":
    with open(paths[0], "rb") as file:
        sys.exit(0 if hashlib.sha256(file.read()).hexdigest() == sys.argv[2] else 1)
elif what == "put":
    data = sys.stdin.buffer.read()
    if hashlib.sha256(data).hexdigest() != sys.argv[2]:
        sys.exit("the file arrived damaged")
    os.makedirs(os.path.dirname(paths[0]), mode=0o700, exist_ok=True)
    part = "%s.%d.part" % (paths[0], os.getpid())
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
    os.replace(part, paths[0])
elif what == "tail":
    for path in paths:
        if os.path.isfile(path):
            with open(path, "rb") as file:
                file.seek(max(0, file.seek(0, 2) - int(sys.argv[2])))
                sys.stdout.buffer.write(file.read())
"""

# On the login node: sacct, of which only jobs and steps of ours travel, and of these the newest.
CLERK = """\
import collections, os, subprocess, sys, threading
within_s, limit_s, most, columns = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
argv = ["sacct", "--noheader", "--parsable2", "--duplicates", "--user=%d" % os.getuid(), "--format=" + columns]
argv.append("--starttime=now-%dseconds" % int(within_s))
try:
    child = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=dict(os.environ, SLURM_TIME_FORMAT="%s")
    )
except FileNotFoundError:
    sys.exit("sacct is not installed")
late = threading.Timer(limit_s, child.kill)
late.start()
kept, size = collections.deque(), 0
for line in iter(lambda: child.stdout.readline(1 << 16), b""):
    if line.partition(b"|")[2].startswith((b"crucible-", b"slurm-")):
        kept.append(line)
        size += len(line)
        while size > most:
            size -= len(kept.popleft())
code = child.wait()
late.cancel()
if code < 0:
    sys.exit("sacct did not end within %g s" % limit_s)
sys.stdout.buffer.write(b"".join(kept))
sys.exit(code)
"""


class CliDoor:
    reads_files = True
    knows_steps = True

    def __init__(self, cluster: str, remote: Remote, python: str) -> None:
        self.place = remote.name
        self._cluster = cluster
        self._remote = remote
        self._python = python

    # --- what there is ------------------------------------------------------------------------------------

    async def nodes(self) -> Sequence[ClusterNode]:
        text = await self._ask(["scontrol", "show", "node", "--oneliner", "--detail"])
        return [node_of(fields(line)) for line in text.splitlines() if line.startswith("NodeName=")]

    async def partitions(self) -> Sequence[Partition]:
        text = await self._ask(["scontrol", "show", "partition", "--oneliner"])
        return [partition_of(fields(line)) for line in text.splitlines() if line.startswith("PartitionName=")]

    async def jobs(self) -> Sequence[Job]:
        columns = ",".join(f"{column}:|" for column in COLUMNS)
        argv = ["env", "SLURM_TIME_FORMAT=%s", "squeue", "--me", "--noheader", "--array", "--states=all"]
        text = await self._ask([*argv, "--Format", columns])
        found = [job_of(line.split("|")) for line in text.splitlines() if line.count("|") >= len(COLUMNS)]
        return [job for job in found if job.name.startswith(NAME)]

    async def records(self, within_s: int) -> Sequence[Record] | None:
        told = [str(within_s), str(ACCOUNTS_LIMIT_S), str(MAX_ACCOUNTS_BYTES), ",".join(accounting.COLUMNS)]
        with translated(self._cluster):
            done = await self._remote.run([self._python, "-c", CLERK, *told], timeout_s=ACCOUNTS_TIMEOUT_S)
        if done.exit_code != 0 and any(word in done.words for word in NO_ACCOUNTS):
            return None
        if done.exit_code != 0:
            raise meant(done.words, self._cluster, is_purchase=False)
        return accounting.read_records(done.stdout.decode("utf-8", "replace").split("\n"))

    async def devices(self, job: Job) -> Mapping[str, tuple[str, ...]]:
        text = await self._ask(["scontrol", "show", "job", "--oneliner", "--detail", job.handle])
        return devices_of(text)

    async def version(self) -> str:
        said = await self._ask(["scontrol", "ping"])
        if "UP" not in said:
            raise ProviderError(worded(f"no controller is up: {said}", self._cluster), provider=PROVIDER)
        return (await self._ask(["scontrol", "--version"])).strip()

    # --- jobs -----------------------------------------------------------------------------------------------

    async def submit(self, request: Request, script: str) -> int:
        with translated(self._cluster, is_purchase=True):
            done = await self._remote.run(arguments(request), stdin=script.encode(), timeout_s=SUBMIT_TIMEOUT_S)
        if done.exit_code != 0:
            raise meant(done.words, self._cluster, is_purchase=True)
        number = done.stdout.decode("utf-8", "replace").strip().partition(";")[0]
        if not number.isdecimal():
            said = worded(f"sbatch did not say which job it is: {done.words}", self._cluster)
            raise OutcomeUnknown(said, provider=PROVIDER, region=self._cluster)
        return int(number)

    async def cancel(self, handle: str) -> None:
        await self._end(["scancel", handle])

    async def cancel_step(self, handle: str, name: str) -> None:
        text = await self._ask(["squeue", "--me", "--noheader", "--steps", "--format=%i|%j"])
        for line in text.splitlines():
            step, _, called = line.strip().partition("|")
            if called == name and step.partition(".")[0] == handle:
                await self._end(["scancel", step])

    async def _end(self, argv: Sequence[str]) -> None:
        done = await self._run(argv)
        if done.exit_code != 0 and not is_absent(done.words):
            raise meant(done.words, self._cluster, is_purchase=False)

    # --- files ------------------------------------------------------------------------------------------------

    async def folder(self, workdir: str) -> str:
        return (await self._desk("where", "", workdir)).stdout.decode("utf-8", "replace").strip()

    async def put(self, path: str, data: bytes) -> None:
        await self._desk("put", hashlib.sha256(data).hexdigest(), path, stdin=data)

    async def has(self, path: str, sha256: str) -> bool:
        done = await self._run([self._python, "-c", DESK, "has", sha256, path])
        return done.exit_code == 0

    async def tail(self, paths: Sequence[str], most: int) -> str:
        return (await self._desk("tail", str(most), *paths)).stdout.decode("utf-8", "replace")

    async def close(self) -> None:
        await self._remote.close()

    async def _desk(self, what: str, how: str, *paths: str, stdin: bytes = b"") -> Done:
        done = await self._run([self._python, "-c", DESK, what, how, *paths], stdin)
        if done.exit_code != 0:
            raise meant(f"{self.place} cannot {what} {paths[0]}: {done.words}", self._cluster, is_purchase=False)
        return done

    async def _ask(self, argv: Sequence[str]) -> str:
        done = await self._run(argv)
        if done.exit_code != 0:
            raise meant(done.words, self._cluster, is_purchase=False)
        return done.stdout.decode("utf-8", "replace")

    async def _run(self, argv: Sequence[str], stdin: bytes = b"") -> Done:
        with translated(self._cluster):
            return await self._remote.run(argv, stdin=stdin, timeout_s=TIMEOUT_S)


def arguments(request: Request) -> list[str]:
    """Of sbatch. Whoever requeues a job would run it twice: ours are not to be. A gang goes on when it loses a node."""
    argv = ["sbatch", "--parsable", "--no-requeue", "--no-kill", "--chdir=/", "--ntasks-per-node=1"]
    argv += [f"--job-name={request['name']}", f"--comment={request['comment']}", f"--output={request['output']}"]
    argv += [f"--partition={request['partition']}", f"--cpus-per-task={request['cpus']}"]
    argv += [f"--mem={request['memory_mib']}M"]
    if request["is_array"]:
        argv += ["--nodes=1", f"--array=0-{request['count'] - 1}"]
    else:
        # Two jobs of one name never run at once, whoever submitted them.
        argv += [f"--nodes={request['count']}", "--dependency=singleton"]
    for option in ("gres", "account", "qos"):
        if request[option]:
            argv.append(f"--{option}={request[option]}")
    if request["time_limit_s"]:
        argv.append(f"--time={-(-request['time_limit_s'] // 60)}")
    return [*argv, *request["options"]]


def is_absent(said: str) -> bool:
    low = said.lower()
    return "invalid job id" in low or "already completing or completed" in low


# --- reading ----------------------------------------------------------------------------------------------------


def fields(line: str) -> dict[str, str]:
    """Of `scontrol --oneliner`: words with an equals sign."""
    return dict(word.partition("=")[::2] for word in line.split() if "=" in word)


def node_of(said: Mapping[str, str]) -> ClusterNode:
    cpus, memory = int(said.get("CPUTot", "0")), int(said.get("RealMemory", "0"))
    gpus, used = gpus_of(said.get("Gres", "")), gpus_of(said.get("GresUsed", ""))
    return ClusterNode(
        name=said["NodeName"],
        partitions=tuple(said.get("Partitions", "").split(",")),
        state=said.get("State", "UNKNOWN"),
        cpus=cpus,
        free_cpus=cpus - int(said.get("CPUAlloc", "0")),
        memory_mib=memory,
        free_memory_mib=memory - int(said.get("AllocMem", "0")),
        gpus=gpus,
        free_gpus={kind: count - used.get(kind, 0) for kind, count in gpus.items()},
    )


def gpus_of(text: str) -> dict[str, int]:
    """ "gpu:a100:4(S:0),gpu:2" by type."""
    found: dict[str, int] = {}
    for match in GRES.finditer(text):
        kind = match["kind"] or ""
        found[kind] = found.get(kind, 0) + int(match["count"])
    return found


def partition_of(said: Mapping[str, str]) -> Partition:
    return Partition(
        name=said["PartitionName"], is_up=said.get("State") == "UP", max_time_s=seconds_of(said.get("MaxTime", ""))
    )


def seconds_of(text: str) -> int | None:
    """ "2-03:00:00"; None: without end."""
    days, dash, rest = text.rpartition("-")
    parts = rest.split(":")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts) or (dash and not days.isdecimal()):
        return None
    hours, minutes, seconds = map(int, parts)
    return int(days or 0) * 86_400 + hours * 3600 + minutes * 60 + seconds


def job_of(words: Sequence[str]) -> Job:
    said = dict(zip(COLUMNS, words, strict=False))
    element = said["ArrayTaskID"]
    return Job(
        id=int(said["ArrayJobID"]),
        element=int(element) if element.isdecimal() else None,
        name=said["Name"],
        comment=said["Comment"],
        state=said["State"],
        reason=said["Reason"],
        nodes="" if said["NodeList"] in ("", "N/A", "(null)", "n/a") else said["NodeList"],
        started_at=whole(said["StartTime"]),
        ended_at=whole(said["EndTime"]),
        exit_status=whole(said["exit_code"]) or 0,
        restarts=whole(said["RestartCnt"]) or 0,
    )


def whole(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def devices_of(text: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for match in _NODE_DEVICES.finditer(text):
        numbers = indices(match["gres"])
        for node in expand(match["nodes"]):
            found[node] = numbers
    return found


def indices(gres: str) -> tuple[str, ...]:
    """ "gpu:a100:2(IDX:0,3)" are 0 and 3."""
    return tuple(number for match in _INDEX.finditer(gres) for number in expand(f"[{match['index']}]"))
