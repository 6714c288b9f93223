"""Tags: as requests give them, as answers show them, and the operations about them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from crucible.lab.aws.absence import absent, is_known
from crucible.lab.aws.call import Call, Handler
from crucible.lab.aws.errors import AwsError, invalid
from crucible.lab.aws.listing import Listing

MOST_TAGS = 50
LONGEST_KEY, LONGEST_VALUE = 128, 256

Tags = dict[str, str]


def specified(values: Mapping[str, Any], known: Iterable[str]) -> dict[str, Tags]:
    """Kind of resource -> tags, from TagSpecifications. A kind that the request does not make is refused."""
    found: dict[str, Tags] = {}
    for spec in values.get("TagSpecifications", []):
        kind = spec.get("ResourceType")
        if kind not in known:
            invalid(f"'{kind}' is not a valid taggable resource type for this operation.")
        if kind in found:
            invalid(f"Duplicate resource type '{kind}' in tag specifications.")
        found[kind] = checked(spec.get("Tags", []))
    return found


def checked(pairs: Iterable[Mapping[str, str]]) -> Tags:
    tags: Tags = {}
    for pair in pairs:
        key, value = pair.get("Key", ""), pair.get("Value", "")
        if not 1 <= len(key) <= LONGEST_KEY:
            invalid(f"Tag key must be between 1 and {LONGEST_KEY} characters, not {len(key)}.")
        if len(value) > LONGEST_VALUE:
            invalid(f"Tag value exceeds the maximum length of {LONGEST_VALUE} characters")
        if key.lower().startswith("aws:"):
            invalid("Tag keys starting with 'aws:' are reserved for internal use")
        if key in tags:
            invalid(f"Duplicate tag key '{key}' specified.")
        tags[key] = value
    _few(tags)
    return tags


def shown(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def create_tags(call: Call) -> dict[str, Any]:
    """All resources or none."""
    tags = checked(call.values["Tags"])
    owned = [(id, _tags_of(call, id)) for id in call.values["Resources"]]
    for _, present in owned:
        _few({**present, **tags})
    for id, _ in owned:
        kept = call.office.tags_of(id)
        if kept is not None:
            kept.update(tags)
        else:
            call.world.tag(call.account, id, tags)
    return {}


def delete_tags(call: Call) -> dict[str, Any]:
    """Without tags: all of them. With a value: only if it has that value."""
    for id in call.values["Resources"]:
        present = _tags_of(call, id)
        for key in _to_delete(present, call.values.get("Tags")):
            kept = call.office.tags_of(id)
            if kept is not None:
                del kept[key]
            else:
                call.world.untag(call.account, id, [key])
    return {}


def describe_tags(call: Call) -> dict[str, Any]:
    found = _LISTING.matching(_all(call), call.values.get("Filters", []))
    shown_now, token = _LISTING.page(found, call.values)
    tags = [{"Key": t.key, "ResourceId": t.resource, "ResourceType": t.kind, "Value": t.value} for t in shown_now]
    return {"Tags": tags} | ({"NextToken": token} if token else {})


@dataclass(frozen=True, slots=True)
class _Tag:
    resource: str
    kind: str
    key: str
    value: str


_LISTING: Listing[_Tag] = Listing(
    key=lambda tag: f"{tag.resource}/{tag.key}",
    filters={
        "key": lambda tag: [tag.key],
        "value": lambda tag: [tag.value],
        "resource-id": lambda tag: [tag.resource],
        "resource-type": lambda tag: [tag.kind],
    },
    tags=lambda tag: {tag.key: tag.value},
)


def _all(call: Call) -> list[_Tag]:
    office, world = call.office, call.world
    kept: list[tuple[str, str, Tags]] = [
        *((machine.id, "instance", machine.tags) for machine in call.seen()),
        *((disk.id, "volume", disk.tags) for disk in world.disks(call.account, call.region)),
        *((held.id, "capacity-reservation", held.tags) for held in world.reservations(call.account, call.region)),
        *((id, "spot-instances-request", tags) for id, tags in office.request_tags.items()),
        *((group.id, "security-group", group.tags) for group in office.groups.values()),
        *((key.id, "key-pair", key.tags) for key in office.keys.values()),
        *((group.id, "placement-group", group.tags) for group in office.placement_groups.values()),
    ]
    found = [_Tag(id, kind, key, value) for id, kind, tags in kept for key, value in tags.items()]
    return sorted(found, key=lambda tag: (tag.resource, tag.key))


def _tags_of(call: Call, id: str) -> Tags:
    kept = call.office.tags_of(id)
    if kept is not None:
        return kept
    prefix = id.partition("-")[0]
    if not is_known(prefix):
        raise AwsError("InvalidID", f"The ID '{id}' is not valid")
    owned: dict[str, Tags] = {}
    if prefix == "i":
        owned = {machine.id: machine.tags for machine in call.seen()}
    elif prefix == "vol":
        owned = {disk.id: disk.tags for disk in call.world.disks(call.account, call.region)}
    elif prefix == "cr":
        owned = {held.id: held.tags for held in call.world.reservations(call.account, call.region)}
    if id not in owned:
        raise absent(prefix, id)
    return owned[id]


def _to_delete(present: Tags, wanted: list[Mapping[str, str]] | None) -> list[str]:
    if wanted is None:
        return list(present)
    return [
        pair["Key"]
        for pair in wanted
        if pair.get("Key") in present and ("Value" not in pair or present[pair["Key"]] == pair["Value"])
    ]


def _few(tags: Mapping[str, str]) -> None:
    if len(tags) > MOST_TAGS:
        raise AwsError("TagLimitExceeded", f"You have reached the maximum number of tags: {MOST_TAGS}.")


OPERATIONS: dict[str, Handler] = {
    "CreateTags": create_tags,
    "DeleteTags": delete_tags,
    "DescribeTags": describe_tags,
}
