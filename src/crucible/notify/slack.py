"""An incoming webhook as Slack's, which Mattermost, Rocket.Chat and Discord (`/slack`) understand too. The address is
the secret."""

import json
from typing import Any

from crucible.model.alert import Destination, Message
from crucible.model.notice import Severity
from crucible.notify.posting import Poster
from crucible.notify.words import paragraphs, rest_of

# Slack's own bounds: characters of a header and of a section, blocks of a message.
MAX_HEADER = 150
MAX_SECTION = 3000
MAX_BLOCKS = 50
_MARKS = {Severity.INFO: ":information_source:", Severity.WARNING: ":warning:", Severity.CRITICAL: ":rotating_light:"}


class Slack:
    def __init__(self, poster: Poster) -> None:
        self._poster = poster

    def check(self, destination: Destination) -> str:
        return str(self._poster.outside.check(destination.address))

    async def send(self, destination: Destination, message: Message) -> None:
        body = json.dumps(payload(message)).encode()
        headers = {"Content-Type": "application/json", "X-Crucible-Delivery": message.id}
        await self._poster.post(destination.address, body, headers)


def payload(message: Message) -> dict[str, Any]:
    header = {"type": "plain_text", "text": message.title[:MAX_HEADER]}
    blocks: list[dict[str, Any]] = [{"type": "header", "text": header}]
    blocks += [_section(_marked(head, text)) for head, text in paragraphs(message)][: MAX_BLOCKS - 3]
    if rest := rest_of(message):
        blocks.append(_section(rest))
    context = f"{_MARKS[message.severity]} {message.severity} · `{message.id}`"
    blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": context}]})
    return {"text": escaped(message.title), "blocks": blocks}


def _marked(head: str, text: str) -> str:
    said = escaped(text)
    return f"*{escaped(head)}*\n{said}" if head else said


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": _cut(text)}}


def _cut(text: str) -> str:
    """Not in the middle of an escaped character."""
    if len(text) <= MAX_SECTION:
        return text
    short = text[: MAX_SECTION - 1]
    whole, ampersand, tail = short.rpartition("&")
    return (whole if ampersand and ";" not in tail else short) + "…"


def escaped(text: str) -> str:
    """The three characters that mean something to Slack: a job's name must not call everybody in the room."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
