"""More places, by the library apprise: Telegram, Discord, PagerDuty … Its addresses carry their secrets. It makes its
connections itself, so only those kinds of addresses are used that lead to one service, and those of a host that the
operator lists. Others read files or ask whom they are told to ask."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from crucible.endpoints import PORTS, Origin
from crucible.model.alert import Destination, Message
from crucible.model.errors import InvalidRequest, SendFailed
from crucible.model.notice import Severity
from crucible.notify.outside import Outside
from crucible.notify.words import plain

TIMEOUT_S = 25.0
THREADS = 8
MAX_URL = 2000
# fmt: off
# These lead to their own service, whatever the rest of the address says.
SERVICES = frozenset({
    "brevo", "clicksend", "dingtalk", "discord", "feishu", "firehydrant", "gchat", "guilded", "ifttt", "ilert",
    "incidentio", "join", "lark", "line", "msgbird", "nexmo", "onesignal", "opsgenie", "pagerduty", "pagertree",
    "pbul", "plivo", "postmark", "pover", "prowl", "pushy", "resend", "revolt", "sendgrid", "signl4", "sinch",
    "slack", "spike", "splunk", "squadcast", "telnyx", "tgram", "threema", "twilio", "viber", "victorops", "vonage",
    "webex", "wxteams", "zoom",
})
# These to the host that they name.
HOSTED = frozenset({
    "form", "forms", "gotify", "gotifys", "json", "jsons", "mmost", "mmosts", "ntfy", "ntfys", "rocket", "rockets",
    "xml", "xmls",
})
# fmt: on
_NEVER = logging.CRITICAL + 1  # it writes whole addresses to the log, secrets included
_TYPES = {Severity.INFO: "info", Severity.WARNING: "warning", Severity.CRITICAL: "failure"}


class ApprisePlaces:
    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._threads = ThreadPoolExecutor(THREADS, "apprise")

    def check(self, destination: Destination) -> str:
        place = self._opened(destination.address)
        return f"{place.service_name} ({destination.address.partition('://')[0].lower()}://)"

    async def send(self, destination: Destination, message: Message) -> None:
        place = self._opened(destination.address)
        loop = asyncio.get_running_loop()
        body = f"{plain(message)}\n{message.id}"
        work = loop.run_in_executor(self._threads, _notify, place, message, body)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                is_sent = await work
        except TimeoutError:
            raise SendFailed(f"{place.service_name} did not answer within {TIMEOUT_S:.0f} s") from None
        if not is_sent:
            raise SendFailed(f"{place.service_name} did not take it")

    def _opened(self, url: str) -> Any:
        """Raises InvalidRequest."""
        if len(url) > MAX_URL or not url.isprintable():
            raise InvalidRequest("that is no address for apprise", field="address")
        place = _library().Apprise.instantiate(url, suppress_exceptions=True)
        if place is None:
            raise InvalidRequest("apprise does not know such an address; see its list of services", field="address")
        self._check_host(place, url.partition("://")[0].lower())
        return place

    def _check_host(self, place: Any, scheme: str) -> None:
        if scheme in SERVICES:
            return
        if scheme not in HOSTED:
            raise InvalidRequest(f"{scheme}:// is not used here; docs/alerts.md lists what is", field="address")
        kind = "https" if place.secure else "http"
        origin = Origin(kind, str(place.host).lower(), place.port or PORTS[kind])
        if not self._outside.lists(origin):
            raise InvalidRequest(
                f"{scheme}:// goes to a host of your choice; the operator may allow it:"
                f" crucible server --alert-endpoint {origin}",
                field="address",
            )


def _notify(place: Any, message: Message, body: str) -> bool:
    return bool(place.notify(body=body, title=f"[Crucible] {message.title}", notify_type=_TYPES[message.severity]))


def _library() -> Any:
    try:
        import apprise
    except ModuleNotFoundError as error:
        if error.name != "apprise":
            raise
        raise InvalidRequest("this server lacks the library for that: pip install 'crucible[alerts]'") from error
    logging.getLogger("apprise").setLevel(_NEVER)
    return apprise
