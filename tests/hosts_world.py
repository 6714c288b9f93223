"""Real hosts on this computer: each has its own network, mounts, processes, name and sshd, over a copy-on-write view of
this computer's files. So the checkout and the caches are there to be read, and nothing that a host writes is seen
outside. Needs root.

    with HostsWorld(Path("/somewhere/empty"), count=3) as world:
        world.run("h1", ["hostname"])

A server that listens on `world.gateway` is reachable from every host; one that listens on 127.0.0.1 is not."""

import fcntl
import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest

# Where Debian puts what only root runs.
PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
PROGRAMS = ("sshd", "ssh-keygen", "ip", "unshare", "nsenter")

READY_LIMIT_S = 30.0
# So many processes at once may have hosts: each takes a /24 of 10.88/16.
SUBNETS = range(1, 250)

SSHD_CONFIG = """\
Port 22
ListenAddress {address}
HostKey /etc/ssh/host_ed25519
PidFile none
AuthorizedKeysFile /root/.ssh/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
UseDNS no
MaxSessions 100
MaxStartups 200:30:400
ClientAliveInterval 5
ClientAliveCountMax 2
Subsystem sftp internal-sftp
StrictModes no
LogLevel ERROR
"""

# Names that /etc/hosts does not know are refused at once: a server of names that is out of reach costs every new
# connection of a training ten seconds. Each host has its own /dev/shm: two programs with one process number must not
# meet there. The shell stays as the first process, since it takes note of the end of whatever is left to it.
INIT = """\
set -e
mount --make-rprivate /
mount -t overlay overlay -o lowerdir=/,upperdir={folder}/up,workdir={folder}/work {root}
mount -t proc proc {root}/proc
mount --rbind /dev {root}/dev
mount -t tmpfs tmpfs {root}/dev/shm
mount -t sysfs sysfs {root}/sys
mount --rbind /sys/fs/cgroup {root}/sys/fs/cgroup
mount -t tmpfs tmpfs {root}/tmp
mount -t tmpfs tmpfs {root}/run
if [ ! -e {folder}/up/etc/ssh/host_ed25519 ]; then
  rm -rf {root}/root/.ssh {root}/root/.crucible
  mkdir -m 700 {root}/root/.ssh
  : > {root}/root/.bashrc
fi
mkdir -p {root}/run/sshd
install -m 600 {keys}/id.pub {root}/root/.ssh/authorized_keys
install -m 644 {folder}/sshd_config {root}/etc/ssh/sshd_config
install -m 600 {folder}/hostkey {root}/etc/ssh/host_ed25519
install -m 644 {keys}/hosts {root}/etc/hosts
rm -f {root}/etc/resolv.conf
echo nameserver 127.0.0.1 > {root}/etc/resolv.conf
hostname {name}
echo {name} > {root}/etc/hostname
cd {root}
pivot_root . mnt
cd /
umount -l /mnt
/usr/sbin/sshd -D -e &
wait $!
"""


@dataclass(frozen=True, slots=True)
class Keys:
    """Who may log in, and how hosts prove who they are."""

    private: Path  # of the client; passphrase-less
    known_hosts: Path  # every host under its address
    host_keys: dict[str, str]  # by the host's name: "ssh-ed25519 AAAA…"


class HostsWorld:
    """Hosts h1 … hN. One that was killed comes back by `start` with the files that it had, as after a power cut."""

    def __init__(self, folder: Path, count: int = 3) -> None:
        self.names = tuple(f"h{number}" for number in range(1, count + 1))
        self._folder = folder
        self._mark = f"{os.getpid():x}"
        self._subnet = Subnet.free()
        self.gateway = self._subnet.address(1)
        self._bridge = f"cb{self._mark}"
        self._inits: dict[str, subprocess.Popen[bytes]] = {}
        self.keys = self._make_keys()
        self._bring_up()

    # --- where they are ---------------------------------------------------------------------------------

    def address(self, host: str) -> str:
        return self._subnet.address(10 + int(host.removeprefix("h")))

    def root(self, host: str) -> Path:
        """What the host wrote, and nothing else."""
        return self._folder / host / "up"

    def pid(self, host: str) -> int:
        """Of its first process, as this computer counts."""
        outer = self._inits[host].pid
        children = Path(f"/proc/{outer}/task/{outer}/children").read_text().split()
        return int(children[0])

    def is_up(self, host: str) -> bool:
        return host in self._inits

    # --- what is done to them -----------------------------------------------------------------------------

    def run(self, host: str, argv: Sequence[str], stdin: bytes = b"", timeout_s: float = 60.0) -> str:
        """Straight into its namespaces, without SSH. Raises CalledProcessError."""
        entered = ["nsenter", "--target", str(self.pid(host)), "--mount", "--uts", "--ipc", "--net", "--pid", *argv]
        done = subprocess.run(entered, input=stdin, capture_output=True, timeout=timeout_s, check=False, env=host_env())
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, list(argv), done.stdout, done.stderr)
        return done.stdout.decode()

    def put(self, host: str, path: str, text: str, mode: int = 0o755) -> None:
        place = shlex.quote(path)
        script = f"mkdir -p $(dirname {place}); cat > {place}; chmod {mode:o} {place}"
        self.run(host, ["sh", "-c", script], stdin=text.encode())

    def cut(self, host: str) -> None:
        """Its cable: nothing arrives and nobody is told."""
        call("ip", "link", "set", self._cable(host), "down")

    def heal(self, host: str) -> None:
        call("ip", "link", "set", self._cable(host), "up")

    def kill(self, host: str) -> None:
        """As if its power went: every process ends at once."""
        inner, init = self.pid(host), self._inits.pop(host)
        init.send_signal(signal.SIGKILL)
        init.wait(READY_LIMIT_S)
        until_gone(inner)

    def start(self, host: str) -> None:
        self.launch(host)
        self.wait_until_ready(host)

    def mend(self) -> None:
        """As tests want to find them: all up, all connected."""
        for host in self.names:
            self.heal(host)
            if not self.is_up(host):
                self.start(host)

    def stop(self) -> None:
        for host in [*self._inits]:
            self.kill(host)
        for host in self.names:
            try_call("ip", "netns", "del", self._net(host))
        try_call("ip", "link", "del", self._bridge)
        self._subnet.give_back()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # --- how they are made --------------------------------------------------------------------------------

    def _bring_up(self) -> None:
        try:
            call("ip", "link", "add", self._bridge, "type", "bridge")
            call("ip", "addr", "add", f"{self.gateway}/24", "dev", self._bridge)
            call("ip", "link", "set", self._bridge, "up")
            for host in self.names:
                self._make(host)
                self.launch(host)
            for host in self.names:
                self.wait_until_ready(host)
        except BaseException:
            self.stop()
            raise

    def _make_keys(self) -> Keys:
        folder = self._folder / "keys"
        folder.mkdir(parents=True)
        make_key(folder / "id")
        lines = ["127.0.0.1 localhost", *(f"{self.address(host)} {host}" for host in self.names)]
        (folder / "hosts").write_text("\n".join(lines) + "\n")
        host_keys = {}
        for host in self.names:
            (self._folder / host).mkdir()
            make_key(self._folder / host / "hostkey")
            host_keys[host] = " ".join((self._folder / host / "hostkey.pub").read_text().split()[:2])
        known = "".join(f"{self.address(host)} {key}\n" for host, key in host_keys.items())
        (folder / "known_hosts").write_text(known)
        return Keys(folder / "id", folder / "known_hosts", host_keys)

    def _make(self, host: str) -> None:
        net, folder = self._net(host), self._folder / host
        call("ip", "netns", "add", net)
        call("ip", "link", "add", self._cable(host), "type", "veth", "peer", "name", "eth0", "netns", net)
        call("ip", "link", "set", self._cable(host), "master", self._bridge, "up")
        call("ip", "-n", net, "addr", "add", f"{self.address(host)}/24", "dev", "eth0")
        call("ip", "-n", net, "link", "set", "eth0", "up")
        call("ip", "-n", net, "link", "set", "lo", "up")
        call("ip", "-n", net, "route", "add", "default", "via", self.gateway)
        for part in ("up", "work", "root"):
            (folder / part).mkdir()
        (folder / "sshd_config").write_text(SSHD_CONFIG.format(address=self.address(host)))
        places = {"folder": folder, "root": folder / "root", "keys": self._folder / "keys", "name": host}
        (folder / "init.sh").write_text(INIT.format_map(places))

    def launch(self, host: str) -> None:
        # Not by `ip netns exec`: it hides the control groups, without which no container starts.
        entered = ["nsenter", f"--net=/run/netns/{self._net(host)}"]
        namespaces = ["unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]
        with (self._folder / host / "log").open("ab") as log:
            self._inits[host] = subprocess.Popen(
                [*entered, *namespaces, "bash", str(self._folder / host / "init.sh")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=host_env(),
                start_new_session=True,
            )

    def wait_until_ready(self, host: str) -> None:
        deadline = time.monotonic() + READY_LIMIT_S
        while not answers(self.address(host)):
            if self._inits[host].poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{host} did not start: {(self._folder / host / 'log').read_text()}")
            time.sleep(0.02)

    def _net(self, host: str) -> str:
        return f"crucible-{self._mark}-{host}"

    def _cable(self, host: str) -> str:
        return f"cv{self._mark}{host}"


class Subnet:
    """A /24 that no other process of ours uses, held by a lock as long as this process lives."""

    def __init__(self, number: int, lock: int) -> None:
        self._number = number
        self._lock = lock

    @classmethod
    def free(cls) -> "Subnet":
        for number in SUBNETS:
            lock = os.open(Path(tempfile.gettempdir()) / f"crucible-hosts-{number}.lock", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            if not is_routed(number):
                return cls(number, lock)
            os.close(lock)
        raise RuntimeError("every subnet of 10.88.0.0/16 is in use: another run may have died; see `ip link`")

    def address(self, last: int) -> str:
        return f"10.88.{self._number}.{last}"

    def give_back(self) -> None:
        os.close(self._lock)


def is_routed(number: int) -> bool:
    found = subprocess.run(["ip", "route", "show", f"10.88.{number}.0/24"], capture_output=True, check=True)
    return bool(found.stdout.strip())


def host_env() -> dict[str, str]:
    """Nothing of the tests' own environment: a host is another computer."""
    return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}


def make_key(path: Path) -> None:
    call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "crucible-test", "-f", str(path))


def answers(address: str) -> bool:
    try:
        with socket.create_connection((address, 22), timeout=1) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def until_gone(pid: int) -> None:
    deadline = time.monotonic() + READY_LIMIT_S
    while is_alive(pid):
        assert time.monotonic() < deadline, f"process {pid} does not end"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    """A zombie is not: whoever should take note of its end may never do so."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def call(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env={**os.environ, "PATH": PATH})
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}")


def try_call(*argv: str) -> None:
    """What may not be there."""
    subprocess.run(argv, capture_output=True, check=False, env={**os.environ, "PATH": PATH})


@pytest.fixture(scope="session")
def session_hosts(tmp_path_factory: Any) -> Iterator[HostsWorld]:
    if os.geteuid() != 0:
        pytest.skip("own hosts are made of namespaces: run as root")
    absent = [program for program in PROGRAMS if shutil.which(program, path=PATH) is None]
    assert not absent, f"own hosts need {', '.join(absent)}: run `make engines`"
    with HostsWorld(tmp_path_factory.mktemp("hosts") / "world") as world:
        yield world


@pytest.fixture
def hosts(session_hosts: HostsWorld) -> Iterator[HostsWorld]:
    """Three hosts, h1 to h3, all up and connected. They are shared: a test takes away what it puts there."""
    session_hosts.mend()
    yield session_hosts
    session_hosts.mend()
