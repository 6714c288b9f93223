"""What `crucible recommend` sends (C9): the script with what it imports, bounded and readable."""

from pathlib import Path

import pytest

from crucible.client import code
from crucible.model.errors import InvalidRequest


def names(found: code.Code) -> list[str]:
    return [file["name"] for file in found.files]


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_script_goes_with_the_files_beside_it_that_it_imports(tmp_path: Path) -> None:
    write(
        tmp_path,
        train="import torch\nfrom model import Net\n    from lab import data as d\nimport os.path\n",
        model="from lab.parts import Block\n",
        lab__data="",
        lab__parts="from . import data\nimport train\n",
        other="import model\n",
    )
    found = code.of_path(tmp_path / "train.py")
    assert names(found) == ["train.py", "model.py", "lab/data.py", "lab/parts.py"]
    assert found.entrypoint == "train.py"


def test_a_folder_sends_its_code_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path, main="x", pkg__deep__a="y", skipped="z")
    (tmp_path / "data.csv").write_text("1,2")
    (tmp_path / "n.ipynb").write_text("{}")
    (tmp_path / ".gitignore").write_text("skipped.py\n")
    assert names(code.of_path(tmp_path)) == ["main.py", "n.ipynb", "pkg/deep/a.py"]


def test_names_start_where_the_job_file_will_be(tmp_path: Path) -> None:
    write(tmp_path, src__train="import util\n", src__util="")
    found = code.of_path(tmp_path / "src" / "train.py", tmp_path)
    assert (found.entrypoint, names(found)) == ("src/train.py", ["src/train.py", "src/util.py"])
    assert names(code.of_path(tmp_path / "src", tmp_path)) == ["src/train.py", "src/util.py"]
    with pytest.raises(InvalidRequest, match="write the job file into the folder of the code"):
        code.of_path(tmp_path / "src" / "train.py", tmp_path / "elsewhere")


def test_what_is_not_utf_8_is_read_all_the_same_and_said(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"name = '\xe9'\n")
    found = code.of_path(tmp_path / "a.py")
    assert found.files[0]["text"] == "name = 'é'\n"
    assert found.notes == ["a.py: not UTF-8; read as Latin-1"]


def test_too_much_is_cut_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text("x" * (code.MAX_CHARS + 10))
    found = code.of_path(tmp_path / "a.py")
    assert len(found.files[0]["text"]) == code.MAX_CHARS
    assert "only its first 5,000,000 characters are sent" in found.notes[0]
    monkeypatch.setattr(code, "MAX_FILES", 3)
    write(tmp_path, **{f"f{i}": "" for i in range(6)})
    (tmp_path / "a.py").unlink()
    found = code.of_path(tmp_path)
    assert len(found.files) == 3
    assert found.notes == ["3 files are left out: too much code; name the script itself"]


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="cannot be read"):
        code.of_path(tmp_path / "no.py")
    with pytest.raises(InvalidRequest, match="no Python file"):
        code.of_path(tmp_path)
