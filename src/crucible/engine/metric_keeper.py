"""Metrics of all tasks stay small: what is new is added up, what is older than it need be is removed. One server at a
time; a round that was cut off is simply made again."""

from crucible.engine.context import Context, log
from crucible.model.errors import Busy, StorageFailed
from crucible.model.metrics import Keeping, Kept

CLAIM = "metrics"
# A round over very many tasks takes a while: it shall take no more than a twentieth of the time.
REST_PER_ROUND = 19


class MetricKeeper:
    def __init__(self, context: Context) -> None:
        self._context = context

    async def run(self) -> None:
        """For ever. The claim is not given back: it says for how long nobody need look again."""
        context, every = self._context, self._context.policy.metrics_every
        while True:
            took = 0.0
            claim = await context.store.claim(CLAIM, context.server_id, every)
            if claim is not None:
                began = context.clock.monotonic()
                await self._try()
                took = context.clock.monotonic() - began
            rest_s = max(every.total_seconds(), REST_PER_ROUND * took)
            context.vitals.beat("metrics", rest_s)
            await context.clock.sleep(rest_s)

    async def _try(self) -> None:
        try:
            self._tell(await self._context.streams.keep_metrics(self.keeping, self._context.clock.now()))
        except (Busy, StorageFailed) as error:
            log.warning("metrics cannot be added up now: %s", error)

    @property
    def keeping(self) -> Keeping:
        policy = self._context.policy
        return Keeping(
            raw=policy.metrics_raw,
            minutes=policy.metrics_minutes,
            quarters=policy.metrics_quarters,
            raw_bytes=policy.metrics_raw_bytes,
        )

    def _tell(self, kept: Kept) -> None:
        vitals = self._context.vitals
        vitals.gauge("streams_tasks", kept.tasks)
        vitals.count("metric_rollups", kept.rolled)
        vitals.count("metric_files_removed", kept.removed_files)
        for channel, size in kept.sizes.items():
            vitals.gauge("streams_bytes", size, channel=channel)
