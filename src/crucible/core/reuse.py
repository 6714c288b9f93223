"""When an earlier result may stand for a step: if everything that the result depends on is the same. Pure."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from crucible.model.encoding import encode
from crucible.model.errors import NotFound
from crucible.model.ids import Digest, UserId
from crucible.model.spec import JobSpec, Step
from crucible.model.steps import below

# Keys of another form are other keys.
FORM = 1
# Where a job runs, for how long, how often, and who pays: none of this changes what comes of it. Everything else does,
# whatever fields there will be.
UNSEEN = (
    "name", "code", "container", "workload", "constraints", "checkpoint", "retry", "timeout", "progress", "priority",
    "team", "project", "template", "inputs", "steps", "sharing",
)  # fmt: skip
UNSEEN_WITHIN = {
    "resources": (
        "gpu_types", "gpu_memory_gib", "cpu_memory_gib", "cpus", "storage_gib", "estimated_hours", "estimated_on",
    ),
    "execution": ("backend", "executor", "parallelism"),
    "data": ("size_gib", "region", "locality", "replication_policy"),
}  # fmt: skip
# A message lists so many steps.
SHOWN = 8


def cache_key(user_id: UserId, step: Step, code: Digest | None, given: Mapping[str, Any]) -> Digest:
    """`given`: what the step is handed, by its name: the trees of its inputs with the path in each, its items. A user's
    results are never another's."""
    body = {
        "form": FORM,
        "user": user_id,
        "job": essence(step.job),
        "code": code,
        "given": encode(given),
    }
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return Digest(hashlib.sha256(text.encode()).hexdigest())


def essence(spec: JobSpec) -> Mapping[str, Any]:
    """What a job computes."""
    told = {name: value for name, value in encode(spec).items() if name not in UNSEEN}
    for name, unseen in UNSEEN_WITHIN.items():
        told[name] = {field: value for field, value in told[name].items() if field not in unseen}
    return told


def run_again(steps: Sequence[Step], first: str) -> frozenset[str]:
    """The step and all that comes after it; what is left may be taken over. Raises NotFound."""
    names = [step.name for step in steps]
    if first not in names:
        more = ", …" if len(names) > SHOWN else ""
        raise NotFound(f"there is no step {first}; the steps are {', '.join(names[:SHOWN])}{more}", field="from_step")
    return below(first, {step.name: step.needs for step in steps}) | {first}
