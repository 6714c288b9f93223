"""No room, no rights: a clear error, nothing half-written, and work as before once there is room again."""

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.harness import World, world
from crash.server_process import SERVER, ServerProcess
from crash.stories import occupying, quick
from crash.verdict import judge
from crucible.model.errors import StorageFailed

SIZE_MB = 24
SPEC = "job:\n  command: [echo, hello]\n"
# What is left of a page may take a few more jobs.
TRIES = 200


class SmallDisk:
    """A file system of its own. Where nobody may mount one, the system's limit on the size of files must do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"
        folder.mkdir()
        size = f"size={SIZE_MB}m"
        self.is_mounted = not subprocess.run(["mount", "-t", "tmpfs", "-o", size, "none", folder]).returncode

    def fill(self, server: ServerProcess) -> None:
        if not self.is_mounted:
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
            return
        with self._ballast.open("wb", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while True:
                        file.write(b"\0" * size)
                except OSError as error:
                    assert error.errno == errno.ENOSPC

    def make_room(self, server: ServerProcess) -> None:
        if self.is_mounted:
            self._ballast.unlink()
        else:
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def start_with(self, server: ServerProcess, room_kb: int) -> ServerProcess:
        """Without a mount, no file may have more than half of it; the server's own log needs a little."""
        if not self.is_mounted:
            return server.start(max_file_bytes=max(4, room_kb // 2) << 10)
        subprocess.run(["mount", "-o", f"remount,size={max(4, room_kb)}k", self.folder], check=True)
        return server.start()

    def forbid_writing(self) -> Path:
        """A place below it where nobody can write."""
        if self.is_mounted:
            subprocess.run(["mount", "-o", "remount,ro", self.folder], check=True)
            return self.folder / "data"
        self.folder.chmod(0o500)
        return self.folder / "data" if os.geteuid() else Path("/proc/crucible")  # root may write everywhere else

    def remove(self) -> None:
        if self.is_mounted:
            subprocess.run(["umount", "--lazy", self.folder], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    made = SmallDisk(tmp_path / "disk")
    yield made
    made.remove()


def test_a_full_disk_refuses_new_work_and_loses_none_of_the_old(disk: SmallDisk, tmp_path: Path) -> None:
    with world(tmp_path / "world", data=disk.folder / "data") as made:
        made.server.start().wait_ready()
        running = made.tell(occupying)
        made.wait_for_witness(running)
        made.wait(made.jobs[running.name], {"running"})
        for _ in range(2):
            disk.fill(made.server)
            assert refusal(made) == "storage_failed"
            assert made.insist(lambda c: c.job(made.jobs[running.name]))["status"] == "running"
            disk.make_room(made.server)
            made.wait_for_end(made.tell(quick))
        made.permit(running)
        made.wait_for_people()
        judge(made, 0).assert_good()


def refusal(made: World) -> str:
    with made.client() as client, pytest.raises(StorageFailed) as refused:
        for number in range(TRIES):
            spec = SPEC + f"  # {'x' * 4000}\n"
            job = client.submit(f"accepted-{number}", spec)  # whoever is accepted must also be finished
            made.wait(job["id"], {"completed", "failed"})
    assert any(word in refused.value.message for word in ("full", "space", "limit")), refused.value.message
    return refused.value.code


# Enough for the folder, for the database, for the agent, and not for what comes next.
@pytest.mark.parametrize("room_kb", [0, 8, 60, 300, 700])
def test_a_server_that_finds_too_little_room_says_so_and_starts_once_there_is_more(
    disk: SmallDisk, tmp_path: Path, room_kb: int
) -> None:
    server = ServerProcess(disk.folder / "data", log=tmp_path / "log")
    assert disk.start_with(server, room_kb).wait_for_end(60) == 1
    said = server.log.read_text()
    assert "error: " in said and any(word in said for word in ("space", "room")) and "Traceback" not in said
    disk.start_with(server, SIZE_MB << 10).wait_ready()
    server.stop()


def test_a_folder_that_cannot_be_written_is_refused_at_once(disk: SmallDisk) -> None:
    folder = disk.forbid_writing()
    argv = [sys.executable, *SERVER, "--data-dir", str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert str(folder) in done.stderr and "cannot be written" in done.stderr and "--data-dir" in done.stderr
    assert "Traceback" not in done.stderr
