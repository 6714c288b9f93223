"""A message as paragraphs, for channels that show text."""

from collections.abc import Iterator

from crucible.model.alert import Message
from crucible.model.notice import Notice


def paragraphs(message: Message) -> Iterator[tuple[str, str]]:
    """Heads and what they say. A message of one notice has its head in its title."""
    if message.text:
        yield "", message.text
    is_one = len(message.notices) == 1 and message.more == 0
    for notice in message.notices:
        yield ("" if is_one else notice.title), f"{notice.text}\n{about(notice)}"


def about(notice: Notice) -> str:
    facts = [f"{notice.at:%Y-%m-%d %H:%M:%S} UTC", f"{notice.kind} ({notice.severity})"]
    for name, value in (("team", notice.team), ("project", notice.project), ("user", notice.user_id)):
        facts += [f"{name} {value}"] if value else []
    facts += [f"job {notice.job_id}"] if notice.job_id else []
    return " · ".join(facts)


def rest_of(message: Message) -> str:
    return f"and {message.more} more: crucible alert history shows all" if message.more else ""


def plain(message: Message) -> str:
    said = [f"{head}\n{text}" if head else text for head, text in paragraphs(message)]
    return "\n\n".join([*said, *([rest_of(message)] if message.more else [])]) + "\n"
