"""Nodes that begin together do not ask together for ever."""

from crucible.engine.gateway import patience_of
from crucible.model.ids import NodeId


def test_nodes_of_a_gang_wait_for_different_times_and_none_for_longer_than_it_would() -> None:
    waits = [patience_of(NodeId(f"node-{number:017x}")) for number in range(1000)]
    assert all(0.75 <= wait <= 1 for wait in waits)
    tenths = [sum(0.75 + low / 40 <= wait < 0.775 + low / 40 for wait in waits) for low in range(10)]
    assert min(tenths) > 50, tenths
