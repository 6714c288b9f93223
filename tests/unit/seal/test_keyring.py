"""The file of keys: who may read it, what is in it, and how it changes under others' hands."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from crucible.model.errors import SecretDamaged, SecretsKeyMissing, StorageFailed
from crucible.model.secret import OwnerKind, Secret, SecretLabel, SecretOwner
from crucible.seal import KeyRing

LABEL = SecretLabel(SecretOwner(OwnerKind.USER, "ann"), "HF_TOKEN", 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "secrets-keys"


@pytest.fixture
def ring(path: Path) -> KeyRing:
    return KeyRing.made_in(path)


def test_the_first_start_makes_a_key_that_only_its_owner_may_read(ring: KeyRing, path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o600 and len(path.read_text().strip()) == 64
    assert KeyRing.made_in(path).newest() == ring.newest()
    assert os.listdir(path.parent) == [path.name]


def test_two_installs_have_two_keys(tmp_path: Path) -> None:
    assert KeyRing.made_in(tmp_path / "a").newest() != KeyRing.made_in(tmp_path / "b").newest()


@pytest.mark.parametrize("text", ["", "secret\n", "ab" * 31 + "\n", "AB" * 32 + "\n", "\x00\n"])
def test_what_is_no_file_of_keys_is_refused(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(SecretsKeyMissing, match="64 hexadecimal digits"):
        KeyRing(path)


def test_a_file_that_others_may_read_is_refused(ring: KeyRing, path: Path) -> None:
    path.chmod(0o640)
    with pytest.raises(SecretsKeyMissing, match="chmod 600"):
        KeyRing(path)


def test_no_file_is_no_ring(path: Path) -> None:
    with pytest.raises(SecretsKeyMissing, match="No such file"):
        KeyRing(path)


def test_a_value_comes_back_and_is_not_in_what_is_stored(ring: KeyRing) -> None:
    sealed = ring.seal(ring.newest(), LABEL, Secret(b"hf_canary"))
    assert ring.open(LABEL, sealed).reveal() == b"hf_canary"
    assert "hf_canary" not in repr(sealed)


def test_another_server_meets_a_new_key_and_finds_it_in_the_file(ring: KeyRing, path: Path) -> None:
    other = KeyRing(path)
    key_id = ring.add_key()
    sealed = ring.seal(key_id, LABEL, Secret(b"x"))
    assert other.open(LABEL, sealed) == Secret(b"x") and other.newest() == key_id


def test_under_a_new_key_the_value_is_the_same_and_the_old_key_is_not_needed(ring: KeyRing) -> None:
    old = ring.newest()
    sealed = ring.seal(old, LABEL, Secret(b"x"))
    after = ring.rewrap(ring.add_key(), LABEL, sealed)
    assert after.sealed == sealed.sealed and after.key_id != old
    assert ring.forget_keys({after.key_id}) == [old]
    assert ring.open(LABEL, after) == Secret(b"x")
    with pytest.raises(SecretsKeyMissing, match=old):
        ring.open(LABEL, sealed)


def test_the_last_key_is_never_forgotten(ring: KeyRing) -> None:
    assert ring.forget_keys({"another"}) == [] and ring.knows(ring.newest())


def test_what_was_changed_in_the_database_does_not_open(ring: KeyRing) -> None:
    sealed = ring.seal(ring.newest(), LABEL, Secret(b"x"))
    for spoiled in (replace(sealed, sealed=sealed.wrapped), replace(sealed, wrapped="%%%"), replace(sealed, sealed="")):
        with pytest.raises(SecretDamaged, match="HF_TOKEN of user:ann"):
            ring.open(LABEL, spoiled)
    with pytest.raises(SecretDamaged):
        ring.rewrap(ring.newest(), replace(LABEL, version=2), sealed)


def test_a_file_that_cannot_be_written_changes_nothing(ring: KeyRing, path: Path) -> None:
    before = path.read_text()
    path.with_name("secrets-keys.lock").mkdir()
    with pytest.raises(StorageFailed):
        ring.add_key()
    assert path.read_text() == before


def test_a_secret_shows_itself_to_nobody() -> None:
    secret = Secret(b"hf_canary")
    shown = [
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret!r:>20}",
        repr([secret]),
        repr({1: secret}),
    ]
    assert not any("canary" in text for text in shown)
    with pytest.raises(TypeError):
        __import__("pickle").dumps(secret)
    assert secret == Secret(b"hf_canary") != Secret(b"x")
