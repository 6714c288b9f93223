"""A message as a mail: text, and the same as simple HTML. Nothing that a user wrote can become a header of its own."""

import re
from collections.abc import Sequence
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from html import escape

from crucible.model.alert import Message
from crucible.model.errors import InvalidRequest
from crucible.model.notice import Severity
from crucible.notify.words import paragraphs, plain, rest_of

MAX_RECIPIENTS = 20
MAX_SUBJECT = 200
# A part of what RFC 5321 allows: what people have, without quotes, comments and routes.
_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@(?=.{1,253}\Z)[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")
_COLOURS = {Severity.INFO: "#3b6ea5", Severity.WARNING: "#b7791f", Severity.CRITICAL: "#c53030"}


def recipients_of(text: str) -> Sequence[str]:
    """With commas between them. Raises InvalidRequest."""
    found = [one.strip() for one in text.split(",") if one.strip()]
    for one in found:
        if not _ADDRESS.fullmatch(one) or ".." in one:
            raise InvalidRequest(f"{one[:100]!r} is no mail address; write ann@example.org", field="address")
    if not 1 <= len(found) <= MAX_RECIPIENTS:
        raise InvalidRequest(f"name 1 to {MAX_RECIPIENTS} mail addresses, with commas between them", field="address")
    return found


def mail(message: Message, sender: str, recipients: Sequence[str], deployment: str) -> EmailMessage:
    made = EmailMessage(policy=SMTP)
    made["From"] = Address("Crucible", addr_spec=sender)
    made["To"] = ", ".join(recipients)
    made["Subject"] = f"[Crucible] {message.title}"[:MAX_SUBJECT]
    made["Date"] = message.at
    made["Message-ID"] = f"<{message.id}@{deployment}.crucible>"
    made["X-Crucible-Delivery"] = message.id
    made["Auto-Submitted"] = "auto-generated"  # nobody's holiday notice need answer
    made.set_content(plain(message), cte="quoted-printable")
    made.add_alternative(html(message), subtype="html", cte="quoted-printable")
    return made


def html(message: Message) -> str:
    said = [f"<h3>{escape(head)}</h3>{_lines(text)}" if head else _lines(text) for head, text in paragraphs(message)]
    rest = f"<p>{escape(rest_of(message))}</p>" if message.more else ""
    colour = _COLOURS[message.severity]
    title = f'<h2 style="border-left:6px solid {colour};padding-left:10px">{escape(message.title)}</h2>'
    return f'<html><body style="font-family:sans-serif">{title}{"".join(said)}{rest}</body></html>\n'


def _lines(text: str) -> str:
    return "<p>" + "<br>\n".join(escape(line) for line in text.splitlines()) + "</p>"
