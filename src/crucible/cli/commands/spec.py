"""Help with writing job files."""

import click

from crucible.cli.options import example as examples


@click.group(epilog=examples("crucible spec example > job.yaml", "crucible spec schema > crucible.schema.json"))
def spec() -> None:
    """Print an example job file, or the schema for an editor."""


@spec.command("example", epilog=examples("crucible spec example > job.yaml"))
@click.option("--minimal", is_flag=True, help="The least that is a job.")
def show_example(minimal: bool) -> None:
    """A job file with every usual field explained."""
    from crucible.spec import example, minimal_example

    click.echo(minimal_example() if minimal else example(), nl=False)


@spec.command("schema", epilog=examples("crucible spec schema > crucible.schema.json"))
def show_schema() -> None:
    """JSON Schema of a job file, for editors that complete and check YAML."""
    import json

    from crucible.spec import schema

    click.echo(json.dumps(schema(), indent=2))


@spec.command("fields", epilog=examples("crucible spec fields | less"))
def show_fields() -> None:
    """Every field: what it takes, its default, what it means."""
    from crucible.spec import reference

    click.echo(reference())
