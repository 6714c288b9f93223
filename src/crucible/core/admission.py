"""May this job enter? Refuse at submit what nothing could ever run, and what this version cannot do; say which field
blocks and what would help."""

from collections.abc import Callable, Sequence
from datetime import datetime

from crucible.core.offers import OfferTable
from crucible.core.proposal import Proposal, Rule
from crucible.core.remedy import Remedy, blocking, remedies
from crucible.model.errors import InfeasibleJob, NotAvailableYet
from crucible.model.offer import Offer
from crucible.model.spec import Framework, JobSpec, JobType, Strategy

Ask = Callable[[JobSpec, Strategy | None, OfferTable], Proposal]

# Frameworks whose launch is one plain process per node; the others need a launcher of their own.
PLAIN_LAUNCH = frozenset({Framework.PLAIN, Framework.PYTORCH, Framework.TENSORFLOW})


def admit(spec: JobSpec, now: datetime) -> None:
    """Raises NotAvailableYet or InfeasibleJob; whether anything could run it is the planner's to say."""
    for field, what in unavailable(spec):
        raise NotAvailableYet(f"{what} is not available yet", field=field)
    if spec.constraints.deadline is not None and spec.constraints.deadline <= now:
        raise InfeasibleJob(
            f"the deadline {spec.constraints.deadline.isoformat()} has passed; give one after {now.isoformat()}",
            field="constraints.deadline",
        )


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
        (spec.execution.backend not in (None, "local"), "execution.backend", f"backend {spec.execution.backend}"),
        (spec.execution.executor not in (None, "local"), "execution.executor", f"executor {spec.execution.executor}"),
    ]
    return [(f"job.{field}", what) for is_claimed, field, what in claims if is_claimed]


def is_remote(place: str | None) -> bool:
    return place is not None and "://" in place and not place.startswith("file://")


def feasible(spec: JobSpec, table: OfferTable, ask: Ask, now: datetime, enabled: frozenset[str]) -> Proposal:
    """The plan of a job that is to run. Raises InfeasibleJob if nothing that may be bought could ever run it; what is
    only taken now can be waited for."""
    made = ask(spec, None, table)
    if made.runnable is not None:
        return made
    empty = table.emptied
    if ask(spec, None, empty).runnable is None:
        found = remedies(spec, lambda other, how: ask(other, how, empty).runnable, now)
        raise refusal(made, found, tuple(table.live.values()), spec, enabled)
    return made


def refusal(
    made: Proposal, found: Sequence[Remedy], offers: Sequence[Offer], spec: JobSpec, enabled: frozenset[str]
) -> InfeasibleJob:
    """Nothing that may be bought could ever run it: which field blocks, and the smallest change that would help.
    `enabled` are providers."""
    rule = blocking(made, enabled)
    field = found[0].field if found else rule.field or "resources"
    return InfeasibleJob(f"no offer fits: {blocked_by(made, rule)}", field=field, hint=hint(made, found, offers, spec))


def blocked(made: Proposal, enabled: frozenset[str]) -> str:
    """Why nothing can be bought now, by the nearest miss."""
    return blocked_by(made, blocking(made, enabled))


def blocked_by(made: Proposal, rule: Rule) -> str:
    for refused in made.refusals:
        if refused.rule is rule:
            return f"{refused.reason} ({refused.example.target.provider} {refused.example.instance_type})"
    return "nothing is for sale: no provider is enabled"


def hint(made: Proposal, found: Sequence[Remedy], offers: Sequence[Offer], spec: JobSpec) -> str:
    said = []
    if spec.resources.gpus and not any(offer.gpus for offer in offers):
        said.append("this machine has no GPUs; declare slots to try it anyway: crucible server --local-gpus N")
    if found:
        said.append(f"it would fit with {', or '.join(remedy.change for remedy in found[:3])}")
    if made.chosen is not None:
        first = made.chosen.first
        where = f"{first.target.provider} {first.target.region} {first.instance_type}"
        said.append(f"{where} could run it, and {first.target.provider} is not enabled")
    return "; ".join(said) or "no single change of the spec makes it fit"
