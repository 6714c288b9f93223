"""Packing the code of a job: what is shipped, what is refused, and that the same files give the same bytes."""

import os
import socket
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from crucible.client.package import Package, pack, what_to_pack, write
from crucible.client.source import files_under
from crucible.model.errors import InvalidSpec, TooLarge
from crucible.model.spec import JobSpec


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def no_package_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert list(folder.iterdir()) == []


def fill(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content of {name}")


def members(package: Package) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(package.path, "r:gz") as archive:
        return {member.name: member for member in archive.getmembers()}


def shipped(root: Path, entrypoint: str | None = None) -> set[str]:
    with pack(root, entrypoint) as package:
        return set(members(package))


def refused(root: Path, entrypoint: str | None = None) -> dict[str, object]:
    with pytest.raises(InvalidSpec) as caught:
        pack(root, entrypoint)
    (problem,) = caught.value.details["problems"]
    return dict(problem)


def test_a_package_holds_regular_files_with_relative_names_and_no_trace_of_its_maker(root: Path) -> None:
    fill(root, "train.py", "lib/deep/mod.py", "Grüße/日本.txt")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o770)
    (root / "train.py").chmod(0o600)
    (root / "empty").mkdir()
    with pack(root) as package:
        found = members(package)
        assert list(found) == ["Grüße/日本.txt", "lib/deep/mod.py", "run.sh", "train.py"]
        assert all(m.isreg() and (m.mtime, m.uid, m.gid, m.uname, m.gname) == (0, 0, 0, "", "") for m in found.values())
        assert {name: m.mode for name, m in found.items() if name in ("run.sh", "train.py")} == {
            "run.sh": 0o755,
            "train.py": 0o644,
        }
        with tarfile.open(package.path) as archive:
            content = archive.extractfile("lib/deep/mod.py")
            assert content is not None and content.read() == b"content of lib/deep/mod.py"
        assert (package.file_count, package.size) == (4, package.path.stat().st_size)
        assert package.path.stat().st_mode & 0o077 == 0


def test_the_same_files_give_the_same_digest_whatever_their_times_and_order(tmp_path: Path) -> None:
    names = ["b.py", "a/x.py", "a.b", "a-b/c", "a.py"]
    digests = set()
    for number, order in enumerate((names, names[::-1])):
        folder = tmp_path / f"copy{number}"
        fill(folder, *order)
        os.utime(folder / "a.py", (number * 1000, number * 1000))
        with pack(folder) as package:
            digests.add(package.digest)
    assert len(digests) == 1
    (folder / "a.py").write_text("other")
    with pack(folder) as package:
        assert package.digest not in digests


def test_the_package_goes_with_its_block(root: Path) -> None:
    fill(root, "a.py")
    with pack(root) as package:
        assert package.path.exists()
    assert not package.path.exists()


# --- what is left out --------------------------------------------------------------------------


def test_git_and_what_ignore_files_name_stay_behind(root: Path) -> None:
    fill(root, ".git/config", "train.py", "data/big.bin", "keep.log", "drop.log", "sub/.git", "sub/x.tmp", "sub/y.py")
    (root / ".gitignore").write_text("*.log\n!keep.log\n/data/\n")
    (root / "sub/.gitignore").write_text("*.tmp\n")
    assert shipped(root) == {".gitignore", "train.py", "keep.log", "sub/.gitignore", "sub/y.py"}


def test_crucibleignore_has_the_last_word_in_its_folder(root: Path) -> None:
    fill(root, "model.bin", "notes.txt", "train.py")
    (root / ".gitignore").write_text("*.bin\n")
    (root / ".crucibleignore").write_text("!model.bin\nnotes.txt\n.gitignore\n")
    assert shipped(root) == {".crucibleignore", "model.bin", "train.py"}


def test_the_rules_of_the_repository_around_count_too(root: Path) -> None:
    fill(root, ".git/HEAD", "app/train.py", "app/secret.env", "app/out/x", "out/y")
    (root / ".gitignore").write_text("*.env\n/app/out\n")
    assert shipped(root / "app") == {"train.py"}


def test_without_a_repository_the_folders_above_have_no_say(root: Path) -> None:
    fill(root, "app/train.py", "app/secret.env")
    (root / ".gitignore").write_text("*.env\n")
    assert shipped(root / "app") == {"train.py", "secret.env"}


def test_a_folder_that_was_asked_for_is_shipped_even_if_the_repository_ignores_it(root: Path) -> None:
    fill(root, ".git/HEAD", "build/train.py")
    (root / ".gitignore").write_text("build/\n")
    assert shipped(root / "build") == {"train.py"}


def test_a_star_pattern_that_almost_matches_takes_no_time(root: Path) -> None:
    fill(root, "a" * 200, "train.py")
    (root / ".gitignore").write_text("*a" * 40 + "*b\n")
    assert "train.py" in shipped(root)


def test_sockets_and_pipes_are_skipped(root: Path) -> None:
    fill(root, "train.py")
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        cwd = os.getcwd()
        os.chdir(root)  # the name of a socket may have only a hundred bytes
        try:
            server.bind("sock")
        finally:
            os.chdir(cwd)
        assert shipped(root) == {"train.py"}


# --- links -------------------------------------------------------------------------------------


def test_a_link_inside_is_shipped_as_what_it_points_to(root: Path) -> None:
    fill(root, "real/train.py", "real/lib/a.py")
    (root / "train.py").symlink_to("real/train.py")
    (root / "lib").symlink_to(root / "real/lib")
    with pack(root) as package:
        found = members(package)
        assert set(found) == {"real/train.py", "real/lib/a.py", "train.py", "lib/a.py"}
        assert all(member.isreg() for member in found.values())


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "sub/../../outside"])
def test_a_link_that_leaves_the_folder_is_refused(root: Path, target: str) -> None:
    fill(root, "train.py", "sub/x", "../outside")
    (root / "link").symlink_to(target)
    problem = refused(root)
    assert problem["field"] == "job.code"
    assert problem["message"] == "cannot ship 'link': the link leaves the folder"
    assert ".crucibleignore" in str(problem["hint"])


def test_a_link_into_the_git_folder_is_refused(root: Path) -> None:
    fill(root, ".git/config", "train.py")
    (root / "config").symlink_to(".git/config")
    assert "leaves the folder" in str(refused(root)["message"])


def test_a_link_to_nothing_is_refused(root: Path) -> None:
    fill(root, "train.py")
    (root / "link").symlink_to("missing")
    assert "points to nothing" in str(refused(root)["message"])
    (root / "link").unlink()
    (root / "link").symlink_to("link")
    assert "points to nothing" in str(refused(root)["message"])


def test_a_link_to_a_folder_around_it_is_refused(root: Path) -> None:
    fill(root, "a/train.py")
    (root / "a/again").symlink_to("..")
    assert refused(root)["message"] == "cannot ship 'a/again': the link points to a folder around it"


def test_an_ignored_link_may_point_anywhere(root: Path) -> None:
    fill(root, "train.py")
    (root / "data").symlink_to("/etc")
    (root / ".gitignore").write_text("data\n")
    assert shipped(root) == {".gitignore", "train.py"}


# --- what cannot be shipped --------------------------------------------------------------------


def test_a_folder_with_nothing_to_ship_is_refused(root: Path) -> None:
    fill(root, "a.log")
    (root / ".gitignore").write_text("*\n")
    assert refused(root)["hint"] == "are all files ignored?"


def test_too_many_bytes_are_refused_with_the_largest_parts(root: Path) -> None:
    fill(root, "train.py", "small.bin")
    for number in range(3):
        with (root / f"large{number}.bin").open("wb") as file:
            file.truncate(200 * 1024**2)  # sparse: takes no room
    with pytest.raises(TooLarge, match=r"512 MiB .*'large0.bin' 200 MiB.*\.crucibleignore"):
        pack(root)


def test_a_single_file_of_too_many_bytes_is_refused(root: Path) -> None:
    with (root / "huge.py").open("wb") as file:
        file.truncate(513 * 1024**2)
    with pytest.raises(TooLarge, match=r"huge\.py"):
        pack(root / "huge.py", "huge.py")


def test_too_many_files_are_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crucible.client.source.MAX_FILES", 5)
    fill(root, *(f"{number}.py" for number in range(6)))
    with pytest.raises(TooLarge, match="5 files"):
        pack(root)


def test_links_that_multiply_folders_are_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crucible.client.source.MAX_FOLDERS", 100)
    for number in range(10):
        (root / f"d{number}").mkdir()
        if number:
            (root / f"d{number - 1}/x").symlink_to(f"../d{number}")
            (root / f"d{number - 1}/y").symlink_to(f"../d{number}")
    assert "more than 100 folders" in str(refused(root)["message"])


def test_a_file_that_vanishes_while_it_is_packed_is_named(root: Path) -> None:
    fill(root, "a.py", "b.py")
    files = files_under(root)
    (root / "b.py").unlink()
    with pytest.raises(InvalidSpec, match=r"cannot ship 'b\.py': it vanished while it was packed"):
        write(root, files)


def test_a_file_that_grew_since_it_was_listed_is_packed_whole(root: Path) -> None:
    fill(root, "a.py")
    files = files_under(root)
    (root / "a.py").write_text("much longer than before, to the end")
    with write(root, files) as package, tarfile.open(package.path) as archive:
        content = archive.extractfile("a.py")
        assert content is not None and content.read().endswith(b"to the end")


@pytest.fixture
def readable_by_nobody() -> Iterator[Path]:
    """A folder where the process, root or not, may not read what has no rights."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o777)
        fill(Path(name), "train.py", "secret.py")
        (Path(name) / "secret.py").chmod(0)
        is_root = os.geteuid() == 0
        if is_root:
            os.seteuid(65534)
        try:
            yield Path(name)
        finally:
            if is_root:
                os.seteuid(0)


def test_an_unreadable_file_is_named(readable_by_nobody: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as scratch, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", scratch)
        problem = refused(readable_by_nobody)
    assert problem["message"] == "cannot ship 'secret.py': permission denied"
    assert problem["hint"] == "make it readable or name it in .crucibleignore"


def test_a_name_that_is_not_utf8_is_refused(root: Path) -> None:
    fill(root, "train.py")
    with open(os.fsencode(root) + b"/caf\xe9.py", "w"):
        pass
    assert "its name is not UTF-8" in str(refused(root)["message"])


@pytest.mark.parametrize(
    ("name", "reason"), [("a\\b.py", "backslash"), ("/".join(["x" * 200] * 6), "longer than 1024")]
)
def test_a_name_that_an_agent_would_refuse_is_refused_before_anything_is_sent(
    root: Path, name: str, reason: str
) -> None:
    fill(root, name)
    assert reason in str(refused(root)["message"])


# --- entrypoints -------------------------------------------------------------------------------


def test_an_entrypoint_must_be_in_the_package(root: Path) -> None:
    fill(root, "src/train.py", "pkg/__main__.py")
    assert shipped(root, "src/train.py") == shipped(root, "./src/train.py") == shipped(root, "pkg")
    assert shipped(root, "s3://bucket/x.py")
    problem = refused(root, "train.py")
    assert (problem["field"], problem["hint"]) == ("job.entrypoint", "did you mean 'src/train.py'?")


def test_an_ignored_entrypoint_is_explained(root: Path) -> None:
    fill(root, "train.py", "other.py")
    (root / ".gitignore").write_text("train.py\n")
    assert "an ignore file names it" in str(refused(root, "train.py")["hint"])


def test_a_file_alone_is_shipped_under_the_path_it_is_started_by(root: Path) -> None:
    fill(root, "src/train.py")
    assert shipped(root / "src/train.py", "src/train.py") == {"src/train.py"}
    assert shipped(root / "src/train.py", "./train.py") == {"train.py"}
    assert shipped(root / "src/train.py") == {"train.py"}
    assert refused(root / "src/train.py", "other.py")["field"] == "job.entrypoint"
    assert refused(root / "src/../src/train.py", "../src/train.py")["field"] == "job.entrypoint"
    assert refused(root / "src/train.py", str(root / "src/train.py"))["field"] == "job.entrypoint"


def test_what_a_job_ships(root: Path) -> None:
    fill(root, "train.py", "src/x.py")
    assert what_to_pack(root, JobSpec(command=("true",))) is None
    assert what_to_pack(root, JobSpec(entrypoint="s3://bucket/train.py")) is None
    assert what_to_pack(root, JobSpec(entrypoint=f"git+https://h/r@{'0' * 40}#x.py")) is None
    assert what_to_pack(root, JobSpec(entrypoint="train.py")) == root / "train.py"
    assert what_to_pack(root, JobSpec(code="src", command=("true",))) == root / "src"
    assert what_to_pack(root / "src", JobSpec(code="..", entrypoint="train.py")) == root / "src/.."


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        (JobSpec(code="nowhere"), "job.code", "'nowhere' does not exist"),
        (JobSpec(code="train.py/x"), "job.code", "'train.py/x' does not exist"),
        (JobSpec(entrypoint="nowhere.py"), "job.entrypoint", "'nowhere.py' does not exist"),
        (JobSpec(entrypoint="src"), "job.entrypoint", "'src' is a folder"),
        (JobSpec(code="pipe"), "job.code", "'pipe' is neither a file nor a folder"),
        (JobSpec(code="x" * 300), "job.code", f"'{'x' * 39}…' cannot be read: File name too long"),
    ],
)
def test_what_a_job_cannot_ship(root: Path, spec: JobSpec, field: str, message: str) -> None:
    fill(root, "train.py", "src/x.py")
    os.mkfifo(root / "pipe")
    with pytest.raises(InvalidSpec) as caught:
        what_to_pack(root, spec)
    (problem,) = caught.value.details["problems"]
    assert (problem["field"], problem["message"], problem["line"]) == (field, message, 0)
    assert problem["hint"]
