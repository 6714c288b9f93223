"""Placement groups: machines that want to be near each other, or far from each other."""

from typing import Any

from crucible.lab.aws import tags
from crucible.lab.aws.absence import absent
from crucible.lab.aws.call import Call, Handler
from crucible.lab.aws.errors import AwsError, beyond_the_lab, missing
from crucible.lab.aws.listing import Listing
from crucible.lab.aws.placing import cluster_zone
from crucible.lab.aws.registry import PlacementGroup

_KNOWN = ("DryRun", "GroupName", "Strategy", "TagSpecifications")


def create_placement_group(call: Call) -> dict[str, Any]:
    for name in call.values:
        if name not in _KNOWN:
            beyond_the_lab(f"{name} of CreatePlacementGroup")
    name = call.values.get("GroupName") or missing("GroupName")
    strategy = call.values.get("Strategy", "cluster")
    if strategy not in ("cluster", "spread"):
        beyond_the_lab(f"placement groups of the strategy {strategy}")
    if name in call.office.placement_groups:
        raise AwsError("InvalidPlacementGroup.Duplicate", f"The placement group '{name}' already exists.")
    tagged = tags.specified(call.values, ("placement-group",)).get("placement-group", {})
    group = PlacementGroup(id=call.office.new_id("pg"), name=name, strategy=strategy, tags=tagged)
    call.office.placement_groups[name] = group
    return {"PlacementGroup": _shown(call, group)}


def describe_placement_groups(call: Call) -> dict[str, Any]:
    groups = list(call.office.placement_groups.values())
    ids, names = call.values.get("GroupIds", []), call.values.get("GroupNames", [])
    known = {group.id for group in groups} | {group.name for group in groups}
    for wanted in (*ids, *names):
        if wanted not in known:
            raise absent("pg", wanted)
    if ids or names:
        groups = [group for group in groups if group.id in ids or group.name in names]
    found = _LISTING.matching(groups, call.values.get("Filters", []))
    return {"PlacementGroups": [_shown(call, group) for group in found]}


def delete_placement_group(call: Call) -> dict[str, Any]:
    name = call.values["GroupName"]
    group = call.office.placement_groups.get(name)
    if group is None:
        raise absent("pg", name)
    if cluster_zone(call, group) is not None:
        raise AwsError("InvalidPlacementGroup.InUse", f"The placement group {name} is in use and may not be deleted.")
    del call.office.placement_groups[name]
    return {}


def _shown(call: Call, group: PlacementGroup) -> dict[str, Any]:
    return {
        "GroupName": group.name,
        "GroupId": group.id,
        "GroupArn": f"arn:aws:ec2:{call.region}:{call.account}:placement-group/{group.name}",
        "State": "available",
        "Strategy": group.strategy,
        "Tags": tags.shown(group.tags),
    }


_LISTING: Listing[PlacementGroup] = Listing(
    key=lambda group: group.id,
    tags=lambda group: group.tags,
    filters={
        "group-name": lambda group: [group.name],
        "state": lambda group: ["available"],
        "strategy": lambda group: [group.strategy],
    },
)

OPERATIONS: dict[str, Handler] = {
    "CreatePlacementGroup": create_placement_group,
    "DescribePlacementGroups": describe_placement_groups,
    "DeletePlacementGroup": delete_placement_group,
}
