"""A private key as the text that key files hold: PKCS #8 in DER, in lines of base64."""

import base64
import textwrap

from crucible.lab.gcs.rsa import EXPONENT, PrivateKey

_INTEGER, _OCTETS, _SEQUENCE = 0x02, 0x04, 0x30
# rsaEncryption, without parameters (RFC 8017, appendix A.1).
_ALGORITHM = bytes.fromhex("300d06092a864886f70d0101010500")


def pem(key: PrivateKey) -> str:
    whole = _tagged(_SEQUENCE, _integer(0) + _ALGORITHM + _tagged(_OCTETS, _pkcs1(key)))
    lines = "\n".join(textwrap.wrap(base64.b64encode(whole).decode(), 64))
    return f"-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----\n"


def _pkcs1(key: PrivateKey) -> bytes:
    d = key.exponent
    numbers = (0, key.modulus, EXPONENT, d, key.p, key.q, d % (key.p - 1), d % (key.q - 1), pow(key.q, -1, key.p))
    return _tagged(_SEQUENCE, b"".join(map(_integer, numbers)))


def _integer(number: int) -> bytes:
    """The highest bit is the sign: a number that has it set gets a byte more."""
    return _tagged(_INTEGER, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def _tagged(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content
