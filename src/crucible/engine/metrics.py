"""Every figure that a server tells of itself: name, labels, meaning. Whoever counts imports the row; docs, dashboard
and alerts are tested against this table. Labels are providers, regions, states, routes and teams: never jobs, never
people."""

from crucible.ports.meter import Kind, Metric, Source

# Upper ends in seconds: of what a computer does, of what clouds answer, of what machines and people wait for.
QUICK_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
CALL_S = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
LONG_S = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 90.0, 120.0, 180.0, 300.0, 600.0, 1800.0)


def counter(name: str, text: str, *labels: str) -> Metric:
    return Metric(name=f"crucible_{name}", kind=Kind.COUNTER, help=text, labels=labels)


def histogram(name: str, text: str, *labels: str, buckets: tuple[float, ...]) -> Metric:
    return Metric(name=f"crucible_{name}", kind=Kind.HISTOGRAM, help=text, labels=labels, buckets=buckets)


def gauge(name: str, text: str, *labels: str, source: Source = Source.PROCESS) -> Metric:
    return Metric(name=f"crucible_{name}", kind=Kind.GAUGE, help=text, labels=labels, source=source)


def stored(name: str, text: str, *labels: str) -> Metric:
    """A sum over the database: the same on every server."""
    return gauge(name, text, *labels, source=Source.DATABASE)


# --- the queue, jobs, decisions ------------------------------------------------------------------------

JOBS = stored("jobs", "Jobs by state.", "state")
TASKS_WAITING = stored("tasks_waiting", "Tasks that wait for a machine, by the kind of reason.", "reason")
OLDEST_WAIT = stored("oldest_wait_seconds", "How long the oldest of these tasks has waited; 0: none waits.")
JOBS_SUBMITTED = counter("jobs_submitted_total", "Jobs accepted.")
JOBS_ENDED = counter("jobs_ended_total", "Jobs that came to an end, by state.", "state")
ATTEMPTS_ENDED = counter("attempts_ended_total", "Attempts that came to an end, by outcome.", "outcome")
CYCLE = histogram("cycle_seconds", "One round of deciding what runs where.", buckets=QUICK_S)
PLACEMENTS = counter("placements_total", "Tasks that were given a place.")
REJECTIONS = counter("rejections_total", "Tasks that were looked at and found no place, by the kind of reason.", "rule")

# --- providers and machines ----------------------------------------------------------------------------

ORDERS = counter("orders_total", "Purchases by what came of them.", "provider", "outcome")
CALLS = counter("provider_calls_total", "Calls to a provider by outcome: ok or the code of the error.",
                "provider", "region", "call", "outcome")  # fmt: skip
CALL_TIME = histogram("provider_call_seconds", "Time that a provider took to answer.", "provider", "call",
                      buckets=CALL_S)  # fmt: skip
LAUNCH = histogram("launch_seconds", "From the order to the agent of its machine being here.", "provider",
                   buckets=LONG_S)  # fmt: skip
RECOVERY = histogram("recovery_seconds", "From losing a machine to the task running again.", buckets=LONG_S)
PREEMPTIONS = counter("preemptions_total", "Machines that their provider took back.", "provider", "region")
STRAYS = counter("strays_removed_total", "Machines that nobody owned and that were given back.", "provider", "region")
MACHINES = stored("machines", "Machines held, by the phase of their lease.", "provider", "region", "phase")
GPUS_HELD = stored("gpus_held", "GPUs of machines that are held.", "provider", "region")
GPUS_BUSY = stored("gpus_busy", "Those of them on whose machines a program runs.", "provider", "region")
GPU_UTILISATION = stored("gpu_utilisation_ratio", "Mean over GPUs that were heard of in the last minute.", "gpu")
CHECKPOINTS = counter("checkpoints_total", "Checkpoints committed.")
CHECKPOINT_BYTES = counter("checkpoint_bytes_total", "Bytes of them.")
CHECKPOINT_TIME = histogram("checkpoint_seconds", "From asking for a checkpoint to its commit.", buckets=CALL_S)

# --- money -----------------------------------------------------------------------------------------------

SPEND_RATE = stored("spend_dollars_per_hour", "What is held costs so much now.", "provider", "market", "team")
SPEND = stored("spend_dollars", "What machines have cost since the beginning, up to now.", "provider", "market", "team")
BUDGET_LEFT = stored("budget_left_ratio", "What a budget may still promise, as a share of its limit; below 0: too much "
                     "is promised.", "scope", "name", "period")  # fmt: skip
IMBALANCE = stored("ledger_imbalance_dollars", "Sum of all accounts of the ledger. Anything but 0 is a bug.")

# --- the server ------------------------------------------------------------------------------------------

BUILD = gauge("build_info", "1, with the version.", "version", "python")
REQUESTS = counter("http_requests_total", "Requests by route and class of status.", "method", "route", "status")
REQUEST_TIME = histogram("http_request_seconds", "Until the answer begins; of GET /agent/v1/work: a long poll.",
                         "method", "route", buckets=QUICK_S)  # fmt: skip
SOCKETS = gauge("websockets", "WebSockets that are open.", "route")
SOCKETS_DROPPED = counter("websockets_dropped_total", "Followers that took nothing for a minute and were let go.")
AGENTS = gauge("agents_connected", "Agents that wait here for work.")
LOOP_LAG = histogram("event_loop_lag_seconds", "How late the event loop woke who had slept a second.", buckets=QUICK_S)
WAKES = gauge("rows_to_look_at", "Rows that somebody should look at and nobody does yet.")
LOOP_LATE = gauge("loop_late_seconds", "How long a loop of the engine is overdue; 0: it is not.", "loop")
LOOP_RESTARTS = counter("loop_restarts_total", "Loops of the engine that failed and began again.", "loop")
WRITES_WAITING = gauge("database_writes_waiting", "Transactions that wait to be on disk.")
WRITE_TIME = histogram("database_write_seconds", "From handing over a transaction to its being on disk.",
                       buckets=QUICK_S)  # fmt: skip
PRICE_AGE = stored("price_age_seconds", "Since a source of prices last answered; +Inf: never.", "feed")
SERVERS = stored("servers", "Servers that share the database and live.")
LOOKED_AGO = gauge("figures_age_seconds", "How old the sums over the database are.", "of")
LOOK_TIME = gauge("figures_took_seconds", "How long the last look at the database took.", "of")
TRACES = counter("traces_total", "Traces of jobs by what came of them: exported, or dropped.", "outcome")

ALL: tuple[Metric, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
