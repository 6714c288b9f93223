"""Which notices go where, and when. Pure: what is fresh comes in, the messages that are to go out come out. What is
about the same thing is gathered, so that a storm of notices is a few messages and not a thousand."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from crucible.core.quiet import quiet_until
from crucible.core.rights import is_admin, role_in
from crucible.model.account import Principal
from crucible.model.alert import AlertRule, Delivery, Scope, ScopeKind
from crucible.model.fan_out import FanOut, Fresh, Heard
from crucible.model.ids import AlertChannelId, DeliveryId
from crucible.model.notice import Notice, NoticeKind, Severity

_RANKS = {severity: number for number, severity in enumerate(Severity)}


# --- does it concern them -------------------------------------------------------------------------------------------


def sees_notice(who: Principal, notice: Notice) -> bool:
    """Their own, their teams'; what concerns the whole server is for admins."""
    return is_admin(who) or notice.user_id == who.user_id or role_in(who, notice.team) is not None


def matches(rule: AlertRule, heard: Heard, owner: Principal | None, now: datetime) -> bool:
    notice = heard.notice
    if not rule.is_enabled or (rule.muted_until is not None and now < rule.muted_until):
        return False
    if notice.kind is NoticeKind.PRICE:  # found for one rule's sake
        return notice.details.get("rule") == rule.id
    is_wanted = (not rule.kinds or notice.kind in rule.kinds) and at_least(notice.severity, rule.least)
    return is_wanted and _may_hear(rule, notice, owner) and in_scope(rule.scope, heard)


def at_least(severity: Severity, least: Severity) -> bool:
    return _RANKS[severity] >= _RANKS[least]


def _may_hear(rule: AlertRule, notice: Notice, owner: Principal | None) -> bool:
    if rule.team is not None:
        return notice.team == rule.team
    return owner is not None and sees_notice(owner, notice)


def in_scope(scope: Scope, heard: Heard) -> bool:
    notice, name = heard.notice, scope.name
    match scope.kind:
        case ScopeKind.SERVER:
            return True
        case ScopeKind.TEAM:
            return notice.team == name
        case ScopeKind.PROJECT:
            return notice.project == name
        case ScopeKind.USER:
            return notice.user_id == name
        case ScopeKind.JOB:
            return heard.job_name is not None and fnmatchcase(heard.job_name, name)


def subject_of(notice: Notice) -> str:
    """What it is about: its key without the part that says which occurrence."""
    return notice.key.rpartition(":")[0] or notice.key


# --- what goes out --------------------------------------------------------------------------------------------------


def fan_out(fresh: Fresh, now: datetime) -> FanOut:
    """Every notice goes once to every channel that some rule sends it to."""
    gathering = {(one.channel_id, one.subject): one for one in fresh.waiting if one.tries == 0}
    last = dict(fresh.last)
    touched: dict[DeliveryId, Delivery] = {}
    items: list[tuple[DeliveryId, int]] = []
    for heard in fresh.heard:
        for channel, (at, rule) in places(heard, fresh, now).items():
            wanted = proposed(heard, channel, rule, at, last, now)
            key = channel, wanted.subject
            found = gathering.get(key)
            made = wanted if found is None else joined(found, wanted)
            gathering[key] = touched[made.id] = made
            last[key] = made
            items.append((made.id, heard.seq))
    return FanOut(tuple(touched.values()), tuple(items))


def places(heard: Heard, fresh: Fresh, now: datetime) -> Mapping[AlertChannelId, tuple[datetime, AlertRule]]:
    """Where it goes, and when at the earliest; where several rules send it to one place, the one that does it first."""
    found: dict[AlertChannelId, tuple[datetime, AlertRule]] = {}
    for rule in fresh.rules:
        if matches(rule, heard, fresh.owners.get(rule.user_id), now):
            at = earliest(rule, heard.notice, now)
            for channel in rule.channels:
                if channel not in found or at < found[channel][0]:
                    found[channel] = at, rule
    return found


def earliest(rule: AlertRule, notice: Notice, now: datetime) -> datetime:
    quiet = rule.quiet
    if quiet is not None and quiet.lets_critical_pass and notice.severity is Severity.CRITICAL:
        return now
    return quiet_until(quiet, now) or now


def proposed(
    heard: Heard,
    channel: AlertChannelId,
    rule: AlertRule,
    at: datetime,
    last: Mapping[tuple[AlertChannelId, str], Delivery],
    now: datetime,
) -> Delivery:
    """The message that it would be alone. What waits for the end of quiet hours is gathered whatever it is about."""
    notice = heard.notice
    subject = subject_of(notice) if at <= now else ""
    if subject:
        at = max(at, spaced(last.get((channel, subject)), notice.severity, rule, now))
    return Delivery(
        id=DeliveryId(f"{channel}.{heard.seq}"),
        channel_id=channel,
        rule_id=rule.id,
        subject=subject,
        severity=notice.severity,
        created_at=now,
        not_before=at,
    )


def spaced(before: Delivery | None, severity: Severity, rule: AlertRule, now: datetime) -> datetime:
    """Not soon after another one about the same, unless it is worse."""
    if before is None or not at_least(before.severity, severity):
        return now
    return (before.ended_at or before.created_at) + timedelta(seconds=rule.window_s)


def joined(found: Delivery, more: Delivery) -> Delivery:
    worst = max(found.severity, more.severity, key=_RANKS.__getitem__)
    return replace(found, severity=worst, not_before=min(found.not_before, more.not_before))


def worst_first(notices: Sequence[Notice]) -> Iterator[Notice]:
    return iter(sorted(notices, key=lambda one: (-_RANKS[one.severity], one.at)))
