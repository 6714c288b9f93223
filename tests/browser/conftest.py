"""What the walks share: a server that buys in a Lab and knows an identity provider, and its people's browser."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from crash.lab_world import free_port
from lab_site import LabSite, lab_site
from oidc_engine import CLIENT_ID, CLIENT_SECRET, OidcEngine, oidc_engine

# Nothing here is in a hurry: a busy computer is no finding.
PATIENCE_MS = 90_000
COMPANY = "Example's own"


@pytest.fixture(scope="session", autouse=True)
def patience() -> None:
    expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def company(port: int) -> Iterator[OidcEngine]:
    with oidc_engine(f"http://127.0.0.1:{port}/v1/login/oidc/callback") as provider:
        yield provider


@pytest.fixture(scope="module")
def site(port: int, company: OidcEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabSite]:
    folder = tmp_path_factory.mktemp("site")
    (folder / "client-secret").write_text(CLIENT_SECRET)
    known = {
        "CRUCIBLE_OIDC_ISSUER": company.issuer,
        "CRUCIBLE_OIDC_CLIENT_ID": CLIENT_ID,
        "CRUCIBLE_OIDC_CLIENT_SECRET_FILE": str(folder / "client-secret"),
        "CRUCIBLE_OIDC_NAME": COMPANY,
        "CRUCIBLE_OIDC_DOMAINS": "example.org",
    }
    with lab_site(folder, port=port, environment=known) as running:
        yield running
