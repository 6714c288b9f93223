"""Whether machines could reach the server at all: one that cannot would be paid for until its boot is given up."""

import ipaddress
from urllib.parse import urlsplit

FIX = "start the server with --host 0.0.0.0 --public-url https://…, an address that machines in AWS can reach"


def unreachable(server_url: str, endpoint_url: str) -> str | None:
    """Why not, or None. What runs on this computer is reached by its neighbours here, as in the Lab."""
    if not is_here(server_url) or is_here(endpoint_url):
        return None
    return f"machines in AWS cannot reach this server at {server_url}: that address is this computer itself"


def is_here(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
