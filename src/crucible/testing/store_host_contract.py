"""Own hosts. A part of StoreContract."""

from dataclasses import replace

import pytest

from crucible.model.errors import Conflict, StaleVersion
from crucible.model.host import Host, HostState, HostUse
from crucible.model.ids import UserId
from crucible.ports.hosts import HostBook
from crucible.testing.specimens import LATER, NOW

BOX = Host(
    name="box",
    address="10.0.0.7",
    host_key="ssh-ed25519 AAAA",
    port=2222,
    user="ann",
    zone="rack-1",
    use=HostUse.SHARED,
    jump="gate,ann@inner:23",
    identity_file="/keys/id",
    internal_address="192.168.0.7",
    python="/usr/bin/python3.11",
    facts={"cpus": 8, "gpus": [{"uuid": "GPU-1"}], "gpus_reason": None},
    added_by=UserId("u1"),
    added_at=NOW,
    checked_at=LATER,
)
BARE = Host(name="bare", address="bare", host_key="ssh-ed25519 BBBB", added_by=UserId("u1"), added_at=NOW)


class HostContract:
    async def test_hosts_are_remembered_whole_and_listed_by_name(self, store: HostBook) -> None:
        assert await store.hosts() == ()
        await store.add_hosts([BOX, BARE])
        assert await store.hosts() == (BARE, BOX)

    async def test_of_several_hosts_all_are_added_or_none(self, store: HostBook) -> None:
        await store.add_hosts([BOX])
        with pytest.raises(Conflict, match="a host box already"):
            await store.add_hosts([BARE, replace(BOX, address="elsewhere")])
        assert await store.hosts() == (BOX,)

    async def test_a_host_is_changed_by_whoever_has_seen_it_last(self, store: HostBook) -> None:
        await store.add_hosts([BOX])
        after = await store.save_host(replace(BOX, state=HostState.QUARANTINED, reason="hot", failures=3))
        assert after.version == 1 and await store.hosts() == (after,)
        with pytest.raises(StaleVersion):
            await store.save_host(replace(BOX, state=HostState.DRAINING))
        with pytest.raises(StaleVersion):
            await store.remove_host(BOX)
        assert await store.hosts() == (after,)

    async def test_a_removed_host_stays_removed(self, store: HostBook) -> None:
        await store.add_hosts([BOX, BARE])
        await store.remove_host(BOX)
        await store.remove_host(BOX)
        with pytest.raises(StaleVersion):
            await store.save_host(BOX)
        assert await store.hosts() == (BARE,)
