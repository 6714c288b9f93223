"""What speaks for a backend and what against it, in sentences: seed 003's decision matrix, and this workload's
figures."""

from collections.abc import Iterator

from crucible.core.offers import Listing
from crucible.core.router.backends import COLAB, Kind
from crucible.core.router.characteristics import WorkloadCharacteristics
from crucible.core.router.preferences import Preferences
from crucible.core.router.scoring import LONG_H, RESERVED_H, SHORT_H, Best, Prospect
from crucible.model.offer import Market

# From here on a start is worth a word.
SLOW_START_S = 120.0
AT_ONCE_S = 10.0
# Data this large takes a while to move.
LARGE_GB = 50.0


def pros(prospect: Prospect, told: WorkloadCharacteristics, wishes: Preferences, best: Best) -> Iterator[str]:
    backend, hours = prospect.backend, prospect.hours
    if prospect.hourly_usd == 0:
        yield "costs nothing"
    elif best.cost is not None and _cost(prospect) == best.cost:
        yield "the cheapest of all"
    if backend.kind is Kind.OWN:
        yield "your own machines: full control, and the data stays here"
    if prospect.start_s is not None and prospect.start_s <= SLOW_START_S and prospect.is_free_now:
        yield "starts at once" if prospect.start_s <= AT_ONCE_S else f"starts within {_span(prospect.start_s)}"
    if hours is not None and best.hours is not None and hours <= best.hours and backend.kind is not Kind.OWN:
        yield "the fastest of all"
    yield from _suits_length(prospect, told)
    if backend.is_spot and told.interruptible:
        yield "the job saves and resumes, so that it can use the price of spot"
    if backend.kind is Kind.CLOUD:
        yield "dedicated virtual machines" if wishes.data_privacy else "full control of the machines"
    if prospect.has_data:
        yield f"the data is there ({told.dataset})"


def _suits_length(prospect: Prospect, told: WorkloadCharacteristics) -> Iterator[str]:
    backend, hours = prospect.backend, told.duration_hours if prospect.hours is None else prospect.hours
    if hours is None:
        return
    if backend.kind is Kind.EXTERNAL and hours < SHORT_H:
        yield f"made for jobs of less than {SHORT_H:g} hours"
    if backend.kind is Kind.CLOUD and hours > LONG_H and backend.market is not Market.RESERVED:
        yield f"suits jobs of more than {LONG_H:g} hours"
    if backend.market is Market.RESERVED and hours > RESERVED_H:
        yield f"pays off for jobs of more than {RESERVED_H:g} hours"


def cons(
    prospect: Prospect,
    told: WorkloadCharacteristics,
    wishes: Preferences,
    enabled: frozenset[str],
    listing: Listing | None,
) -> Iterator[str]:
    backend = prospect.backend
    if backend.provider not in enabled:
        yield "not set up on this server: shown for comparison"
    yield from _unknowns(prospect, listing)
    yield from _interruptions(prospect, told, listing)
    if not prospect.is_free_now:
        yield "its GPUs are taken now: the job would wait"
    if prospect.start_s is not None and prospect.start_s > SLOW_START_S:
        yield f"takes about {_span(prospect.start_s)} to start"
    if backend.kind is Kind.EXTERNAL and (wishes.data_privacy or told.mentions_private_data):
        yield "shared infrastructure: private data leaves your hands"
    yield from _wrong_length(prospect, told)
    if prospect.has_data is False:
        size = f" ({told.dataset_size_gb:g} GB)" if told.dataset_size_gb else ""
        yield f"the data{size} must come from {told.dataset}"
    elif told.dataset_size_gb is not None and told.dataset_size_gb >= LARGE_GB and backend.kind is not Kind.OWN:
        yield f"about {told.dataset_size_gb:g} GB of data must get there first"


def _unknowns(prospect: Prospect, listing: Listing | None) -> Iterator[str]:
    if prospect.hourly_usd is None:
        yield "nobody states its price" if listing is not None else "its price is not in the catalog"
    elif prospect.total_usd is None:
        yield "the total is not known: say how long it takes (duration_hours)"
    if prospect.backend == COLAB:
        yield "sessions end by themselves, and one GPU is all there is"


def _interruptions(prospect: Prospect, told: WorkloadCharacteristics, listing: Listing | None) -> Iterator[str]:
    if not prospect.backend.is_spot:
        return
    hazard = None if listing is None else listing.hazard_per_hour
    yield "may be taken away at any time" + ("" if hazard is None else f", about {hazard:.2g} times an hour")
    if told.interruptible is False:
        yield "the job would start anew each time: it does not resume from a checkpoint"
    elif told.interruptible is None:
        yield "nobody knows whether the job can be interrupted"


def _wrong_length(prospect: Prospect, told: WorkloadCharacteristics) -> Iterator[str]:
    backend, hours = prospect.backend, told.duration_hours if prospect.hours is None else prospect.hours
    if hours is None or backend.kind is Kind.OWN:
        return
    if backend.kind is Kind.EXTERNAL and hours > LONG_H:
        yield f"services are dear for jobs of more than {LONG_H:g} hours"
    if backend.kind is Kind.CLOUD and hours < SHORT_H:
        yield f"much set-up for a job of {_hours(hours)}"
    if backend.market is Market.ON_DEMAND and backend.kind is Kind.CLOUD and hours > RESERVED_H:
        yield "reserved machines would be cheaper for a job this long, if you run many"


def _cost(prospect: Prospect) -> float | None:
    return prospect.hourly_usd if prospect.total_usd is None else prospect.total_usd


def _span(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < SLOW_START_S else f"{seconds / 60:.0f} minutes"


def _hours(hours: float) -> str:
    return f"{hours * 60:.0f} minutes" if hours < 1 else f"{hours:.1f} hours"
