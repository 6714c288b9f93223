"""May this job enter? Refuse at submit what nothing could ever run, and what this version cannot do; say which field
blocks and what would help."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from crucible.core.cycle import Want, plan
from crucible.model.errors import InfeasibleJob, NotAvailableYet
from crucible.model.ids import TaskId
from crucible.model.offer import Offer
from crucible.model.spec import Framework, JobSpec, JobType

# Frameworks whose launch is one plain process per node; the others need a launcher of their own.
PLAIN_LAUNCH = frozenset({Framework.PLAIN, Framework.PYTORCH, Framework.TENSORFLOW})


def admit(spec: JobSpec, offers: Sequence[Offer], now: datetime) -> None:
    """Raises NotAvailableYet or InfeasibleJob; returning means the job can run once there is room."""
    for field, what in unavailable(spec):
        raise NotAvailableYet(f"{what} is not available yet", field=field)
    if spec.constraints.deadline is not None and spec.constraints.deadline <= now:
        raise InfeasibleJob(
            f"the deadline {spec.constraints.deadline.isoformat()} has passed; give one after {now.isoformat()}",
            field="constraints.deadline",
        )
    fits_somewhere(spec, offers)


def unavailable(spec: JobSpec) -> list[tuple[str, str]]:
    """Valid, accepted by the schema, and not yet carried out by anything: refused, never ignored."""
    claims = [
        (spec.framework not in PLAIN_LAUNCH, "framework", f"framework {spec.framework}"),
        (spec.type is JobType.HPO and spec.sweep is None, "type", "a hyper-parameter search without `sweep`"),
        (spec.sweep is not None, "sweep", "sweep"),
        (spec.shards is not None, "shards", "shards"),
        (bool(spec.steps), "steps", "a workflow of steps"),
        (spec.template is not None, "template", "template"),
        (spec.sharing is not None, "sharing", "sharing of GPUs"),
        (spec.image is not None, "image", "running a container image"),
        (bool(spec.volumes), "volumes", "volumes"),
        (is_remote(spec.entrypoint), "entrypoint", f"the entrypoint {spec.entrypoint}"),
        (is_remote(spec.data.dataset), "data.dataset", f"the dataset {spec.data.dataset}"),
        (is_remote(spec.checkpoint.dir), "checkpoint.dir", f"checkpoints in {spec.checkpoint.dir}"),
        (spec.execution.backend not in (None, "local"), "execution.backend", f"backend {spec.execution.backend}"),
        (spec.execution.executor not in (None, "local"), "execution.executor", f"executor {spec.execution.executor}"),
    ]
    return [(f"job.{field}", what) for is_claimed, field, what in claims if is_claimed]


def is_remote(place: str | None) -> bool:
    return place is not None and "://" in place and not place.startswith("file://")


def fits_somewhere(spec: JobSpec, offers: Sequence[Offer]) -> None:
    """Would it fit if everything were free?"""
    empty = [replace(offer, free_gpus=None) for offer in offers]
    made = plan([Want(TaskId("admission"), spec)], empty)
    for unplaced in made.unplaced:
        raise InfeasibleJob(f"no offer fits: {unplaced.reason}", field="resources", hint=remedy(spec, offers))
    shapes = made.placements[0]
    stock = {offer.stock: max_gpus(offers, offer.stock) for offer in offers if offer.stock}
    offer = shapes.offer
    if offer is not None and offer.stock and shapes.count * offer.gpus > stock[offer.stock]:
        total = stock[offer.stock]
        raise InfeasibleJob(
            f"needs {shapes.count * offer.gpus} GPUs, {offer.target.provider} has {total} in all",
            field="resources.gpus",
            hint=remedy(spec, offers),
        )


def max_gpus(offers: Sequence[Offer], stock: str | None) -> int:
    """The largest machine of a stock is the whole stock."""
    return max((offer.gpus for offer in offers if offer.stock == stock), default=0)


def remedy(spec: JobSpec, offers: Sequence[Offer]) -> str:
    """The smallest change that would help, for a person."""
    most = max((offer.gpus for offer in offers), default=0)
    if spec.resources.gpus and most == 0:
        return "this machine has no GPUs; declare slots to try it anyway: crucible server --local-gpus N"
    if spec.resources.gpus > most:
        return f"ask for at most {most} GPUs, or declare more with --local-gpus"
    return "ask for less memory, fewer CPUs, or another GPU type"
