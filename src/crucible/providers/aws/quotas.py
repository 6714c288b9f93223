"""How many vCPUs of GPU machines the account may run in a region, by kind and market. It only reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SERVICE = "ec2"


@dataclass(frozen=True, slots=True)
class Quota:
    code: str
    name: str
    example: str  # what needs it


QUOTAS = (
    Quota("L-417A185B", "P on demand", "p5.48xlarge needs 192"),
    Quota("L-7212CCBC", "P spot", "p5.48xlarge needs 192"),
    Quota("L-DB2E81BA", "G on demand", "g5.xlarge needs 4"),
    Quota("L-3819A6DF", "G spot", "g5.xlarge needs 4"),
)


def vcpus(service_quotas: Any) -> Mapping[str, int]:
    """By the name of the quota. One that was never changed is known by its default only."""
    return {quota.name: int(value(service_quotas, quota.code)) for quota in QUOTAS}


def value(service_quotas: Any, code: str) -> float:
    try:
        return float(service_quotas.get_service_quota(ServiceCode=SERVICE, QuotaCode=code)["Quota"]["Value"])
    except service_quotas.exceptions.NoSuchResourceException:
        default = service_quotas.get_aws_default_service_quota(ServiceCode=SERVICE, QuotaCode=code)
        return float(default["Quota"]["Value"])
