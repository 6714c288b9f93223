"""What every notifier must do, whatever carries its messages. A test file subclasses NotifierContract and gives it a
receiver: a real one, on this computer."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

import pytest

from crucible.model.alert import Destination, Message
from crucible.model.errors import InvalidRequest, SendFailed, SendRefused
from crucible.model.ids import DeliveryId, JobId, UserId
from crucible.model.notice import Notice, NoticeKind, Severity
from crucible.ports.notifier import Notifier

NOW = datetime(2026, 3, 2, 12, 30, tzinfo=UTC)
NOTICE = Notice(
    key="failure:ann:tränen:1",
    at=NOW,
    kind=NoticeKind.FAILURE,
    severity=Severity.WARNING,
    title="tränen <b>&amp;</b> failed",
    text="exit code 3 & nothing else <!channel>\n.\nsecond line …",
    team="vision",
    project="cats",
    user_id=UserId("ann"),
    job_id=JobId("job-1"),
)
MESSAGE = Message(
    id=DeliveryId("channel-1.7"), at=NOW, severity=Severity.WARNING, title=NOTICE.title, notices=(NOTICE,)
)


class Received(Protocol):
    """The far end, as a test looks at it."""

    def ids(self) -> Sequence[str]:
        """Of the messages that were taken, in their order."""
        ...

    def text(self) -> str:
        """All that a reader would see of the last one, decoded."""
        ...

    def fail_next(self) -> None:
        """The next message is answered with a failure that may pass."""
        ...

    def refuse_next(self) -> None:
        """The next one is refused for good."""
        ...

    def destination(self) -> Destination: ...


class NotifierContract:
    def send(self, notifier: Notifier, destination: Destination, message: Message = MESSAGE) -> None:
        asyncio.run(notifier.send(destination, message))

    def test_a_message_arrives_whole_with_its_id(self, notifier: Notifier, far: Received) -> None:
        self.send(notifier, far.destination())
        assert far.ids() == ["channel-1.7"]
        for words in ("tränen <b>&amp;</b> failed", "exit code 3 & nothing else <!channel>", "second line …", "vision"):
            assert words in far.text(), words

    def test_sent_again_it_has_the_same_id(self, notifier: Notifier, far: Received) -> None:
        for _ in range(2):
            self.send(notifier, far.destination())
        assert far.ids() == ["channel-1.7"] * 2

    def test_many_notices_are_one_message_that_counts_the_rest(self, notifier: Notifier, far: Received) -> None:
        many = tuple(replace(NOTICE, title=f"job {n} failed") for n in range(20))
        self.send(
            notifier, far.destination(), replace(MESSAGE, title="job 0 failed, and 31 more", notices=many, more=12)
        )
        assert len(far.ids()) == 1
        assert "job 0 failed, and 31 more" in far.text() and "job 19 failed" in far.text()
        assert "and 12 more" in far.text()

    def test_a_test_says_that_it_is_one(self, notifier: Notifier, far: Received) -> None:
        message = replace(MESSAGE, title="A test", notices=(), text="Nothing is wrong.", is_test=True)
        self.send(notifier, far.destination(), message)
        assert "Nothing is wrong." in far.text()

    def test_a_line_cannot_be_broken_out_of(self, notifier: Notifier, far: Received) -> None:
        evil = replace(NOTICE, text="a\r\n.\r\nRCPT TO:<x@example.org>\r\nBcc: all@example.org\r\n\r\n</p><script>")
        self.send(notifier, far.destination(), replace(MESSAGE, notices=(evil,)))
        assert len(far.ids()) == 1 and "RCPT TO:<x@example.org>" in far.text()

    def test_very_long_texts_arrive_cut(self, notifier: Notifier, far: Received) -> None:
        long = replace(NOTICE, title="x" * 200, text="&" * 2000)
        self.send(notifier, far.destination(), replace(MESSAGE, title="x" * 200, notices=(long,) * 20))
        assert len(far.ids()) == 1

    def test_a_failure_that_may_pass_is_told_apart_from_one_that_will_not(
        self, notifier: Notifier, far: Received
    ) -> None:
        far.fail_next()
        with pytest.raises(SendFailed) as failed:
            self.send(notifier, far.destination())
        assert not isinstance(failed.value, SendRefused)
        far.refuse_next()
        with pytest.raises(SendRefused):
            self.send(notifier, far.destination())
        self.send(notifier, far.destination())
        assert far.ids() == ["channel-1.7"]

    def test_what_is_no_address_is_refused_before_anything_is_stored(self, notifier: Notifier, far: Received) -> None:
        for wrong in ("", "nonsense", "javascript:alert(1)", "https://169.254.169.254/latest", "a\r\nb"):
            with pytest.raises(InvalidRequest):
                notifier.check(replace(far.destination(), address=wrong))

    def test_what_is_shown_of_an_address_holds_no_secret(self, notifier: Notifier, far: Received) -> None:
        destination = far.destination()
        shown = notifier.check(destination)
        assert shown and all(secret not in shown for secret in destination.secrets)
        assert all(secret not in repr(destination) for secret in destination.secrets)
