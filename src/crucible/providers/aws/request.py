"""The exact request for an order's machines, as it is stored before it is made. No secret is in it: the first program
of a machine is added when the call is made."""

from typing import Any

from crucible.model.lease import Order
from crucible.model.units import MICRO
from crucible.providers.aws import tags as tagging
from crucible.providers.aws.lookups import ANYWHERE, Image, Kind, Lookups, Subnet
from crucible.providers.aws.settings import NO_RESERVATION, AwsSettings

# Containers on the machine are one hop further from the metadata service.
METADATA_HOPS = 2


def run_instances(
    order: Order, region: str, deployment: str, settings: AwsSettings, lookups: Lookups
) -> dict[str, Any]:
    """Without token and user-data. Raises OrderRejected for what the account lacks."""
    kind = lookups.kind(order.instance_type)
    image = lookups.image(kind.arch, order.gpus > 0)
    subnet = lookups.subnet(order.zone)
    groups = lookups.groups(subnet.vpc if subnet else None, is_gang=order.count > 1)
    disk = max(settings.disk_gib, image.disk_gib)
    tags = tagging.of_order(order, deployment)
    extras = {tagging.EXTRAS: tagging.extras(settings.disk_type, disk, settings.has_public_address)}
    request: dict[str, Any] = {
        "ImageId": image.id,
        "InstanceType": order.instance_type,
        "MinCount": order.count,  # all or none
        "MaxCount": order.count,
        "BlockDeviceMappings": disks(image, disk, settings.disk_type),
        "NetworkInterfaces": interfaces(order, kind, subnet, groups, settings),
        "InstanceInitiatedShutdownBehavior": "terminate",
        "MetadataOptions": {
            "HttpEndpoint": "enabled",
            "HttpTokens": "required",
            "HttpPutResponseHopLimit": METADATA_HOPS,
        },
        "TagSpecifications": [
            *tagging.specifications(tags | extras, ["instance"]),
            *tagging.specifications(tags, ["volume", "spot-instances-request"] if order.is_spot else ["volume"]),
        ],
    }
    if settings.key_name:
        request["KeyName"] = settings.key_name
    if order.count > 1 and order.zone != ANYWHERE and kind.is_clustered and settings.uses_placement_groups:
        request["Placement"] = {"GroupName": lookups.placement_group(order.zone)}
    return request | market(order, settings.reservation(region))


def disks(image: Image, gib: int, kind: str) -> list[dict[str, Any]]:
    root = {"VolumeSize": gib, "VolumeType": kind, "DeleteOnTermination": True}
    return [{"DeviceName": image.root_device, "Ebs": root}]


def interfaces(
    order: Order, kind: Kind, subnet: Subnet | None, groups: tuple[str, ...], settings: AwsSettings
) -> list[dict[str, Any]]:
    """Amazon gives no public address to a machine with several interfaces: a gang that needs one has one fast
    interface, and all of them where machines reach the server through a NAT."""
    count = (
        min(kind.efa_interfaces, 1 if settings.has_public_address else kind.efa_interfaces) if order.count > 1 else 0
    )
    common: dict[str, Any] = {"Groups": list(groups), "DeleteOnTermination": True}
    if subnet is not None:
        common["SubnetId"] = subnet.id
    first = {"DeviceIndex": 0, "AssociatePublicIpAddress": settings.has_public_address, **common}
    if count == 0:
        return [first]
    if count > 1:
        del first["AssociatePublicIpAddress"]
    others = [
        {"DeviceIndex": 1, "NetworkCardIndex": card, "InterfaceType": "efa-only", **common} for card in range(1, count)
    ]
    return [{**first, "NetworkCardIndex": 0, "InterfaceType": "efa"}, *others]


def market(order: Order, reservation: str) -> dict[str, Any]:
    """A spot machine may cost up to its on-demand price, as we know it: budgets rely on that. Without a limit Amazon
    does the same by its own list."""
    if order.is_spot:
        options = {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"}
        if order.on_demand_per_hour is not None:
            most = max(order.on_demand_per_hour, order.price_per_hour)
            options["MaxPrice"] = f"{most // MICRO}.{most % MICRO:06}"
        return {"InstanceMarketOptions": {"MarketType": "spot", "SpotOptions": options}}
    if reservation.startswith("cr-"):
        return {
            "CapacityReservationSpecification": {
                "CapacityReservationTarget": {"CapacityReservationId": reservation},
            }
        }
    preference = "open" if reservation != NO_RESERVATION else "none"
    return {"CapacityReservationSpecification": {"CapacityReservationPreference": preference}}
