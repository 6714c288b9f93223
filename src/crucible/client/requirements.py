"""What a job needs and what its owner prefers, in seed 003's words, as fields of the job spec. Checks only what the
spec cannot say; the rest is checked where every spec is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any, TypedDict

from crucible.model.backends import ON_DEMAND, SPOT, is_scheduler, provider_of
from crucible.model.errors import InvalidRequest

Fields = dict[str, Any]

# Seed 003's words for what a plan makes as good as it can; the spec's own words are taken too.
STRATEGIES = {"cost": "cheapest", "speed": "fastest", "reliability": "reliable"}
# Sellers whose machines are never taken away: a job that must not be interrupted may go there.
_NEVER_SPOT = ("local", "onprem", "modal", "paperspace", "lambda", "colab")
_ALIASES = {"lambda_labs": "lambda", "ec2": "aws"}
_MAY_BE_ON_DEMAND = (
    "{0} is allowed on spot only; a spec cannot forbid on-demand machines, so those of {0} may be chosen too"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """`gpus=None`: one GPU if there is one to be had, else CPUs, and the job's notes say so. A number is a rule."""

    gpus: int | None = None
    gpu_memory_gb: float | None = None  # of each GPU
    gpu_types: Sequence[str] = ()  # any of these; empty: any
    cpus: int | None = None
    memory_gb: float | None = None  # main memory
    storage_gb: float | None = None
    duration_hours_estimated: float | None = None
    checkpoint_frequency_minutes: float | None = None  # advice to the script, through crucible.train
    interruptible: bool = False  # may run on machines that can be taken away
    max_cost_usd: float | None = None
    deadline: datetime | None = None
    dataset_size_gb: float | None = None

    def fields(self, gpus: int) -> Fields:
        """The job spec's fields, for a job with so many GPUs."""
        minutes = self.checkpoint_frequency_minutes
        return _given(
            resources=_given(
                gpus=gpus,
                gpu_memory=self.gpu_memory_gb if gpus else None,
                gpu_type=_list(self.gpu_types) if gpus else None,
                cpus=self.cpus,
                cpu_memory=self.memory_gb,
                storage=self.storage_gb,
                estimated_hours=self.duration_hours_estimated,
            ),
            constraints=_given(
                budget=self.max_cost_usd,
                deadline=None if self.deadline is None else self.deadline.isoformat(),
                allow_spot=self.interruptible or None,
            ),
            data=_given(size=self.dataset_size_gb),
            checkpoint=_given(interval=None if minutes is None else minutes * 60),
        )

    def wishes(self) -> Fields:
        """The same in the words of a recommendation. What is not known is left to be found out."""
        minutes = self.checkpoint_frequency_minutes
        return _given(
            gpus=self.gpus,
            gpu_memory_gb=self.gpu_memory_gb,
            duration_hours=self.duration_hours_estimated,
            checkpoint_frequency_minutes=None if minutes is None else max(1, round(minutes)),
            interruptible=self.interruptible or None,
            max_cost_usd=self.max_cost_usd,
            dataset_size_gb=self.dataset_size_gb,
        )


class Preferences(TypedDict, total=False):
    optimize_for: str | None  # cost, speed, reliability, or a strategy of the spec
    allowed_backends: Sequence[str] | None  # None: all


@dataclass(frozen=True, slots=True)
class Preferred:
    fields: Fields
    notes: tuple[str, ...] = ()


def preferred(preferences: Mapping[str, Any] | None, *, interruptible: bool) -> Preferred:
    """The job spec's fields for what is preferred. Raises InvalidRequest for a word that means nothing here."""
    wanted = dict(preferences or {})
    strategy = wanted.pop("optimize_for", None)
    allowed = wanted.pop("allowed_backends", None)
    for word in wanted:
        raise _unknown("preferences", word, Preferences.__annotations__)
    found = Preferred({}) if allowed is None else _allowed(_list(allowed) or [], interruptible)
    if strategy is None:
        return found
    chosen = {"constraints": {"strategy": STRATEGIES.get(strategy, strategy)}}
    return Preferred(merged(found.fields, chosen), found.notes)


def merged(*layers: Mapping[str, Any]) -> Fields:
    """Later layers go before earlier ones, field by field."""
    result: Fields = {}
    for layer in layers:
        for name, value in layer.items():
            below = result.get(name)
            is_nested = isinstance(below, Mapping) and isinstance(value, Mapping)
            result[name] = merged(below, value) if is_nested else value  # type: ignore[arg-type]
    return result


def _allowed(names: list[str], interruptible: bool) -> Preferred:
    if not names:
        raise InvalidRequest("allowed_backends is empty: nothing could run; leave it out, or give None, for all")
    schedulers = [name for name in names if is_scheduler(name)]
    if schedulers and len(names) > 1:
        raise InvalidRequest(f"allowed_backends: {schedulers[0]} cannot be mixed with others; name it alone")
    if schedulers:
        return Preferred({"execution": {"backend": schedulers[0]}})
    words = [_ALIASES.get(name, name) for name in names]
    providers = {provider_of(word) for word in words}
    only_spot = providers - {provider_of(word) for word in words if not word.endswith(SPOT)}
    never_spot = providers - {provider_of(word) for word in words if not word.endswith(ON_DEMAND)} - set(_NEVER_SPOT)
    _check_spot(only_spot, never_spot, interruptible)
    constraints: Fields = {"providers": sorted(providers)}
    if interruptible:
        constraints["allow_spot"] = not never_spot
    return Preferred({"constraints": constraints}, tuple(_MAY_BE_ON_DEMAND.format(one) for one in sorted(only_spot)))


def _check_spot(only_spot: set[str], never_spot: set[str], interruptible: bool) -> None:
    """A spec has one answer for all providers. A list that needs two is refused, not stretched."""
    if only_spot and not interruptible:
        raise InvalidRequest(
            f"allowed_backends: {min(only_spot)} is allowed on spot only, and the requirements say interruptible=False"
        )
    if only_spot and never_spot:
        raise InvalidRequest(
            f"allowed_backends: {min(only_spot)} is allowed on spot only and {min(never_spot)} never on spot; "
            "a job has one answer for all providers: allow both ways of one of them, or fewer providers"
        )


def _unknown(where: str, word: str, known: Mapping[str, object]) -> InvalidRequest:
    near = get_close_matches(word, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    return InvalidRequest(f"{where} has no {word!r}; {hint}", field=word)


def _list(value: Sequence[str]) -> list[str] | None:
    return ([value] if isinstance(value, str) else list(value)) or None


def _given(**fields: Any) -> Fields:
    return {name: value for name, value in fields.items() if value is not None and value != {}}
