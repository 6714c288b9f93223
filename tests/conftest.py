"""What every test may ask for, and in which order tests run."""

import os
import zlib

import pytest
from hypothesis import HealthCheck, settings

from crash import server_process
from crash.nursery import Nursery

pytest_plugins = ("browser_engine", "postgres_engine", "storage_engines", "hosts_world", "containers", "slurm_world")

# They take most of the time, and most of that they wait.
SLOW = (
    "tests/crash/",
    "tests/sim/",
    "tests/e2e/",
    "tests/integration/",
    "tests/contract/",
    "tests/property/",
    "tests/browser/",
)
# A worker begins with a few others: where its share begins is not known to the test.
FIRST = 10

# A busy machine is no finding. Whatever else holds where this runs stays so: in CI, the same examples every time.
UNHURRIED = settings(settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def pytest_configure() -> None:
    settings.register_profile("unhurried", UNHURRIED)
    settings.load_profile("unhurried")
    server_process.nursery = Nursery()


def pytest_unconfigure() -> None:
    if server_process.nursery is not None:
        server_process.nursery.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every worker gets as many slow tests, and early: else one has them all, and the others wait for it at the end."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers == 1:
        return
    slow = [item for item in items if item.nodeid.startswith(SLOW)]
    rest = [item for item in items if not item.nodeid.startswith(SLOW)]
    # Those of a module together: they share what is dear to make. Modules of a kind apart, always in the same order:
    # browsers, simulations and whoever waits for processes take turns, and no kind has the computer for itself.
    slow.sort(key=lambda item: zlib.crc32(item.nodeid.partition("::")[0].encode()))
    order = {path: n for n, path in enumerate(dict.fromkeys(str(item.path) for item in slow))}
    share = len(items) // workers
    items.clear()
    for number in range(workers):
        own = [item for item in slow if order[str(item.path)] % workers == number]
        count = len(rest) if number == workers - 1 else max(0, share - len(own))
        others, rest = rest[:count], rest[count:]
        items += [*others[:FIRST], *own, *others[FIRST:]]
