"""May this job enter? Refuse at submit what nothing could ever run, and what this version cannot do; say which field
blocks and what would help."""

from collections.abc import Callable, Sequence
from datetime import datetime

from crucible.core import datasets
from crucible.core.cycle import shape
from crucible.core.offers import OfferTable
from crucible.core.proposal import Proposal, Rule
from crucible.core.remedy import Remedy, blocking, remedies
from crucible.core.scale import is_elastic, resized, sizes
from crucible.core.shards import size_of
from crucible.model.errors import InfeasibleJob, NotAvailableYet
from crucible.model.offer import Offer
from crucible.model.spec import Framework, JobSpec, Strategy

Ask = Callable[[JobSpec, Strategy | None, OfferTable], Proposal]

# Ways to start work that some seller has; which of them is enabled is the planner's to say.
BACKENDS = (None, "local", "slurm", "vm")


def admit(spec: JobSpec, now: datetime) -> None:
    """Raises NotAvailableYet, InfeasibleJob, InvalidRequest. Whether anything could run it is the planner's to say."""
    for field, what in unavailable(spec):
        raise NotAvailableYet(f"{what} is not available yet", field=field)
    if is_gang_of_commands(spec):
        words = (
            "a command is run once for each shard, on one machine; a gang needs an entrypoint that calls train.items()"
        )
        raise InfeasibleJob(words, field="job.command")
    if spec.shards is not None and spec.shards.count is not None:
        size_of(spec.shards, spec.shards.count, spec.execution.parallelism)
    if spec.constraints.deadline is not None and spec.constraints.deadline <= now:
        raise InfeasibleJob(
            f"the deadline {spec.constraints.deadline.isoformat()} has passed; give one after {now.isoformat()}",
            field="constraints.deadline",
        )


def is_gang_of_commands(spec: JobSpec) -> bool:
    """A command is run once for each shard, by each worker for itself."""
    is_gang = spec.framework not in (Framework.PLAIN, Framework.TENSORFLOW, Framework.PYTORCH)
    return spec.shards is not None and bool(spec.command) and (is_gang or shape(spec.resources).nodes > 1)


def unavailable(spec: JobSpec) -> list[tuple[str, str]]:
    """Valid, accepted by the schema, and not yet carried out by anything: refused, never ignored."""
    claims = [
        (spec.sharing is not None, "sharing", "sharing of GPUs"),
        (any(map(is_remote, spec.volumes.values())), "volumes", "object storage as a volume"),
        (is_remote(spec.entrypoint), "entrypoint", f"the entrypoint {spec.entrypoint}"),
        (is_elsewhere(spec.data.dataset), "data.dataset", f"the dataset {spec.data.dataset}"),
        (spec.execution.backend not in BACKENDS, "execution.backend", f"backend {spec.execution.backend}"),
    ]
    return [(f"job.{field}", what) for is_claimed, field, what in claims if is_claimed]


def is_remote(place: str | None) -> bool:
    return place is not None and "://" in place and not place.startswith("file://")


def is_elsewhere(dataset: str | None) -> bool:
    """In object storage that its nodes would have to read by themselves. What is registered is brought to them."""
    return is_remote(dataset) and not datasets.is_registered(dataset)


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


def fitting(
    spec: JobSpec, table: OfferTable, ask: Ask, now: datetime, enabled: frozenset[str]
) -> tuple[JobSpec, Proposal]:
    """The same for the largest size that an elastic job can ever have. Raises InfeasibleJob if not even the least can
    be had; it then speaks of that."""
    *larger, least = [spec] if not is_elastic(spec) else [resized(spec, nodes) for nodes in sizes(spec)]
    for sized in larger:
        try:
            return sized, feasible(sized, table, ask, now, enabled)
        except InfeasibleJob:
            continue
    return least, feasible(least, table, ask, now, enabled)


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
