"""RSA for one service account: a key pair is made, signatures of PKCS #1 v1.5 over SHA-256 are checked. It signs
nothing itself, and its keys are worth nothing outside of the Lab."""

import hashlib
import hmac
import math
import secrets
from dataclasses import dataclass, field
from functools import cache

BITS = 2048  # the least that clients accept
EXPONENT = 65537
# Candidates with a factor below this are dropped before the first expensive test: seven in eight of the odd ones.
SMALL = 1 << 13
# Each passes a composite number in at most one of four cases, and far less often at this size.
ROUNDS = 8
# What stands before a digest of SHA-256 in a signature (RFC 8017, 9.2).
_SHA256 = bytes.fromhex("3031300d060960864801650304020105000420")


@dataclass(frozen=True, slots=True)
class PublicKey:
    modulus: int

    def has_signed(self, message: bytes, signature: bytes) -> bool:
        size = (self.modulus.bit_length() + 7) // 8
        number = int.from_bytes(signature, "big")
        if len(signature) != size or number >= self.modulus:
            return False
        said = pow(number, EXPONENT, self.modulus).to_bytes(size, "big")
        return hmac.compare_digest(said, padded(message, size))


@dataclass(frozen=True, slots=True)
class PrivateKey:
    p: int = field(repr=False)  # the larger prime
    q: int = field(repr=False)

    @property
    def modulus(self) -> int:
        return self.p * self.q

    @property
    def exponent(self) -> int:
        return pow(EXPONENT, -1, math.lcm(self.p - 1, self.q - 1))

    @property
    def public(self) -> PublicKey:
        return PublicKey(self.modulus)


def make() -> PrivateKey:
    """Takes some tenths of a second."""
    while True:
        p, q = sorted((_prime(BITS // 2), _prime(BITS // 2)), reverse=True)
        if p != q:
            return PrivateKey(p, q)


def padded(message: bytes, size: int) -> bytes:
    """What a signature of `message` is the root of."""
    tail = _SHA256 + hashlib.sha256(message).digest()
    return b"\x00\x01" + b"\xff" * (size - len(tail) - 3) + b"\x00" + tail


def _prime(bits: int) -> int:
    """With both highest bits, so that the product of two has exactly twice the length."""
    while True:
        number = secrets.randbits(bits) | (3 << (bits - 2)) | 1
        if math.gcd(number - 1, EXPONENT) == 1 and _is_prime(number):
            return number


def _is_prime(number: int) -> bool:
    """For large odd numbers, by Miller and Rabin."""
    if math.gcd(number, _small_primes()) != 1 or pow(2, number - 1, number) != 1:
        return False
    twos = ((number - 1) & (1 - number)).bit_length() - 1
    return all(_passes(number, twos, 2 + secrets.randbelow(number - 3)) for _ in range(ROUNDS))


def _passes(number: int, twos: int, base: int) -> bool:
    power = pow(base, (number - 1) >> twos, number)
    if power in (1, number - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % number
        if power == number - 1:
            return True
    return False


@cache
def _small_primes() -> int:
    """The product of the odd ones."""
    return math.prod(
        number for number in range(3, SMALL, 2) if all(number % low for low in range(3, math.isqrt(number) + 1, 2))
    )
