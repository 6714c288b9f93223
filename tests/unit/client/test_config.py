"""Which server a command talks to, and which token it may show it."""

import json
import os
from pathlib import Path

import pytest

from crucible.client import config
from crucible.client.embedded import Embedded
from crucible.client.endpoint import Endpoint
from crucible.client.errors import BadConfiguration, LocalServerFailed


def environ(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), **more}


def logged_in(home: Path, url: str = "https://a.example", token: str = "saved") -> None:
    config.save(config.config_path(environ(home)), Endpoint(url, token))


def test_nothing_configured_means_the_embedded_server(tmp_path: Path) -> None:
    assert config.resolve(environ(tmp_path)) is None
    assert config.embedded(environ(tmp_path)).home == tmp_path / ".crucible"
    assert config.embedded(environ(tmp_path, CRUCIBLE_HOME="/data")).home == Path("/data")


def test_the_environment_goes_before_the_login(tmp_path: Path) -> None:
    logged_in(tmp_path)
    found = config.resolve(environ(tmp_path, CRUCIBLE_SERVER="http://b.example", CRUCIBLE_TOKEN="t"))
    assert found is not None
    assert (found.url, found.token, found.source) == ("http://b.example", "t", "CRUCIBLE_SERVER")


def test_a_login_is_used_when_the_environment_says_nothing(tmp_path: Path) -> None:
    logged_in(tmp_path)
    found = config.resolve(environ(tmp_path))
    assert found is not None
    assert (found.url, found.token) == ("https://a.example", "saved")
    assert found.source.endswith(".config/crucible/config.json")


def test_a_saved_token_is_never_shown_to_another_server(tmp_path: Path) -> None:
    logged_in(tmp_path)
    other = config.resolve(environ(tmp_path, CRUCIBLE_SERVER="https://b.example"))
    same = config.resolve(environ(tmp_path, CRUCIBLE_SERVER="https://a.example/"))
    assert other is not None and other.token is None
    assert same is not None and same.token == "saved"


def test_the_login_is_readable_by_its_owner_alone_and_replaced_as_a_whole(tmp_path: Path) -> None:
    path = config.config_path(environ(tmp_path))
    logged_in(tmp_path)
    logged_in(tmp_path, token="newer")
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text())["token"] == "newer"
    assert [entry.name for entry in path.parent.iterdir()] == ["config.json"]


def test_logging_out_forgets_once(tmp_path: Path) -> None:
    logged_in(tmp_path)
    path = config.config_path(environ(tmp_path))
    assert config.forget(path)
    assert not config.forget(path)
    assert config.resolve(environ(tmp_path)) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"url": "nonsense"}', '"x"'])
def test_a_broken_login_says_how_to_mend_it(tmp_path: Path, text: str) -> None:
    path = config.config_path(environ(tmp_path))
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(BadConfiguration, match=r"config\.json"):
        config.resolve(environ(tmp_path))


def test_the_folder_of_settings_can_be_elsewhere(tmp_path: Path) -> None:
    assert config.config_path({"XDG_CONFIG_HOME": "/x"}) == Path("/x/crucible/config.json")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"url": "http://127.0.0.1:1"}', '{"url": "http://127.0.0.1:1", "pid": 999999999}']
)
def test_a_stale_or_broken_server_file_is_no_server(tmp_path: Path, text: str) -> None:
    (tmp_path / "server.json").write_text(text)
    assert Embedded(tmp_path).running() is None
    assert Embedded(tmp_path).endpoint() is None


def test_a_foreign_process_with_a_recycled_pid_does_not_get_the_admin_token(tmp_path: Path) -> None:
    claim = {"url": "http://127.0.0.1:1", "pid": os.getpid(), "version": "0.1.0"}
    (tmp_path / "server.json").write_text(json.dumps(claim))
    (tmp_path / "admin-token").write_text("secret")
    assert Embedded(tmp_path).endpoint() is None


def test_stopping_a_server_that_does_not_run_is_nothing(tmp_path: Path) -> None:
    assert Embedded(tmp_path).stop() is None


def test_a_data_folder_that_cannot_be_made_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LocalServerFailed, match="CRUCIBLE_HOME"):
        Embedded(tmp_path / "file" / "below").start(())
