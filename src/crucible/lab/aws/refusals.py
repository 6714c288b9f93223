"""What the world refuses, in EC2's words. Clients act on the codes."""

from crucible.lab.aws.call import Call
from crucible.lab.aws.errors import AwsError
from crucible.world.facts import Market
from crucible.world.machine import Launch, Refused, RefusedBy


def refusal(call: Call, launch: Launch, refused: Refused) -> AwsError:
    match refused.by:
        case RefusedBy.CAPACITY:
            return _no_capacity(launch, refused)
        case RefusedBy.QUOTA:
            return _no_quota(call, launch)
        case RefusedBy.PRICE:
            return AwsError(
                "SpotMaxPriceTooLow",
                f"Your Spot request price of {(launch.max_price or 0) / 1e6:g} is lower than the minimum required Spot "
                f"request fulfillment price: {refused.message}.",
            )
        case RefusedBy.TOKEN:
            return AwsError(
                "IdempotentParameterMismatch",
                "The client token you have provided is associated with a resource that has been created with "
                "different parameters.",
            )
        case _:
            return AwsError(
                "Unsupported", f"The requested configuration is currently not supported: {refused.message}."
            )


def _no_capacity(launch: Launch, refused: Refused) -> AwsError:
    if launch.reservation is not None:
        return AwsError("ReservationCapacityExceeded", f"{refused.message}.")
    words = "There is no Spot capacity available that matches your request."
    if launch.market is Market.ON_DEMAND:
        where = f"the Availability Zone you requested ({launch.zone})" if launch.zone else "any zone"
        words = (
            f"We currently do not have sufficient {launch.type} capacity in {where}. "
            "Our system will be working on provisioning additional capacity."
        )
    return AwsError("InsufficientInstanceCapacity", words, 500)


def _no_quota(call: Call, launch: Launch) -> AwsError:
    if launch.market is Market.SPOT:
        return AwsError("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
    limit = call.world.quota(call.account, call.region, call.places.type(launch.type).quota, Market.ON_DEMAND)
    return AwsError(
        "VcpuLimitExceeded",
        f"You have requested more vCPU capacity than your current vCPU limit of {limit} allows for the instance bucket "
        "that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to "
        "request an adjustment to this limit.",
    )
