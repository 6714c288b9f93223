"""Alerts: rules, channels, notices and messages. A part of StoreContract."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from crucible.core import delivery as deliveries
from crucible.core.alerts import fan_out
from crucible.model.account import Membership, Role, Team, User
from crucible.model.alert import (
    AlertChannel,
    AlertChannelKind,
    AlertRule,
    Delivery,
    DeliveryState,
    PriceSeen,
    PriceWish,
    QuietHours,
    Scope,
    ScopeKind,
)
from crucible.model.audit import AuditEntry
from crucible.model.change import born
from crucible.model.errors import Conflict, NotFound, StaleClaim, StaleVersion
from crucible.model.fan_out import FanOut, Fresh
from crucible.model.ids import AlertChannelId, AlertRuleId, TokenId, UserId
from crucible.model.job import JobSubmitted
from crucible.model.notice import Notice, NoticeKind, Severity
from crucible.model.offer import Market
from crucible.model.secret import SealedValue
from crucible.model.units import MicroUsd
from crucible.ports.alerts import NoticeQuery
from crucible.ports.store import Claim, Store
from crucible.testing.specimens import LATER, NOW, a_job

ANN = UserId("ann")
TTL = timedelta(minutes=1)
CHANNEL = AlertChannel(
    id=AlertChannelId("channel-1"),
    name="me",
    user_id=ANN,
    kind=AlertChannelKind.EMAIL,
    shown="ann@example.org",
    key_id="k1",
    wrapped="d3JhcHBlZA==",
    sealed="c2VhbGVk",
    created_at=NOW,
)
RULE = AlertRule(
    id=AlertRuleId("rule-1"),
    name="all",
    user_id=ANN,
    kinds=(NoticeKind.FAILURE, NoticeKind.PRICE),
    least=Severity.WARNING,
    scope=Scope(ScopeKind.JOB, "train-*"),
    price=PriceWish(gpu="H100", market=Market.SPOT, below=MicroUsd(2_000_000), drop=0.2),
    channels=(CHANNEL.id,),
    quiet=QuietHours(start="22:00", end="07:00", time_zone="Europe/Berlin"),
    muted_until=LATER,
    created_at=NOW,
)
ALL = AlertRule(id=AlertRuleId("rule-2"), name="everything", user_id=ANN, channels=(CHANNEL.id,), created_at=NOW)


def entry(action: str) -> AuditEntry:
    return AuditEntry(at=NOW, user_id=ANN, token_id=TokenId("t"), action=action, subject="alert_rule:rule-1")


def a_notice(key: str, severity: Severity = Severity.WARNING, **more: object) -> Notice:
    facts = {"kind": NoticeKind.FAILURE, "user_id": ANN, "title": f"{key} failed", "text": "why", **more}
    return Notice(key=key, at=NOW, severity=severity, **facts)  # type: ignore[arg-type]


class AlertContract:
    async def claim_of(self, store: Store, name: str = "alerts") -> Claim:
        claim = await store.claim(name, "server", TTL)
        assert claim is not None
        return claim

    async def write(self, store: Store, *notices: Notice) -> None:
        await store.commit([], notices, label="notice")

    async def people(self, store: Store) -> None:
        await store.add_user(User(id=ANN, name="ann", role=Role.MEMBER, created_at=NOW))

    async def told(self, store: Store, *, now_s: float = 0.0) -> int:
        now = NOW + timedelta(seconds=now_s)
        claim = await self.claim_of(store)
        count = await store.fan_out(lambda fresh: fan_out(fresh, now), now, 100, claim=claim)
        await store.release(claim)
        return count

    async def due(self, store: Store, *, now_s: float = 0.0) -> Sequence[Delivery]:
        return await store.due_deliveries(NOW + timedelta(seconds=now_s), 100)

    # --- rules and channels -------------------------------------------------------------------------------------

    async def test_rules_are_remembered_whole_with_who_changed_them(self, store: Store) -> None:
        await store.add_alert_rule(RULE, entry("alert_rule.create"))
        assert await store.alert_rule(RULE.id) == RULE and await store.alert_rules() == (RULE,)
        after = await store.save_alert_rule(replace(RULE, is_enabled=False), entry("alert_rule.change"))
        assert after.version == 1 and await store.alert_rule(RULE.id) == after
        with pytest.raises(StaleVersion, match="changed meanwhile"):
            await store.save_alert_rule(replace(RULE, name="x"), entry("alert_rule.change"))
        with pytest.raises(StaleVersion):
            await store.remove_alert_rule(RULE, entry("alert_rule.remove"))
        await store.remove_alert_rule(after, entry("alert_rule.remove"))
        with pytest.raises(NotFound, match="no rule rule-1"):
            await store.alert_rule(RULE.id)

    async def test_a_channel_goes_when_no_rule_sends_there(self, store: Store) -> None:
        await store.save_alert_channel(lambda key_id: CHANNEL, entry("alert_channel.create"))
        await store.add_alert_rule(ALL, entry("alert_rule.create"))
        with pytest.raises(Conflict, match="rules send to the channel me: everything"):
            await store.remove_alert_channel(CHANNEL, entry("alert_channel.remove"))
        await store.remove_alert_rule(ALL, entry("alert_rule.remove"))
        newer = replace(CHANNEL, sealed="bmV3", version=1)
        changed = await store.save_alert_channel(lambda key_id: newer, entry("alert_channel.rotate"))
        assert await store.alert_channels() == (changed,) == (newer,)
        with pytest.raises(StaleVersion, match="changed meanwhile"):
            await store.save_alert_channel(lambda key_id: newer, entry("alert_channel.rotate"))
        await store.remove_alert_channel(changed, entry("alert_channel.remove"))
        with pytest.raises(NotFound, match="no channel channel-1"):
            await store.alert_channel(CHANNEL.id)

    async def test_what_a_channel_holds_is_wrapped_anew_with_the_secrets(self, store: Store) -> None:
        keys: list[str | None] = []

        def make(key_id: str | None) -> AlertChannel:
            keys.append(key_id)
            return CHANNEL

        await store.save_alert_channel(make, entry("alert_channel.create"))
        assert await store.secrets_key() == "k1" and await store.secret_keys() == {"k1"} and keys == [None]
        (found,) = await store.sealed_otherwise("k2", 10)
        assert found.label == CHANNEL.label and found.value == CHANNEL.value and await store.secrets() == ()
        after = SealedValue(key_id="k2", wrapped="bmV3", sealed=CHANNEL.sealed)
        assert await store.rewrap_secret(found, after) and not await store.rewrap_secret(found, after)
        assert (await store.alert_channel(CHANNEL.id)).value == after
        assert await store.sealed_otherwise("k2", 10) == [] and await store.secret_keys() == {"k1", "k2"}

    async def test_what_a_rule_saw_and_what_it_tells_are_written_together_and_once(self, store: Store) -> None:
        await store.add_alert_rule(RULE, entry("alert_rule.create"))
        seen = PriceSeen(MicroUsd(1), MicroUsd(2))
        assert await store.saw_price(RULE, seen, [a_notice("price:rule-1:1", kind=NoticeKind.PRICE)])
        assert not await store.saw_price(RULE, seen, [a_notice("price:rule-1:2", kind=NoticeKind.PRICE)])
        known = await store.alert_rule(RULE.id)
        assert known.price_seen == seen
        assert [one.key for _, one in await store.notices(NoticeQuery())] == ["price:rule-1:1"]
        other = replace(known, name="renamed")
        assert (await store.save_alert_rule(other, entry("alert_rule.change"))).price_seen == seen
        wish = replace(RULE.price or PriceWish(gpu=""), gpu="A100")
        elsewhere = replace(await store.alert_rule(RULE.id), price=wish)
        assert (await store.save_alert_rule(elsewhere, entry("alert_rule.change"))).price_seen is None

    # --- notices ------------------------------------------------------------------------------------------------

    async def test_notices_are_listed_newest_first_for_whom_they_concern(self, store: Store) -> None:
        team = a_notice("b", user_id=UserId("bob"), team="vision")
        server = a_notice("c", Severity.CRITICAL, kind=NoticeKind.LEAK, user_id=None)
        await self.write(store, a_notice("a"), team, server)
        await self.write(store, a_notice("a", title="again"))
        listed = await store.notices(NoticeQuery())
        assert [one.key for _, one in listed] == ["c", "b", "a"] and listed[2][1] == a_notice("a")
        mine = NoticeQuery(user_id=ANN, teams=["vision"])
        assert [one.key for _, one in await store.notices(mine)] == ["b", "a"]
        assert [one.key for _, one in await store.notices(replace(mine, teams=()))] == ["a"]
        worst = NoticeQuery(severities=[Severity.CRITICAL], kinds=[NoticeKind.LEAK])
        assert [one.key for _, one in await store.notices(worst)] == ["c"]
        older = NoticeQuery(before=listed[1][0], limit=1)
        assert [one.key for _, one in await store.notices(older)] == ["a"]
        assert await store.notice(listed[0][0]) == server
        with pytest.raises(NotFound):
            await store.notice(10**9)

    # --- messages -----------------------------------------------------------------------------------------------

    async def test_a_notice_is_fanned_out_once_with_all_that_says_to_whom(self, store: Store) -> None:
        await self.people(store)
        await store.add_team(Team(name="vision", created_at=NOW, created_by=ANN))
        await store.save_member(Membership(team="vision", user_id=ANN, role=Role.VIEWER, created_at=NOW))
        await store.add_alert_rule(ALL, entry("alert_rule.create"))
        job = a_job()
        await store.commit([born(job, JobSubmitted(NOW))], label="submit")
        await self.write(store, a_notice("failure:x:1", job_id=job.id))
        seen: list[Fresh] = []

        def look(fresh: Fresh) -> FanOut:
            seen.append(fresh)
            return fan_out(fresh, NOW)

        assert await store.has_fresh_notices()
        claim = await self.claim_of(store)
        assert await store.fan_out(look, NOW, 100, claim=claim) == 1
        assert await store.fan_out(look, NOW, 100, claim=claim) == 0 and not await store.has_fresh_notices()
        (fresh,) = seen
        assert fresh.heard[0].job_name == job.name and fresh.rules == (ALL,)
        assert fresh.owners[ANN].role is Role.MEMBER and fresh.owners[ANN].teams == {"vision": Role.VIEWER}
        (one,) = await self.due(store)
        assert one.channel_id == CHANNEL.id and one.id == f"channel-1.{fresh.heard[0].seq}"
        assert [each.key for each in await store.delivery_notices(one.id)] == ["failure:x:1"]

    async def test_who_lost_the_claim_fans_nothing_out(self, store: Store) -> None:
        await self.write(store, a_notice("a:1"))
        claim = await self.claim_of(store)
        await store.release(claim)
        await self.claim_of(store)
        with pytest.raises(StaleClaim):
            await store.fan_out(lambda fresh: FanOut(), NOW, 100, claim=claim)
        assert await store.has_fresh_notices()

    async def test_what_is_about_the_same_joins_what_waits(self, store: Store) -> None:
        await self.people(store)
        await store.add_alert_rule(ALL, entry("alert_rule.create"))
        await self.write(store, a_notice("failure:x:1"))
        await self.told(store)
        (first,) = await self.due(store)
        claim = await self.claim_of(store, "alert:channel-1")
        tried = deliveries.begun(first, NOW)
        await store.save_delivery(first, tried, claim=claim)
        await store.save_delivery(tried, deliveries.sent(tried, NOW), claim=claim)
        for number in (2, 3, 4):
            await self.write(store, a_notice(f"failure:x:{number}"))
            await self.told(store, now_s=number)
        assert await self.due(store, now_s=299) == ()
        (second,) = await self.due(store, now_s=300)
        assert len(await store.delivery_notices(second.id)) == 3
        seq = (await store.notices(NoticeQuery()))[0][0]
        await store.save_alert_channel(lambda key_id: CHANNEL, entry("alert_channel.create"))
        assert [(one.channel, one.delivery.id) for one in await store.told(seq)] == [("me", second.id)]

    async def test_a_message_is_tried_by_one_server_and_ends_for_ever(self, store: Store) -> None:
        await self.people(store)
        await store.add_alert_rule(ALL, entry("alert_rule.create"))
        await self.write(store, a_notice("a:1"))
        await self.told(store)
        (first,) = await self.due(store)
        assert await store.due_deliveries(NOW, 100, without=[CHANNEL.id]) == ()
        claim = await self.claim_of(store, "alert:channel-1")
        tried = deliveries.begun(first, NOW)
        await store.save_delivery(first, tried, claim=claim)
        with pytest.raises(StaleVersion, match="tried by another server"):
            await store.save_delivery(first, tried, claim=claim)
        assert await self.due(store) == ()
        dead = deliveries.refused(tried, "no such user", NOW)
        await store.save_delivery(tried, dead, claim=claim)
        with pytest.raises(StaleVersion):
            await store.save_delivery(tried, deliveries.sent(tried, NOW), claim=claim)
        seq = (await store.notices(NoticeQuery()))[0][0]
        (told,) = await store.told(seq)
        assert told.delivery == dead and told.channel == "removed" and dead.state is DeliveryState.DEAD

    async def test_open_jobs_with_a_deadline_are_found_page_by_page(self, store: Store) -> None:
        jobs = [a_job(f"job-{n}", deadline_at=LATER if n else None) for n in range(3)]
        for job in jobs:
            await store.commit([born(job, JobSubmitted(NOW))], label="submit")
        assert [job.id for job in await store.deadline_jobs(None, 10)] == ["job-1", "job-2"]
        assert [job.id for job in await store.deadline_jobs(jobs[1].id, 10)] == ["job-2"]
