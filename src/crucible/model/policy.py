"""The times the engine lives by. One value, passed to every decision, so that tests and simulations can shrink it."""

from dataclasses import dataclass
from datetime import timedelta


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
