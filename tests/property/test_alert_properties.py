"""Every notice that somebody wants to hear of is told: at least once, wherever a server dies between two steps; and
exactly once where none does. Quiet hours over a year with its two odd nights."""

import asyncio
import itertools
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.core.delivery import MAX_TRIES, TRY_LASTS
from crucible.core.quiet import quiet_until, stretch
from crucible.engine.hub import Hub
from crucible.engine.sending import SEND_TIMEOUT_S, Sending, closed
from crucible.engine.telling import Telling
from crucible.model.account import Role, User
from crucible.model.alert import AlertChannel, AlertChannelKind, AlertRule, Destination, Message, QuietHours
from crucible.model.audit import AuditEntry
from crucible.model.errors import SendFailed
from crucible.model.ids import AlertChannelId, AlertRuleId, TokenId, UserId
from crucible.model.notice import Notice, NoticeKind, Severity
from crucible.ports.alerts import NoticeQuery
from crucible.ports.notifier import Outlets
from crucible.seal.keyring import KeyRing
from crucible.store import open_store
from crucible.testing.specimens import NOW

ANN = UserId("ann")
PLACES = ("mail", "chat")
ENTRY = AuditEntry(at=NOW, user_id=ANN, token_id=TokenId("t"), action="alert_rule.create", subject="s")


class Died(BaseException):
    """As kill -9: nothing after it runs."""


@dataclass
class Chance:
    """Which of the places where a server may die it dies at."""

    deaths: Iterator[bool]

    def point(self, name: str) -> None:
        if next(self.deaths, False):
            raise Died(name)


@dataclass
class Far:
    """Takes messages, or does not; `taken` is what really arrived."""

    is_up: Iterator[bool]
    taken: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)

    def check(self, destination: Destination) -> str:
        return destination.address

    async def send(self, destination: Destination, message: Message) -> None:
        if not next(self.is_up, True):
            raise SendFailed("not now")
        self.taken.append((destination.address, message.id, tuple(one.key for one in message.notices)))


@dataclass
class Clock:
    at: datetime = NOW

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return (self.at - NOW).total_seconds()

    async def wait_for(self, awaitable: Any, seconds: float) -> Any:
        return await awaitable


class Broken(Far):
    """Meets a mistake of ours each time."""

    async def send(self, destination: Destination, message: Message) -> None:
        raise KeyError("a word that nobody thought of")


async def story(
    folder: Path, batches: list[int], deaths: list[bool], ups: list[bool], kind: type[Far] = Far
) -> tuple[Far, list[str]]:
    """Notices are written batch by batch, told and sent by a server that may die anywhere and starts again."""
    clock, far, chance = Clock(), kind(iter(ups)), Chance(iter(deaths))
    sealer = KeyRing.made_in(folder / "keys")

    async def server() -> tuple[Any, Telling, Sending]:
        store = await open_store(f"sqlite:///{folder / 'db'}", failpoint=chance.point)
        context: Any = SimpleNamespace(
            store=store,
            clock=clock,
            hub=Hub(clock),  # type: ignore[arg-type]
            server_id="s",
            claim_ttl=timedelta(seconds=15),
            failpoint=chance.point,
            sealer=sealer,
        )
        outlets = Outlets({AlertChannelKind.WEBHOOK: far})
        return store, Telling(context), Sending(context, outlets)

    store, telling, sending = await server_with_rules(server, sealer)
    keys: list[str] = []
    serial = itertools.count()
    for size in [*batches, 0]:
        fresh = [f"failure:{next(serial) % 3}:{n}" for n in range(len(keys), len(keys) + size)]
        keys += fresh
        await safely(store, fresh, clock.at)
        for _ in range(80):
            try:
                await telling.tell()
                due = await sending.due()
                for channel, waiting in due.items():
                    await sending.serve(channel, waiting)
            except Died:
                with suppress(Exception):
                    await store.close()
                store, telling, sending = await server()
                continue
            finally:
                clock.at += timedelta(minutes=30) if size == 0 else timedelta(seconds=20)
            if not due and not await store.has_fresh_notices() and size:
                break
    await store.close()
    return far, keys


async def safely(store: Any, keys: list[str], now: datetime) -> None:
    """Whoever writes them tries until it has worked, as engines do."""
    notices = [
        Notice(key=key, at=now, kind=NoticeKind.FAILURE, severity=Severity.WARNING, title=key, text="x", user_id=ANN)
        for key in keys
    ]
    while True:
        try:
            return await store.commit([], notices, label="notice")
        except Died:
            continue


async def server_with_rules(make: Callable[[], Any], sealer: KeyRing) -> Any:
    """Before anything may die."""
    while True:
        with suppress(Died):
            made = await make()
            break
    store = made[0]
    await until_done(lambda: store.add_user(User(id=ANN, name="ann", role=Role.MEMBER, created_at=NOW)))
    for place in PLACES:
        plain = AlertChannel(
            id=AlertChannelId(place),
            name=place,
            user_id=ANN,
            kind=AlertChannelKind.WEBHOOK,
            shown=place,
            key_id="",
            wrapped="",
            sealed="",
            created_at=NOW,
        )
        sealed = closed(sealer, sealer.newest(), plain, Destination(AlertChannelKind.WEBHOOK, place))
        await until_done(lambda one=sealed: store.save_alert_channel(lambda key: one, ENTRY))  # type: ignore[misc]
    rule = AlertRule(
        id=AlertRuleId("r"),
        name="r",
        user_id=ANN,
        channels=tuple(AlertChannelId(place) for place in PLACES),
        created_at=NOW,
        window_s=60,
    )
    await until_done(lambda: store.add_alert_rule(rule, ENTRY))
    return made


async def until_done(work: Callable[[], Any]) -> None:
    while True:
        try:
            await work()
            return
        except Died:
            continue
        except Exception:
            return  # it was done before the death


def told(far: Far, place: str) -> Counter[str]:
    """How often each notice arrived there, the same message counted once."""
    messages = {name: keys for where, name, keys in far.taken if where == place}
    return Counter(key for keys in messages.values() for key in keys)


def run(batches: list[int], deaths: list[bool], ups: list[bool]) -> tuple[Far, list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(story(Path(folder), batches, deaths, ups))


BATCHES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@settings(max_examples=25)
@given(BATCHES, st.lists(st.booleans(), max_size=12))
def test_without_deaths_every_notice_arrives_exactly_once_at_every_channel(batches: list[int], ups: list[bool]) -> None:
    far, keys = run(batches, [], ups)
    assert len({name for _, name, _ in far.taken}) == len(far.taken)
    for place in PLACES:
        assert told(far, place) == Counter(keys)


@settings(max_examples=40)
@given(BATCHES, st.lists(st.sampled_from([False, False, True]), max_size=60), st.lists(st.booleans(), max_size=8))
def test_wherever_a_server_dies_every_notice_arrives_and_repeats_have_one_id(
    batches: list[int], deaths: list[bool], ups: list[bool]
) -> None:
    far, keys = run(batches, [False] * 12 + deaths, ups)
    for place in PLACES:
        assert told(far, place) == Counter(keys)
    whole = {}
    for _, name, held in far.taken:
        assert whole.setdefault(name, held) == held, "what is sent again is the same"


# --- quiet hours ----------------------------------------------------------------------------------------------------

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "America/St_Johns", "UTC")
TIMES = st.tuples(st.integers(0, 23), st.sampled_from((0, 15, 30, 45))).map(lambda at: f"{at[0]:02}:{at[1]:02}")
HOURS = st.builds(QuietHours, start=TIMES, end=TIMES, time_zone=st.sampled_from(ZONES)).filter(
    lambda q: q.start != q.end
)
MOMENTS = st.integers(0, 366 * 24 * 4).map(lambda n: datetime(2026, 1, 1, tzinfo=UTC) + n * timedelta(minutes=15))


@given(HOURS, MOMENTS)
def test_quiet_hours_end_soon_and_then_it_is_not_quiet_until_they_begin_again(quiet: QuietHours, now: datetime) -> None:
    until = quiet_until(quiet, now)
    if until is None:
        return
    assert now < until <= now + timedelta(hours=25)
    again = quiet_until(quiet, until)
    local = until.astimezone(ZoneInfo(quiet.time_zone))
    assert again is None or local.strftime("%H:%M") == quiet.start or again == until


@given(HOURS, st.integers(0, 365))
def test_each_night_is_as_long_as_it_says_but_for_what_the_clocks_are_changed_by(quiet: QuietHours, day: int) -> None:
    zone = ZoneInfo(quiet.time_zone)
    start, end = stretch(quiet, zone, (datetime(2026, 1, 1) + timedelta(days=day)).date())
    minutes = [int(text[:2]) * 60 + int(text[3:]) for text in (quiet.start, quiet.end)]
    nominal = timedelta(minutes=(minutes[1] - minutes[0]) % 1440)
    assert abs((end - start) - nominal) <= timedelta(hours=1)
    if start < end:
        middle = start + (end - start) / 2
        assert quiet_until(quiet, start) == end and quiet_until(quiet, middle) == end


def test_a_try_outlasts_the_longest_send() -> None:
    assert TRY_LASTS.total_seconds() > SEND_TIMEOUT_S


def test_a_message_that_we_cannot_make_is_given_up_in_the_end_and_says_why(tmp_path: Path) -> None:
    async def ends() -> list[tuple[str, int, str | None]]:
        _, keys = await story(tmp_path, [3], [], [], Broken)
        store = await open_store(f"sqlite:///{tmp_path / 'db'}")
        tries = [one.delivery for seq, _ in await store.notices(NoticeQuery(limit=9)) for one in await store.told(seq)]
        await store.close()
        assert len(tries) == len(keys) * len(PLACES)
        return [(one.state, one.tries, one.error) for one in tries]

    for state, tries, error in asyncio.run(ends()):
        assert (state, tries) == ("dead", MAX_TRIES)
        assert error == f"given up after {MAX_TRIES} tries: it cannot be made or sent: KeyError"
