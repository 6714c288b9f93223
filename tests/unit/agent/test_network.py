"""Which interface a gang's traffic takes."""

import socket

from crucible.agent import network


def test_the_loopback_is_found_by_any_of_its_addresses() -> None:
    for address in ("127.0.0.1", "127.0.0.9", "localhost"):
        assert network.interface_of(address) == "lo"
    assert network.interface_towards("127.0.0.1") == "lo"


def test_an_interface_is_found_by_the_address_it_has() -> None:
    for _, name in socket.if_nameindex():
        address = network._address_of(name)
        if address is not None:
            assert network.interface_of(address) is not None


def test_an_address_of_nobody_here_gives_way_to_the_route_to_the_master() -> None:
    assert network.interface_of("192.0.2.77") is None
    assert network.variables("192.0.2.77", "127.0.0.1") == {
        "GLOO_SOCKET_IFNAME": "lo",
        "TP_SOCKET_IFNAME": "lo",
        "NCCL_SOCKET_IFNAME": "=lo",
    }


def test_where_nothing_can_be_told_nothing_is_set() -> None:
    assert network.variables("no such host.invalid", None) == {}
    assert network.interface_towards("") in (None, "lo")
