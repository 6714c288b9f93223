"""AWS, as a server opens it: a seller and a price list for each region that the operator names."""

from collections.abc import Mapping

from crucible.model.errors import InvalidRequest
from crucible.ports.provider import Provider, Surroundings
from crucible.providers.aws.account import Account, check_installed
from crucible.providers.aws.prices import AwsPrices
from crucible.providers.aws.region import AwsRegion
from crucible.providers.aws.settings import PREFIX, AwsSettings, is_region, words

# Where nobody names a region: as the AWS command line would.
FALLBACK = ("AWS_REGION", "AWS_DEFAULT_REGION")


def open_provider(here: Surroundings) -> Provider:
    check_installed()
    settings = AwsSettings.from_environ(here.environ)
    account = Account(endpoint_url=settings.endpoint_url)
    regions = regions_of(here.environ)
    return Provider(
        sellers=[
            AwsRegion(
                region,
                deployment=here.deployment,
                server_url=here.url,
                account=account,
                settings=settings,
                now=here.now,
            )
            for region in regions
        ],
        prices=[AwsPrices(region, account=account, now=here.now) for region in regions],
    )


def regions_of(environ: Mapping[str, str]) -> list[str]:
    named = words(environ.get(f"{PREFIX}REGIONS", ""))
    usual = [environ[name] for name in FALLBACK if environ.get(name)][:1]
    regions = list(dict.fromkeys(named or usual))
    wrong = [region for region in regions if not is_region(region)]
    if wrong or not regions:
        said = f"{wrong[0]!r} is not a region" if wrong else "no region is named"
        raise InvalidRequest(f"{said}: set {PREFIX}REGIONS=us-east-1,us-west-2")
    return regions
