"""The short walk before a server on PostgreSQL: the page and its figures are the same."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from browser_engine import visiting
from lab_site import LabSite, lab_site

from .walking import short_walk


@pytest.fixture
def site(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabSite]:
    with lab_site(tmp_path_factory.mktemp("site"), database=postgres_url) as running:
        yield running


def test_a_job_is_submitted_seen_to_its_end_and_paid_on_postgresql(site: LabSite, chromium: Browser) -> None:
    with visiting(chromium, site.url) as visitor:
        short_walk(visitor, site, "on-postgres")
