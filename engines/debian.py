"""Debian's packages: real hosts, a real Slurm, containers, a real Prometheus, a browser. As root they are installed,
else it is said how."""

import os
import shutil
import subprocess
from pathlib import Path

# Per engine: a program that shows that it is there, and what brings it.
PACKAGES = {
    "ssh hosts": (("sshd", "ip", "unshare"), ("openssh-server", "openssh-client", "iproute2", "util-linux")),
    "slurm": (
        ("slurmctld", "slurmd", "slurmrestd", "munged", "sbatch", "sacct", "slurmdbd", "mariadbd"),
        (
            *("slurmctld", "slurmd", "slurmrestd", "slurm-client", "slurm-wlm-jwt-plugin", "munge"),
            # MariaDB's programs without its service.
            *("slurmdbd", "mariadb-server-core"),
        ),
    ),
    "containers": (("podman", "runc"), ("podman", "runc", "busybox-static")),
    "prometheus": (("prometheus", "promtool"), ("prometheus",)),
    "browser": (("chromium",), ("chromium", "fonts-dejavu-core")),
}
# Where Debian puts what only root runs.
PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def missing() -> dict[str, tuple[str, ...]]:
    """The packages of every engine that is not there."""
    return {
        engine: packages
        for engine, (programs, packages) in PACKAGES.items()
        if not all(shutil.which(program, path=PATH) for program in programs)
    }


def install() -> str | None:
    """None, or what a person must do first."""
    wanted = sorted({package for packages in missing().values() for package in packages})
    if not wanted:
        return None
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return f"install as root: {' '.join(wanted)} (on Debian: apt-get install --no-install-recommends …)"
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # Daemons are started by tests, each in a folder of its own; the packages' own must not.
    policy = Path("/usr/sbin/policy-rc.d")
    made = not policy.exists()
    if made:
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
    try:
        subprocess.run(["apt-get", "update", "-qq"], check=True, env=quiet)
        argv = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *wanted]
        subprocess.run(argv, check=True, env=quiet, stdout=subprocess.DEVNULL)
    finally:
        if made:
            policy.unlink()
    return None
