"""Alerts: rules, channels with their test, notices and who was told of them."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crucible.api import alert_views as views
from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import add, described_query, queried
from crucible.core.alerts import at_least
from crucible.engine.alerts import AlertDesk, NewChannel
from crucible.model.alert import AlertChannelKind
from crucible.model.errors import Conflict, InvalidRequest, NotFound
from crucible.model.ids import AlertChannelId, AlertRuleId, JobId
from crucible.model.notice import NoticeKind, Severity
from crucible.ports.alerts import NoticeQuery
from crucible.wire import alerts as wire

_LONGEST_ID = 128


class AlertRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        add(router, "GET", "/v1/alerts/rules", self.rules, wire.Rules)
        add(router, "POST", "/v1/alerts/rules", self.add_rule, wire.RuleItem, status=201)
        add(router, "GET", "/v1/alerts/rules/{rule_id}", self.rule, wire.RuleItem)
        add(router, "PATCH", "/v1/alerts/rules/{rule_id}", self.change_rule, wire.RuleItem)
        add(router, "DELETE", "/v1/alerts/rules/{rule_id}", self.remove_rule, None, status=204)
        add(router, "GET", "/v1/alerts/channels", self.channels, wire.Channels)
        add(router, "POST", "/v1/alerts/channels", self.add_channel, wire.ChannelMade, status=201)
        add(router, "DELETE", "/v1/alerts/channels/{alert_channel_id}", self.remove_channel, None, status=204)
        add(router, "POST", "/v1/alerts/channels/{alert_channel_id}/test", self.test, wire.Tested)
        add(router, "POST", "/v1/alerts/channels/{alert_channel_id}/rotate", self.rotate, wire.ChannelMade)
        query = described_query(wire.NoticeListQuery)
        add(router, "GET", "/v1/notices", self.notices, wire.Notices, openapi_extra=query)
        add(router, "GET", "/v1/notices/{seq}/deliveries", self.told, wire.Deliveries)

    # --- rules ------------------------------------------------------------------------------------------------------

    async def rules(self, request: Request) -> Response:
        """Yours and your teams'; an admin sees all."""
        return json_reply({"items": [views.rule(one) for one in await self._desk.rules(principal(request))]})

    async def add_rule(self, request: Request, body: wire.RuleNew) -> Response:
        """Of your own, or of a team that you manage."""
        made = await self._desk.add_rule(principal(request), views.rule_fields(body))
        return json_reply(views.rule(made), 201)

    async def rule(self, request: Request, rule_id: str) -> Response:
        return json_reply(views.rule(await self._desk.rule(principal(request), _rule_id(rule_id))))

    async def change_rule(self, request: Request, rule_id: str, body: wire.RuleChange) -> Response:
        """What is left out stays as it is. `muted_until` keeps it silent for a while."""
        if body.muted_until is not None and body.muted_until.tzinfo is None:
            raise InvalidRequest("muted_until must be a moment with its time zone", field="muted_until")
        fields = views.rule_fields(body)
        return json_reply(views.rule(await self._desk.change_rule(principal(request), _rule_id(rule_id), fields)))

    async def remove_rule(self, request: Request, rule_id: str) -> Response:
        await self._desk.remove_rule(principal(request), _rule_id(rule_id))
        return Response(status_code=204)

    # --- channels ---------------------------------------------------------------------------------------------------

    async def channels(self, request: Request) -> Response:
        """Where notices can go. Of addresses that are secrets only the host is shown."""
        return json_reply({"items": [views.channel(one) for one in await self._desk.channels(principal(request))]})

    async def add_channel(self, request: Request, body: wire.ChannelNew) -> Response:
        """Of your own, or of a team that you manage. The secret of a webhook is in this answer and nowhere else."""
        new = NewChannel(**{**body.model_dump(), "kind": AlertChannelKind(body.kind)})
        made, secret = await self._desk.add_channel(principal(request), new)
        return json_reply({**views.channel(made), "secret": secret}, 201)

    async def remove_channel(self, request: Request, alert_channel_id: str) -> Response:
        """Refused while a rule sends there."""
        await self._desk.remove_channel(principal(request), _channel_id(alert_channel_id))
        return Response(status_code=204)

    async def test(self, request: Request, alert_channel_id: str) -> Response:
        """Sends a message there now, and answers when it was taken."""
        return json_reply({"delivery": await self._desk.test(principal(request), _channel_id(alert_channel_id))})

    async def rotate(self, request: Request, alert_channel_id: str, body: wire.Rotate | None = None) -> Response:
        """A new secret of a webhook. Messages are signed by the last one too, until it is rotated again."""
        wanted = None if body is None else body.secret
        channel, secret = await self._desk.rotate(principal(request), _channel_id(alert_channel_id), wanted)
        return json_reply({**views.channel(channel), "secret": None if wanted is not None else secret})

    # --- notices ----------------------------------------------------------------------------------------------------

    async def notices(self, request: Request) -> Response:
        """What there was to hear, the newest first: yours and your teams'; an admin's list has all."""
        asked = queried(wire.NoticeListQuery, request)
        found = await self._desk.notices(principal(request), _query(asked))
        more = found[-1][0] if len(found) == asked.limit else None
        return json_reply({"items": [views.notice(seq, one) for seq, one in found], "next_before": more})

    async def told(self, request: Request, seq: int) -> Response:
        """Who was told of it: which channels, when, and what went wrong."""
        if not 0 < seq < 1 << 62:
            raise NotFound("there is no such notice; `crucible alert history` lists them")
        return json_reply({"items": [views.delivery(one) for one in await self._desk.told(principal(request), seq)]})

    @property
    def _desk(self) -> AlertDesk:
        if self._deps.alerts is None:
            raise Conflict("this server tells nobody of anything")
        return self._deps.alerts


def _query(asked: wire.NoticeListQuery) -> NoticeQuery:
    words = [word.strip() for word in asked.kind.split(",") if word.strip()]
    unknown = [word for word in words if word not in list(NoticeKind)]
    if unknown:
        raise InvalidRequest(f"there is no kind {unknown[0]!r}; there are {', '.join(NoticeKind)}", field="kind")
    return NoticeQuery(
        kinds=[NoticeKind(word) for word in words],
        severities=[one for one in Severity if at_least(one, Severity(asked.least))],
        job_id=JobId(asked.job) if asked.job else None,
        before=asked.before,
        limit=asked.limit,
    )


def _rule_id(text: str) -> AlertRuleId:
    return AlertRuleId(_id(text, "rule"))


def _channel_id(text: str) -> AlertChannelId:
    return AlertChannelId(_id(text, "channel"))


def _id(text: str, what: str) -> str:
    """What cannot be an id never reaches the database."""
    if not text.isascii() or not text.isprintable() or len(text) > _LONGEST_ID:
        raise NotFound(f"there is no such {what}")
    return text
