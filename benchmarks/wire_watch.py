"""What a browser fetches of the page, and how many bytes of it cross the wire: heads and packed bodies."""

from urllib.parse import urlsplit

from playwright.sync_api import Page

PAGE = "/ui/"


class Fetched:
    """Files of the page, each once; answers of the API are as large as what they tell."""

    def __init__(self, page: Page) -> None:
        self._paths: dict[str, str] = {}
        self._bytes: dict[str, int] = {}
        session = page.context.new_cdp_session(page)
        session.on("Network.requestWillBeSent", lambda told: self._asked(told["requestId"], told["request"]["url"]))
        session.on("Network.loadingFinished", lambda told: self._came(told["requestId"], told["encodedDataLength"]))
        session.send("Network.enable")

    @property
    def bytes(self) -> int:
        return sum(self._bytes.values())

    @property
    def files(self) -> int:
        return len(self._bytes)

    def _asked(self, request: str, url: str) -> None:
        self._paths[request] = urlsplit(url).path

    def _came(self, request: str, size: float) -> None:
        path = self._paths[request]
        if PAGE in path:
            self._bytes.setdefault(path, int(size))
