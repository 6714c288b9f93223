"""`crucible prices build`: the shipped catalog anew from its sources, and how wrong its estimates are."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crucible.catalog import facts
from crucible.model.errors import PlatformError

if TYPE_CHECKING:
    from crucible.catalog.build import Report

NEAR = Path("../shared/data")  # where the sources lie beside a checkout


@click.command("build", short_help="Make the shipped catalog from its sources.")
@click.option(
    "--data",
    envvar="CRUCIBLE_DATA",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder of the sources; default: CRUCIBLE_DATA, or ../shared/data if it is there.",
)
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if the shipped files are not what the sources give.")
def build_command(data: Path | None, check: bool) -> None:
    """Make the shipped catalog from its sources, and print how wrong its estimates of interruptions are."""
    if data is None and NEAR.is_dir():
        data = NEAR
    if data is None:
        raise click.UsageError("where are the sources? Name their folder with --data or CRUCIBLE_DATA.")
    try:
        differing = _run(data, check)
    except (PlatformError, OSError) as error:
        raise click.ClickException(str(error)) from error
    if check and differing:
        raise SystemExit(1)


def _run(data: Path, check: bool) -> tuple[str, ...]:
    from crucible.catalog import backtest, build  # numpy and the readers: only when something is built

    report = (build.make if check else build.build)(data, facts.SHIPPED)
    for line in (*_told(report), *backtest.lines(data, facts.SHIPPED)):
        click.echo(line)
    if not report.differing:
        click.echo("The shipped files are what the sources give.")
    elif check:
        click.echo(f"Not what the sources give: {', '.join(report.differing)}; run crucible prices build.")
    else:
        click.echo(f"Written: {', '.join(report.differing)}.")
    return report.differing


def _told(report: "Report") -> Iterator[str]:
    by_provider = ", ".join(f"{name} {count}" for name, count in sorted(report.rows.items()))
    yield f"{sum(report.rows.values())} prices of {report.types} types: {by_provider}"
    for reason, count in sorted(report.dropped.items(), key=lambda item: -item[1]):
        yield f"left out {count}: {reason}"
