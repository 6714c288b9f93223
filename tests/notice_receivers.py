"""Where notices arrive in tests: a real mail server, a receiver of signed webhooks, and one that is shaped as Slack's
incoming webhooks are. All on loopback, each with what it was given."""

import ipaddress
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from crucible.notify.webhook import verified
from doubles.http_server import Double, Handler, Request, serving

USER, PASSWORD = "crucible@example.org", "pass-w0rd"


class Arrivals:
    """What came, in its order; `wait` until there are so many."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._items: list[Any] = []

    def add(self, item: Any) -> None:
        with self._changed:
            self._items.append(item)
            self._changed.notify_all()

    def clear(self) -> None:
        with self._changed:
            self._items.clear()

    @property
    def items(self) -> list[Any]:
        with self._changed:
            return list(self._items)

    def wait(self, count: int = 1, within_s: float = 30.0) -> list[Any]:
        with self._changed:
            there = self._changed.wait_for(lambda: len(self._items) >= count, within_s)
            assert there, f"{len(self._items)} of {count} came within {within_s:g} s: {self._items}"
            return list(self._items)


# --- mail -----------------------------------------------------------------------------------------------------------


@dataclass
class SmtpSink:
    """`refuse` may say how a mail is answered instead, such as "451 later"."""

    url: str = ""
    ca_file: Path | None = None
    mails: Arrivals = field(default_factory=Arrivals)
    recipients: list[list[str]] = field(default_factory=list)
    users: list[str] = field(default_factory=list)
    refuse: Callable[[Envelope], str | None] = lambda envelope: None

    async def handle_DATA(self, server: Any, session: Session, envelope: Envelope) -> str:
        refused = self.refuse(envelope)
        if refused is not None:
            return refused
        assert isinstance(envelope.content, bytes)
        self.recipients.append(list(envelope.rcpt_tos))
        self.mails.add(message_from_bytes(envelope.content, _class=EmailMessage, policy=policy.default))
        return "250 taken"

    def let_in(self, server: Any, session: Any, envelope: Any, mechanism: str, given: Any) -> AuthResult:
        assert isinstance(given, LoginPassword)
        self.users.append(given.login.decode())
        return AuthResult(success=given.password.decode() == PASSWORD and given.login.decode() == USER, handled=False)


@contextmanager
def smtp_sink(folder: Path | None = None, *, tls_first: bool = False) -> Iterator[SmtpSink]:
    """Without a folder it speaks in the open; with one, whose certificates are made there, it wants STARTTLS (or TLS at
    once) and then a password."""
    sink = SmtpSink()
    options: dict[str, Any] = {}
    if folder is not None:
        sink.ca_file, context = certificate(folder)
        options = {"ssl_context": context} if tls_first else {"tls_context": context, "require_starttls": True}
        # It does not know of TLS that came first: then it offers to let people in, and asks nobody.
        options |= {"authenticator": sink.let_in, "auth_required": not tls_first, "auth_require_tls": not tls_first}
    controller = Controller(sink, "127.0.0.1", free_port(), ready_timeout=20, **options)
    controller.start()
    scheme = "smtps" if tls_first else "smtp"
    user = USER.replace("@", "%40") + "@" if folder is not None else ""
    sink.url = f"{scheme}://{user}127.0.0.1:{controller.port}" + ("" if folder is not None else "?tls=off")
    try:
        yield sink
    finally:
        controller.stop()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """Of 127.0.0.1 and localhost, signed by itself: the file is its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a mail server of tests")])
    now = datetime.now(UTC)
    names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert_file, key_file)
    return cert_file, context


# --- webhooks -------------------------------------------------------------------------------------------------------


@dataclass
class Receiver:
    """`answers` are given one after another, each a status or a status with headers; then 200."""

    double: Double
    messages: Arrivals
    answers: list[int | tuple[int, dict[str, str]]]
    bad: list[str]  # why a request was refused

    @property
    def origin(self) -> str:
        return self.double.url

    @property
    def url(self) -> str:
        return f"{self.double.url}/hook"


@contextmanager
def webhook_receiver(secret: str | Callable[[], str], now: Callable[[], float] = time.time) -> Iterator[Receiver]:
    """Takes only what is signed with the secret, and `now`; a message is its JSON with the id it came with."""

    def look(request: Request) -> tuple[str | None, Any]:
        known = secret if isinstance(secret, str) else secret()
        if not verified(known, request.headers, request.body, now()):
            return "the signature is not ours", None
        told = json.loads(request.body)
        if told["delivery"] != request.headers["x-crucible-delivery"]:
            return "two ids", None
        return None, told

    with _receiver(look) as receiver:
        yield receiver


@contextmanager
def slack_receiver() -> Iterator[Receiver]:
    """As strict as Slack: blocks of the kinds that we use, within its bounds."""

    def look(request: Request) -> tuple[str | None, Any]:
        told = json.loads(request.body)
        blocks = told.get("blocks", [])
        if not isinstance(told.get("text"), str) or not 1 <= len(blocks) <= 50:
            return "invalid_payload", None
        for block in blocks:
            if block["type"] == "header" and not 0 < len(block["text"]["text"]) <= 150:
                return "invalid_blocks", None
            if block["type"] == "section" and not 0 < len(block["text"]["text"]) <= 3000:
                return "invalid_blocks", None
            if block["type"] not in ("header", "section", "context"):
                return "invalid_blocks", None
        return None, {**told, "delivery": request.headers["x-crucible-delivery"]}

    with _receiver(look) as receiver:
        yield receiver


@contextmanager
def _receiver(look: Callable[[Request], tuple[str | None, Any]]) -> Iterator[Receiver]:
    messages, answers, bad = Arrivals(), [], []  # type: ignore[var-annotated]

    def answer(request: Request, reply: Handler) -> None:
        wrong, told = look(request)
        if wrong is not None:
            bad.append(wrong)
            return reply.json({"error": wrong}, 400)
        given = answers.pop(0) if answers else 200
        status, headers = given if isinstance(given, tuple) else (given, {})
        if 200 <= status < 300:
            messages.add(told)
        return reply.json({}, status, **headers)

    with serving(answer) as double:
        yield Receiver(double, messages, answers, bad)
