"""Service Quotas: how many vCPUs an account may hold of each kind in a region, as the world keeps them."""

from dataclasses import dataclass
from typing import Any

from crucible.lab.aws.call import Call, Handler
from crucible.lab.aws.errors import AwsError
from crucible.lab.aws.listing import Listing
from crucible.world.facts import Market


@dataclass(frozen=True, slots=True)
class Quota:
    code: str
    name: str
    pool: str
    market: Market


QUOTAS = (
    Quota("L-417A185B", "Running On-Demand P instances", "p", Market.ON_DEMAND),
    Quota("L-DB2E81BA", "Running On-Demand G and VT instances", "g", Market.ON_DEMAND),
    Quota(
        "L-1216C47A", "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", "standard", Market.ON_DEMAND
    ),
    Quota("L-7212CCBC", "All P4, P3 and P2 Spot Instance Requests", "p", Market.SPOT),
    Quota("L-3819A6DF", "All G and VT Spot Instance Requests", "g", Market.SPOT),
    Quota("L-34B43A08", "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", "standard", Market.SPOT),
)


def get_service_quota(call: Call) -> dict[str, Any]:
    _check_service(call.values["ServiceCode"])
    for quota in QUOTAS:
        if quota.code == call.values["QuotaCode"]:
            return {"Quota": _shown(call, quota)}
    raise AwsError("NoSuchResourceException", "The request failed because the specified quota does not exist.")


def list_service_quotas(call: Call) -> dict[str, Any]:
    _check_service(call.values["ServiceCode"])
    wanted = call.values.get("QuotaCode")
    found = [quota for quota in QUOTAS if wanted in (None, quota.code)]
    shown, token = _LISTING.page(found, call.values)
    return {"Quotas": [_shown(call, quota) for quota in shown]} | ({"NextToken": token} if token else {})


def _check_service(code: str) -> None:
    if code != "ec2":
        raise AwsError("NoSuchResourceException", "The request failed because the specified service does not exist.")


def _shown(call: Call, quota: Quota) -> dict[str, Any]:
    resource = "Standard" if quota.pool == "standard" else quota.pool.upper()
    return {
        "ServiceCode": "ec2",
        "ServiceName": "Amazon Elastic Compute Cloud (Amazon EC2)",
        "QuotaArn": f"arn:aws:servicequotas:{call.region}:{call.account}:ec2/{quota.code}",
        "QuotaCode": quota.code,
        "QuotaName": quota.name,
        "Value": float(call.world.quota(call.account, call.region, quota.pool, quota.market)),
        "Unit": "None",
        "Adjustable": True,
        "GlobalQuota": False,
        "QuotaAppliedAtLevel": "ACCOUNT",
        "UsageMetric": {
            "MetricNamespace": "AWS/Usage",
            "MetricName": "ResourceCount",
            "MetricDimensions": {
                "Class": f"{resource}/{'Spot' if quota.market is Market.SPOT else 'OnDemand'}",
                "Resource": "vCPU",
                "Service": "EC2",
                "Type": "Resource",
            },
            "MetricStatisticRecommendation": "Maximum",
        },
    }


_LISTING: Listing[Quota] = Listing(
    key=lambda quota: quota.code, smallest_page=1, largest_page=100, refusal_code="InvalidPaginationTokenException"
)

OPERATIONS: dict[str, Handler] = {
    "GetServiceQuota": get_service_quota,
    "GetAWSDefaultServiceQuota": get_service_quota,
    "ListServiceQuotas": list_service_quotas,
}
