"""Alerts as the API shows and reads them."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from crucible.model.alert import AlertChannel, AlertRule, PriceWish, QuietHours, Scope, ScopeKind, Told
from crucible.model.ids import AlertChannelId
from crucible.model.notice import Notice, NoticeKind, Severity
from crucible.model.offer import Market
from crucible.model.units import micro_usd, usd
from crucible.wire import alerts as wire


def rule_fields(body: wire.RuleNew | wire.RuleChange) -> dict[str, Any]:
    """Those that were given, as fields of a rule."""
    readers: Mapping[str, Callable[[Any], Any]] = {
        "kinds": lambda kinds: tuple(dict.fromkeys(NoticeKind(kind) for kind in kinds)),
        "least": Severity,
        "scope": lambda scope: Scope(ScopeKind(scope.kind), scope.name),
        "price": _wish,
        "channels": lambda names: tuple(dict.fromkeys(AlertChannelId(name) for name in names)),
        "quiet": _quiet,
    }
    given = {name: getattr(body, name) for name in _given(body)}
    fields = {name: readers.get(name, _same)(value) for name, value in given.items()}
    if "enabled" in fields:
        fields["is_enabled"] = fields.pop("enabled")
    return fields


def _given(body: BaseModel) -> list[str]:
    """Of a change, what was left out stays; a null means something only where it takes something away."""
    if isinstance(body, wire.RuleNew):
        return list(type(body).model_fields)
    removable = ("price", "quiet", "muted_until")
    return [name for name in sorted(body.model_fields_set) if name in removable or getattr(body, name) is not None]


def _same(value: Any) -> Any:
    return value


def _wish(told: wire.PriceWish | None) -> PriceWish | None:
    if told is None:
        return None
    return PriceWish(
        gpu=told.gpu,
        provider=told.provider,
        market=None if told.market is None else Market[told.market.upper()],
        below=None if told.below_usd is None else micro_usd(told.below_usd),
        drop=told.drop,
    )


def _quiet(told: wire.QuietHours | None) -> QuietHours | None:
    if told is None:
        return None
    return QuietHours(start=told.start, end=told.end, time_zone=told.time_zone, lets_critical_pass=told.critical_passes)


def rule(one: AlertRule) -> Mapping[str, Any]:
    quiet, wish = one.quiet, one.price
    return {
        "id": one.id,
        "name": one.name,
        "user": one.user_id,
        "team": one.team,
        "kinds": list(one.kinds),
        "least": one.least,
        "scope": {"kind": one.scope.kind, "name": one.scope.name},
        "price": None if wish is None else price(wish),
        "channels": list(one.channels),
        "quiet": None
        if quiet is None
        else {
            "start": quiet.start,
            "end": quiet.end,
            "time_zone": quiet.time_zone,
            "critical_passes": quiet.lets_critical_pass,
        },
        "window_s": one.window_s,
        "enabled": one.is_enabled,
        "muted_until": one.muted_until,
        "created_at": one.created_at,
    }


def price(wish: PriceWish) -> Mapping[str, Any]:
    return {
        "gpu": wish.gpu,
        "provider": wish.provider,
        "market": None if wish.market is None else wish.market.name.lower(),
        "below_usd": None if wish.below is None else usd(wish.below),
        "drop": wish.drop,
    }


def channel(one: AlertChannel) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": one.name,
        "user": one.user_id,
        "team": one.team,
        "kind": one.kind,
        "to": one.shown,
        "created_at": one.created_at,
    }


def notice(seq: int, one: Notice) -> Mapping[str, Any]:
    return {
        "seq": seq,
        "key": one.key,
        "at": one.at,
        "kind": one.kind,
        "severity": one.severity,
        "title": one.title,
        "text": one.text,
        "team": one.team,
        "project": one.project,
        "user": one.user_id,
        "job": one.job_id,
        "details": one.details,
    }


def delivery(told: Told) -> Mapping[str, Any]:
    one = told.delivery
    return {
        "id": one.id,
        "channel_id": one.channel_id,
        "channel": told.channel,
        "rule_id": one.rule_id,
        "state": one.state,
        "tries": one.tries,
        "error": one.error,
        "created_at": one.created_at,
        "not_before": one.not_before,
        "ended_at": one.ended_at,
    }
