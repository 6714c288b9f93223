"""Searches: how they stand, their best trial, and their trials drawn with characters."""

from typing import TYPE_CHECKING

import click

from crucible.cli.options import example, job_argument, with_output
from crucible.cli.output import Out

if TYPE_CHECKING:
    from crucible.client.trial_shapes import BestTrial, Sweep, Task

SHOWN = 20
PLOT_WIDTH = 80  # where there is no terminal to ask


@click.group(
    epilog=example(
        "crucible sweep show ring-sweep",
        "crucible sweep best ring-sweep -o json",
        "crucible sweep plot ring-sweep --x lr",
    )
)
def sweep() -> None:
    """How a hyper-parameter search stands, its best trial, its trials drawn."""


@sweep.command(
    epilog=example(
        "crucible sweep show ring-sweep",
        "crucible sweep show ring-sweep --all --sort index",
        "crucible sweep show ring-sweep --csv > trials.csv",
    )
)
@job_argument
@click.option("--sort", type=click.Choice(["value", "index"]), help="value: the best first.  [default: value]")
@click.option("--all", "everything", is_flag=True, help=f"Every trial, not only the first {SHOWN}.")
@click.option("--csv", "is_csv", is_flag=True, help="Every trial as a line of a table for other programs.")
@with_output
def show(out: Out, job: str, sort: str | None, everything: bool, is_csv: bool) -> None:
    """How a search stands, and its trials."""
    from datetime import UTC, datetime

    from crucible.cli.session import connect, find_job
    from crucible.cli.views import sweeps

    with connect(out) as client:
        job_id = find_job(client, job)
        said = client.sweep(job_id)
        by_value = (sort or "value") == "value" and (said["objective"] is not None or sort == "value")
        limit = None if everything or is_csv else SHOWN
        trials = list(client.all_tasks(job_id, by_value=by_value, limit=limit))
    if is_csv:
        for line in sweeps.as_csv(said, trials):
            out.line(line)
        return

    def page() -> list[str]:
        table = sweeps.trial_table(said, trials, datetime.now(UTC), out.width, out.status)
        return [*sweeps.standing(said), "", *table]

    out.show({**said, "items": trials}, page)
    hidden = said["trials"]["total"] - len(trials)
    if hidden > 0 and not out.is_for_programs:
        out.note(f"{hidden} more; --all shows them")


@sweep.command(
    epilog=example(
        "crucible sweep best ring-sweep",
        'eval "$(crucible sweep best ring-sweep --env)"',
        "crucible sweep best ring-sweep -o json",
    )
)
@job_argument
@click.option("--env", "is_env", is_flag=True, help="Its parameters as variables for a shell.")
@with_output
def best(out: Out, job: str, is_env: bool) -> None:
    """The best trial that came to its end: its value, its parameters, its checkpoint."""
    from crucible.cli.session import connect, find_job
    from crucible.cli.views import sweeps

    with connect(out) as client:
        said = client.sweep(find_job(client, job))
    found = best_of(said)
    if is_env:
        for line in sweeps.as_variables(found):
            out.line(line)
        return
    out.show(found, lambda: sweeps.best_page(said, found))


@sweep.command(epilog=example("crucible sweep plot ring-sweep", "crucible sweep plot ring-sweep --x lr"))
@job_argument
@click.option("--x", "name", metavar="PARAM", help="Only over this parameter, trial by trial.")
@with_output
def plot(out: Out, job: str, name: str | None) -> None:
    """What the trials came to, parameter by parameter, or trial by trial over one."""
    from crucible.cli.session import connect, find_job
    from crucible.cli.views import plots

    with connect(out) as client:
        job_id = find_job(client, job)
        said = client.sweep(job_id)
        check_parameter(said, name)
        best_of(said)
        trials = [one for one in client.all_tasks(job_id, by_value=True, phase="succeeded") if one["value"] is not None]
    signs = plots.FINE if out.symbol("◆•·█│", "") else plots.PLAIN
    if name is None:
        out.show({"items": points(trials)}, lambda: plots.by_parameter(said, trials, signs))
    else:
        out.show({"items": points(trials)}, lambda: plots.scatter(said, trials, name, out.width or PLOT_WIDTH, signs))


def best_of(said: "Sweep") -> "BestTrial":
    from crucible.model.errors import NotFound

    if said["best"] is None:
        words = said["note"] or f"no trial of {said['name']} has come to its end yet"
        raise NotFound(words, hint=f"every trial, and why it has no value: crucible sweep show {said['name']}")
    return said["best"]


def check_parameter(said: "Sweep", name: str | None) -> None:
    if name is not None and name not in said["parameters"]:
        raise click.UsageError(f"{said['name']} has no parameter {name!r}; it has {', '.join(said['parameters'])}")


def points(trials: "list[Task]") -> list[dict[str, object]]:
    return [{"trial": one["index"], "value": one["value"], "params": one["params"]} for one in trials]
