"""A real Slurm in a folder: munged, slurmctld, three slurmd with sixteen GPUs that are files, and slurmrestd; one more
with accounts, kept by slurmdbd in a MariaDB. Each is made once for a session; its processes are children of the test's,
and end with it."""

import asyncio
import importlib.util
import itertools
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from crucible.model.ids import MachineId
from crucible.model.offer import Offer
from crucible.providers.slurm import ClusterSettings, SlurmCluster
from crucible.providers.slurm.cli import CliDoor
from crucible.providers.slurm.door import Door
from crucible.providers.slurm.here import HereRemote
from crucible.providers.slurm.rest import RestDoor
from crucible.ssh.login import Login
from crucible.testing.seller_contract import SellerWorld

LIMIT_S = 60.0
PROGRAMS = ("munged", "slurmctld", "slurmd", "slurmrestd", "sbatch")
NODES = ("gpu1", "gpu2", "gpu3")
GPUS = {"gpu1": ("a100", 4), "gpu2": ("a100", 4), "gpu3": ("h100", 8)}
CLUSTER = "lake"
ACCOUNTANTS = ("slurmdbd", "mariadbd")
# Where MariaDB's package keeps the tables that every database begins with.
TABLES = [Path("/usr/share/mysql") / name for name in ("mysql_system_tables.sql", "mysql_system_tables_data.sql")]
MEMORY = Path("/dev/shm")  # a database that is thrown away need not wait for a disk

CONF = """\
ClusterName=lake
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/munge.sock
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={folder}/state/jwt.key
CredType=cred/munge
CommunicationParameters=NoAddrCache
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
{accounting}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0
MinJobAge={min_job_age}
KillWait=2
InactiveLimit=0
SlurmdTimeout=10
SlurmctldTimeout=10
ReturnToService=2
SlurmdParameters=config_overrides
MpiDefault=none
JobRequeue=1
NodeName=DEFAULT CPUs=8 Boards=1 Sockets=1 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=64000 State=UNKNOWN
{nodes}
PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=60 State=UP OverSubscribe=NO
PartitionName=short Nodes=gpu3 MaxTime=30 State=UP OverSubscribe=NO
"""

NO_ACCOUNTING = "AccountingStorageType=accounting_storage/none"
ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={folder}/munge/munge.sock"""
DBD_CONF = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge/munge.sock
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={folder}/state/jwt.key
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=root
LogFile={folder}/log/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm_acct_db
"""
MARIADB = (
    *("mariadbd", "--no-defaults", "--user=root", "--skip-grant-tables", "--skip-networking"),
    *("--innodb-log-file-size=8M", "--innodb-buffer-pool-size=32M", "--innodb-data-file-path=ibdata1:4M:autoextend"),
    *("--innodb-flush-log-at-trx-commit=0", "--innodb-undo-tablespaces=0", "--innodb-doublewrite=0"),
    *("--innodb-lock-wait-timeout=900", "--aria-pagecache-buffer-size=8M"),
)


class SlurmSite:
    """The daemons of one cluster."""

    def __init__(self, folder: Path, *, accounting: bool = False, min_job_age_s: int = 300) -> None:
        self.folder = folder
        self.accounting, self.min_job_age_s = accounting, min_job_age_s
        self.ports = free_ports(3 + len(NODES))
        self.rest_url = f"http://127.0.0.1:{self.ports[1]}"
        self.environ = {**os.environ, "SLURM_CONF": str(folder / "etc" / "slurm.conf")}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._lay_out()

    # --- daemons ------------------------------------------------------------------------------------------

    def start(self) -> None:
        munge = pwd.getpwnam("munge")
        at = self.folder / "munge"
        self._start(
            "munged",
            [
                *("munged", "--foreground", "--force", f"--key-file={at}/munge.key", f"--socket={at}/munge.sock"),
                *(f"--pid-file={at}/munged.pid", f"--log-file={at}/munged.log", f"--seed-file={at}/seed"),
            ],
            user=munge.pw_uid,
            group=munge.pw_gid,
            extra_groups=[],
        )
        until(lambda: (at / "munge.sock").exists(), "munged listens")
        if self.accounting:
            self._start_database()
            self.start_accounting()
        self.start_controller()
        for node in NODES:
            self.start_node(node)
        until(self.is_idle, lambda: self.call("sinfo", "-N"))
        self._start_rest()

    def start_controller(self) -> None:
        self._start("slurmctld", ["slurmctld", "-D"])
        until(lambda: self.says("scontrol", "ping", word="is UP"), "slurmctld answers")

    def stop_controller(self) -> None:
        self._stop("slurmctld")

    def _start_database(self) -> None:
        data, socket_path = self.database, self.folder / "mariadb.sock"
        (data / "mysql").mkdir(parents=True)
        script = "use mysql;\n" + "".join(path.read_text() for path in TABLES)
        argv = [*MARIADB, f"--datadir={data}"]
        done = subprocess.run([*argv, "--bootstrap"], input=script.encode(), capture_output=True, timeout=LIMIT_S)
        assert done.returncode == 0, done.stderr.decode("utf-8", "replace")[-2000:]
        self._start("mariadbd", [*argv, f"--socket={socket_path}", f"--pid-file={self.folder}/mariadbd.pid"])
        until(socket_path.exists, "mariadbd listens")

    def start_accounting(self) -> None:
        self._start("slurmdbd", ["slurmdbd", "-D"], environ={"MYSQL_UNIX_PORT": f"{self.folder}/mariadb.sock"})
        until(lambda: is_open(self.ports[2]), "slurmdbd listens")

    def stop_accounting(self) -> None:
        self._stop("slurmdbd")

    @property
    def database(self) -> Path:
        return (MEMORY if MEMORY.is_dir() else self.folder) / f"{self.folder.name}-database"

    def start_node(self, node: str) -> None:
        self._start(node, ["slurmd", "-D", "-N", node])

    def kill_node(self, node: str) -> None:
        """As if its power went: the daemon, and every step that it had started there."""
        process = self._processes.pop(node)
        process.kill()
        process.wait(10)
        for pid in with_variable("SLURMD_NODENAME", node):
            kill(pid)

    def _start_rest(self) -> None:
        # It refuses to be root or SlurmUser.
        nobody = pwd.getpwnam("nobody")
        plugins = "openapi/v0.0.38,openapi/dbv0.0.38" if self.accounting else "openapi/v0.0.38"
        self._start(
            "slurmrestd",
            ["slurmrestd", "-a", "rest_auth/jwt", "-s", plugins, self.rest_url.removeprefix("http://")],
            environ={"SLURM_JWT": "daemon"},
            user=nobody.pw_uid,
            group=nobody.pw_gid,
            extra_groups=[],
        )
        until(lambda: is_open(self.ports[1]), "slurmrestd listens")

    def _start(self, name: str, argv: Sequence[str], environ: dict[str, str] | None = None, **options: Any) -> None:
        with (self.folder / "log" / f"{name}.out").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env={**self.environ, **(environ or {})},
                **options,
            )

    def _stop(self, name: str) -> None:
        process = self._processes.pop(name)
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)

    def stop(self) -> None:
        if "slurmctld" in self._processes:
            self.call("scancel", "--user=root", "--state=PENDING")
            self.call("scancel", "--user=root")
            until(lambda: not self.call("squeue", "-h"), lambda: self.call("squeue"))
        for name in reversed(list(self._processes)):
            self._stop(name)
        shutil.rmtree(self.database, ignore_errors=True)

    # --- questions ------------------------------------------------------------------------------------------

    def call(self, *argv: str) -> str:
        done = subprocess.run(argv, capture_output=True, text=True, env=self.environ, timeout=30)
        return (done.stdout + done.stderr).strip()

    def says(self, *argv: str, word: str) -> bool:
        return word in self.call(*argv)

    def is_idle(self) -> bool:
        states = self.call("sinfo", "-h", "-N", "-p", "gpu", "-o", "%T").split()
        return states == ["idle"] * len(NODES)

    def jobs(self) -> list[str]:
        """Every job that is known, by name, with its state."""
        return sorted(self.call("squeue", "-h", "-r", "-t", "all", "-o", "%j %T").splitlines())

    def jobs_of(self, deployment: str) -> int:
        return sum(deployment in line for line in self.call("squeue", "-h", "-t", "all", "-o", "%k").splitlines())

    def store_comments(self) -> None:
        """In the accounts, which is not what Slurm does by default."""
        conf = self.folder / "etc" / "slurm.conf"
        conf.write_text(conf.read_text() + "AccountingStoreFlags=job_comment\n")
        self.call("scontrol", "reconfigure")
        until(lambda: self.says("scontrol", "show", "config", word="= job_comment"), "comments are stored")

    def life_of(self, job: int | str) -> tuple[int, int]:
        """Its start and its end, as the accounts have them."""
        found = subprocess.run(
            ["sacct", "-X", "-n", "-P", "-j", str(job), "-o", "Start,End"],
            capture_output=True,
            text=True,
            env={**self.environ, "SLURM_TIME_FORMAT": "%s"},
            timeout=30,
        )
        start, end = found.stdout.strip().split("|")
        return int(start), int(end)

    def forgets(self) -> None:
        """All that has ended; slurmctld looks for that every ten seconds."""
        until(lambda: not self.call("squeue", "-h", "-t", "all"), lambda: self.call("squeue", "-t", "all"))

    def token(self) -> str:
        return self.call("scontrol", "token", "username=root", "lifespan=7200").partition("=")[2]

    def dead_conf(self) -> Path:
        """The same cluster, with a controller that is not there."""
        path = self.folder / "etc" / "dead.conf"
        text = (self.folder / "etc" / "slurm.conf").read_text()
        path.write_text(text.replace(f"SlurmctldPort={self.ports[0]}", "SlurmctldPort=9") + "MessageTimeout=2\n")
        return path

    # --- its folder -------------------------------------------------------------------------------------------

    def _lay_out(self) -> None:
        folder = self.folder
        folder.chmod(0o755)
        for name in ("etc", "munge", "state", "log", "dev", *(f"spool.{node}" for node in NODES)):
            (folder / name).mkdir()
        munge = pwd.getpwnam("munge")
        key = folder / "munge" / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        for path in (key, folder / "munge"):
            os.chown(path, munge.pw_uid, munge.pw_gid)
        jwt = folder / "state" / "jwt.key"
        jwt.write_bytes(secrets.token_bytes(32))
        jwt.chmod(0o600)
        for number in range(8):
            # Harmless: a second /dev/null. A GPU without a file puts its node out of order.
            os.mknod(folder / "dev" / f"nvidia{number}", 0o020666, os.makedev(1, 3))
        self._configure()

    def _configure(self) -> None:
        host, etc = socket.gethostname().split(".")[0], self.folder / "etc"
        places = {"folder": self.folder, "port": self.ports[2]}
        nodes = [
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} Gres=gpu:{kind}:{count}"
            for (node, (kind, count)), port in zip(GPUS.items(), self.ports[3:], strict=True)
        ]
        text = CONF.format(
            host=host,
            controller=self.ports[0],
            folder=self.folder,
            nodes="\n".join(nodes),
            accounting=ACCOUNTING.format(**places) if self.accounting else NO_ACCOUNTING,
            min_job_age=self.min_job_age_s,
        )
        (etc / "slurm.conf").write_text(text)
        if self.accounting:
            (etc / "slurmdbd.conf").write_text(DBD_CONF.format(**places))
            (etc / "slurmdbd.conf").chmod(0o600)
        gres = [
            f"NodeName={node} Name=gpu Type={kind} File={self.folder}/dev/nvidia[0-{count - 1}]"
            for node, (kind, count) in GPUS.items()
        ]
        (etc / "gres.conf").write_text("\n".join(["AutoDetect=off", *gres]) + "\n")
        (etc / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")


@contextmanager
def running_site(**options: Any) -> Iterator[SlurmSite]:
    folder = Path(tempfile.mkdtemp(prefix="crucible-slurm-"))
    site = SlurmSite(folder, **options)
    try:
        site.start()
        yield site
    finally:
        site.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def slurm_site() -> Iterator[SlurmSite]:
    need(PROGRAMS)
    with running_site() as site:
        yield site


@pytest.fixture(scope="session")
def accounting_site() -> Iterator[SlurmSite]:
    """It forgets within seconds what has ended, and its accounts do not."""
    need((*PROGRAMS, *ACCOUNTANTS))
    with running_site(accounting=True, min_job_age_s=2) as site:
        yield site


def need(programs: Sequence[str]) -> None:
    if os.geteuid() != 0:
        pytest.skip("a real Slurm needs device files: run as root")
    absent = [program for program in programs if shutil.which(program) is None]
    assert not absent, f"a real Slurm needs {', '.join(absent)}: run `make engines`"


_deployments = itertools.count(1)


class SlurmWorld(SellerWorld):
    """A deployment of its own on a cluster that others use too. Nobody queues, and every machine takes all CPUs of a
    node: what cannot start at once is refused, and how many can is known."""

    def __init__(self, site: SlurmSite, folder: Path, **settings: Any) -> None:
        self.site, self.folder = site, folder
        self.deployment = f"deployment-{os.getpid()}-{next(_deployments)}"
        self.settings = {"queue_limit": timedelta(0), "cpus": 1, "cpus_per_gpu": 8, **settings}

    def open(self, **changes: Any) -> SlurmCluster:
        return SlurmCluster(self.cluster_settings(**changes), self.door(), deployment=self.deployment)

    def cluster_settings(self, **changes: Any) -> ClusterSettings:
        given = {"login": "here", **self.settings, **changes}
        return ClusterSettings(name=CLUSTER, workdir=str(self.folder), python=sys.executable, **given)

    def door(self) -> Door:
        return CliDoor(CLUSTER, HereRemote(self.site.environ), sys.executable)

    async def offers(self) -> Sequence[Offer]:
        """Machines with one GPU are counted by their GPU."""
        found = await self.open().offers()
        return [replace(offer, free_gpus=offer.free_machines) if offer.gpus == 1 else offer for offer in found]

    def crash(self, machine: MachineId) -> None:
        """Its step dies, and nobody asked it to."""
        pids = with_variable("SLURM_JOB_NAME", machine)
        assert pids, f"nothing runs as {machine}"
        for pid in pids:
            kill(pid)

    def unreachable(self) -> SlurmCluster:
        environ = {**self.site.environ, "SLURM_CONF": str(self.site.dead_conf())}
        door = CliDoor(CLUSTER, HereRemote(environ), sys.executable)
        return SlurmCluster(self.cluster_settings(), door, deployment=self.deployment)

    def close(self) -> None:
        """Ends what the test bought, so that the next one finds the same stock."""

        async def give_back() -> None:
            seller = self.open()
            for machine in await seller.machines():
                await seller.delete(machine.id)

        asyncio.run(give_back())
        until(lambda: self.deployment not in self.site.call("squeue", "-h", "-o", "%k"), "its jobs have ended")
        until(self.site.is_idle, lambda: self.site.call("sinfo", "-N"))


class RestWorld(SlurmWorld):
    """The same by slurmrestd."""

    def door(self) -> Door:
        token = self.folder / "token"
        if not token.exists():
            token.write_text(self.site.token())
        environment = {"SLURM_CONF": self.site.environ["SLURM_CONF"]}
        return RestDoor(CLUSTER, self.site.rest_url, token, "root", environment)

    def unreachable(self) -> SlurmCluster:
        door = RestDoor(CLUSTER, "http://127.0.0.1:9", self.folder / "token", "root")
        return SlurmCluster(self.cluster_settings(), door, deployment=self.deployment)


SSHD = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
PidFile none
AuthorizedKeysFile {folder}/user.pub
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
StrictModes no
SetEnv SLURM_CONF={conf} PATH={path}
"""


@contextmanager
def login_node(site: SlurmSite, folder: Path) -> Iterator[Login]:
    """Where one logs in to use the cluster: a real sshd."""
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    (port,) = free_ports(1)
    text = SSHD.format(port=port, folder=folder, conf=site.environ["SLURM_CONF"], path=os.environ["PATH"])
    (folder / "sshd_config").write_text(text)
    Path("/run/sshd").mkdir(exist_ok=True)
    with (folder / "sshd.log").open("wb") as log:
        process = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", folder / "sshd_config"], stderr=log)
    try:
        until(lambda: is_open(port), lambda: (folder / "sshd.log").read_text())
        key = " ".join((folder / "host.pub").read_text().split()[:2])
        yield Login("127.0.0.1", port, "root", host_key=key, identity_file=str(folder / "user"))
    finally:
        process.terminate()
        process.wait(10)


def torch_python() -> str:
    """Of the environment that `make engines` makes."""
    path = Path(__file__).parents[1] / "engines" / "frameworks.py"
    spec = importlib.util.spec_from_file_location("engines_for_slurm", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return str(module.python_of("torch"))


# --- processes ------------------------------------------------------------------------------------------------


def with_variable(name: str, value: str) -> list[int]:
    """Processes of steps know their node and their name by variables."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if f"{name}={value}".encode() in words:
            found.append(int(path.parent.name))
    return found


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def until(is_so: Callable[[], bool], what: str | Callable[[], str], limit_s: float = LIMIT_S) -> None:
    deadline = time.monotonic() + limit_s
    while not is_so():
        said = what if isinstance(what, str) else what()
        assert time.monotonic() < deadline, f"not within {limit_s:g} s: {said}"
        time.sleep(0.05)
