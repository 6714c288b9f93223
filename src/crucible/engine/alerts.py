"""Alerts as people ask for them: rules, channels, a test of one, and what there was to hear."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from crucible.core.alert_rules import check_rule, may_change, may_see
from crucible.core.alerts import sees_notice
from crucible.core.messages import a_test
from crucible.core.rights import is_admin, require_manager
from crucible.engine.context import Context
from crucible.engine.sending import SEND_TIMEOUT_S, closed, opened
from crucible.model.account import Principal, Role
from crucible.model.alert import AlertChannel, AlertChannelKind, AlertRule, Destination, Told
from crucible.model.audit import AuditEntry
from crucible.model.errors import Busy, Conflict, Forbidden, InvalidRequest, NotFound, SendFailed
from crucible.model.ids import AlertChannelId, AlertRuleId, DeliveryId
from crucible.model.notice import Notice
from crucible.ports.alerts import NoticeQuery
from crucible.ports.notifier import Outlets

# Of one person or team: more are a program's mistake.
MOST_RULES = 200
MOST_CHANNELS = 50
# Between two tests of a channel: a button is no way to flood somebody.
TEST_EVERY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NewChannel:
    name: str
    kind: AlertChannelKind
    address: str
    team: str | None = None
    secret: str | None = None  # of a webhook; None: one is made up


class AlertDesk:
    def __init__(self, context: Context, outlets: Outlets) -> None:
        self._context = context
        self._outlets = outlets
        self._tested: dict[AlertChannelId, float] = {}

    # --- channels -----------------------------------------------------------------------------------------------

    async def channels(self, who: Principal) -> Sequence[AlertChannel]:
        """Theirs and their teams'; an admin sees all."""
        found = await self._context.store.alert_channels()
        return [one for one in found if may_see(who, one.user_id, one.team)]

    async def add_channel(self, who: Principal, new: NewChannel) -> tuple[AlertChannel, str | None]:
        """With the secret that was made up for a webhook: it is shown this once."""
        owned_by(who, new.team)
        mine = [one for one in await self._context.store.alert_channels() if is_same(one, who, new.team)]
        check_room(mine, new.name, MOST_CHANNELS, "channel")
        destination, made = self._destination(new)
        channel_id = AlertChannelId(self._context.ids.new("channel"))
        channel = AlertChannel(
            id=channel_id,
            name=new.name,
            user_id=who.user_id,
            team=new.team,
            kind=new.kind,
            shown=self._outlets.of(new.kind).check(destination),
            key_id="",
            wrapped="",
            sealed="",
            created_at=self._context.clock.now(),
        )
        facts = {"name": new.name, "kind": new.kind, "to": channel.shown}
        entry = self._entry(who, "alert_channel.create", channel, facts)
        return await self._save(channel, destination, entry), made

    async def _save(self, channel: AlertChannel, destination: Destination, entry: AuditEntry) -> AlertChannel:
        sealer = self._context.sealer

        def make(key_id: str | None) -> AlertChannel:
            return closed(sealer, key_id or sealer.newest(), channel, destination)

        return await self._context.store.save_alert_channel(make, entry)

    def _destination(self, new: NewChannel) -> tuple[Destination, str | None]:
        if new.kind is not AlertChannelKind.WEBHOOK:
            if new.secret is not None:
                raise InvalidRequest(f"{new.kind} has no secret beside its address", field="secret")
            return Destination(new.kind, new.address), None
        made = self._context.random.token() if new.secret is None else None
        return Destination(new.kind, new.address, (new.secret or made or "",)), made

    async def rotate(self, who: Principal, channel_id: AlertChannelId, secret: str | None) -> tuple[AlertChannel, str]:
        """Signed by the new secret and the last one, until it is rotated again."""
        channel = await self._own_channel(who, channel_id)
        if channel.kind is not AlertChannelKind.WEBHOOK:
            raise Conflict(f"{channel.name} is no webhook: it has no secret to sign with")
        before = opened(self._context.sealer, channel)
        new = secret or self._context.random.token()
        destination = replace(before, secrets=(new, *before.secrets[:1]))
        self._outlets.of(channel.kind).check(destination)
        entry = self._entry(who, "alert_channel.rotate", channel, {"name": channel.name})
        after = replace(channel, version=channel.version + 1)
        return await self._save(after, destination, entry), new

    async def remove_channel(self, who: Principal, channel_id: AlertChannelId) -> None:
        channel = await self._own_channel(who, channel_id)
        entry = self._entry(who, "alert_channel.remove", channel, {"name": channel.name})
        await self._context.store.remove_alert_channel(channel, entry)

    async def test(self, who: Principal, channel_id: AlertChannelId) -> DeliveryId:
        """Returns when the message was taken. Raises SendFailed, SendRefused."""
        channel, clock = await self._own_channel(who, channel_id), self._context.clock
        now = clock.monotonic()
        if now - self._tested.get(channel_id, -TEST_EVERY_S) < TEST_EVERY_S:
            raise Busy(f"{channel.name} was tested a moment ago", retry_after_s=TEST_EVERY_S)
        self._tested = {name: at for name, at in self._tested.items() if now - at < TEST_EVERY_S} | {channel_id: now}
        message = a_test(DeliveryId(self._context.ids.new("test")), who.user_id, clock.now())
        entry = self._entry(who, "alert_channel.test", channel, {"name": channel.name})
        await self._context.store.commit([], [entry], label="alert_channel.test")
        destination = opened(self._context.sealer, channel)
        try:
            await clock.wait_for(self._outlets.of(channel.kind).send(destination, message), SEND_TIMEOUT_S)
        except TimeoutError:
            raise SendFailed(f"{channel.name} did not answer within {SEND_TIMEOUT_S:.0f} s") from None
        return message.id

    async def _own_channel(self, who: Principal, channel_id: AlertChannelId) -> AlertChannel:
        channel = await self._context.store.alert_channel(channel_id)
        check_owner(who, channel, "channel")
        return channel

    # --- rules --------------------------------------------------------------------------------------------------

    async def rules(self, who: Principal) -> Sequence[AlertRule]:
        found = await self._context.store.alert_rules()
        return [one for one in found if may_see(who, one.user_id, one.team)]

    async def rule(self, who: Principal, rule_id: AlertRuleId) -> AlertRule:
        found = await self._context.store.alert_rule(rule_id)
        if not may_see(who, found.user_id, found.team):
            raise missing("rule", rule_id)
        return found

    async def add_rule(self, who: Principal, wanted: Mapping[str, Any]) -> AlertRule:
        """`wanted` are fields of a rule."""
        owned_by(who, wanted.get("team"))
        mine = [one for one in await self._context.store.alert_rules() if is_same(one, who, wanted.get("team"))]
        check_room(mine, wanted["name"], MOST_RULES, "rule")
        rule = AlertRule(
            id=AlertRuleId(self._context.ids.new("rule")),
            user_id=who.user_id,
            created_at=self._context.clock.now(),
            **wanted,
        )
        await self._check(who, rule)
        entry = self._entry(who, "alert_rule.create", rule, {"name": rule.name})
        await self._context.store.add_alert_rule(rule, entry)
        return rule

    async def change_rule(self, who: Principal, rule_id: AlertRuleId, changes: Mapping[str, Any]) -> AlertRule:
        before = await self._own_rule(who, rule_id)
        after = replace(before, **changes)
        await self._check(who, after)
        entry = self._entry(who, "alert_rule.change", after, {"name": after.name, "changed": sorted(changes)})
        return await self._context.store.save_alert_rule(after, entry)

    async def remove_rule(self, who: Principal, rule_id: AlertRuleId) -> None:
        rule = await self._own_rule(who, rule_id)
        entry = self._entry(who, "alert_rule.remove", rule, {"name": rule.name})
        await self._context.store.remove_alert_rule(rule, entry)

    async def _check(self, who: Principal, rule: AlertRule) -> None:
        check_rule(who, rule, {one.id: one for one in await self._context.store.alert_channels()})

    async def _own_rule(self, who: Principal, rule_id: AlertRuleId) -> AlertRule:
        rule = await self._context.store.alert_rule(rule_id)
        check_owner(who, rule, "rule")
        return rule

    # --- notices ------------------------------------------------------------------------------------------------

    async def notices(self, who: Principal, query: NoticeQuery) -> Sequence[tuple[int, Notice]]:
        """Theirs and their teams'; an admin's are all."""
        seen = query if is_admin(who) else replace(query, user_id=who.user_id, teams=tuple(who.teams))
        return await self._context.store.notices(seen)

    async def told(self, who: Principal, seq: int) -> Sequence[Told]:
        """Who was told of a notice: of the channels that they may see."""
        if not sees_notice(who, await self._context.store.notice(seq)):
            raise NotFound(f"there is no notice {seq}; `crucible alert history` lists them")
        mine = {one.id for one in await self.channels(who)}
        told = await self._context.store.told(seq)
        return [one for one in told if one.delivery.channel_id in mine or is_admin(who)]

    def _entry(
        self, who: Principal, action: str, about: AlertRule | AlertChannel, details: Mapping[str, Any]
    ) -> AuditEntry:
        return AuditEntry(
            at=self._context.clock.now(),
            user_id=who.user_id,
            token_id=who.token_id,
            action=action,
            subject=f"{action.partition('.')[0]}:{about.id}",
            team=about.team,
            details=details,
        )


def owned_by(who: Principal, team: str | None) -> None:
    """Raises Forbidden."""
    if team is not None:
        require_manager(who, team)
    elif who.role is Role.VIEWER:
        raise Forbidden("viewers only look; ask an admin for another role")


def is_same(one: AlertRule | AlertChannel, who: Principal, team: str | None) -> bool:
    """Of the same owner."""
    return one.team == team and (team is not None or one.user_id == who.user_id)


def check_room(mine: Sequence[AlertRule | AlertChannel], name: str, most: int, what: str) -> None:
    if any(one.name == name for one in mine):
        raise Conflict(f"there is a {what} {name} already; remove it first, or choose another name")
    if len(mine) >= most:
        raise Conflict(f"there are {most} {what}s already; remove some")


def check_owner(who: Principal, one: AlertRule | AlertChannel, what: str) -> None:
    if not may_see(who, one.user_id, one.team):
        raise missing(what, one.id)
    if not may_change(who, one.user_id, one.team):
        raise Forbidden(f"the {what} {one.name} is kept by others; ask a manager of the team {one.team}")


def missing(what: str, name: str) -> NotFound:
    """In the words of the store: what somebody may not see does not exist."""
    command = "crucible alert ls" if what == "rule" else "crucible alert channel ls"
    return NotFound(f"there is no {what} {name}; `{command}` lists them")
