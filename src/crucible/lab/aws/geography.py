"""Regions, zones and instance types, as EC2 describes them."""

import re
from typing import Any

from crucible.lab.aws.call import Call, Handler
from crucible.lab.aws.errors import AwsError, beyond_the_lab, invalid
from crucible.lab.aws.listing import Listing
from crucible.lab.aws.places import architecture
from crucible.world.facts import MachineType, Zone

_CITY = re.compile(r"-([a-z]{3})-\d[a-z]$")  # us-west-2-lax-1a
# How EFA interfaces follow from bandwidth: one for each 100 Gbit/s, up to the 32 network cards of the largest.
_GBPS_PER_EFA, _MOST_EFA = 100, 32
_FORM_FACTOR = re.compile(r"[-_ ].*")  # the catalog's H100-SXM is Amazon's H100


def describe_regions(call: Call) -> dict[str, Any]:
    wanted = call.values.get("RegionNames") or list(call.places.regions)
    for name in wanted:
        if name not in call.places.regions:
            invalid(f"Invalid region name: {name}")
    listing: Listing[str] = Listing(
        key=lambda region: region,
        filters={
            "endpoint": lambda region: [_endpoint(region)],
            "opt-in-status": lambda region: ["opt-in-not-required"],
            "region-name": lambda region: [region],
        },
    )
    found = listing.matching(wanted, call.values.get("Filters", []))
    return {
        "Regions": [
            {"RegionName": region, "Endpoint": _endpoint(region), "OptInStatus": "opt-in-not-required"}
            for region in found
        ]
    }


def describe_availability_zones(call: Call) -> dict[str, Any]:
    zones = list(call.places.zones(call.region))
    wanted = [*call.values.get("ZoneNames", []), *call.values.get("ZoneIds", [])]
    if wanted:
        zones = [call.places.zone(call.region, name) for name in wanted]
    found = _ZONES.matching(zones, call.values.get("Filters", []))
    return {"AvailabilityZones": [_zone(call, zone) for zone in found]}


def describe_instance_types(call: Call) -> dict[str, Any]:
    wanted = call.values.get("InstanceTypes")
    types = list(call.places.types_in(call.region))
    if wanted:
        known = {type.name for type in types}
        absent = [name for name in wanted if name not in known]
        if absent:
            raise AwsError(
                "InvalidInstanceType", f"The following supplied instance types do not exist: [{', '.join(absent)}]"
            )
        types = [call.places.type(name) for name in dict.fromkeys(wanted)]
    found = _TYPES.matching(types, call.values.get("Filters", []))
    shown, token = _TYPES.page(found, call.values, "InstanceTypes")
    return {"InstanceTypes": [_type(call, type) for type in shown]} | ({"NextToken": token} if token else {})


def describe_instance_type_offerings(call: Call) -> dict[str, Any]:
    where = call.values.get("LocationType", "region")
    if where == "outpost":
        beyond_the_lab("outposts")
    found = _OFFERINGS.matching(_offerings(call, where), call.values.get("Filters", []))
    shown, token = _OFFERINGS.page(found, call.values)
    offerings = [{"InstanceType": type, "LocationType": where, "Location": place} for type, place in shown]
    return {"InstanceTypeOfferings": offerings} | ({"NextToken": token} if token else {})


def _offerings(call: Call, where: str) -> list[tuple[str, str]]:
    """(type, place), in order."""
    types = call.places.types_in(call.region)
    if where == "region":
        return [(type.name, call.region) for type in types]
    return [
        (type.name, zone.name if where == "availability-zone" else zone.id)
        for type in types
        for zone in call.places.selling(call.region, type.name)
    ]


def _endpoint(region: str) -> str:
    return f"ec2.{region}.amazonaws.com"


def _is_local(zone: Zone) -> bool:
    return _CITY.search(zone.name) is not None


def _zone(call: Call, zone: Zone) -> dict[str, Any]:
    group = zone.name[:-1] if _is_local(zone) else zone.region
    return {
        "OptInStatus": "opted-in" if _is_local(zone) else "opt-in-not-required",
        "Messages": [],
        "RegionName": zone.region,
        "ZoneName": zone.name,
        "ZoneId": zone.id,
        "GroupName": group,
        "NetworkBorderGroup": group,
        "ZoneType": _zone_type(zone),
        "State": "available",
    }


def _zone_type(zone: Zone) -> str:
    return "local-zone" if _is_local(zone) else "availability-zone"


_ZONES: Listing[Zone] = Listing(
    key=lambda zone: zone.name,
    filters={
        "opt-in-status": lambda zone: ["opted-in" if _is_local(zone) else "opt-in-not-required"],
        "region-name": lambda zone: [zone.region],
        "state": lambda zone: ["available"],
        "zone-id": lambda zone: [zone.id],
        "zone-name": lambda zone: [zone.name],
        "zone-type": lambda zone: [_zone_type(zone)],
    },
)


def _type(call: Call, type: MachineType) -> dict[str, Any]:
    cores = max(type.vcpus // 2, 1)
    usages = ["on-demand"]
    if any(call.places.sales[zone.name, type.name].spot for zone in call.places.selling(call.region, type.name)):
        usages.append("spot")
    return {
        "InstanceType": type.name,
        "CurrentGeneration": True,
        "FreeTierEligible": False,
        "SupportedUsageClasses": usages,
        "SupportedRootDeviceTypes": ["ebs"],
        "SupportedVirtualizationTypes": ["hvm"],
        "BareMetal": type.name.endswith(".metal"),
        "Hypervisor": "nitro",
        "ProcessorInfo": {"SupportedArchitectures": [architecture(type.name)]},
        "VCpuInfo": {"DefaultVCpus": type.vcpus, "DefaultCores": cores, "DefaultThreadsPerCore": type.vcpus // cores},
        "MemoryInfo": {"SizeInMiB": type.memory_mib},
        "InstanceStorageSupported": False,
        "EbsInfo": {"EbsOptimizedSupport": "default", "EncryptionSupport": "supported", "NvmeSupport": "required"},
        "NetworkInfo": _network(type),
        "PlacementGroupInfo": {"SupportedStrategies": ["cluster", "spread"]},
        "HibernationSupported": False,
        "BurstablePerformanceSupported": False,
        "DedicatedHostsSupported": False,
        "AutoRecoverySupported": False,
        "SupportedBootModes": ["uefi"],
    } | ({"GpuInfo": _gpus(type)} if type.gpus else {})


def _network(type: MachineType) -> dict[str, Any]:
    cards = efa_interfaces(type) or 1
    return {
        "NetworkPerformance": type.network,
        "MaximumNetworkInterfaces": 2 * cards,
        "MaximumNetworkCards": cards,
        "DefaultNetworkCardIndex": 0,
        "Ipv4AddressesPerInterface": 50,
        "Ipv6AddressesPerInterface": 50,
        "Ipv6Supported": True,
        "EnaSupport": "required",
        "EfaSupported": type.has_fast_fabric,
        "EncryptionInTransitSupported": True,
    } | ({"EfaInfo": {"MaximumEfaInterfaces": efa_interfaces(type)}} if type.has_fast_fabric else {})


def efa_interfaces(type: MachineType) -> int:
    if not type.has_fast_fabric:
        return 0
    digits = re.findall(r"\d+", type.network)
    return min(max(int(digits[-1]) // _GBPS_PER_EFA, 1), _MOST_EFA) if digits else 1


def _gpus(type: MachineType) -> dict[str, Any]:
    return {
        "Gpus": [
            {
                "Name": gpu_name(type),
                "Manufacturer": "NVIDIA",
                "Count": type.gpus,
                "MemoryInfo": {"SizeInMiB": type.gpu_memory_mib},
            }
        ],
        "TotalGpuMemoryInMiB": type.gpus * type.gpu_memory_mib,
    }


def gpu_name(type: MachineType) -> str:
    return _FORM_FACTOR.sub("", type.gpu or "")


_TYPES: Listing[MachineType] = Listing(
    key=lambda type: type.name,
    largest_page=100,
    filters={
        "bare-metal": lambda type: [str(type.name.endswith(".metal")).lower()],
        "current-generation": lambda type: ["true"],
        "instance-type": lambda type: [type.name],
        "memory-info.size-in-mib": lambda type: [str(type.memory_mib)],
        "network-info.efa-supported": lambda type: [str(type.has_fast_fabric).lower()],
        "processor-info.supported-architecture": lambda type: [architecture(type.name)],
        "supported-usage-class": lambda type: ["on-demand", "spot"],
        "vcpu-info.default-vcpus": lambda type: [str(type.vcpus)],
    },
)
_OFFERINGS: Listing[tuple[str, str]] = Listing(
    key=lambda offering: "/".join(offering),
    filters={"instance-type": lambda offering: [offering[0]], "location": lambda offering: [offering[1]]},
)

OPERATIONS: dict[str, Handler] = {
    "DescribeRegions": describe_regions,
    "DescribeAvailabilityZones": describe_availability_zones,
    "DescribeInstanceTypes": describe_instance_types,
    "DescribeInstanceTypeOfferings": describe_instance_type_offerings,
}
