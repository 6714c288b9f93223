"""Keys and signatures: what the key signed is recognised, and nothing else."""

import base64
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.lab.gcs import pem, rsa
from gcs_front import a_key, signature


def test_a_key_has_two_primes_of_half_its_length() -> None:
    key = a_key()
    assert key.modulus.bit_length() == rsa.BITS
    assert key.p > key.q
    assert all(prime.bit_length() == rsa.BITS // 2 for prime in (key.p, key.q))
    assert all(pow(base, prime - 1, prime) == 1 for prime in (key.p, key.q) for base in (3, 5, 7, 11))
    assert key.exponent * rsa.EXPONENT % math.lcm(key.p - 1, key.q - 1) == 1


def test_two_keys_are_never_alike() -> None:
    assert math.gcd(a_key(0).modulus, a_key(1).modulus) == 1


@pytest.mark.parametrize("number", [561, 41041, 2**1023 + 1, (2**127 - 1) * (2**521 - 1), 3215031751])
def test_composite_numbers_are_no_primes(number: int) -> None:
    assert not rsa._is_prime(number)


@pytest.mark.parametrize("number", [2**521 - 1, 2**607 - 1, 2**1279 - 1])
def test_primes_are_primes(number: int) -> None:
    assert rsa._is_prime(number)


@settings(max_examples=10, deadline=None)
@given(message=st.binary(max_size=200), bit=st.integers(0, rsa.BITS - 1))
def test_a_signature_is_good_for_its_message_alone(message: bytes, bit: int) -> None:
    key, public = a_key(), a_key().public
    signed = signature(key, message)
    changed = (int.from_bytes(signed, "big") ^ (1 << bit)).to_bytes(len(signed), "big")
    assert public.has_signed(message, signed)
    assert not public.has_signed(message + b"x", signed)
    assert not public.has_signed(message, changed)
    assert not a_key(1).public.has_signed(message, signed)


@pytest.mark.parametrize("forged", [b"", b"\0", b"\0" * 256, b"\xff" * 256, b"\0" * 255 + b"\1", b"\1" * 257])
def test_what_is_no_signature_is_refused(forged: bytes) -> None:
    assert not a_key().public.has_signed(b"message", forged)


def test_a_short_hash_behind_free_bytes_is_no_signature() -> None:
    """Padding is compared as a whole: of a signature that only begins like one, cubes could be forged."""
    key = a_key()
    whole = rsa.padded(b"message", 256)
    tail = whole[whole.index(b"\0", 2) :]
    loose = b"\x00\x01\xff" + tail + bytes(256 - 3 - len(tail))
    root = pow(int.from_bytes(loose, "big"), key.exponent, key.modulus).to_bytes(256, "big")
    assert not key.public.has_signed(b"message", root)


def test_a_key_is_written_as_pkcs8() -> None:
    key = a_key()
    head, *lines, tail = pem.pem(key).splitlines()
    assert (head, tail) == ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----")
    der = base64.b64decode("".join(lines))
    _, _, octets = _children(der)
    numbers = [int.from_bytes(number, "big") for number in _children(octets)]
    d = key.exponent
    assert numbers[:6] == [0, key.modulus, rsa.EXPONENT, d, key.p, key.q]
    assert numbers[6:8] == [d % (key.p - 1), d % (key.q - 1)]
    assert numbers[8] * key.q % key.p == 1


def _children(data: bytes) -> list[bytes]:
    """The contents of what is in a sequence."""
    content, _ = _content(data)
    found = []
    while content:
        one, content = _content(content)
        found.append(one)
    return found


def _content(data: bytes) -> tuple[bytes, bytes]:
    size, start = data[1], 2
    if size & 0x80:
        start = 2 + (size & 0x7F)
        size = int.from_bytes(data[2:start], "big")
    return data[start : start + size], data[start + size :]
