"""Wishes to talk to nodes. A part of StoreContract."""

from dataclasses import replace
from datetime import timedelta

from crucible.model.channel import Channel
from crucible.model.ids import ChannelId, NodeId
from crucible.ports.store import Store
from crucible.testing.specimens import LATER, NOW

WISH = Channel(
    id=ChannelId("channel-1"),
    node_id=NodeId("node-1"),
    url="http://127.0.0.1:1",
    expires_at=LATER,
    request={"kind": "exec", "argv": ["echo", "ä \u0001"], "rank": 3, "tty": None},
)


class ChannelContract:
    async def test_a_node_hears_of_its_own_channels_in_their_order(self, store: Store) -> None:
        second, foreign = replace(WISH, id=ChannelId("channel-2")), replace(WISH, id=ChannelId("channel-3"))
        for wish in (second, WISH, replace(foreign, node_id=NodeId("node-2"))):
            await store.add_channel(wish, NOW)
        assert await store.channels(NodeId("node-1"), NOW) == (WISH, second)
        assert await store.channels(NodeId("node-9"), NOW) == ()

    async def test_a_channel_is_withdrawn_once_and_for_all(self, store: Store) -> None:
        await store.add_channel(WISH, NOW)
        await store.drop_channel(WISH.id)
        await store.drop_channel(WISH.id)
        assert await store.channels(WISH.node_id, NOW) == ()

    async def test_a_channel_that_nobody_came_for_is_forgotten(self, store: Store) -> None:
        await store.add_channel(WISH, NOW)
        assert await store.channels(WISH.node_id, LATER) == ()
        fresh = replace(WISH, id=ChannelId("channel-2"), expires_at=LATER + timedelta(hours=1))
        await store.add_channel(fresh, LATER)
        assert await store.channels(WISH.node_id, NOW) == (fresh,)
