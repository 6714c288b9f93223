"""Signed requests for Azure with an account's key. The library signs keys as they look in a URL, and Azure checks them
as they are, so that its signatures fail for every key that needs escaping. They also start now, by our clock."""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote, urlencode

from crucible.model.errors import StorageRefused
from crucible.ports.objects import Method, Signed

# The oldest with sixteen lines to sign; servers keep every version.
_VERSION = "2020-12-06"
_PERMISSIONS: dict[Method, str] = {"GET": "r", "PUT": "cw"}
PUT_HEADERS = {"x-ms-blob-type": "BlockBlob"}


@dataclass(frozen=True, slots=True, repr=False)
class AccountKey:
    account: str
    secret: str
    endpoint: str
    container: str

    def sign(self, method: Method, key: str, until: datetime) -> Signed:
        allowed, expiry = _PERMISSIONS[method], until.strftime("%Y-%m-%dT%H:%M:%SZ")
        query = {"sv": _VERSION, "se": expiry, "sr": "b", "sp": allowed, "sig": self._signature(allowed, expiry, key)}
        url = f"{self.endpoint.rstrip('/')}/{self.container}/{quote(key)}?{urlencode(query)}"
        return Signed(method, url, PUT_HEADERS if method == "PUT" else {})

    def _signature(self, allowed: str, expiry: str, key: str) -> str:
        start = identifier = address = protocol = snapshot = scope = ""
        whole = f"/blob/{self.account}/{self.container}/{key}"
        replaced_headers = [""] * 5
        lines = [allowed, start, expiry, whole, identifier, address, protocol, _VERSION, "b", snapshot, scope]
        try:
            secret = base64.b64decode(self.secret, validate=True)
        except binascii.Error:
            raise StorageRefused("the key of the Azure account is no base64; set AZURE_STORAGE_ACCOUNT_KEY") from None
        text = "\n".join([*lines, *replaced_headers])
        return base64.b64encode(hmac.new(secret, text.encode(), hashlib.sha256).digest()).decode()
