"""Rules of security groups: from either of the two ways that requests write them, and as answers show them."""

from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from typing import Any

from crucible.lab.aws.call import Call
from crucible.lab.aws.errors import AwsError, beyond_the_lab, invalid, missing
from crucible.lab.aws.registry import Permission

_NUMBERS = {"6": "tcp", "17": "udp", "1": "icmp", "58": "icmpv6", "all": "-1"}
_PORTS = ("tcp", "udp")


def read(call: Call) -> dict[Permission, str]:
    """Permission -> its description; a range that is named twice counts once."""
    values = call.values
    if "SourceSecurityGroupName" in values or "SourceSecurityGroupOwnerId" in values:
        beyond_the_lab("SourceSecurityGroupName; use IpPermissions")
    asked: list[Mapping[str, Any]] = list(values.get("IpPermissions", []))
    if "CidrIp" in values or "IpProtocol" in values:
        asked.append({**values, "IpRanges": [{"CidrIp": values.get("CidrIp", "0.0.0.0/0")}]})
    return {permission: words for one in asked for permission, words in _permissions(call, one)}


def shown(account: str, rules: Mapping[Permission, str]) -> list[dict[str, Any]]:
    """Rules of the same protocol and ports together."""
    together: dict[tuple[str, int | None, int | None], dict[str, Any]] = {}
    for (protocol, first, last, kind, source), words in rules.items():
        if (protocol, first, last) not in together:
            ports = {} if first is None else {"FromPort": first, "ToPort": last}
            together[protocol, first, last] = {
                "IpProtocol": protocol,
                **ports,
                "IpRanges": [],
                "Ipv6Ranges": [],
                "PrefixListIds": [],
                "UserIdGroupPairs": [],
            }
        member, entry = {
            "cidr": ("IpRanges", {"CidrIp": source}),
            "cidr6": ("Ipv6Ranges", {"CidrIpv6": source}),
            "group": ("UserIdGroupPairs", {"GroupId": source, "UserId": account}),
        }[kind]
        together[protocol, first, last][member].append(entry | ({"Description": words} if words else {}))
    return list(together.values())


def said(permission: Permission) -> str:
    protocol, first, last, _, source = permission
    ports = "ALL" if first is None else f"from port: {first}, to port: {last}"
    return f"peer: {source}, {'ALL' if protocol == '-1' else protocol.upper()}, {ports}, ALLOW"


def _permissions(call: Call, said: Mapping[str, Any]) -> Iterator[tuple[Permission, str]]:
    if said.get("PrefixListIds"):
        beyond_the_lab("prefix lists")
    protocol = str(said["IpProtocol"] if "IpProtocol" in said else missing("IpProtocol")).lower()
    protocol = _NUMBERS.get(protocol, protocol)
    first, last = _ports(protocol, said)
    for kind, source, words in _sources(call, said):
        yield (protocol, first, last, kind, source), words


def _ports(protocol: str, said: Mapping[str, Any]) -> tuple[int | None, int | None]:
    if protocol == "-1":
        return None, None
    if protocol not in ("tcp", "udp", "icmp", "icmpv6"):
        invalid(f"Invalid value '{protocol}' for IP protocol. Unknown protocol.")
    if "FromPort" not in said or "ToPort" not in said:
        if protocol == "icmpv6":
            return None, None
        raise AwsError("InvalidParameterValue", f"Invalid value for portRange. {protocol} needs FromPort and ToPort.")
    first, last = said["FromPort"], said["ToPort"]
    is_range = 0 <= first <= last <= 65_535 if protocol in _PORTS else -1 <= first <= 255
    if not is_range:
        invalid(f"Invalid range: {first} to {last} for {protocol}.")
    return first, last


def _sources(call: Call, said: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for span in said.get("IpRanges", []):
        yield "cidr", _cidr(span.get("CidrIp", ""), 4), span.get("Description", "")
    for span in said.get("Ipv6Ranges", []):
        yield "cidr6", _cidr(span.get("CidrIpv6", ""), 6), span.get("Description", "")
    for pair in said.get("UserIdGroupPairs", []):
        yield "group", _group_id(call, pair), pair.get("Description", "")


def _cidr(text: str, version: int) -> str:
    try:
        network = ip_network(text)
    except ValueError:
        network = None
    if network is None or network.version != version or "/" not in text:
        invalid(f"CIDR block {text} is malformed")
    return str(network)


def _group_id(call: Call, pair: Mapping[str, str]) -> str:
    if pair.get("UserId", call.account) != call.account:
        beyond_the_lab("security groups of other accounts")
    for group in call.office.groups.values():
        if pair.get("GroupId") == group.id or ("GroupId" not in pair and pair.get("GroupName") == group.name):
            return group.id
    name = pair.get("GroupId") or pair.get("GroupName")
    raise AwsError("InvalidGroup.NotFound", f"The security group '{name}' does not exist")
