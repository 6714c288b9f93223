"""From a script to where it should run."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crucible.cli import exits
from crucible.cli.options import example, with_output
from crucible.cli.output import Out

if TYPE_CHECKING:
    from crucible.client.code import Code

STDIN = "-"


@click.command(
    epilog=example(
        "crucible recommend train.py",
        "crucible recommend train.py --hours 3 --optimize-for cost --max-cost 10",
        "crucible recommend . --private --write job.yaml",
    )
)
@click.argument("path", metavar="SCRIPT|FOLDER")
@click.option("--hours", type=click.FloatRange(0, 87_600, min_open=True), help="How long it takes, if you know.")
@click.option("--optimize-for", type=click.Choice(("cost", "speed")), help="What counts most.  [default: a balance]")
@click.option("--max-cost", type=click.FloatRange(0), metavar="USD", help="Leave out what would cost more.")
@click.option("--private", is_flag=True, help="The data is private: shared infrastructure counts against a backend.")
@click.option("--interruptible/--not-interruptible", default=None, help="Can it be stopped and go on later?")
@click.option("--gpus", type=click.IntRange(0), metavar="N", help="How many GPUs, if you know.")
@click.option("--gpu-memory", type=click.FloatRange(0, min_open=True), metavar="GB", help="Of each GPU, at least.")
@click.option("--checkpoint-minutes", type=click.IntRange(1), metavar="N", help="How often it saves.")
@click.option("--dataset-size", type=click.FloatRange(0), metavar="GB", help="How much data it reads.")
@click.option("--backend", "backends", multiple=True, metavar="NAME", help="Only this one; may be given again.")
@click.option("--write", type=click.Path(path_type=Path), metavar="FILE", help="Write a job file to start from.")
@click.option("--force", is_flag=True, help="Write it even if there is one.")
@with_output
def recommend(out: Out, path: str, write: Path | None, force: bool, **wishes: Any) -> int:
    """Say what a script needs and where it should run: backends that suit it, the best first.

    The code is read, never run: what is found names the line it was found on. SCRIPT may be a notebook, or - for
    stdin. The exit code is 3 if nothing suits.
    """
    from crucible.cli.session import connect
    from crucible.cli.views.recommendations import recommendation_lines

    if write is not None and write.exists() and not force:
        raise click.BadParameter(f"{write} is there already; --force replaces it", param_hint="--write")
    code = read(path, write)
    for note in code.notes:
        out.note(f"note: {note}")
    with connect(out) as client:
        made = client.recommend(code.files, entrypoint=code.entrypoint, preferences=preferences(**wishes))
    out.show(made, lambda: recommendation_lines(made, path, width=out.width, is_wide=out.is_wide))
    if write is not None:
        save(out, write, made["spec_yaml"])
    return exits.OK if made["recommendations"] else exits.NO_OFFER


def read(path: str, write: Path | None) -> "Code":
    from crucible.client import code

    if path == STDIN:
        text, note = code.decoded(sys.stdin.buffer.read())
        found = code.of_text(text)
        found.notes.extend([f"stdin: {note}"] if note else [])
        return found
    return code.of_path(Path(path), None if write is None else write.absolute().parent)


def preferences(
    hours: float | None,
    optimize_for: str | None,
    max_cost: float | None,
    private: bool,
    interruptible: bool | None,
    gpus: int | None,
    gpu_memory: float | None,
    checkpoint_minutes: int | None,
    dataset_size: float | None,
    backends: tuple[str, ...],
) -> dict[str, Any]:
    """As the API calls them; what was not given is not sent."""
    given = {
        "duration_hours": hours,
        "optimize_for": optimize_for,
        "max_cost_usd": max_cost,
        "data_privacy": private or None,
        "interruptible": interruptible,
        "gpus": gpus,
        "gpu_memory_gb": gpu_memory,
        "checkpoint_frequency_minutes": checkpoint_minutes,
        "dataset_size_gb": dataset_size,
        "allowed_backends": list(backends) or None,
    }
    return {name: value for name, value in given.items() if value is not None}


def save(out: Out, file: Path, text: str) -> None:
    from crucible.cli import jobfile

    jobfile.parse(str(file), text)  # what is written can be submitted, or the server is newer than this client
    file.write_text(text)
    out.note(f"wrote {file}; next: crucible plan {file}")
