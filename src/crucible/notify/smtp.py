"""Mail by the server's own SMTP account, which the operator names. Encrypted unless the operator says otherwise; the
password is sent over nothing else."""

import asyncio
import smtplib
import ssl
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from crucible.model.alert import Destination, Message
from crucible.model.errors import InvalidRequest, SendFailed, SendRefused
from crucible.notify.mail import mail, recipients_of

TIMEOUT_S = 20.0
# Mails that are under way at once; one that hangs keeps no other waiting for long.
THREADS = 8
_PORTS = {"smtp": 587, "smtps": 465}


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpSettings:
    host: str
    port: int
    sender: str
    is_tls_first: bool = False  # smtps
    is_plain: bool = False  # no STARTTLS
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: Path | None = None


def settings_of(url: str, sender: str | None, password: str | None, ca_file: Path | None = None) -> SmtpSettings:
    """smtp://user@host:587, smtps://user@host:465, smtp://localhost:25?tls=off. Raises InvalidRequest."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    if parts.scheme not in _PORTS or not parts.hostname or parts.path.strip("/") or query.keys() - {"tls"}:
        raise InvalidRequest("that is no mail server; write --smtp-url smtp://user@host:587")
    if parts.password is not None:
        raise InvalidRequest("a password does not belong into --smtp-url; use --smtp-password-file")
    is_plain = query.get("tls") == ["off"]
    user = None if parts.username is None else unquote(parts.username)
    if user is not None and (is_plain or password is None):
        missing = "tls=off sends it in the open" if is_plain else "name it with --smtp-password-file"
        raise InvalidRequest(f"{user} signs in at {parts.hostname} with a password: {missing}")
    if sender is None and (user is None or "@" not in user):
        raise InvalidRequest("say from whom mails are: --smtp-from crucible@example.org")
    return SmtpSettings(
        host=parts.hostname,
        port=parts.port or _PORTS[parts.scheme],
        sender=recipients_of(sender or user or "")[0],
        is_tls_first=parts.scheme == "smtps",
        is_plain=is_plain,
        user=user,
        password=password,
        ca_file=ca_file,
    )


class Smtp:
    def __init__(self, settings: SmtpSettings | None, deployment: str) -> None:
        """Without settings every channel is refused, with the reason. `deployment` tells one server's mails from
        another's."""
        self._settings = settings
        self._deployment = deployment
        self._threads = ThreadPoolExecutor(THREADS, "smtp")

    def check(self, destination: Destination) -> str:
        self._configured(lambda said: InvalidRequest(said, field="kind"))
        return ", ".join(recipients_of(destination.address))

    async def send(self, destination: Destination, message: Message) -> None:
        settings = self._configured(SendFailed)
        recipients = recipients_of(destination.address)
        made = mail(message, settings.sender, recipients, self._deployment)
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._threads, deliver, settings, made, recipients)

    def _configured(self, error: Callable[[str], Exception]) -> SmtpSettings:
        if self._settings is None:
            raise error("this server sends no mails: start it with --smtp-url smtp://user@host:587")
        return self._settings


def deliver(settings: SmtpSettings, made: EmailMessage, recipients: Sequence[str]) -> None:
    """In a thread. All of the recipients, or an error that names those who were refused."""
    where = f"the mail server {settings.host}:{settings.port}"
    try:
        with connected(settings) as client:
            refused = client.send_message(made, settings.sender, list(recipients))
    except smtplib.SMTPAuthenticationError as error:
        raise SendFailed(f"{where} does not let {settings.user} in: {_said(error.smtp_error)}") from error
    except smtplib.SMTPRecipientsRefused as error:
        raise _refused(where, error.recipients) from error
    except smtplib.SMTPResponseException as error:
        kind = SendRefused if 500 <= error.smtp_code < 600 else SendFailed
        raise kind(f"{where} answered {error.smtp_code}: {_said(error.smtp_error)}") from error
    except (smtplib.SMTPException, OSError) as error:
        raise SendFailed(f"{where} does not take it: {error or type(error).__name__}") from error
    if refused:
        raise SendRefused(f"{where} took it for some, but not for {', '.join(sorted(refused))}")


def connected(settings: SmtpSettings) -> smtplib.SMTP:
    tls = ssl.create_default_context()
    if settings.ca_file is not None:
        tls.load_verify_locations(settings.ca_file)
    if settings.is_tls_first:
        client: smtplib.SMTP = smtplib.SMTP_SSL(settings.host, settings.port, timeout=TIMEOUT_S, context=tls)
    else:
        client = smtplib.SMTP(settings.host, settings.port, timeout=TIMEOUT_S)
    try:
        if not settings.is_tls_first and not settings.is_plain:
            client.starttls(context=tls)
        if settings.user is not None and settings.password is not None:
            client.login(settings.user, settings.password)
    except BaseException:
        client.close()
        raise
    return client


def _refused(where: str, recipients: dict[str, tuple[int, bytes]]) -> SendFailed:
    told = ", ".join(f"{name} ({code} {_said(words)})" for name, (code, words) in sorted(recipients.items()))
    kind = SendRefused if all(500 <= code < 600 for code, _ in recipients.values()) else SendFailed
    return kind(f"{where} refuses {told}")


def _said(words: bytes | str) -> str:
    text = words.decode("utf-8", "replace") if isinstance(words, bytes) else words
    return " ".join(text.split())[:200]
