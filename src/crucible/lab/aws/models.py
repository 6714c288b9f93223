"""Amazon's own description of its services, as botocore ships it. Nothing about a protocol is written down twice."""

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from botocore.loaders import create_loader
from botocore.model import ServiceModel

# Name in the credential scope of a signature -> name in botocore.
SERVICES = {
    "ec2": "ec2",
    "sts": "sts",
    "servicequotas": "service-quotas",
    "pricing": "pricing",
    "ssm": "ssm",
}

# The world says better than a list of names which of these there are.
OPEN_ENUMS = frozenset({"InstanceType"})

# Shapes of botocore have no types: they are `Any` here, and their use stays within the codecs and the checks.
Shape = Any


@dataclass(frozen=True, slots=True)
class Operation:
    service: str  # as in the credential scope
    name: str
    protocol: str  # "ec2", "query" or "json"
    version: str
    namespace: str
    input: Shape | None
    output: Shape | None


@cache
def service(signing_name: str) -> ServiceModel:
    name = SERVICES[signing_name]
    return ServiceModel(create_loader().load_service_model(name, "service-2"), name)


@lru_cache(maxsize=1024)  # names come from outside
def operation(signing_name: str, name: str) -> Operation | None:
    """None: Amazon describes no such operation."""
    model = service(signing_name)
    if name not in model.operation_names:
        return None
    described = model.operation_model(name)
    return Operation(
        service=signing_name,
        name=name,
        protocol=model.metadata["protocol"],
        version=model.api_version,
        namespace=model.metadata.get("xmlNamespace", ""),
        input=described.input_shape,
        output=described.output_shape,
    )


def protocol(signing_name: str) -> str:
    found: str = service(signing_name).metadata["protocol"]
    return found


def target_prefix(signing_name: str) -> str:
    """What stands before the operation's name in X-Amz-Target."""
    found: str = service(signing_name).metadata["targetPrefix"]
    return found
