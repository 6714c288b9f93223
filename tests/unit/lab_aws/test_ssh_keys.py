"""SSH keys: published examples of Ed25519, and keys that read back as what they are."""

import base64
import hashlib

import pytest

from crucible.lab.aws import ssh_keys


@pytest.mark.parametrize(
    ("seed", "public"),
    [  # RFC 8032, 7.1
        (
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        ),
        (
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        ),
        (
            "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        ),
    ],
)
def test_public_keys_follow_from_seeds_as_published(seed: str, public: str) -> None:
    assert ssh_keys.public_of(bytes.fromhex(seed)).hex() == public


def test_a_new_key_reads_back_and_no_two_are_alike() -> None:
    (private, public), (_, other) = ssh_keys.new(), ssh_keys.new()
    kind, fingerprint = ssh_keys.read(public) or ("", "")
    assert (kind, len(fingerprint)) == ("ed25519", 44)
    assert public != other
    assert private.endswith("-----END OPENSSH PRIVATE KEY-----\n")


def test_the_fingerprint_of_an_imported_rsa_key_is_that_of_its_der_form() -> None:
    middle = (
        "qhirpDtQ3u84WY+vh9KrY05FccEwqbynuHgmdBT6q4tHG9iWX1yfw4GEher1KcJiRvMFUGSo3hnIwzi+VJbLrrBZ3As1gUO0SjVEnrJkETEhpFW9"
        "f94/rJGelLVvubtPZRzbI+rUOdbNUj6wgZHnWzX9E6dBmzCQ8keHvU9OGWc="
    )
    modulus = b"\0" + base64.b64decode(middle)
    parts = (b"ssh-rsa", b"\1\0\1", modulus)
    blob = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    der = bytes.fromhex("30819f300d06092a864886f70d010101050003818d0030818902818100") + modulus[1:]
    der += bytes.fromhex("0203010001")
    digest = hashlib.md5(der).hexdigest()
    expected = ":".join(digest[at : at + 2] for at in range(0, 32, 2))
    assert ssh_keys.read(f"ssh-rsa {base64.b64encode(blob).decode()} me") == ("rsa", expected)
