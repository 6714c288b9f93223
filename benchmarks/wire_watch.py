"""What a browser fetches, and how many bytes of it cross the wire: heads and packed bodies."""

from playwright.sync_api import Page


class Fetched:
    """Of the first load: what is asked again while one looks counts once."""

    def __init__(self, page: Page) -> None:
        self._urls: dict[str, str] = {}
        self._bytes: dict[str, int] = {}
        session = page.context.new_cdp_session(page)
        session.on("Network.requestWillBeSent", lambda told: self._asked(told["requestId"], told["request"]["url"]))
        session.on("Network.loadingFinished", lambda told: self._came(told["requestId"], told["encodedDataLength"]))
        session.send("Network.enable")

    @property
    def bytes(self) -> int:
        return sum(self._bytes.values())

    def _asked(self, request: str, url: str) -> None:
        self._urls[request] = url

    def _came(self, request: str, size: float) -> None:
        self._bytes.setdefault(self._urls[request], int(size))
