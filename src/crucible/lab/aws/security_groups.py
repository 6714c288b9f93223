"""Security groups and their rules. They are kept and shown; on one computer they keep nobody out."""

from collections.abc import Callable, Iterator
from typing import Any

from crucible.lab.aws import permissions, tags
from crucible.lab.aws.absence import absent
from crucible.lab.aws.call import Call, Handler
from crucible.lab.aws.errors import AwsError, invalid, missing
from crucible.lab.aws.instance_view import purchase_of
from crucible.lab.aws.listing import Listing
from crucible.lab.aws.names import derived
from crucible.lab.aws.registry import ALL, Permission, SecurityGroup
from crucible.world.machine import State

LONGEST_NAME = 255
Rules = dict[Permission, str]


def create_security_group(call: Call) -> dict[str, Any]:
    name, description = call.values["GroupName"], call.values["Description"]
    if not 1 <= len(name) <= LONGEST_NAME or not 1 <= len(description) <= LONGEST_NAME:
        invalid(f"Name and description of a security group have from 1 to {LONGEST_NAME} characters.")
    if name.startswith("sg-"):
        invalid(f"Invalid security group name '{name}'. Group names may not be in the format sg-*.")
    if call.values.get("VpcId", call.office.vpc) != call.office.vpc:
        raise absent("vpc", call.values["VpcId"])
    if any(group.name == name for group in call.office.groups.values()):
        raise AwsError(
            "InvalidGroup.Duplicate", f"The security group '{name}' already exists for VPC '{call.office.vpc}'"
        )
    tagged = tags.specified(call.values, ("security-group",)).get("security-group", {})
    group = SecurityGroup(id=call.office.new_id("sg"), name=name, description=description, tags=tagged)
    group.egress[ALL] = ""
    call.office.groups[group.id] = group
    return {"GroupId": group.id, "Tags": tags.shown(tagged), "SecurityGroupArn": _arn(call, group)}


def describe_security_groups(call: Call) -> dict[str, Any]:
    groups = list(call.office.groups.values())
    for id in call.values.get("GroupIds", []):
        _by_id(call, id)
    for name in call.values.get("GroupNames", []):
        _by_name(call, name)
    ids, names = call.values.get("GroupIds"), call.values.get("GroupNames")
    if ids or names:
        groups = [group for group in groups if group.id in (ids or ()) or group.name in (names or ())]
    listing = _listing(call)
    found = listing.matching(groups, call.values.get("Filters", []))
    shown, token = listing.page(found, call.values, "GroupIds")
    return {"SecurityGroups": [_shown(call, group) for group in shown]} | ({"NextToken": token} if token else {})


def delete_security_group(call: Call) -> dict[str, Any]:
    group = _group(call)
    if group.id == call.office.default_group:
        raise AwsError("CannotDelete", "the specified group: default cannot be deleted by a user")
    users = [
        machine.id
        for machine in call.seen()
        if machine.state is not State.ENDED and group.id in purchase_of(call, machine).groups
    ]
    if users or _is_referred_to(call, group):
        raise AwsError("DependencyViolation", f"resource {group.id} has a dependent object")
    del call.office.groups[group.id]
    return {"Return": True, "GroupId": group.id}


def authorize(is_egress: bool) -> Handler:
    def handle(call: Call) -> dict[str, Any]:
        group = _group(call)
        rules, wanted = _rules(group, is_egress), permissions.read(call)
        if not wanted:
            missing("ipPermissions")
        for permission in wanted:
            if permission in rules:
                raise AwsError(
                    "InvalidPermission.Duplicate",
                    f'the specified rule "{permissions.said(permission)}" already exists',
                )
        rules.update(wanted)
        shown = [_rule(call, group, permission, words, is_egress) for permission, words in wanted.items()]
        return {"Return": True, "SecurityGroupRules": shown}

    return handle


def revoke(is_egress: bool) -> Handler:
    def handle(call: Call) -> dict[str, Any]:
        group = _group(call)
        rules = _rules(group, is_egress)
        wanted = list(permissions.read(call)) + list(_by_rule_ids(call, group, is_egress))
        for permission in wanted:
            if permission not in rules:
                raise AwsError(
                    "InvalidPermission.NotFound", "The specified rule does not exist in this security group."
                )
        for permission in wanted:
            rules.pop(permission, None)
        return {"Return": True}

    return handle


def _rules(group: SecurityGroup, is_egress: bool) -> Rules:
    return group.egress if is_egress else group.ingress


def _by_rule_ids(call: Call, group: SecurityGroup, is_egress: bool) -> Iterator[Permission]:
    known = {_rule_id(group, permission, is_egress): permission for permission in _rules(group, is_egress)}
    for id in call.values.get("SecurityGroupRuleIds", []):
        if id not in known:
            raise AwsError("InvalidSecurityGroupRuleId.NotFound", f"The security group rule ID '{id}' does not exist")
        yield known[id]


def _group(call: Call) -> SecurityGroup:
    if call.values.get("GroupId"):
        return _by_id(call, call.values["GroupId"])
    return _by_name(call, call.values.get("GroupName") or missing("GroupId"))


def _by_id(call: Call, id: str) -> SecurityGroup:
    if id not in call.office.groups:
        raise absent("sg", id)
    return call.office.groups[id]


def _by_name(call: Call, name: str) -> SecurityGroup:
    for group in call.office.groups.values():
        if group.name == name:
            return group
    raise AwsError("InvalidGroup.NotFound", f"The security group '{name}' does not exist in default VPC")


def _is_referred_to(call: Call, group: SecurityGroup) -> bool:
    others = (other for other in call.office.groups.values() if other.id != group.id)
    return any(
        permission[3:] == ("group", group.id) for other in others for permission in (*other.ingress, *other.egress)
    )


def _rule_id(group: SecurityGroup, permission: Permission, is_egress: bool) -> str:
    return derived("sgr", group.id, is_egress, *permission)


def _rule(call: Call, group: SecurityGroup, permission: Permission, words: str, is_egress: bool) -> dict[str, Any]:
    protocol, first, last, kind, source = permission
    shown: dict[str, Any] = {
        "SecurityGroupRuleId": _rule_id(group, permission, is_egress),
        "GroupId": group.id,
        "GroupOwnerId": call.account,
        "IsEgress": is_egress,
        "IpProtocol": protocol,
        "FromPort": -1 if first is None else first,
        "ToPort": -1 if last is None else last,
    }
    if kind == "group":
        shown["ReferencedGroupInfo"] = {"GroupId": source, "UserId": call.account}
    else:
        shown["CidrIpv4" if kind == "cidr" else "CidrIpv6"] = source
    return shown | ({"Description": words} if words else {})


def _arn(call: Call, group: SecurityGroup) -> str:
    return f"arn:aws:ec2:{call.region}:{call.account}:security-group/{group.id}"


def _shown(call: Call, group: SecurityGroup) -> dict[str, Any]:
    return {
        "GroupId": group.id,
        "GroupName": group.name,
        "Description": group.description,
        "OwnerId": call.account,
        "VpcId": call.office.vpc,
        "IpPermissions": permissions.shown(call.account, group.ingress),
        "IpPermissionsEgress": permissions.shown(call.account, group.egress),
        "SecurityGroupArn": _arn(call, group),
        "Tags": tags.shown(group.tags),
    }


def _listing(call: Call) -> Listing[SecurityGroup]:
    def of_ingress(part: int) -> Callable[[SecurityGroup], list[str]]:
        return lambda group: [str(permission[part]) for permission in group.ingress]

    return Listing(
        key=lambda group: group.id,
        tags=lambda group: group.tags,
        filters={
            "description": lambda group: [group.description],
            "group-id": lambda group: [group.id],
            "group-name": lambda group: [group.name],
            "ip-permission.from-port": of_ingress(1),
            "ip-permission.to-port": of_ingress(2),
            "ip-permission.protocol": of_ingress(0),
            "ip-permission.cidr": of_ingress(4),
            "owner-id": lambda group: [call.account],
            "vpc-id": lambda group: [call.office.vpc],
        },
    )


OPERATIONS: dict[str, Handler] = {
    "CreateSecurityGroup": create_security_group,
    "DescribeSecurityGroups": describe_security_groups,
    "DeleteSecurityGroup": delete_security_group,
    "AuthorizeSecurityGroupIngress": authorize(is_egress=False),
    "AuthorizeSecurityGroupEgress": authorize(is_egress=True),
    "RevokeSecurityGroupIngress": revoke(is_egress=False),
    "RevokeSecurityGroupEgress": revoke(is_egress=True),
}
