"""Where people may let the server send to: two hundred ways to write an address inside the network, and names that mean
one thing when they are checked and another a moment later (F44)."""

import asyncio
import ipaddress
import socket
from collections.abc import Iterator, Sequence

import pytest

from crucible.endpoints import is_public
from crucible.model.errors import InvalidRequest, SendFailed, SendRefused
from crucible.notify.outside import Outside, split
from crucible.notify.posting import Poster

# fmt: off
INSIDE = [
    "127.0.0.1", "127.0.0.53", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "172.16.0.1",
    "172.31.255.255", "192.168.0.1", "192.168.255.255", "169.254.169.254", "169.254.170.2", "169.254.0.1",
    "100.64.0.1", "100.127.255.255", "100.100.100.200", "192.0.0.1", "192.0.0.192", "192.0.2.1", "198.18.0.1",
    "198.19.255.255", "198.51.100.7", "203.0.113.9", "192.88.99.1", "224.0.0.1", "239.255.255.255", "240.0.0.1",
    "255.255.255.255",
]
INSIDE_6 = [
    "::1", "::", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "::ffff:8.8.8.8",
    "::127.0.0.1", "::169.254.169.254", "::ffff:0:127.0.0.1", "fe80::1", "fe80::a9fe:a9fe", "febf::1", "fec0::1",
    "fc00::1", "fd00::1", "fd00:ec2::254", "fdff:ffff::1", "ff02::1", "ff0e::1", "2002:7f00:1::", "2002:a9fe:a9fe::",
    "2002:808:808::", "64:ff9b::7f00:1", "64:ff9b::169.254.169.254", "64:ff9b:1::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1", "2001:10::1", "2001:20::1", "100::1", "3fff::1", "5f00::1",
    "1::1", "0:0:0:0:0:0:0:1", "0000:0000:0000:0000:0000:ffff:7f00:0001",
]

# fmt: on
SPELLED = ("127.0.0.1", "169.254.169.254", "10.0.0.1", "192.168.1.1", "172.16.0.1", "100.64.0.1")


def odd(address: str) -> Iterator[str]:
    """The same host as curl, browsers and resolvers read it."""
    a, b, c, d = (int(part) for part in address.split("."))
    number = int(ipaddress.ip_address(address))
    yield from (str(number), hex(number), f"0{number:o}", f"0x{number:X}", f"{number + 2**32}")
    yield from (f"{a}.{b * 65536 + c * 256 + d}", f"{a}.{b}.{c * 256 + d}", f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}")
    yield from (f"0{a:o}.0{b:o}.0{c:o}.0{d:o}", f"{a:03}.{b:03}.{c:03}.{d:03}", f"0x{a:x}.{b}.{c}.0{d:o}")
    yield from (
        f"{address}.",
        f"%{ord(address[0]):x}{address[1:]}",
        "".join(chr(0xFF10 + int(x)) if x.isdigit() else x for x in address),
    )
    yield from (address.replace(".", "。"), address.replace(".", "．"), address.replace(".", "%2e"))
    yield from (
        f"{address}\t",
        f" {address}",
        f"{address}\n",
        f"{address}\\",
        f"{address}\x00",
        f"{address}%00.example",
    )
    yield from (
        f"example.org@{address}",
        f"example.org:443@{address}",
        f"{address}#@example.org",
        f"{address}\\@example.org",
    )


HOSTS = [
    *INSIDE,
    *(f"[{address}]" for address in INSIDE_6),
    *(f"[{address}%25eth0]" for address in ("fe80::1", "::1")),
    *(word for address in SPELLED for word in odd(address)),
    *(
        "localhost",
        "LOCALHOST",
        "localhost.",
        "a.localhost",
        "0",
        "0x",
        "00",
        "[]",
        "[::1",
        "::1",
        "",
        ".",
        "..",
        "a..b",
        "-a",
    ),
    *("1.2.3.4.5", "256.1.1.1", "1.1.1", "ⓛocalhost", "loc\u00adalhost", "①②⑦.⓪.⓪.①", "a b", "a_b.1", "x.0x7f"),
]


def test_the_corpus_is_as_large_as_it_says() -> None:
    assert len(set(HOSTS)) >= 200


@pytest.mark.parametrize("host", sorted(set(HOSTS)), ids=repr)
def test_no_way_to_write_an_inner_address_is_taken(host: str) -> None:
    outside = Outside(resolve=system_like)
    for url in (f"https://{host}/hook", f"https://{host}:8443/hook"):
        with pytest.raises((InvalidRequest, SendRefused, SendFailed)):
            origin = outside.check(url)
            asyncio.run(outside.addresses(origin))


async def system_like(host: str, port: int) -> Sequence[str]:
    """As forgiving as the system's own: it reads old spellings of numbers too."""
    try:
        return [socket.inet_ntoa(socket.inet_aton(host))]
    except OSError:
        return ["127.0.0.1"] if "localhost" in host else []


@pytest.mark.parametrize("address", [*INSIDE, *INSIDE_6])
def test_a_name_that_leads_inside_is_refused_also_among_others(address: str) -> None:
    async def leads(host: str, port: int) -> Sequence[str]:
        return ["93.184.215.14", address]

    outside = Outside(resolve=leads)
    with pytest.raises(SendRefused, match="leads to this machine or a private network"):
        asyncio.run(outside.addresses(outside.check("https://innocent.example/hook")))


@pytest.mark.parametrize("address", ["93.184.215.14", "8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "2a00:1450::1"])
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


def test_a_name_that_means_something_else_a_moment_later_is_asked_once_and_that_answer_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DNS rebinding: the first answer is public, the next is the metadata service."""
    answers = [["93.184.215.14"], ["169.254.169.254"]]
    connected: list[str] = []

    async def rebinding(host: str, port: int) -> Sequence[str]:
        return answers.pop(0)

    async def connect(host: str, port: int, **options: object) -> object:
        connected.append(host)
        assert options["server_hostname"] == "rebind.example"
        raise ConnectionRefusedError(111, "refused")

    monkeypatch.setattr(asyncio, "open_connection", connect)
    with pytest.raises(SendFailed, match="refused"):
        asyncio.run(Poster(Outside(resolve=rebinding)).post("https://rebind.example/x", b"{}", {}))
    assert connected == ["93.184.215.14"]
    with pytest.raises(SendRefused):
        asyncio.run(Poster(Outside(resolve=rebinding)).post("https://rebind.example/x", b"{}", {}))
    assert connected == ["93.184.215.14"]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://example.org/x", "plain http"),
        ("https://example.org:22/x", "not at port 443 or 8443"),
        ("https://example.org:6379/x", "not at port"),
        ("https://user:pw@example.org/x", "no user, password"),
        ("https://example.org/x#y", "fragment"),
        ("ftp://example.org/x", "no address"),
        ("file:///etc/passwd", "no address"),
        ("gopher://example.org/x", "no address"),
        ("https:///x", "no address"),
        ("https://example.org:0/x", "no address"),
        ("https://example.org:99999/x", "no address"),
        ("https://example.org/\r\nX: y", "no address"),
        ("https://example.org/" + "a" * 3000, "no address"),
    ],
)
def test_what_is_not_an_address_on_the_internet_is_refused(url: str, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        Outside().check(url)


def test_what_the_operator_lists_is_reached_wherever_it_is_and_nothing_beside_it() -> None:
    async def here(host: str, port: int) -> Sequence[str]:
        return ["10.0.0.7"]

    outside = Outside(["http://hooks.internal:8080"], resolve=here)
    origin = outside.check("http://hooks.internal:8080/x?y=z")
    assert asyncio.run(outside.addresses(origin)) == ["10.0.0.7"]
    for other in ("http://hooks.internal:8081/x", "http://hooks.internal/x", "http://other.internal:8080/x"):
        with pytest.raises(InvalidRequest, match="--alert-endpoint"):
            outside.check(other)


def test_a_good_address_is_taken_apart_as_it_is_written() -> None:
    parts = split("https://hooks.example.org:8443/services/T0/B0?x=1")
    assert (parts.hostname, parts.port, parts.path) == ("hooks.example.org", 8443, "/services/T0/B0")
    assert str(Outside().check("https://Hooks.Example.org/x")) == "https://hooks.example.org"
