"""How EC2 says that there is no such thing: an id of another form is malformed, any other does not exist."""

from crucible.lab.aws.errors import AwsError
from crucible.lab.aws.names import is_id

# Prefix of the ids -> code for a malformed one (None: it has no code of its own), code for an absent one, sentence.
_WORDS: dict[str, tuple[str | None, str, str]] = {
    "ami": ("InvalidAMIID.Malformed", "InvalidAMIID.NotFound", "The image id '[{}]' does not exist"),
    "cr": (
        "InvalidCapacityReservationId.Malformed",
        "InvalidCapacityReservationId.NotFound",
        "The capacity reservation '{}' does not exist.",
    ),
    "i": ("InvalidInstanceID.Malformed", "InvalidInstanceID.NotFound", "The instance ID '{}' does not exist"),
    "key": (None, "InvalidKeyPair.NotFound", "The key pair '{}' does not exist"),
    "pg": (None, "InvalidPlacementGroup.Unknown", "The Placement Group '{}' is unknown."),
    "sg": ("InvalidGroupId.Malformed", "InvalidGroup.NotFound", "The security group '{}' does not exist"),
    "sir": (
        None,
        "InvalidSpotInstanceRequestID.NotFound",
        "The spot instance request ID '{}' does not exist",
    ),
    "subnet": ("InvalidSubnetID.Malformed", "InvalidSubnetID.NotFound", "The subnet ID '{}' does not exist"),
    "vol": ("InvalidVolumeID.Malformed", "InvalidVolume.NotFound", "The volume '{}' does not exist."),
    "vpc": (None, "InvalidVpcID.NotFound", "The vpc ID '{}' does not exist"),
}


def is_known(prefix: str) -> bool:
    return prefix in _WORDS


def malformed(prefix: str, id: str) -> AwsError | None:
    """None: it has the form of an id."""
    code = _WORDS[prefix][0]
    if code is None or is_id(prefix, id):
        return None
    return AwsError(code, f'Invalid id: "{id}" (expecting "{prefix}-...")')


def absent(prefix: str, id: str) -> AwsError:
    _, code, sentence = _WORDS[prefix]
    return malformed(prefix, id) or AwsError(code, sentence.format(id))
