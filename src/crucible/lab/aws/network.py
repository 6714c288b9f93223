"""The network that every account has from the start: one default VPC a region, one default subnet a zone."""

from ipaddress import IPv4Network, ip_network
from typing import Any

from crucible.lab.aws.absence import absent
from crucible.lab.aws.call import Call, Handler
from crucible.lab.aws.listing import Listing
from crucible.lab.aws.names import derived
from crucible.lab.aws.places import subnet_id
from crucible.world.facts import Zone


def describe_vpcs(call: Call) -> dict[str, Any]:
    vpc = call.office.vpc
    for id in call.values.get("VpcIds", []):
        if id != vpc:
            raise absent("vpc", id)
    listing: Listing[str] = Listing(
        key=lambda id: id,
        tags=lambda id: {},
        filters={
            "cidr": lambda id: [call.world.facts.private_network],
            "is-default": lambda id: ["true"],
            "isDefault": lambda id: ["true"],
            "owner-id": lambda id: [call.account],
            "state": lambda id: ["available"],
            "vpc-id": lambda id: [id],
        },
    )
    shown, token = listing.page(listing.matching([vpc], call.values.get("Filters", [])), call.values, "VpcIds")
    return {"Vpcs": [_vpc(call, id) for id in shown]} | ({"NextToken": token} if token else {})


def describe_subnets(call: Call) -> dict[str, Any]:
    zones = list(call.places.zones(call.region))
    wanted = call.values.get("SubnetIds")
    if wanted:
        known = {subnet_id(call.account, zone.name): zone for zone in zones}
        for id in wanted:
            if id not in known:
                raise absent("subnet", id)
        zones = [known[id] for id in wanted]
    listing = _subnets(call)
    shown, token = listing.page(listing.matching(zones, call.values.get("Filters", [])), call.values, "SubnetIds")
    return {"Subnets": [_subnet(call, zone) for zone in shown]} | ({"NextToken": token} if token else {})


def _vpc(call: Call, id: str) -> dict[str, Any]:
    cidr = call.world.facts.private_network
    return {
        "VpcId": id,
        "OwnerId": call.account,
        "State": "available",
        "IsDefault": True,
        "InstanceTenancy": "default",
        "CidrBlock": cidr,
        "CidrBlockAssociationSet": [
            {
                "AssociationId": derived("vpc-cidr-assoc", id),
                "CidrBlock": cidr,
                "CidrBlockState": {"State": "associated"},
            }
        ],
        "DhcpOptionsId": derived("dopt", id),
        "Tags": [],
    }


def _block(call: Call, zone: Zone) -> IPv4Network:
    """A sixteenth of the network each. Addresses are given out of the whole of it, whatever the zone."""
    zones = list(call.places.zones(call.region))
    return list(IPv4Network(ip_network(call.world.facts.private_network)).subnets(4))[zones.index(zone) % 16]


def _subnet(call: Call, zone: Zone) -> dict[str, Any]:
    id = subnet_id(call.account, zone.name)
    return {
        "SubnetId": id,
        "SubnetArn": f"arn:aws:ec2:{call.region}:{call.account}:subnet/{id}",
        "OwnerId": call.account,
        "VpcId": call.office.vpc,
        "State": "available",
        "AvailabilityZone": zone.name,
        "AvailabilityZoneId": zone.id,
        "CidrBlock": str(_block(call, zone)),
        "AvailableIpAddressCount": 4091,
        "DefaultForAz": True,
        "MapPublicIpOnLaunch": True,
        "AssignIpv6AddressOnCreation": False,
        "Ipv6CidrBlockAssociationSet": [],
        "Tags": [],
    }


def _subnets(call: Call) -> Listing[Zone]:
    return Listing(
        key=lambda zone: subnet_id(call.account, zone.name),
        tags=lambda zone: {},
        filters={
            "availability-zone": lambda zone: [zone.name],
            "availabilityZone": lambda zone: [zone.name],
            "availability-zone-id": lambda zone: [zone.id],
            "default-for-az": lambda zone: ["true"],
            "defaultForAz": lambda zone: ["true"],
            "map-public-ip-on-launch": lambda zone: ["true"],
            "owner-id": lambda zone: [call.account],
            "state": lambda zone: ["available"],
            "subnet-id": lambda zone: [subnet_id(call.account, zone.name)],
            "vpc-id": lambda zone: [call.office.vpc],
        },
    )


OPERATIONS: dict[str, Handler] = {"DescribeVpcs": describe_vpcs, "DescribeSubnets": describe_subnets}
