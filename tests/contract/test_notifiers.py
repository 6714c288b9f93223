"""Every kind of channel against a real receiver: mail with and without encryption, webhooks, a chat, apprise."""

import asyncio
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html import unescape
from typing import Any
from urllib.parse import urlsplit

import pytest

from crucible.model.alert import AlertChannelKind, Destination
from crucible.model.errors import InvalidRequest, SendFailed, SendRefused
from crucible.notify.apprise_places import ApprisePlaces
from crucible.notify.outside import Outside
from crucible.notify.posting import Poster
from crucible.notify.slack import Slack
from crucible.notify.smtp import Smtp, settings_of
from crucible.notify.webhook import Webhook, signature, verified
from crucible.ports.notifier import Notifier
from crucible.testing.notifier_contract import MESSAGE, NotifierContract
from doubles.http_server import Handler, Request, serving
from notice_receivers import PASSWORD, Receiver, SmtpSink, free_port, slack_receiver, smtp_sink, webhook_receiver

SECRET = "a-secret-of-twenty-letters"


def now() -> datetime:
    return datetime.now(UTC)


# --- mail -----------------------------------------------------------------------------------------------------------


@dataclass
class Mailbox:
    sink: SmtpSink
    answers: list[str]

    def __post_init__(self) -> None:
        self.sink.refuse = lambda envelope: self.answers.pop(0) if self.answers else None

    def ids(self) -> Sequence[str]:
        return [mail["X-Crucible-Delivery"] for mail in self.sink.mails.items]

    def text(self) -> str:
        mail = self.sink.mails.items[-1]
        return f"{mail['Subject']}\n{mail.get_body(('plain',)).get_content()}"

    def fail_next(self) -> None:
        self.answers.append("451 greylisted, come again")

    def refuse_next(self) -> None:
        self.answers.append("554 spam")

    def destination(self) -> Destination:
        return Destination(AlertChannelKind.EMAIL, "ann@example.org, bob@example.org")


class TestMailInTheOpen(NotifierContract):
    @pytest.fixture
    def far(self) -> Iterator[Mailbox]:
        with smtp_sink() as sink:
            yield Mailbox(sink, [])

    @pytest.fixture
    def notifier(self, far: Mailbox) -> Notifier:
        return Smtp(settings_of(far.sink.url, "crucible@example.org", None), "dep1")

    def test_a_mail_has_both_forms_and_headers_of_its_own(self, notifier: Notifier, far: Mailbox) -> None:
        self.send(notifier, far.destination())
        (mail,) = far.sink.mails.items
        assert mail["Message-ID"] == "<channel-1.7@dep1.crucible>" and mail["Auto-Submitted"] == "auto-generated"
        assert mail["From"] == "Crucible <crucible@example.org>" and far.sink.recipients[0][1] == "bob@example.org"
        html = mail.get_body(("html",)).get_content()
        assert "&lt;!channel&gt;" in html and "<b>&amp;" not in html and "tränen" in unescape(html)

    def test_a_title_cannot_add_a_header(self, notifier: Notifier, far: Mailbox) -> None:
        message = replace(MESSAGE, title="x Bcc: all@example.org " + "ü" * 300)
        self.send(notifier, far.destination(), message)
        assert far.sink.mails.items[0]["Bcc"] is None and len(far.sink.recipients[0]) == 2

    def test_a_mail_server_that_is_away_is_a_failure_that_may_pass(self) -> None:
        gone = Smtp(settings_of(f"smtp://127.0.0.1:{free_port()}?tls=off", "c@example.org", None), "d")
        with pytest.raises(SendFailed, match="does not take it"):
            self.send(gone, Destination(AlertChannelKind.EMAIL, "ann@example.org"))


@pytest.fixture(scope="module", params=[False, True], ids=["starttls", "smtps"])
def sink(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmtpSink]:
    with smtp_sink(tmp_path_factory.mktemp("tls"), tls_first=request.param) as sink:
        yield sink


class TestMailWithTls(NotifierContract):
    @pytest.fixture
    def far(self, sink: SmtpSink) -> Mailbox:
        sink.mails.clear()
        sink.recipients.clear()
        return Mailbox(sink, [])

    @pytest.fixture
    def notifier(self, far: Mailbox) -> Notifier:
        return Smtp(settings_of(far.sink.url, None, PASSWORD, far.sink.ca_file), "dep1")

    def test_the_account_is_used(self, notifier: Notifier, far: Mailbox) -> None:
        far.sink.users.clear()
        self.send(notifier, far.destination())
        assert far.sink.users == ["crucible@example.org"]

    def test_a_wrong_password_is_told_without_it(self, far: Mailbox) -> None:
        wrong = Smtp(settings_of(far.sink.url, None, "not-that-one", far.sink.ca_file), "d")
        with pytest.raises(SendFailed, match=r"does not let crucible@example\.org in") as failed:
            self.send(wrong, far.destination())
        assert "not-that-one" not in str(failed.value) and not far.ids()

    def test_a_certificate_that_nobody_vouches_for_gets_no_password(self, far: Mailbox) -> None:
        far.sink.users.clear()
        unknown = Smtp(settings_of(far.sink.url, None, PASSWORD), "d")
        with pytest.raises(SendFailed, match="certificate"):
            self.send(unknown, far.destination())
        assert far.sink.users == [] and not far.ids()


# --- webhooks -------------------------------------------------------------------------------------------------------


@dataclass
class Hook:
    receiver: Receiver
    made: Destination

    def ids(self) -> Sequence[str]:
        return [one["delivery"] for one in self.receiver.messages.items]

    def text(self) -> str:
        told = self.receiver.messages.items[-1]
        if self.made.kind is AlertChannelKind.SLACK:
            blocks = [block["text"] for block in told["blocks"] if "text" in block]
            return "\n".join(one["text"] if one["type"] == "plain_text" else unescape(one["text"]) for one in blocks)
        notices = [f"{one['title']}\n{one['text']}\n{one['team']}" for one in told["notices"]]
        return "\n".join([told["title"], told["text"], *notices, f"and {told['more']} more"])

    def fail_next(self) -> None:
        self.receiver.answers.append(500)

    def refuse_next(self) -> None:
        self.receiver.answers.append(404)

    def destination(self) -> Destination:
        return self.made


CLOSED = free_port()


def poster(*receivers: Receiver, **options: Any) -> Poster:
    return Poster(Outside([f"http://127.0.0.1:{CLOSED}", *(one.origin for one in receivers)]), **options)


class HookContract(NotifierContract):
    def test_where_nobody_listens_is_a_failure_that_may_pass(self, notifier: Notifier, far: Hook) -> None:
        with pytest.raises(SendFailed) as failed:
            self.send(notifier, replace(far.destination(), address=f"http://127.0.0.1:{CLOSED}/x"))
        assert not isinstance(failed.value, SendRefused)


class TestWebhook(HookContract):
    @pytest.fixture
    def far(self) -> Iterator[Hook]:
        with webhook_receiver(SECRET) as receiver:
            yield Hook(receiver, Destination(AlertChannelKind.WEBHOOK, receiver.url, (SECRET,)))

    @pytest.fixture
    def notifier(self, far: Hook) -> Notifier:
        return Webhook(poster(far.receiver), now)

    def test_while_a_secret_is_rotated_both_are_good(self, notifier: Notifier, far: Hook) -> None:
        for secrets in (("another-secret-of-ours", SECRET), (SECRET, "another-secret-of-ours")):
            self.send(notifier, replace(far.destination(), secrets=secrets))
        assert len(far.ids()) == 2
        with pytest.raises(SendRefused, match="answered 400"):
            self.send(notifier, replace(far.destination(), secrets=("another-secret-of-ours",)))
        assert far.receiver.bad == ["the signature is not ours"]

    def test_a_webhook_without_a_good_secret_is_not_made(self, notifier: Notifier, far: Hook) -> None:
        for secrets in ((), ("short",), (SECRET, SECRET, SECRET)):
            with pytest.raises(InvalidRequest, match="at least 16"):
                notifier.check(replace(far.destination(), secrets=secrets))

    @pytest.mark.parametrize(("late_s", "is_good"), [(0, True), (299, True), (-299, True), (301, False), (-301, False)])
    def test_what_somebody_caught_is_worth_nothing_later(self, late_s: float, is_good: bool) -> None:
        at, body = time.time(), b'{"a":1}'
        headers = {
            "x-crucible-timestamp": str(int(at)),
            "x-crucible-signature": signature([SECRET], str(int(at)), body),
        }
        assert verified(SECRET, headers, body, int(at) + late_s) is is_good
        assert not verified(SECRET, headers, body + b" ", at) and not verified("x" * 20, headers, body, at)
        assert not verified(SECRET, {}, body, at)

    def test_a_slow_receiver_is_given_up_in_time(self, far: Hook) -> None:
        def hang(request: Request, reply: Handler) -> None:
            time.sleep(2)

        with serving(hang) as slow:
            patient = Webhook(Poster(Outside([slow.url]), timeout_s=0.2), now)
            with pytest.raises(SendFailed, match="did not answer within"):
                self.send(patient, Destination(AlertChannelKind.WEBHOOK, f"{slow.url}/x", (SECRET,)))

    def test_an_address_that_leads_nowhere_is_passed_over_for_the_next(self, far: Hook) -> None:
        """127.0.0.2 is this computer too, and nobody listens there."""
        parts = urlsplit(far.receiver.origin)

        async def two(host: str, port: int) -> Sequence[str]:
            return ["127.0.0.2", "127.0.0.1"]

        named = f"http://hooks.internal:{parts.port}"
        notifier = Webhook(Poster(Outside([named], two)), now)
        self.send(notifier, replace(far.destination(), address=far.receiver.url.replace(far.receiver.origin, named)))
        assert len(far.ids()) == 1

    def test_redirects_are_not_followed(self, notifier: Notifier, far: Hook) -> None:
        far.receiver.answers.append((302, {"Location": far.receiver.url}))
        with pytest.raises(SendRefused, match="redirects are not followed"):
            self.send(notifier, far.destination())
        assert len(far.receiver.double.requests) == 1

    def test_an_answer_without_end_is_not_read(self) -> None:
        def pour(request: Request, reply: Handler) -> None:
            reply.send_response(500)
            reply.end_headers()
            for _ in range(1000):
                reply.wfile.write(b"x" * 10_000)

        with serving(pour) as endless:
            notifier = Webhook(Poster(Outside([endless.url])), now)
            with pytest.raises(SendFailed, match="answered 500"):
                self.send(notifier, Destination(AlertChannelKind.WEBHOOK, f"{endless.url}/x", (SECRET,)))


class TestSlack(HookContract):
    @pytest.fixture
    def far(self) -> Iterator[Hook]:
        with slack_receiver() as receiver:
            yield Hook(receiver, Destination(AlertChannelKind.SLACK, receiver.url))

    @pytest.fixture
    def notifier(self, far: Hook) -> Notifier:
        return Slack(poster(far.receiver))

    def test_nobody_is_called_by_what_a_job_wrote(self, notifier: Notifier, far: Hook) -> None:
        self.send(notifier, far.destination())
        sent = far.receiver.double.requests[0].body.decode()
        assert "<!channel>" not in sent and "&lt;!channel&gt;" in sent

    def test_how_long_to_wait_is_passed_on(self, notifier: Notifier, far: Hook) -> None:
        far.receiver.answers.append((429, {"Retry-After": "37"}))
        with pytest.raises(SendFailed) as failed:
            self.send(notifier, far.destination())
        assert failed.value.retry_after_s == 37.0


# --- apprise --------------------------------------------------------------------------------------------------------

# It imports modules that later Pythons no longer have.
aging = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@aging
def test_apprise_reaches_a_host_that_is_listed() -> None:
    def take(request: Request, reply: Handler) -> None:
        reply.json({}, 200)

    with serving(take) as far:
        places = ApprisePlaces(Outside([far.url]))
        destination = Destination(AlertChannelKind.APPRISE, f"json://127.0.0.1:{far.server_port}/x")
        assert places.check(destination) == "JSON (json://)"
        asyncio.run(places.send(destination, MESSAGE))
        told = json.loads(far.requests[0].body)
        assert told["title"] == f"[Crucible] {MESSAGE.title}" and MESSAGE.id in told["message"]
    with pytest.raises(SendFailed, match="JSON did not take it"):
        asyncio.run(places.send(destination, MESSAGE))


@aging
@pytest.mark.parametrize(
    "url",
    [
        "json://127.0.0.1/x",
        "jsons://169.254.169.254/x",
        "mailto://user:pw@listed.example?smtp=127.0.0.1",
        "syslog://",
        "dbus://",
        "fcm://project/abc?keyfile=/etc/passwd",
        "matrix://user:pw@10.0.0.1",
        "nonsense://x",
        "plain words",
        "",
    ],
)
def test_apprise_goes_nowhere_else_and_writes_no_address_to_the_log(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(InvalidRequest):
        ApprisePlaces(Outside(["https://listed.example"])).check(Destination(AlertChannelKind.APPRISE, url))
    assert not caplog.records


@aging
def test_a_service_of_its_own_needs_no_list_and_shows_no_token() -> None:
    token = "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123"
    destination = Destination(AlertChannelKind.APPRISE, f"discord://123456789012345678/{token}")
    shown = ApprisePlaces(Outside()).check(destination)
    assert shown == "Discord (discord://)" and token not in shown


def test_a_server_without_apprise_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(InvalidRequest, match=r"pip install 'crucible\[alerts\]'"):
        ApprisePlaces(Outside()).check(Destination(AlertChannelKind.APPRISE, "discord://x/y"))
