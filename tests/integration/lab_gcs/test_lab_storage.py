"""Storage as a part of the Lab: its exports, its key, and what is left of it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import obstore
import pytest
from obstore.exceptions import UnauthenticatedError
from obstore.store import GCSStore

from crucible.cli.run import run
from lab_process import RunningLab

SCRIPT = """
import obstore
from obstore.store import GCSStore
store = GCSStore("lab-bucket")
obstore.put(store, "hello", b"from a shell")
print(bytes(obstore.get(store, "hello").bytes()).decode())
"""


def opened(environ: dict[str, str]) -> GCSStore:
    key, base = environ["GOOGLE_APPLICATION_CREDENTIALS"], environ["GOOGLE_BASE_URL"]
    options = {"client_options": {"allow_http": True}, "retry_config": {"max_retries": 0}}
    return GCSStore("lab-bucket", application_credentials=key, base_url=base, **options)


def test_env_is_read_by_a_shell_and_an_unmodified_client(lab: RunningLab, tmp_path: Path) -> None:
    tools = Path(sys.executable).parent
    script = f'eval "$({tools}/crucible lab env gcs)" && {sys.executable} -c "$SCRIPT"'
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    ran = subprocess.run(
        ["sh", "-c", script],
        env={**kept, "HOME": str(tmp_path), "CRUCIBLE_LAB_HOME": str(lab.home), "SCRIPT": SCRIPT},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.stdout.strip() == "from a shell", ran.stderr


def test_env_says_where_our_server_stores(
    lab: RunningLab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRUCIBLE_LAB_HOME", str(lab.home))
    assert run(["lab", "env", "gcs", "-o", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["CRUCIBLE_STORAGE"] == "gs://lab-bucket"
    assert said["CRUCIBLE_GCS_ENDPOINT"] == f"{lab.url}/gcs"
    key = Path(said["GOOGLE_APPLICATION_CREDENTIALS"])
    assert key.stat().st_mode & 0o777 == 0o600
    assert lab.control.storage() == said, "the key is made once"


def test_nothing_survives_a_lab_and_no_key_opens_another(tmp_path: Path) -> None:
    lab = RunningLab(tmp_path, regions="us-east-1")
    with lab:
        environ = lab.control.storage()
        old = Path(environ["GOOGLE_APPLICATION_CREDENTIALS"]).read_text()
        obstore.put(opened(environ), "key", b"x")
        os.kill(lab.pid, signal.SIGKILL)
        os.waitpid(lab.pid, 0)  # ours: this process has started it
        lab.start()
        kept = tmp_path / "old.json"
        kept.write_text(old)
        environ = lab.control.storage()
        with pytest.raises(UnauthenticatedError):
            obstore.get(opened({**environ, "GOOGLE_APPLICATION_CREDENTIALS": str(kept)}), "key")
        with pytest.raises(FileNotFoundError, match="NoSuchKey"):
            obstore.get(opened(environ), "key")
        assert list((lab.home / "gcs").iterdir()) == []
    assert not (lab.home / "gcs").exists()
    assert not Path(environ["GOOGLE_APPLICATION_CREDENTIALS"]).exists()
