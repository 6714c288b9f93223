"""The times the engine lives by. One value, passed to every decision, so that tests and simulations can shrink it."""

from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthLimits:
    """When something is wrong with a job. What opens a finding is stricter than what keeps it open."""

    every: timedelta = timedelta(seconds=15)  # jobs that run are looked at
    # No progress: longer than so many of its own usual steps, and never less than the floor; the first step of an
    # attempt compiles, fills caches and warms up.
    slow_steps: float = 10.0
    stall: timedelta = timedelta(minutes=10)
    first_stall: timedelta = timedelta(minutes=30)
    idle: timedelta = timedelta(minutes=10)
    idle_percent: float = 5.0  # of a GPU's time
    busy_percent: float = 10.0  # ends it
    gpu_memory: float = 0.97  # frameworks that take all of it at once are no trouble: it is only said
    gpu_memory_again: float = 0.92
    disk: float = 0.95
    disk_again: float = 0.92
    straggle: float = 1.5  # times what the others take for a step
    straggle_again: float = 1.25
    skew: timedelta = timedelta(seconds=60)  # signed requests are refused when clocks differ by minutes
    skew_again: timedelta = timedelta(seconds=30)
    # Of its own checkpoints, or of the interval that was asked for; a short job may do without.
    saves_missed: float = 3.0
    save_floor: timedelta = timedelta(minutes=30)
    restarts: int = 4  # attempts …
    restart_window: timedelta = timedelta(hours=1)  # … within so long
    looks: int = 2  # in a row, before something counts: once may be a coincidence
    close_after: timedelta = timedelta(seconds=60)  # without it

    def hurried(self, factor: float) -> "HealthLimits":
        """Every time so many times as short."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        shorter: dict[str, Any] = {name: at / factor for name, at in values.items() if isinstance(at, timedelta)}
        return replace(self, **shorter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    report_every: timedelta = timedelta(seconds=5)
    # Silence shorter than 30 s is ordinary (a busy node, a blip); a dead node must be noticed within 60 s.
    silence: timedelta = timedelta(seconds=50)
    # Listings lag: absence is a suspicion until it has lasted this long beyond the seller's own visibility.
    absence_grace: timedelta = timedelta(seconds=60)
    # Agents ask again within seconds: who has not listened for so long cannot say that one never came.
    enrol_patience: timedelta = timedelta(seconds=15)
    order_limit: timedelta = timedelta(minutes=10)  # to get an answer to a purchase
    start_limit: timedelta = timedelta(minutes=60)  # `setup` may install gigabytes
    run_limit: timedelta = timedelta(days=90)  # where the user gave no timeout: nothing runs unseen for ever
    stop_grace: timedelta = timedelta(seconds=30)  # between SIGTERM and SIGKILL: time to write a checkpoint
    failure_grace: timedelta = timedelta(seconds=5)  # the same once a rank has failed: the others wait for it in vain
    stop_margin: timedelta = timedelta(seconds=30)  # for the node to say so
    # A node may have heard us later than we heard it: an answer that was held back for a minute, and some on its way.
    fence_margin: timedelta = timedelta(seconds=90)
    # What a stopped rank has saved is still being stored: a healthy node may take so long for it.
    save_limit: timedelta = timedelta(minutes=10)
    # What a rank may leave behind, and how long storing it may take while everybody answers.
    output_bytes: int = 1 << 40
    output_files: int = 400_000  # a manifest holds about so many
    output_limit: timedelta = timedelta(hours=6)
    # A signed address of storage: an agent asks anew at half of it, so that it always has half to spare.
    signature_life: timedelta = timedelta(hours=1)
    # The node measures the user's timeout itself; the server steps in only if the node does not.
    timeout_margin: timedelta = timedelta(seconds=60)
    delete_retry: timedelta = timedelta(seconds=2)  # first pause after a failed delete; doubles up to the next line
    delete_retry_max: timedelta = timedelta(seconds=60)
    # A task that waits longer than this for its retry gives its machines back meanwhile.
    keep_for_retry: timedelta = timedelta(minutes=2)
    capacity_retry: timedelta = timedelta(seconds=5)  # look again for a free place, if nothing woke us before
    refused_retry: timedelta = timedelta(seconds=1)  # the next best offer, after one was refused
    loss_pause_max: timedelta = timedelta(seconds=60)
    loss_limit: int = 100  # a task that loses its machine so often, and gets nowhere, has another problem
    real_run: timedelta = timedelta(minutes=5)  # who ran for so long has got somewhere, checkpoint or not
    boot_limit: int = 8  # so many gangs in a row that never came up: it is not bad luck
    # An offer that was refused is not asked for again for so long: sold out, malformed, not allowed to.
    capacity_cooldown: timedelta = timedelta(minutes=3)
    rejected_cooldown: timedelta = timedelta(hours=1)
    credentials_cooldown: timedelta = timedelta(minutes=5)
    # A spot machine was taken back: the next one of its kind would soon go the same way.
    taken_cooldown: timedelta = timedelta(minutes=10)
    price_refresh: timedelta = timedelta(minutes=15)
    price_stale: timedelta = timedelta(hours=1)  # older prices are used, and said to be old
    # Metrics and how machines are used: as they were measured, added up by the minute and by the quarter of an hour.
    metrics_every: timedelta = timedelta(minutes=1)  # added up, and removed
    usage_every: timedelta = timedelta(seconds=15)  # a sample of each node
    metrics_raw: timedelta = timedelta(days=2)
    metrics_minutes: timedelta = timedelta(days=30)
    metrics_quarters: timedelta = timedelta(days=400)
    metrics_raw_bytes: int = 64 << 20  # of one task
    health: HealthLimits = HealthLimits()
    provider_patience: timedelta = timedelta(minutes=5)  # one that fails for longer is told of
    # How often what is spent is held against the budgets. Every machine is funded for two such ticks and its stop.
    budget_tick: timedelta = timedelta(seconds=10)
    budget_save: timedelta = timedelta(minutes=2)  # the same as `save_limit` for a stop that a budget pays for
    # A budget that pauses jobs lets nothing begin that it could not let run for so long: stops would follow on starts.
    budget_start: timedelta = timedelta(minutes=10)
    # A spot price that has changed is heard of with the next listing, half a minute apart, and some on its way.
    budget_sight: timedelta = timedelta(seconds=45)
