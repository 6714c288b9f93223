"""EC2 as a seller: one AwsRegion for each region. boto3 is loaded when the first call is made, not before."""

from crucible.providers.aws.account import Account, check_installed
from crucible.providers.aws.prices import AwsPrices
from crucible.providers.aws.region import AwsRegion
from crucible.providers.aws.settings import AwsSettings

__all__ = ["Account", "AwsPrices", "AwsRegion", "AwsSettings", "check_installed"]
