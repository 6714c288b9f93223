"""SSH keys without a library: public ones read and fingerprinted as EC2 does, Ed25519 pairs made (RFC 8032)."""

import base64
import binascii
import hashlib
import secrets
import struct
import textwrap

_P = 2**255 - 19
_D = -121665 * pow(121666, -1, _P) % _P
_BASE_Y = 4 * pow(5, -1, _P) % _P
_BASE_X = 15112221349535400772501151409588531511454012693041857206046113283949847762202
_Point = tuple[int, int, int, int]  # extended coordinates


def read(public: str) -> tuple[str, str] | None:
    """("rsa" or "ed25519", fingerprint) of a line such as "ssh-ed25519 AAAA… comment"; None: it is no such line."""
    kind, _, rest = public.partition(" ")
    try:
        blob = base64.b64decode(rest.split()[0] if rest.split() else "", validate=True)
        parts = _unpacked(blob)
    except (ValueError, struct.error, binascii.Error):
        return None
    if not parts or parts[0] != kind.encode():
        return None
    if kind == "ssh-ed25519" and len(parts) == 2 and len(parts[1]) == 32:
        return "ed25519", base64.b64encode(hashlib.sha256(blob).digest()).decode()
    if kind == "ssh-rsa" and len(parts) == 3:
        digest = hashlib.md5(_rsa_der(*parts[1:]), usedforsecurity=False).hexdigest()
        return "rsa", ":".join(digest[at : at + 2] for at in range(0, 32, 2))
    return None


def new() -> tuple[str, str]:
    """(private key as a file, public key as a line)."""
    seed = secrets.token_bytes(32)
    public = public_of(seed)
    blob = _packed(b"ssh-ed25519", public)
    check = secrets.token_bytes(4) * 2
    inner = check + blob + _packed(seed + public, b"")
    inner += bytes(range(1, 1 + -len(inner) % 8))
    file = b"openssh-key-v1\0" + _packed(b"none", b"none", b"") + struct.pack(">I", 1) + _packed(blob, inner)
    text = "\n".join(textwrap.wrap(base64.b64encode(file).decode(), 70))
    line = f"ssh-ed25519 {base64.b64encode(blob).decode()}"
    return f"-----BEGIN OPENSSH PRIVATE KEY-----\n{text}\n-----END OPENSSH PRIVATE KEY-----\n", line


def _packed(*parts: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(part)) + part for part in parts)


def _unpacked(blob: bytes) -> list[bytes]:
    parts = []
    while blob:
        (size,) = struct.unpack(">I", blob[:4])
        if len(blob) < 4 + size:
            raise ValueError("cut short")
        parts.append(blob[4 : 4 + size])
        blob = blob[4 + size :]
    return parts


def _rsa_der(exponent: bytes, modulus: bytes) -> bytes:
    """The key as X.509 writes it: Amazon's fingerprint of an imported key is over this."""
    key = _der(0x30, _der(0x02, modulus) + _der(0x02, exponent))
    algorithm = bytes.fromhex("300d06092a864886f70d0101010500")  # rsaEncryption
    return _der(0x30, algorithm + _der(0x03, b"\0" + key))


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 128:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def public_of(seed: bytes) -> bytes:
    digest = hashlib.sha512(seed).digest()[:32]
    scalar = int.from_bytes(digest, "little") & ((1 << 254) - 8) | (1 << 254)
    x, y, z, _ = _times(scalar, (_BASE_X, _BASE_Y, 1, _BASE_X * _BASE_Y % _P))
    inverse = pow(z, -1, _P)
    x, y = x * inverse % _P, y * inverse % _P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _times(scalar: int, point: _Point) -> _Point:
    total: _Point = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            total = _add(total, point)
        point = _add(point, point)
        scalar >>= 1
    return total


def _add(one: _Point, other: _Point) -> _Point:
    a, b = (one[1] - one[0]) * (other[1] - other[0]) % _P, (one[1] + one[0]) * (other[1] + other[0]) % _P
    c, d = 2 * one[3] * other[3] * _D % _P, 2 * one[2] * other[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P
