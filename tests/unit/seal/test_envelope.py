"""The sealed form: opened by the right key under the right label, and by nothing else."""

import itertools
import os
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.model.secret import OwnerKind, SecretLabel, SecretOwner
from crucible.seal.envelope import NotOpened, open_value, seal_value, unwrap, wrap

LABEL = SecretLabel(SecretOwner(OwnerKind.USER, "ann"), "HF_TOKEN", 3)
VALUE = b"hf_canary \x00\xff"
OUTER = bytes(range(32))

OTHERS = [
    replace(LABEL, version=4),
    replace(LABEL, name="HF_TOKEM"),
    replace(LABEL, owner=SecretOwner(OwnerKind.USER, "anm")),
    replace(LABEL, owner=SecretOwner(OwnerKind.TEAM, "ann")),
    # Parts that would read the same without their lengths.
    SecretLabel(SecretOwner(OwnerKind.USER, "annHF"), "_TOKEN", 3),
]


def counted() -> Callable[[int], bytes]:
    """Chance that can be played again."""
    numbers = itertools.count(1)
    return lambda size: next(numbers).to_bytes(size, "big")


def test_what_is_sealed_opens_again() -> None:
    key, sealed = seal_value(LABEL, VALUE, os.urandom)
    assert open_value(key, LABEL, sealed) == VALUE
    assert unwrap(OUTER, "k", LABEL, wrap(OUTER, "k", LABEL, key, os.urandom)) == key
    assert VALUE not in sealed and key not in sealed


def test_the_form_stays_what_it_is() -> None:
    """What was sealed by an older version must open."""
    key, sealed = seal_value(LABEL, VALUE, counted())
    assert sealed.hex() == SEALED
    assert wrap(OUTER, "k1", LABEL, key, counted()).hex() == WRAPPED


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_under_another_label_nothing_opens(other: SecretLabel) -> None:
    key, sealed = seal_value(LABEL, VALUE, os.urandom)
    wrapped = wrap(OUTER, "k", LABEL, key, os.urandom)
    with pytest.raises(NotOpened):
        open_value(key, other, sealed)
    with pytest.raises(NotOpened):
        unwrap(OUTER, "k", other, wrapped)
    with pytest.raises(NotOpened):
        unwrap(OUTER, "another", LABEL, wrapped)


def test_every_changed_byte_is_noticed() -> None:
    key, sealed = seal_value(LABEL, VALUE, os.urandom)
    wrapped = wrap(OUTER, "k", LABEL, key, os.urandom)
    for at in range(len(sealed)):
        for bit in range(8):
            with pytest.raises(NotOpened):
                open_value(key, LABEL, flipped(sealed, at, bit))
    for at in range(len(wrapped)):
        with pytest.raises(NotOpened):
            unwrap(OUTER, "k", LABEL, flipped(wrapped, at, at % 8))
    for at in range(len(OUTER)):
        with pytest.raises(NotOpened):
            unwrap(flipped(OUTER, at, 0), "k", LABEL, wrapped)


def test_what_was_cut_or_made_longer_does_not_open() -> None:
    key, sealed = seal_value(LABEL, VALUE, os.urandom)
    for size in range(len(sealed)):
        with pytest.raises(NotOpened):
            open_value(key, LABEL, sealed[:size])
    with pytest.raises(NotOpened):
        open_value(key, LABEL, sealed + b"\0")


@given(st.binary(max_size=200))
def test_any_value_comes_back(value: bytes) -> None:
    key, sealed = seal_value(LABEL, value, os.urandom)
    assert open_value(key, LABEL, sealed) == value


@given(st.binary(max_size=200))
def test_no_other_bytes_open(box: bytes) -> None:
    with pytest.raises(NotOpened):
        open_value(OUTER, LABEL, box)


def flipped(data: bytes, at: int, bit: int) -> bytes:
    return data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]


SEALED = "010000000000000000000000023e895c32f1c0edee43501c4669014ffa3f6a7792bfeb688cbae9ce99"
WRAPPED = (
    "0100000000000000000000000115d6bffc44f4301e0e2e5139eca63af7159f1c54"
    "64b25484730003d92630735f05e39799af0d37b8cc4ba946c9928e52"
)
