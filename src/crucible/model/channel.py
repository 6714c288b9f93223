"""A person's wish to talk to a node. It lives for seconds: until the node's agent has come for it, or nobody waits."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from crucible.model.ids import ChannelId, NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    id: ChannelId
    node_id: NodeId
    url: str  # of the server that the person is at: there the agent must come
    expires_at: datetime
    request: Mapping[str, Any] = field(default_factory=dict)  # attempt and rank, and what is to be done there
