"""Wishes to talk to nodes. They live for seconds and need not survive a crash: whoever waited for one is gone then."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import bindparam, delete, insert, select

from crucible.model.channel import Channel
from crucible.model.ids import ChannelId, NodeId
from crucible.store.mapping import Rows, micros
from crucible.store.record_tables import channels as table
from crucible.store.sql import Sql, Transaction

CHANNELS = Rows(Channel, table)

_C = table.c
_ADD = Sql(insert(table).values(CHANNELS.parameters()))
_OF_NODE = Sql(
    select(*CHANNELS.columns)
    .where(_C.node_id == bindparam("node_id"), _C.expires_at > bindparam("now"))
    .order_by(_C.id)
)
_DROP = Sql(delete(table).where(_C.id == bindparam("channel_id")))
_FORGET = Sql(delete(table).where(_C.expires_at <= bindparam("now")))


def add(tx: Transaction, channel: Channel, now: datetime) -> None:
    tx.run(_FORGET, {"now": micros(now)})
    tx.run(_ADD, CHANNELS.pack(channel))


def of_node(tx: Transaction, node_id: NodeId, now: datetime) -> Sequence[Channel]:
    return CHANNELS.unpack_all(tx.rows(_OF_NODE, node_id=node_id, now=micros(now)))


def drop(tx: Transaction, channel_id: ChannelId) -> None:
    tx.run(_DROP, {"channel_id": channel_id})
