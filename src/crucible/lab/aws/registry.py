"""What Amazon knows of an account and the world does not: security groups, key pairs, placement groups, and the
particulars of purchases. The world keeps whatever costs money."""

from dataclasses import dataclass, field
from typing import Any

from crucible.lab.aws.names import derived

# Protocol ("-1": all), ports, and whom it lets through: ("cidr", "0.0.0.0/0"), ("cidr6", "::/0"), ("group", id).
Permission = tuple[str, int | None, int | None, str, str]
ALL: Permission = ("-1", None, None, "cidr", "0.0.0.0/0")


@dataclass(kw_only=True)
class SecurityGroup:
    id: str
    name: str
    description: str
    tags: dict[str, str] = field(default_factory=dict)
    ingress: dict[Permission, str] = field(default_factory=dict)  # -> what is said about it
    egress: dict[Permission, str] = field(default_factory=dict)


@dataclass(kw_only=True)
class KeyPair:
    id: str
    name: str
    fingerprint: str
    kind: str  # "rsa", "ed25519"
    public: str
    created_at: float
    tags: dict[str, str] = field(default_factory=dict)


@dataclass(kw_only=True)
class PlacementGroup:
    id: str
    name: str
    strategy: str
    tags: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """What a request for machines said beside what the world needs to know."""

    image: str
    key: str | None
    groups: tuple[str, ...]
    placement_group: str | None
    interfaces: tuple[str, ...]  # kinds: "interface", "efa", "efa-only"
    metadata: dict[str, Any]
    profile: dict[str, str] | None  # echoed, never used
    keeps_disk: bool = False  # it was asked to survive its machine


class Office:
    """One account in one region."""

    def __init__(self, account: str, region: str) -> None:
        self._where = (account, region)
        self._made = 0
        self.vpc = derived("vpc", account, region)
        default = SecurityGroup(
            id=derived("sg", account, region, "default"), name="default", description="default VPC security group"
        )
        default.ingress[("-1", None, None, "group", default.id)] = ""
        default.egress[ALL] = ""
        self.default_group = default.id
        self.groups = {default.id: default}
        self.keys: dict[str, KeyPair] = {}  # by name
        self.placement_groups: dict[str, PlacementGroup] = {}  # by name
        self.purchases: dict[str, Purchase] = {}  # by launch
        self.request_tags: dict[str, dict[str, str]] = {}  # of spot requests
        self.cancelled_requests: set[str] = set()
        self.volume_tokens: dict[str, tuple[str, str]] = {}  # -> fingerprint, volume
        self.open_reservations: set[str] = set()  # used by whoever fits, without being named

    def new_id(self, prefix: str) -> str:
        self._made += 1
        return derived(prefix, *self._where, self._made)

    def tags_of(self, id: str) -> dict[str, str] | None:
        """Of one of the things that are kept here; None: it is not."""
        if id in self.groups:
            return self.groups[id].tags
        if id in self.request_tags:
            return self.request_tags[id]
        named = {key.id: key.tags for key in self.keys.values()}
        named |= {group.id: group.tags for group in self.placement_groups.values()}
        return named.get(id)


class Registry:
    def __init__(self) -> None:
        self._offices: dict[tuple[str, str], Office] = {}

    def office(self, account: str, region: str) -> Office:
        key = (account, region)
        if key not in self._offices:
            self._offices[key] = Office(*key)
        return self._offices[key]
