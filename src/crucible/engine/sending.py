"""Messages on their way. Each channel is served on its own and one message after another, so that one that is slow or
dead delays no other; a try is recorded before it is made, and again when its end is known."""

import asyncio
import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from crucible.core import delivery as deliveries
from crucible.core.messages import compose
from crucible.engine.context import Context, log
from crucible.engine.telling import DELIVERIES
from crucible.model.alert import AlertChannel, Delivery, Destination
from crucible.model.errors import (
    InvalidRequest,
    NotFound,
    PlatformError,
    SecretDamaged,
    SecretsKeyMissing,
    SendFailed,
    SendRefused,
    StaleClaim,
    StaleVersion,
)
from crucible.model.ids import AlertChannelId
from crucible.model.secret import Secret
from crucible.ports.notifier import Outlets
from crucible.ports.secrets import Sealer
from crucible.ports.store import Claim

LOOK_S = 2.0
BATCH = 200
# Channels that are served at once; more wait for one of them.
MOST_CHANNELS = 32
SEND_TIMEOUT_S = 30.0  # a notifier has its own, which is shorter


class Sending:
    def __init__(self, context: Context, outlets: Outlets) -> None:
        self._context = context
        self._outlets = outlets
        self._busy: set[AlertChannelId] = set()

    async def run(self) -> None:
        """For ever."""
        context = self._context
        async with asyncio.TaskGroup() as group:
            while True:
                seen = context.hub.counter(DELIVERIES)
                for channel, waiting in (await self.due()).items():
                    self._busy.add(channel)
                    group.create_task(self._serve(channel, waiting))
                await context.hub.wait(DELIVERIES, seen, LOOK_S)

    async def due(self) -> Mapping[AlertChannelId, Sequence[Delivery]]:
        """Of as many channels as may be served now."""
        found = await self._context.store.due_deliveries(self._context.clock.now(), BATCH, without=self._busy)
        by_channel: dict[AlertChannelId, list[Delivery]] = defaultdict(list)
        for one in found:
            if one.channel_id in by_channel or len(self._busy) + len(by_channel) < MOST_CHANNELS:
                by_channel[one.channel_id].append(one)
        return by_channel

    async def _serve(self, channel: AlertChannelId, waiting: Sequence[Delivery]) -> None:
        try:
            await self.serve(channel, waiting)
        except (StaleClaim, StaleVersion):
            pass  # another server is at it
        except PlatformError as error:
            log.warning("messages to the channel %s wait: %s", channel, error)
        except Exception:
            # One channel's trouble must not end its siblings; what it was at is due again soon.
            log.exception("messages to the channel %s wait", channel)
        finally:
            self._busy.discard(channel)
            self._context.hub.notify(DELIVERIES)

    async def serve(self, channel_id: AlertChannelId, waiting: Sequence[Delivery]) -> None:
        """One after another; when one does not arrive the others wait for the next look."""
        context = self._context
        claim = await context.store.claim(f"alert:{channel_id}", context.server_id, deliveries.TRY_LASTS)
        if claim is None:
            return
        try:
            channel = await self._channel(channel_id)
            for one in waiting:
                after = await self._try(channel, one, claim)
                is_ours = await context.store.renew(claim, deliveries.TRY_LASTS)
                if after.error is not None or not is_ours:
                    return
        finally:
            await context.store.release(claim)

    async def _channel(self, channel_id: AlertChannelId) -> AlertChannel | None:
        try:
            return await self._context.store.alert_channel(channel_id)
        except NotFound:
            return None

    async def _try(self, channel: AlertChannel | None, before: Delivery, claim: Claim) -> Delivery:
        context = self._context
        tried = deliveries.begun(before, context.clock.now())
        await context.store.save_delivery(before, tried, claim=claim)
        context.failpoint("send.before")
        after = await self._tried(channel, tried)
        context.failpoint("send.after")
        await context.store.save_delivery(tried, after, claim=claim)
        return after

    async def _tried(self, channel: AlertChannel | None, tried: Delivery) -> Delivery:
        clock = self._context.clock
        if channel is None:
            return deliveries.refused(tried, "the channel was removed", clock.now())
        try:
            await self._send(channel, tried)
        except (SendRefused, InvalidRequest) as error:
            return deliveries.refused(tried, error.message, clock.now())
        except SendFailed as error:
            return failed(tried, error.message, self._context, error.retry_after_s)
        except (SecretsKeyMissing, SecretDamaged) as error:
            return failed(tried, error.message, self._context)
        except TimeoutError:
            return failed(tried, f"no answer within {SEND_TIMEOUT_S:.0f} s", self._context)
        except PlatformError:
            raise  # the store's: it was not tried, and nobody knows what became of it
        except Exception as error:
            # A mistake of ours, or of a library: it is tried as often as any, and no message waits for ever behind it.
            log.exception("the message %s cannot be made or sent", tried.id)
            return failed(tried, f"it cannot be made or sent: {type(error).__name__}", self._context)
        return deliveries.sent(tried, clock.now())

    async def _send(self, channel: AlertChannel, tried: Delivery) -> None:
        message = compose(tried, await self._context.store.delivery_notices(tried.id))
        destination = opened(self._context.sealer, channel)
        await self._context.clock.wait_for(self._outlets.of(channel.kind).send(destination, message), SEND_TIMEOUT_S)


def failed(tried: Delivery, reason: str, context: Context, retry_after_s: float | None = None) -> Delivery:
    """Another chance for each try of each message: not all come back at the same moment."""
    digest = hashlib.sha256(f"{tried.id}/{tried.tries}/{context.server_id}".encode()).digest()
    chance = int.from_bytes(digest[:4]) / 2**32
    log.warning("the message %s did not arrive: %s", tried.id, reason)
    return deliveries.failed(tried, reason, context.clock.now(), chance=chance, retry_after_s=retry_after_s)


def opened(sealer: Sealer, channel: AlertChannel) -> Destination:
    """Raises SecretsKeyMissing, SecretDamaged."""
    told = json.loads(sealer.open(channel.label, channel.value).reveal())
    return Destination(channel.kind, told["address"], tuple(told["secrets"]))


def closed(sealer: Sealer, key_id: str, channel: AlertChannel, destination: Destination) -> AlertChannel:
    plain = json.dumps({"address": destination.address, "secrets": list(destination.secrets)})
    made = sealer.seal(key_id, channel.label, Secret(plain.encode()))
    return replace(channel, key_id=made.key_id, wrapped=made.wrapped, sealed=made.sealed)
