"""The price list: on-demand prices of the world in the documents that Amazon publishes. It is served from three regions
and speaks of all."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from crucible.lab.aws.call import Call, Handler, moment
from crucible.lab.aws.errors import AwsError
from crucible.lab.aws.geography import gpu_name
from crucible.lab.aws.listing import Listing
from crucible.lab.aws.money import dollars
from crucible.lab.aws.places import architecture
from crucible.world.facts import MachineType

REGIONS = ("us-east-1", "eu-central-1", "ap-south-1")  # where the service is
SERVICE = "AmazonEC2"
FORMAT = "aws_v1"
_TERM, _RATE = "JRTCKXETXF", "6YS6EN2CT7"  # on demand, by the hour: the same in the whole real list
# Of the places that the list calls by name; any other is called by its code.
_LOCATIONS = {
    "ap-northeast-1": "Asia Pacific (Tokyo)",
    "ap-south-1": "Asia Pacific (Mumbai)",
    "ap-southeast-1": "Asia Pacific (Singapore)",
    "ap-southeast-2": "Asia Pacific (Sydney)",
    "ca-central-1": "Canada (Central)",
    "eu-central-1": "EU (Frankfurt)",
    "eu-north-1": "EU (Stockholm)",
    "eu-west-1": "EU (Ireland)",
    "eu-west-2": "EU (London)",
    "us-east-1": "US East (N. Virginia)",
    "us-east-2": "US East (Ohio)",
    "us-west-1": "US West (N. California)",
    "us-west-2": "US West (Oregon)",
}


@dataclass(frozen=True, slots=True)
class Product:
    sku: str
    attributes: dict[str, str]
    price: int  # micro-dollars per hour
    words: str


def get_products(call: Call) -> dict[str, Any]:
    values = call.values
    if values["ServiceCode"] != SERVICE:
        raise AwsError("NotFoundException", f"There is no service {values['ServiceCode']} in the Lab's price list.")
    if values.get("FormatVersion", FORMAT) != FORMAT:
        raise AwsError("InvalidParameterException", f"The format version must be {FORMAT}.")
    found = [product for product in _products(call) if _is_wanted(product, values.get("Filters", []))]
    shown, token = _LISTING.page(found, values)
    documents = [json.dumps(_document(call, product), separators=(",", ":")) for product in shown]
    return {"FormatVersion": FORMAT, "PriceList": documents} | ({"NextToken": token} if token else {})


def describe_services(call: Call) -> dict[str, Any]:
    if call.values.get("ServiceCode", SERVICE) != SERVICE:
        raise AwsError("NotFoundException", f"There is no service {call.values['ServiceCode']}.")
    names = sorted({name for product in _products(call) for name in product.attributes})
    return {"FormatVersion": FORMAT, "Services": [{"ServiceCode": SERVICE, "AttributeNames": names}]}


def _products(call: Call) -> Iterator[Product]:
    """Each type in each region three times: used, reserved and in use, reserved and idle. Whoever does not filter sees
    the price twice and nothing once, as in the real list."""
    for region in call.places.regions:
        for type in call.places.types_in(region):
            price = max(
                call.places.sales[zone.name, type.name].on_demand for zone in call.places.selling(region, type.name)
            )
            yield _product(region, type, "Used", "BoxUsage", price)
            yield _product(region, type, "AllocatedCapacityReservation", "Reservation", 0)
            yield _product(region, type, "UnusedCapacityReservation", "UnusedBox", price)


def _product(region: str, type: MachineType, status: str, usage: str, price: int) -> Product:
    attributes = {
        "servicecode": SERVICE,
        "servicename": "Amazon Elastic Compute Cloud",
        "location": _LOCATIONS.get(region, region),
        "locationType": "AWS Region",
        "regionCode": region,
        "availabilityzone": "NA",
        "instanceType": type.name,
        "instanceFamily": "GPU instance" if type.gpus else "General purpose",
        "currentGeneration": "Yes",
        "vcpu": str(type.vcpus),
        "memory": f"{type.memory_mib / 1024:g} GiB",
        "networkPerformance": type.network,
        "processorArchitecture": "64-bit",
        "physicalProcessor": "AWS Graviton2 Processor" if architecture(type.name) == "arm64" else "NA",
        "storage": "EBS only",
        "tenancy": "Shared",
        "operatingSystem": "Linux",
        "licenseModel": "No License required",
        "preInstalledSw": "NA",
        "capacitystatus": status,
        "marketoption": "OnDemand",
        "operation": "RunInstances",
        "usagetype": f"{usage}:{type.name}",
    }
    if type.gpus:
        attributes |= {
            "gpu": str(type.gpus),
            "gpuMemory": f"{type.gpus * type.gpu_memory_mib / 1024:g} GB",
            "gpuName": gpu_name(type),
        }
    words = f"${dollars(price)} per {'On Demand' if usage == 'BoxUsage' else usage} Linux {type.name} Instance Hour"
    sku = hashlib.sha256(f"{region}/{type.name}/{status}".encode()).hexdigest()[:16].upper()
    return Product(sku, attributes, price, words)


def _is_wanted(product: Product, filters: Sequence[dict[str, str]]) -> bool:
    return all(_passes(product, one["Type"], one["Field"], one["Value"]) for one in filters)


def _passes(product: Product, kind: str, name: str, wanted: str) -> bool:
    known = {**product.attributes, "ServiceCode": SERVICE, "productFamily": "Compute Instance", "sku": product.sku}
    value = known.get(name)
    match kind:
        case "CONTAINS":
            return value is not None and wanted in value
        case "ANY_OF":
            return value in wanted.split(",")
        case "NONE_OF":
            return value not in wanted.split(",")
        case _:
            return value == wanted


def _document(call: Call, product: Product) -> dict[str, Any]:
    term, today = f"{product.sku}.{_TERM}", moment(call.now)
    dimension = {
        "unit": "Hrs",
        "beginRange": "0",
        "endRange": "Inf",
        "description": product.words,
        "appliesTo": [],
        "rateCode": f"{term}.{_RATE}",
        "pricePerUnit": {"USD": dollars(product.price, 10)},
    }
    offer = {
        "sku": product.sku,
        "offerTermCode": _TERM,
        "effectiveDate": f"{today:%Y-%m-01T00:00:00Z}",
        "termAttributes": {},
        "priceDimensions": {f"{term}.{_RATE}": dimension},
    }
    return {
        "product": {"productFamily": "Compute Instance", "attributes": product.attributes, "sku": product.sku},
        "serviceCode": SERVICE,
        "terms": {"OnDemand": {term: offer}},
        "version": f"{today:%Y%m%d000000}",
        "publicationDate": f"{today:%Y-%m-%dT00:00:00Z}",
    }


_LISTING: Listing[Product] = Listing(
    key=lambda product: product.sku, smallest_page=1, largest_page=100, refusal_code="InvalidNextTokenException"
)

OPERATIONS: dict[str, Handler] = {"GetProducts": get_products, "DescribeServices": describe_services}
