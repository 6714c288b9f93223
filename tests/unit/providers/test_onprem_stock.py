"""What own hosts have, as offers."""

from datetime import UTC, datetime
from typing import Any

from crucible.model.host import Host, HostState, HostUse
from crucible.model.ids import UserId
from crucible.providers.onprem.stock import Standing, offers_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def standing(name: str, gpus: int, *taken: str, use: HostUse = HostUse.SHARED, **said: Any) -> Standing:
    found = [{"uuid": f"{name}-{n}", "name": "NVIDIA H100", "memory_mib": 81_559} for n in range(gpus)]
    host = Host(
        name=name,
        address=name,
        host_key="key",
        use=use,
        facts={"cpus": 64, "memory_bytes": 1 << 40, "gpus": found},
        added_by=UserId("admin"),
        added_at=NOW,
        **said,
    )
    claims = ({"devices": [f"{name}-{n}" for n in taken], "exclusive": False},) if taken else ()
    return Standing(host, claims, is_there=True)


def counted(*hosts: Standing) -> set[tuple[int, int] | None]:
    return {offer.counted for offer in offers_of(hosts) if offer.gpus}


def test_gpus_of_hosts_of_different_sizes_are_counted_one_by_one() -> None:
    assert counted(standing("a", 8, "0", "1"), standing("b", 4)) == {(12, 10)}


def test_a_host_that_takes_nothing_new_has_nothing_free() -> None:
    assert counted(standing("a", 8, "0", use=HostUse.EXCLUSIVE), standing("b", 8)) == {(16, 8)}
    assert counted(standing("a", 8, state=HostState.QUARANTINED), standing("b", 8)) == {(16, 8)}
