"""The local server by its command, and a client without one."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import crucible

LIMIT_S = 60.0
# What `pip install crucible` brings besides itself.
BASE = ("click", "yaml")


def environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CRUCIBLE_", "XDG_"))}
    return {**kept, "HOME": str(folder), "CRUCIBLE_HOME": str(folder / "data")}


def test_the_foreground_server_says_where_it_is_and_stops_at_sigterm(tmp_path: Path) -> None:
    argv = [
        sys.executable,
        "-m",
        "crucible.cli.entry",
        "server",
        "--data-dir",
        str(tmp_path / "here"),
        "--local-gpus",
        "2",
    ]
    known = tmp_path / "here" / "server.json"
    with subprocess.Popen(argv, env=environment(tmp_path), stderr=subprocess.PIPE) as process:
        try:
            end = time.monotonic() + LIMIT_S
            while not known.exists() and process.poll() is None and time.monotonic() < end:
                time.sleep(0.05)
            assert json.loads(known.read_text())["pid"] == process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, said.decode()
    assert not known.exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--storage", "ftp://bucket"], "ftp://bucket is not a place for objects; write s3://"),
        (["--storage", "minio://127.0.0.1:9/bucket"], "set MINIO_ACCESS_KEY"),
        (["--storage", "az://container"], "set AZURE_STORAGE_ACCOUNT_NAME"),
        (["--storage-endpoint", "minio:9000"], "write https://host:port"),
    ],
)
def test_storage_that_cannot_work_keeps_the_server_from_starting(
    tmp_path: Path, options: list[str], words: str
) -> None:
    argv = [sys.executable, "-m", "crucible.cli.entry", "server", *options]
    clouds = ("AWS_", "AZURE_", "MINIO_", "GOOGLE_")
    known = {name: value for name, value in environment(tmp_path).items() if not name.startswith(clouds)}
    ran = subprocess.run(argv, env=known, capture_output=True, text=True, timeout=LIMIT_S)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("error: ") and words in ran.stderr and "Traceback" not in ran.stderr
    assert not (tmp_path / "data" / "crucible.db").exists()


def test_help_of_the_server_lists_its_options(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "crucible.cli.entry", "server", "run", "--help"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    for option in ("--data-dir", "--host", "--port", "--database", "--local-gpus"):
        assert option in ran.stdout


@pytest.fixture
def thin(tmp_path: Path) -> list[str]:
    """Python with the base dependencies and nothing else: no site-packages, links to what a thin install has."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for name in BASE:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        (packages / name).symlink_to(Path(spec.origin).parent)
    for compiled in Path(importlib.util.find_spec("yaml").origin).parent.parent.glob("_yaml"):  # type: ignore[union-attr, arg-type]
        (packages / compiled.name).symlink_to(compiled)
    (packages / "crucible").symlink_to(Path(crucible.__file__).parent)
    return ["env", f"PYTHONPATH={packages}", sys.executable, "-S", "-m", "crucible.cli.entry"]


def test_the_thin_client_says_what_to_install_when_a_server_is_needed(thin: list[str], tmp_path: Path) -> None:
    ran = subprocess.run([*thin, "ps"], env=environment(tmp_path), capture_output=True, text=True)
    assert ran.returncode == 2
    assert "pip install 'crucible[server]'" in ran.stderr
    assert not (tmp_path / "data").exists()


def test_the_thin_client_validates_offline(thin: list[str], tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("job:\n  command: [echo]\n  colour: red\n")
    ran = subprocess.run(
        [*thin, "validate", "job.yaml"], env=environment(tmp_path), cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 2, ran.stderr
    assert ran.stdout.startswith("job.yaml:3:3: job.colour:")


def test_the_thin_client_runs_a_job_on_a_server_elsewhere(thin: list[str], tmp_path: Path) -> None:
    server = tmp_path / "server"
    server.mkdir()
    start = [sys.executable, "-m", "crucible.cli.entry", "server"]
    made = subprocess.run([*start, "start", "-o", "json"], env=environment(server), capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    try:
        (tmp_path / "train.py").write_text("print('trained')\n")
        (tmp_path / "job.yaml").write_text("job:\n  entrypoint: train.py\n")
        env = environment(tmp_path) | {
            "CRUCIBLE_SERVER": json.loads(made.stdout)["url"],
            "CRUCIBLE_TOKEN": (server / "data" / "admin-token").read_text(),
        }
        ran = subprocess.run([*thin, "submit", "job.yaml"], env=env, cwd=tmp_path, capture_output=True, text=True)
        assert (ran.returncode, ran.stdout) == (0, "trained\n"), ran.stderr
    finally:
        subprocess.run([*start, "stop"], env=environment(server), check=True, capture_output=True)
