"""Job templates: to look at them, to run one, to store one's own."""

from pathlib import Path
from typing import Any

import click

from crucible.cli import exits
from crucible.cli.commands.submit import overriding
from crucible.cli.options import example, with_output
from crucible.cli.output import Out


@click.group(
    epilog=example(
        "crucible template ls",
        "crucible template show fine-tune",
        "crucible template use fine-tune -p lr=0.001 -p steps=200",
        "crucible template use fine-tune --save job.yaml",
        "crucible template add my-template.yaml",
    )
)
def template() -> None:
    """Jobs to fill in: list, show, use, add and remove templates.

    A template has typed parameters. Some come with Crucible, others are stored by people, and a file of yours is one
    too. A job file may name one: `template: NAME`, `with: {lr: 0.1}`."""


@template.command("ls", epilog=example("crucible template ls", "crucible template ls -o json"))
@with_output
def list_templates(out: Out) -> None:
    """All of them; those without a USER come with Crucible."""
    from crucible.cli.session import connect
    from crucible.cli.views.templates import template_table

    with connect(out) as client:
        found = client.templates()
    out.show({"items": found}, lambda: template_table(found, out.width))


@template.command(epilog=example("crucible template show fine-tune", "crucible template show fine-tune --text"))
@click.argument("name", metavar="NAME|FILE")
@click.option("--text", is_flag=True, help="The template itself, to start one of your own from.")
@with_output
def show(out: Out, name: str, text: bool) -> None:
    """One of them: what it does, and its parameters."""
    from crucible.cli.templating import find
    from crucible.cli.views.templates import template_page

    found = find(out, name)
    one = found.template
    if text and not out.is_for_programs:
        click.echo(found.text, nl=False)
        return
    parameters = [parameter.view() for parameter in one.parameters]
    facts = {"name": one.name, "description": one.description, "parameters": parameters, "body": found.text}
    out.show(facts, lambda: template_page(one.name, one.description, parameters, out.width))


@template.command(
    epilog=example(
        "crucible template use nanogpt",
        "crucible template use nanogpt -p steps=2000 -p batch=64 --gpus 1 -d",
        "crucible template use nanogpt -p steps=2000 --save job.yaml",
        "crucible template use ./mine.yaml -p data=/data/text",
    )
)
@click.argument("name", metavar="NAME|FILE")
@click.option("-p", "--param", "params", multiple=True, metavar="NAME=VALUE", help="A parameter; may be given again.")
@click.option(
    "--save", type=click.Path(path_type=Path), metavar="FILE", help="Write the job and its code; run nothing."
)
@click.option("-n", "--name", "job_name", help="The job's name.  [default: what the template says]")
@click.option("-y", "--yes", is_flag=True, help="Do not ask. Without a terminal nothing is ever asked.")
@click.option("-d", "--detach", is_flag=True, help="Print the job's id and leave.")
@overriding
@with_output
def use(
    out: Out,
    name: str,
    params: tuple[str, ...],
    save: Path | None,
    job_name: str | None,
    yes: bool,
    detach: bool,
    **overrides: Any,
) -> int:
    """Fill a template in and run the job, as `crucible submit` does; or save it, to look at and to change."""
    from crucible.cli import templating
    from crucible.cli.commands.submit import changed, run, wishes

    try:
        given = templating.parse_given(params)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--param") from None
    wanted = wishes(overrides)
    found = templating.find(out, name)
    job = changed(out, templating.used(found, given), wanted)
    if save is None:
        return run(out, job, name=job_name, is_agreed=yes, is_followed=not detach)
    made = templating.save(job, found, save)
    out.show({"saved": [str(path) for path in made]}, lambda: [f"saved {path}" for path in made])
    out.note(f"run it with crucible submit {save}")
    return exits.OK


@template.command(epilog=example("crucible template add mine.yaml", "crucible template add - < mine.yaml"))
@click.argument("file")
@with_output
def add(out: Out, file: str) -> None:
    """Store a template on the server, for everybody to use; only you and admins can change or remove it.

    The name stands in the file; a template of that name that is yours gets this text. No code is stored with it: `code`
    in its job is found from the folder of whoever uses it."""
    from crucible.cli.session import connect
    from crucible.cli.templating import from_file
    from crucible.cli.wording import plural

    text = from_file(file).text
    with connect(out) as client:
        made = client.add_template(text)
    count = plural(len(made["parameters"]), "parameter")
    out.show(made, lambda: [f"{made['name']}: {count}; use it with crucible template use {made['name']}"])


@template.command(epilog=example("crucible template rm mine"))
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@with_output
def rm(out: Out, names: tuple[str, ...]) -> None:
    """Remove templates that you stored. Jobs that were made from them are not touched."""
    from crucible.cli.session import connect

    with connect(out) as client:
        for name in names:
            client.remove_template(name)
    out.show({"removed": list(names)}, lambda: [f"removed {name}" for name in names])
