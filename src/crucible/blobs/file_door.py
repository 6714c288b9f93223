"""Addresses of this server for objects on its disk: whoever has one may make that request, for that key, until it
expires by this server's clock. Nothing of them is stored; the server's key seals them."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from crucible.blobs.file_objects import FileObjects
from crucible.model.errors import AddressExpired, Forbidden, Unauthenticated
from crucible.model.storage import Address, Scheme
from crucible.ports.objects import Method, Objects, Signed


class FileDoor:
    def __init__(
        self,
        url: str,
        seal: Callable[[str], str],
        unseal: Callable[[str], str],
        now: Callable[[], datetime],
    ) -> None:
        """`seal` makes a token that can stand in a URL; `unseal` raises Unauthenticated for what it did not make."""
        self._url = url.rstrip("/")
        self._seal = seal
        self._unseal = unseal
        self._now = now

    def objects(self, address: Address) -> FileObjects:
        return FileObjects(address, self._signed)

    def opened(self, method: Method, token: str) -> tuple[Objects, str]:
        """Where the token leads, and to which key. Raises Forbidden."""
        try:
            right, until, folder, key = json.loads(self._unseal(token))
        except Unauthenticated:
            raise Forbidden("nobody signed this address; use it exactly as it was given") from None
        if right != method:
            raise Forbidden(f"this address was signed for {right}, not for {method}")
        expired_for = self._now() - datetime.fromtimestamp(until, UTC)
        if expired_for >= timedelta():
            raise AddressExpired(f"this address expired {expired_for.total_seconds():.0f} s ago; ask for a new one")
        return self.objects(Address(Scheme.FILE, "", "", folder)), key

    def _signed(self, method: Method, address: Address, key: str, expires_in: timedelta) -> Signed:
        until = (self._now() + expires_in).timestamp()
        right = json.dumps([method, until, address.prefix, key], ensure_ascii=False, separators=(",", ":"))
        return Signed(method, f"{self._url}/v1/objects/{self._seal(right)}", {})
