"""Hosts as people write them down."""

from pathlib import Path

import pytest

from crucible.cli.hostfile import host_of, read, split
from crucible.model.errors import InvalidRequest


def written(folder: Path, text: str) -> str:
    (folder / "hosts.yaml").write_text(text)
    return str(folder / "hosts.yaml")


def test_a_file_says_for_each_host_what_the_options_say(tmp_path: Path) -> None:
    text = (
        "hosts:\n- {name: a, address: 'ann@10.0.0.7:2222', zone: left}\n- {name: b, address: b.example, use: shared}\n"
    )
    assert read(written(tmp_path, text)) == [
        {"name": "a", "address": "10.0.0.7", "user": "ann", "port": 2222, "zone": "left"},
        {"name": "b", "address": "b.example", "use": "shared"},
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a list of hosts"),
        ("[]", "expected a list of hosts"),
        ("- {name: a", "is not YAML"),
        ("- a", "host 1: a host needs a name and an address"),
        ("- {name: a, address: a}\n- {name: b}", "host 2: a host needs"),
        ("- {name: a, address: a, zones: left}", r"host 1 \(a\): 'zones' is not known; there are zone, use"),
        ("- {name: a, address: a, zone: 1}", "zone must be a word"),
        ("- {name: a, address: 'a:b'}", "is not"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        read(written(tmp_path, text))


def test_a_place_is_user_address_and_port() -> None:
    assert split("ann@[fe80::1]:23") == ("ann", "fe80::1", 23)
    assert host_of("a", "10.0.0.7", {"zone": "left"}) == {"name": "a", "address": "10.0.0.7", "zone": "left"}
    for wrong in ("", "ann@", "box:ssh"):
        with pytest.raises(InvalidRequest):
            split(wrong)
