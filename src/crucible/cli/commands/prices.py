"""Prices: what they are, where they are from, how they went."""

import importlib
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import click

from crucible.cli import exits
from crucible.cli.commands.logs import since_when
from crucible.cli.options import example, with_output
from crucible.cli.output import Out

if TYPE_CHECKING:
    from crucible.client.price_shapes import PricePage

MARKETS = ("on_demand", "spot", "reserved")
BUILD = "build"
PAGE = 500  # what the server gives at a time

provider_option = click.option("--provider", help="Only this one.")
region_option = click.option("--region", help="Only this one, as the provider writes it.")
market_option = click.option("--market", type=click.Choice(MARKETS), help="Only this one.")


class PricesGroup(click.Group):
    """`build` is the server's: it is listed without being loaded."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), BUILD]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _build() if cmd_name == BUILD else super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, command.get_short_help_str(80)) for name, command in self.commands.items()]
        rows.append((BUILD, "Make the shipped catalog anew from its sources"))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(
    cls=PricesGroup,
    epilog=example("crucible prices show --gpu H100", "crucible prices refresh", "crucible prices history p5.48xlarge"),
)
def prices() -> None:
    """Prices: what they are and how old, whence, and how they went."""


@prices.command(epilog=example("crucible prices show --provider aws --gpu H100:8 --market spot"))
@provider_option
@region_option
@market_option
@click.option("--instance-type", metavar="NAME", help="Only this one.")
@click.option("--gpu", metavar="GPU[:N]", help="Such a GPU, and how many of them in one machine: H100, A100-80GB:8.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="At most so many.")
@with_output
def show(
    out: Out,
    provider: str | None,
    region: str | None,
    market: str | None,
    instance_type: str | None,
    gpu: str | None,
    limit: int,
) -> None:
    """Every price with its age: the shipped catalog, and what sources have told since."""
    from crucible.cli.session import connect
    from crucible.cli.views.prices import price_note, price_table

    with connect(out) as client:

        def page(count: int, cursor: str | None) -> "PricePage":
            return client.prices(
                provider=provider,
                region=region,
                market=market,
                instance_type=instance_type,
                gpu=gpu,
                limit=min(count, PAGE),
                cursor=cursor,
            )

        first = page(limit, None)
        found, cursor, summary = first["items"], first["next_cursor"], first["summary"]
        while cursor and len(found) < limit:
            more = page(limit - len(found), cursor)
            found, cursor = [*found, *more["items"]], more["next_cursor"]
    out.show({"items": found, "summary": summary}, lambda: price_table(found, out.width, partial(out.paint, "yellow")))
    if not out.is_for_programs:
        out.note(price_note(len(found), summary, datetime.now(UTC)))


@prices.command(epilog=example("crucible prices refresh"))
@with_output
def refresh(out: Out) -> int:
    """Ask every source now; admins only. It happens every quarter of an hour anyway.

    The exit code is 7 if a source failed; what the others told is stored all the same.
    """
    from crucible.cli.session import connect
    from crucible.cli.views.prices import refreshed_table

    with connect(out) as client:
        done = client.refresh_prices()
    out.show({"items": done}, lambda: refreshed_table(done, out.width))
    if not done:
        out.note("no source is configured: prices are those of the shipped catalog; see crucible server run --help")
    for one in done:
        if unknown := one.get("unknown_types"):
            out.note(f"{one['source']}: the catalog does not know {', '.join(unknown)}; no plan can use them")
    return exits.PROVIDER if any(one["error"] for one in done) else exits.OK


@prices.command(epilog=example("crucible prices sources"))
@with_output
def sources(out: Out) -> None:
    """Who tells prices, and how the last meeting went.

    Where two tell a price of the same thing, the first of them is believed.
    """
    from crucible.cli.session import connect
    from crucible.cli.views.prices import source_table

    with connect(out) as client:
        said = client.price_sources()
    out.show(said, lambda: source_table(said["items"], datetime.now(UTC), out.width))
    if not said["items"] and not out.is_for_programs:
        out.note("no source is configured: prices are those of the shipped catalog; see crucible server run --help")


@prices.command(
    epilog=example(
        "crucible prices history p5.48xlarge", "crucible prices history p5.48xlarge --market spot --since 7d"
    )
)
@click.argument("instance_type", metavar="INSTANCE_TYPE")
@provider_option
@region_option
@market_option
@click.option("--since", callback=since_when, metavar="TIME", help="Changes from then on, or so long ago: 12h, 7d.")
@with_output
def history(
    out: Out, instance_type: str, provider: str | None, region: str | None, market: str | None, since: str | None
) -> None:
    """How the prices of one type of machine went.

    Only changes that were told to this server are known.
    """
    from crucible.cli.session import connect
    from crucible.cli.views.prices import history_table

    with connect(out) as client:
        found = client.price_history(
            provider=provider, region=region, instance_type=instance_type, market=market, since=since
        )
    is_plain = not out.symbol("█", "")
    out.show({"items": found}, lambda: history_table(found, datetime.now(UTC), out.width, is_plain=is_plain))
    if not found and not out.is_for_programs:
        out.note(
            f"no change of a price of {instance_type} was told to this server; crucible prices sources says by whom"
        )


def _build() -> click.Command:
    from crucible.client.embedded import check_installed

    check_installed()
    command = importlib.import_module("crucible.catalog.commands").build_command
    assert isinstance(command, click.Command)
    return command
