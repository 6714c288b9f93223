"""Named places where a test can kill the process: around every transaction and every call to the outside.

CRUCIBLE_FAILPOINTS=name[:n][,name[:n]…] ends the process at the n-th hit of `name`, as `kill -9` would."""

import os
from collections import Counter

COMMITS = (
    "submit",
    "desired",
    "cycle.place",
    "cycle.explain",
    "cycle.seat",
    "crew.give_back",
    "job.end_waiting",
    "order.prepared",
    "order.called",
    "order.answer",
    "lease.delete",
    "lease.seen",
    "ledger",
    "enrol",
    "report.rank",
    "report.checkpoint",
    "dataset",
    "dataset-copy",
    "transfer",
    "shard.lease",
    "shard.commit",
    "shards.drain",
    "task.step",
    "job.status",
    "workflow.step",
    "workflow.begin",
    "seal_with",
    "rewrap_secret",
    "alerts.fan_out",
    "alerts.delivery",
    "budget.save",
    "budget.warn",
    "budget.stop",
    "budget.cut",
    "budget.go_on",
    "erasure.begin",
    "erasure.rows",
    "erasure.end",
    "removal.horizon",
    "removal.mark",
    "removal.streams",
    "removal.rows",
    "removal.ran",
    "removal.space",
)
CALLS = (
    "prepare",
    "create",
    "delete",
    "list",
    "reap",
    "stream.append",
    "stream.remove",
    "slot",
    "candidate",
    "retention",
    "outputs",
    "secrets_key",
    "send",
)

POINTS = frozenset(
    [f"commit.{label}.{side}" for label in COMMITS for side in ("before", "after")]
    + [f"{call}.{side}" for call in CALLS for side in ("before", "after")]
)


class Failpoints:
    def __init__(self, armed: str = "") -> None:
        self._armed: dict[str, int] = {}
        self._hits: Counter[str] = Counter()
        for item in filter(None, armed.split(",")):
            name, _, count = item.partition(":")
            if name not in POINTS:
                raise ValueError(f"no failpoint {name!r}; there are: {', '.join(sorted(POINTS))}")
            self._armed[name] = int(count or 1)

    def __call__(self, name: str) -> None:
        if not self._armed:
            return
        self._hits[name] += 1
        if self._armed.get(name) == self._hits[name]:
            os._exit(137)
