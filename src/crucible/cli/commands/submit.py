"""From a job file to a running job."""

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from crucible.cli import exits
from crucible.cli.options import example, with_output
from crucible.cli.output import Out

if TYPE_CHECKING:
    from pathlib import Path

    from crucible.cli.jobfile import JobFile
    from crucible.client.api import Client
    from crucible.client.shapes import Submitted


def overriding(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that change what the file says."""
    for option in reversed(
        (
            click.option("--gpus", type=click.IntRange(0), metavar="N", help="Sets resources.gpus."),
            click.option("--env", multiple=True, metavar="NAME=VALUE", help="Adds to env; may be given again."),
            click.option("--budget", type=click.FloatRange(0), metavar="USD", help="Sets constraints.budget."),
            click.option("--deadline", metavar="TIME", help="Sets constraints.deadline: 2026-01-17T10:00:00Z."),
            click.option("--spot/--no-spot", default=None, help="Sets constraints.allow_spot."),
            click.option("--max-price", type=click.FloatRange(0), metavar="USD", help="Most per hour, all machines."),
            click.option("--hours", type=click.FloatRange(0), metavar="H", help="Sets resources.estimated_hours."),
        )
    ):
        command = option(command)
    return command


@click.command(
    epilog=example(
        "crucible submit job.yaml",
        "crucible submit job.yaml -d --gpus 4 --env LR=0.1",
        "crucible submit - -y < job.yaml",
        "ID=$(crucible submit job.yaml -dq)",
    )
)
@click.argument("file")
@click.option("-n", "--name", help="The job's name.  [default: what the spec says, or its entrypoint]")
@click.option("-y", "--yes", is_flag=True, help="Do not ask. Without a terminal nothing is ever asked.")
@click.option("-d", "--detach", is_flag=True, help="Print the job's id and leave.")
@overriding
@with_output
def submit(out: Out, file: str, name: str | None, yes: bool, detach: bool, **overrides: Any) -> int:
    """Run a job: show the plan, ask, send it, follow its log.

    Ctrl-C leaves the job running and says how to come back. The exit code is the job's: 0 completed, 100 failed,
    103 cancelled. With -o json or yaml the finished job is printed in place of its log.
    """
    return run(out, prepare(out, file, overrides), name=name, is_agreed=yes, is_followed=not detach)


def run(out: Out, job: "JobFile", *, name: str | None, is_agreed: bool, is_followed: bool) -> int:
    from crucible.cli.handover import hand_over
    from crucible.cli.session import connect
    from crucible.client.package import what_to_pack

    source = what_to_pack(job.folder, job.spec)  # a file that is missing is said before anything is asked or started
    with connect(out) as client:
        if not out.quiet and not out.is_for_programs:
            show_plan(out, client, job)
            if not is_agreed and not agrees():
                out.note("nothing was submitted")
                return exits.ERROR
        made = send(out, client, job, name, source)
    return hand_over(out, made, is_followed=is_followed)


def prepare(out: Out, file: str, overrides: dict[str, Any]) -> "JobFile":
    """The file, checked, with the options of the command line in its text."""
    from crucible.cli import jobfile
    from crucible.cli.templating import resolved

    wanted = wishes(overrides)
    return changed(out, resolved(out, jobfile.read(file)), wanted)


def changed(out: Out, job: "JobFile", wanted: "Mapping[tuple[str, ...], int | float | str | bool]") -> "JobFile":
    """With what the command line says; warnings are told."""
    from dataclasses import replace

    from crucible.cli import jobfile
    from crucible.cli.overrides import apply

    if wanted:
        job = replace(jobfile.parse(job.name, apply(job.text, wanted)), root=job.root)
        out.note(f"the text that is sent differs from {job.name}: {', '.join('.'.join(path) for path in wanted)}")
    for warning in job.warnings:
        out.note(f"warning: {warning.field}: {warning.message}" + (f" ({warning.hint})" if warning.hint else ""))
    return job


def wishes(overrides: dict[str, Any]) -> "dict[tuple[str, ...], int | float | str | bool]":
    from crucible.cli.overrides import Overrides, parse_env

    try:
        return Overrides(**{**overrides, "env": parse_env(overrides["env"])}).values()
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--env") from None


def show_plan(out: Out, client: "Client", job: "JobFile") -> None:
    from crucible.cli.views.plans import plan_lines

    for line in plan_lines(client.plan(job.text), width=out.error_width, tick=out.symbol("✓", "*"), is_for_submit=True):
        out.note(line)


def agrees() -> bool:
    """Asks only a person: somebody must see the question and be able to answer it."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    return click.confirm("Submit?", default=True, err=True)


def send(out: Out, client: "Client", job: "JobFile", name: str | None, source: "Path | None") -> "Submitted":
    digest = None if source is None else ship(out, client, source, job)
    try:
        return client.submit(name, job.text, code_digest=digest)
    except KeyboardInterrupt:
        out.warn("\ninterrupted while submitting: the job may or may not exist; look with crucible ps -a")
        raise


def ship(out: Out, client: "Client", source: "Path", job: "JobFile") -> str:
    """Pack the code and send it, unless the server has it already; returns its digest."""
    from pathlib import Path

    from crucible.cli.wording import plural, size
    from crucible.client.package import pack, pack_workflow

    is_workflow = bool(job.spec.steps)
    made = pack_workflow(source, job.spec, Path(job.name)) if is_workflow else pack(source, job.spec.entrypoint)
    with made as package:
        if not client.has_package(package.digest):
            out.note(f"sending {plural(package.file_count, 'file')}, {size(package.size)}")
            with package.path.open("rb") as file:
                client.upload_package(package.digest, file, package.size)
        return package.digest
