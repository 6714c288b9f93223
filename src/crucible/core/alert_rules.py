"""Which rules and channels of alerts make sense, and who may see and change them. A person's are theirs; a team's are
kept by its managers, and outlive whoever made them."""

from collections.abc import Mapping

from crucible.core import quiet
from crucible.core.rights import changes, is_admin, manages, role_in
from crucible.model.account import Principal
from crucible.model.alert import AlertChannel, AlertRule, PriceWish, Scope, ScopeKind
from crucible.model.errors import InvalidRequest
from crucible.model.ids import AlertChannelId, UserId
from crucible.model.notice import NoticeKind


def may_see(who: Principal, owner: UserId, team: str | None) -> bool:
    if team is not None:
        return role_in(who, team) is not None
    return owner == who.user_id or is_admin(who)


def may_change(who: Principal, owner: UserId, team: str | None) -> bool:
    return manages(who, team) if team is not None else changes(who, owner, None) or is_admin(who)


def check_rule(who: Principal, rule: AlertRule, channels: Mapping[AlertChannelId, AlertChannel]) -> None:
    """Raises InvalidRequest."""
    if rule.quiet is not None:
        quiet.check(rule.quiet)
    check_scope(who, rule.scope)
    check_price(rule)
    if not rule.channels:
        raise InvalidRequest("a rule tells somebody: name at least one channel", field="channels")
    for name in rule.channels:
        if name not in channels or not may_use(rule, channels[name]):
            whose = f"the team {rule.team}" if rule.team else "you"
            raise InvalidRequest(
                f"there is no channel {name} of {whose}: `crucible alert channel ls`", field="channels"
            )


def may_use(rule: AlertRule, channel: AlertChannel) -> bool:
    """A team's rule goes to the team's channels; a person's to their own."""
    return channel.team == rule.team and (rule.team is not None or channel.user_id == rule.user_id)


def check_scope(who: Principal, scope: Scope) -> None:
    if (scope.kind is ScopeKind.SERVER) == bool(scope.name):
        raise InvalidRequest("a scope is server, or team, project, user or job with a name", field="scope")
    if scope.kind is ScopeKind.TEAM and role_in(who, scope.name) is None:
        raise InvalidRequest(f"you are not in a team {scope.name}", field="scope")


def check_price(rule: AlertRule) -> None:
    is_asked = NoticeKind.PRICE in rule.kinds
    if rule.price is None:
        if is_asked:
            raise InvalidRequest("a rule about prices says which: a GPU, and a price or a share", field="price")
        return
    if rule.kinds and not is_asked:
        raise InvalidRequest("a rule that waits for a price is about `price` too", field="kinds")
    check_wish(rule.price)


def check_wish(wish: PriceWish) -> None:
    if not wish.gpu or (wish.below is None and wish.drop is None):
        raise InvalidRequest("name a GPU, and below which price or by which share it must fall", field="price")
    if wish.below is not None and wish.below <= 0:
        raise InvalidRequest("a price is above zero", field="price.below_usd")
    if wish.drop is not None and not 0 < wish.drop < 1:
        raise InvalidRequest("a share is between 0 and 100 %", field="price.drop")
