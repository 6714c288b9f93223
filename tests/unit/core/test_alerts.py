"""Which notices go where, and when."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crucible.core.alert_rules import check_rule, may_change, may_see
from crucible.core.alerts import fan_out, matches, sees_notice, subject_of
from crucible.core.messages import MAX_NOTICES, compose
from crucible.model.account import Principal, Role
from crucible.model.alert import (
    AlertChannel,
    AlertChannelKind,
    AlertRule,
    Delivery,
    PriceWish,
    QuietHours,
    Scope,
    ScopeKind,
)
from crucible.model.errors import InvalidRequest
from crucible.model.fan_out import FanOut, Fresh, Heard
from crucible.model.ids import AlertChannelId, AlertRuleId, TokenId, UserId
from crucible.model.notice import Notice, NoticeKind, Severity
from crucible.model.units import MicroUsd

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
NIGHT = datetime(2026, 3, 2, 23, tzinfo=UTC)
ANN, BOB = UserId("ann"), UserId("bob")
MAIL, CHAT = AlertChannelId("mail"), AlertChannelId("chat")
QUIET = QuietHours(start="22:00", end="07:00", time_zone="UTC")


def who(user: UserId = ANN, role: Role = Role.MEMBER, **teams: Role) -> Principal:
    return Principal(user, role, TokenId("t"), teams)


def notice(key: str = "failure:ann:train:1", **facts: Any) -> Notice:
    told: dict[str, Any] = {"kind": NoticeKind.FAILURE, "severity": Severity.WARNING, "user_id": ANN, "title": key}
    return Notice(key=key, at=NOW, **{**told, "text": "why", **facts})


def rule(name: str = "r", **facts: Any) -> AlertRule:
    told: dict[str, Any] = {"user_id": ANN, "channels": (MAIL,), "created_at": NOW}
    return AlertRule(id=AlertRuleId(name), name=name, **{**told, **facts})


def fan(*notices: Notice, rules: list[AlertRule], now: datetime = NOW, **more: Any) -> FanOut:
    heard = [Heard(number, one) for number, one in enumerate(notices, 1)]
    owners = {ANN: who(vision=Role.VIEWER), BOB: who(BOB)}
    return fan_out(Fresh(heard=heard, rules=rules, owners=owners, **more), now)


# --- whom it concerns -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "is_seen"),
    [
        ({}, True),
        ({"user_id": BOB}, False),
        ({"user_id": BOB, "team": "vision"}, True),
        ({"user_id": BOB, "team": "audio"}, False),
        ({"user_id": None}, False),
    ],
)
def test_people_see_their_own_and_their_teams_notices(facts: dict[str, Any], is_seen: bool) -> None:
    assert sees_notice(who(vision=Role.VIEWER), notice(**facts)) is is_seen
    assert sees_notice(who(role=Role.ADMIN), notice(**facts))


@pytest.mark.parametrize(
    ("scope", "is_in"),
    [
        (Scope(), True),
        (Scope(ScopeKind.TEAM, "vision"), True),
        (Scope(ScopeKind.TEAM, "audio"), False),
        (Scope(ScopeKind.PROJECT, "cats"), True),
        (Scope(ScopeKind.PROJECT, "dogs"), False),
        (Scope(ScopeKind.USER, "ann"), True),
        (Scope(ScopeKind.USER, "bob"), False),
        (Scope(ScopeKind.JOB, "train-*"), True),
        (Scope(ScopeKind.JOB, "Train-*"), False),
        (Scope(ScopeKind.JOB, "eval-?"), False),
    ],
)
def test_a_rule_hears_what_is_in_its_scope(scope: Scope, is_in: bool) -> None:
    heard = Heard(1, notice(team="vision", project="cats"), "train-7")
    assert matches(rule(scope=scope), heard, who(), NOW) is is_in


def test_a_rule_hears_the_kinds_and_severities_it_is_about() -> None:
    heard = Heard(1, notice())
    assert matches(rule(kinds=(NoticeKind.FAILURE,), least=Severity.WARNING), heard, who(), NOW)
    assert not matches(rule(kinds=(NoticeKind.STALL,)), heard, who(), NOW)
    assert not matches(rule(least=Severity.CRITICAL), heard, who(), NOW)


def test_a_rule_that_is_off_or_muted_hears_nothing_until_then() -> None:
    heard, muted = Heard(1, notice()), rule(muted_until=NOW + timedelta(minutes=1))
    assert not matches(rule(is_enabled=False), heard, who(), NOW)
    assert not matches(muted, heard, who(), NOW)
    assert matches(muted, heard, who(), NOW + timedelta(minutes=1))


def test_a_rule_tells_its_owner_nothing_that_they_may_no_longer_see() -> None:
    of_team = Heard(1, notice(user_id=BOB, team="vision"))
    assert matches(rule(), of_team, who(vision=Role.VIEWER), NOW)
    assert not matches(rule(), of_team, who(), NOW)  # they left the team
    assert not matches(rule(), of_team, None, NOW)  # they were disabled
    assert matches(rule(team="vision"), of_team, None, NOW)  # the team's rule outlives them


def test_a_price_is_told_by_the_rule_that_waited_for_it() -> None:
    found = Heard(1, notice("price:r:1", kind=NoticeKind.PRICE, severity=Severity.INFO, details={"rule": "r"}))
    assert matches(rule("r"), found, who(), NOW) and not matches(rule("other"), found, who(), NOW)


# --- messages -------------------------------------------------------------------------------------------------------


def test_a_notice_goes_once_to_each_channel_however_many_rules_send_it_there() -> None:
    made = fan(notice(), rules=[rule("a"), rule("b", channels=(MAIL, CHAT))])
    assert [one.id for one in made.deliveries] == ["mail.1", "chat.1"]
    assert all(one.not_before == NOW for one in made.deliveries)


def test_what_nobody_wants_makes_no_message() -> None:
    assert fan(notice(), rules=[]) == FanOut()


def test_a_storm_about_one_thing_is_one_message_now() -> None:
    made = fan(*(notice(f"failure:ann:train:{n}") for n in range(13)), rules=[rule()])
    (one,) = made.deliveries
    assert len(made.items) == 13 and {name for name, _ in made.items} == {one.id}
    words = compose(one, [notice(f"failure:ann:train:{n}", title="train failed") for n in range(13)])
    assert words.title == "train failed, and 12 more"


def test_different_things_are_different_messages() -> None:
    made = fan(notice("failure:ann:a:1"), notice("failure:ann:b:2"), rules=[rule()])
    assert len(made.deliveries) == 2


def sent(subject: str, at: datetime, severity: Severity = Severity.WARNING) -> dict[str, Any]:
    one = Delivery(
        id="mail.0",  # type: ignore[arg-type]
        channel_id=MAIL,
        rule_id=AlertRuleId("r"),
        subject=subject,
        severity=severity,
        created_at=at,
        not_before=at,
        tries=1,
        ended_at=at,
    )
    return {"last": {(MAIL, subject): one}}


def test_the_same_again_waits_for_its_window_and_is_gathered() -> None:
    before = sent("failure:ann:train", NOW - timedelta(minutes=1))
    (one,) = fan(notice(), notice("failure:ann:train:2"), rules=[rule()], **before).deliveries
    assert one.not_before == NOW + timedelta(minutes=4)
    (again,) = fan(notice("failure:ann:train:3"), rules=[rule()], waiting=[one], **before).deliveries
    assert again == one
    (late,) = fan(notice(), rules=[rule()], **sent("failure:ann:train", NOW - timedelta(minutes=5))).deliveries
    assert late.not_before == NOW


def test_something_worse_about_the_same_does_not_wait() -> None:
    before = sent("failure:ann:train", NOW - timedelta(minutes=1))
    waits = fan(notice(), rules=[rule()], **before).deliveries[0]
    worse = notice("failure:ann:train:2", severity=Severity.CRITICAL)
    (one,) = fan(worse, rules=[rule()], waiting=[waits], **before).deliveries
    assert (one.id, one.not_before, one.severity) == (waits.id, NOW, Severity.CRITICAL)


def test_a_message_that_was_tried_takes_nothing_more() -> None:
    first = fan(notice(), rules=[rule()]).deliveries[0]
    tried = replace(first, tries=1)
    last = {(MAIL, first.subject): tried}
    (second,) = fan(notice("failure:ann:train:2"), rules=[rule()], waiting=[tried], last=last).deliveries
    assert second.id != first.id or second.tries == 0


def test_in_quiet_hours_all_is_one_message_at_their_end() -> None:
    made = fan(notice("failure:ann:a:1"), notice("stall:x:2"), rules=[rule(quiet=QUIET)], now=NIGHT)
    (one,) = made.deliveries
    assert one.not_before == datetime(2026, 3, 3, 7, tzinfo=UTC) and len(made.items) == 2


def test_what_is_critical_passes_quiet_hours_if_the_rule_says_so() -> None:
    bad = notice(severity=Severity.CRITICAL)
    assert fan(bad, rules=[rule(quiet=QUIET)], now=NIGHT).deliveries[0].not_before == NIGHT
    held = rule(quiet=replace(QUIET, lets_critical_pass=False))
    assert fan(bad, rules=[held], now=NIGHT).deliveries[0].not_before > NIGHT


def test_of_two_rules_to_one_channel_the_sooner_counts() -> None:
    made = fan(notice(), rules=[rule("a", quiet=QUIET), rule("b")], now=NIGHT)
    assert [(one.rule_id, one.not_before) for one in made.deliveries] == [("b", NIGHT)]


def test_a_message_shows_the_worst_first_and_counts_the_rest() -> None:
    (one,) = fan(notice(), rules=[rule()]).deliveries
    many = [notice(f"a:{n}", title=f"no {n}\r\nBcc: x") for n in range(30)]
    message = compose(one, [*many, notice("b:1", severity=Severity.CRITICAL, title="worst")])
    assert message.title == "worst, and 30 more" and len(message.notices) == MAX_NOTICES and message.more == 11
    assert message.notices[1].title == "no 0 Bcc: x"


def test_the_subject_is_the_key_without_the_occurrence() -> None:
    assert subject_of(notice("budget:team:vision:80")) == "budget:team:vision" and subject_of(notice("x")) == "x"


# --- rules that make sense ------------------------------------------------------------------------------------------

CHANNEL = AlertChannel(
    id=MAIL,
    name="me",
    user_id=ANN,
    kind=AlertChannelKind.EMAIL,
    shown="",
    key_id="",
    wrapped="",
    sealed="",
    created_at=NOW,
)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"channels": ()}, "at least one channel"),
        ({"channels": (CHAT,)}, "no channel chat of you"),
        ({"team": "vision"}, "no channel mail of the team vision"),
        ({"scope": Scope(ScopeKind.JOB)}, "with a name"),
        ({"scope": Scope(ScopeKind.SERVER, "x")}, "with a name"),
        ({"scope": Scope(ScopeKind.TEAM, "audio")}, "not in a team audio"),
        ({"quiet": replace(QUIET, time_zone="Mars/Olympus")}, "no time zone Mars/Olympus"),
        ({"quiet": replace(QUIET, end="22:00")}, "no quiet hours"),
        ({"quiet": replace(QUIET, end="7 am")}, "no quiet hours"),
        ({"kinds": (NoticeKind.PRICE,)}, "says which"),
        ({"kinds": (NoticeKind.STALL,), "price": PriceWish(gpu="H100", drop=0.1)}, "about `price` too"),
        ({"price": PriceWish(gpu="H100")}, "below which price"),
        ({"price": PriceWish(gpu="H100", below=MicroUsd(0))}, "above zero"),
        ({"price": PriceWish(gpu="H100", drop=1.5)}, "between 0 and 100"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(facts: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        check_rule(who(vision=Role.MANAGER), rule(**facts), {MAIL: CHANNEL})


def test_a_persons_rules_are_theirs_and_a_teams_its_managers() -> None:
    assert may_see(who(), ANN, None) and may_change(who(), ANN, None)
    assert not may_see(who(BOB), ANN, None) and may_change(who(BOB, Role.ADMIN), ANN, None)
    member, manager = who(BOB, vision=Role.MEMBER), who(BOB, vision=Role.MANAGER)
    assert may_see(member, ANN, "vision") and not may_change(member, ANN, "vision")
    assert may_change(manager, ANN, "vision") and not may_change(who(), ANN, "vision")
