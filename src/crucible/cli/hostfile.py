"""Hosts as they are written down: on the command line, or several in a file.

- name: gpu1
  address: ann@10.0.0.7:22
  zone: rack-1
- {name: gpu2, address: 10.0.0.8, use: shared, fingerprint: "SHA256:…"}
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crucible.model.errors import InvalidRequest

FIELDS = ("zone", "use", "jump", "identity_file", "internal_address", "python", "fingerprint")
MAX_FILE_BYTES = 1 << 20


def host_of(name: str, place: str, given: Mapping[str, Any]) -> dict[str, Any]:
    user, address, port = split(place)
    found = {"name": name, "address": address, "user": user, "port": port, **given}
    return {key: value for key, value in found.items() if value is not None}


def split(place: str) -> tuple[str | None, str, int | None]:
    """ "[user@]address[:port]", an IPv6 address with a port in brackets."""
    user, _, rest = place.rpartition("@")
    address, port = rest, ""
    if rest.startswith("["):
        address, _, port = rest[1:].partition("]")
        port = port.removeprefix(":")
    elif rest.count(":") == 1:
        address, _, port = rest.partition(":")
    if not address or (port and not port.isdecimal()):
        raise InvalidRequest(f"{place!r} is not [user@]address[:port]")
    return user or None, address, int(port) if port else None


def read(file: str) -> list[dict[str, Any]]:
    """Raises InvalidRequest with the place of the first problem; OSError."""
    import yaml

    with Path(file).open("rb") as source:
        raw = source.read(MAX_FILE_BYTES + 1)
    if len(raw) > MAX_FILE_BYTES:
        raise InvalidRequest(f"{file} is larger than {MAX_FILE_BYTES >> 20} MiB")
    try:
        data = yaml.safe_load(raw)
    except yaml.YAMLError as error:
        raise InvalidRequest(f"{file} is not YAML: {' '.join(str(error).split())}") from None
    items = data.get("hosts") if isinstance(data, dict) else data
    if not isinstance(items, list) or not items:
        raise InvalidRequest(f"{file}: expected a list of hosts, each with a name and an address")
    return [item_of(item, f"{file}: host {number}") for number, item in enumerate(items, 1)]


def item_of(item: Any, where: str) -> dict[str, Any]:
    if not isinstance(item, dict) or not isinstance(item.get("name"), str) or not isinstance(item.get("address"), str):
        raise InvalidRequest(f"{where}: a host needs a name and an address")
    unknown = [str(key) for key in item if key not in ("name", "address", *FIELDS)]
    if unknown:
        raise InvalidRequest(f"{where} ({item['name']}): {unknown[0]!r} is not known; there are {', '.join(FIELDS)}")
    words = {key: value for key, value in item.items() if key in FIELDS}
    wrong = next((key for key, value in words.items() if not isinstance(value, str)), None)
    if wrong is not None:
        raise InvalidRequest(f"{where} ({item['name']}): {wrong} must be a word")
    return host_of(item["name"], item["address"], words)
