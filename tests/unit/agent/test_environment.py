"""What a cached environment depends on, and which of them are kept."""

import os
from pathlib import Path

import pytest

from crucible.agent import cellar, disk, environment
from crucible.agent.environment import Place


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    (folder / "pkg").mkdir(parents=True)
    for name, text in {"requirements.txt": "-r base.txt\n", "base.txt": "numpy\n", "install.sh": "true\n"}.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def python(tmp_path: Path) -> Path:
    path = tmp_path / "python"
    path.write_text("an interpreter")
    return path


class Keys:
    def __init__(self, code: Path, python: Path) -> None:
        self.code, self.python = code, python

    def __call__(self, *lines: str, digest: str | None = "d" * 64, **env: str) -> str:
        return environment.key_of(list(lines), str(self.python), env, str(self.code), digest)


@pytest.fixture
def key(code: Path, python: Path) -> Keys:
    return Keys(code, python)


def test_the_same_lines_have_the_same_key_whatever_the_code_is(key: Keys) -> None:
    assert key("pip install numpy") == key("pip install numpy", digest="e" * 64)
    assert key("pip install numpy") != key("pip install scipy")


def test_a_file_that_the_lines_name_counts_and_so_do_those_it_names(key: Keys, code: Path) -> None:
    before = key("pip install -r requirements.txt")
    assert key("pip install -r requirements.txt", digest="e" * 64) == before
    (code / "base.txt").write_text("scipy\n")
    assert key("pip install -r requirements.txt") != before


@pytest.mark.parametrize("line", ["pip install .", "cd pkg && make", "sh install.sh", "pip install wheels/*.whl"])
def test_lines_that_may_use_all_of_the_code_depend_on_all_of_it(key: Keys, line: str) -> None:
    assert key(line) != key(line, digest="e" * 64)


def test_variables_that_the_lines_use_count_and_others_do_not(key: Keys) -> None:
    assert key("pip install torch==$TORCH", TORCH="2.6", RANK="0") == key("pip install torch==$TORCH", TORCH="2.6")
    assert key("pip install torch==${TORCH}", TORCH="2.6") != key("pip install torch==${TORCH}", TORCH="2.7")
    assert key("pip install x", PIP_INDEX_URL="a") != key("pip install x", PIP_INDEX_URL="b")


def test_another_python_is_another_environment(key: Keys, python: Path) -> None:
    before = key("pip install x")
    python.write_text("a newer interpreter")
    assert key("pip install x") != before


def test_a_file_outside_the_code_is_never_read(key: Keys, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("a")
    before = key("pip install -r ../secret.txt")
    (tmp_path / "secret.txt").write_text("b")
    assert key("pip install -r ../secret.txt") == before


def made(folder: Path, name: str, size: int, used_at: float) -> Path:
    path = folder / (name * 64)
    path.mkdir(parents=True)
    (path / "content").write_bytes(b"x" * size)
    Place(str(path)).complete(["true"])
    os.utime(path / environment.COMPLETE, (used_at, used_at))
    return path


def test_the_least_recently_used_go(tmp_path: Path) -> None:
    old, middle, new = (made(tmp_path, name, 10, at) for at, name in enumerate("abc", 1))
    cellar.prune(str(tmp_path), most=2)
    assert (old.exists(), middle.exists(), new.exists()) == (False, True, True)


def test_too_large_goes_too(tmp_path: Path) -> None:
    old, new = made(tmp_path, "a", 1000, 1), made(tmp_path, "b", 1000, 2)
    cellar.prune(str(tmp_path), most_bytes=1500)
    assert (old.exists(), new.exists()) == (False, True)


def test_one_in_use_stays(tmp_path: Path) -> None:
    used, new = made(tmp_path, "a", 10, 1), made(tmp_path, "b", 10, 2)
    place = Place(str(used))
    assert place.take() == "kept"
    os.utime(used / environment.COMPLETE, (1, 1))
    cellar.prune(str(tmp_path), most=1)
    assert used.exists() and new.exists()
    place.leave()
    cellar.prune(str(tmp_path), most=1)
    assert not used.exists() and new.exists()


def test_what_somebody_makes_is_waited_for_and_what_was_left_half_is_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / ("a" * 64)
    maker, other = Place(str(folder)), Place(str(folder))
    assert maker.take() == "new"
    folder.mkdir()
    (folder / "half").touch()
    assert other.take() is None
    maker.leave()
    assert other.take() == "new"
    assert not folder.exists()


def test_what_is_kept_is_used_by_many_at_once(tmp_path: Path) -> None:
    folder = made(tmp_path, "a", 1, 1)
    assert [Place(str(folder)).take() for _ in range(3)] == ["kept"] * 3


def test_lines_that_must_run_every_time_are_remembered(tmp_path: Path) -> None:
    place = Place(str(tmp_path / "a"))
    assert place.take() == "new"
    place.disown()
    assert Place(str(tmp_path / "a")).take() == "own"


def test_changes_of_the_code_are_seen_and_bytecode_is_none(code: Path, tmp_path: Path) -> None:
    before = environment.snapshot(str(code))
    (code / "pkg" / "__pycache__").mkdir()
    (code / "pkg" / "__pycache__" / "x.pyc").touch()
    folder = tmp_path / "environment"
    folder.mkdir()
    assert environment.why_not_kept(before, str(code), str(folder), False) is None
    assert environment.why_not_kept(before, str(code), str(folder), True) == "its lines left a process running"
    (code / "pkg" / "built.so").touch()
    why = environment.why_not_kept(before, str(code), str(folder), False)
    assert why == "its lines changed files of the code"


def test_an_editable_install_is_seen(code: Path, tmp_path: Path) -> None:
    before = environment.snapshot(str(code))
    site = tmp_path / "environment" / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    (site / "__editable__.pkg.pth").write_text(str(code))
    why = environment.why_not_kept(before, str(code), str(tmp_path / "environment"), False)
    assert why == "something in it points to the code of this attempt"


def test_the_program_runs_with_the_environments_python() -> None:
    assert environment.words_in(["/opt/python", "-m", "x", "/opt/python"], "/opt/python", "/e")[0] == "/e/bin/python"
    assert environment.words_in(["torchrun", "x.py"], "/opt/python", "/e") == ["torchrun", "x.py"]
    env = environment.variables({"PATH": "/bin", "A": "b"}, "/e")
    assert env == {"PATH": f"/e/bin{os.pathsep}/bin", "VIRTUAL_ENV": "/e", "A": "b"}


def test_a_half_removed_environment_is_cleared(tmp_path: Path) -> None:
    (tmp_path / ".gone-1" / "x").mkdir(parents=True)
    cellar.prune(str(tmp_path))
    assert os.listdir(tmp_path) == []
    assert disk.read_json(str(tmp_path / "nothing")) is None
