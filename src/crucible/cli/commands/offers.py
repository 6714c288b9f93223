"""What could be bought."""

from functools import partial

import click

from crucible.cli import exits
from crucible.cli.options import example, with_output
from crucible.cli.output import Out

GROUPS = ("provider", "region", "gpu", "instance_type")
SORTS = ("gpu_price", "price", "name")


@click.command(
    epilog=example(
        "crucible offers --gpu H100:8",
        "crucible offers --gpu A100 --spot --max-price 12 --region us-east-1",
        "crucible offers --gpu H100 --group-by provider",
    )
)
@click.option("--gpu", metavar="GPU[:N]", help="Such a GPU, and how many of them in one machine: H100, A100-80GB:8.")
@click.option("--provider", help="Only this one.")
@click.option("--region", help="Only this one, as the provider writes it.")
@click.option("--instance-type", metavar="NAME", help="Only this one.")
@click.option("--spot/--on-demand", default=None, help="Only what may be taken away, or only what may not.")
@click.option("--max-price", type=click.FloatRange(0), metavar="$/H", help="Of one machine for an hour.")
@click.option("--gpu-memory", type=click.FloatRange(0), metavar="GB", help="Of one GPU at least.")
@click.option("--group-by", type=click.Choice(GROUPS), help="Only the best of each.")
@click.option("--sort", type=click.Choice(SORTS), default="gpu_price", show_default=True, help="What comes first.")
@click.option("--limit", type=click.IntRange(1, 500), default=20, show_default=True, help="At most so many.")
@with_output
def offers(
    out: Out,
    gpu: str | None,
    provider: str | None,
    region: str | None,
    instance_type: str | None,
    spot: bool | None,
    max_price: float | None,
    gpu_memory: float | None,
    group_by: str | None,
    sort: str,
    limit: int,
) -> int:
    """What could be bought now, the cheapest GPU first.

    A tick marks providers that this server can buy from. The exit code is 3 if nothing matches.
    """
    from crucible.cli.session import connect
    from crucible.cli.views.prices import group_table, offer_note, offer_table

    paint = partial(out.paint, "yellow")
    with connect(out) as client:
        found = client.offers(
            gpu=gpu,
            provider=provider,
            region=region,
            instance_type=instance_type,
            spot=spot,
            max_price=max_price,
            gpu_memory=gpu_memory,
            group_by=group_by,
            sort=sort,
            limit=limit,
        )

    def drawn() -> list[str]:
        if group_by:
            return group_table(found["groups"], group_by, out.width, paint)
        return offer_table(found["items"], out.width, out.symbol("✓", "*"), paint)

    out.show(found, drawn)
    if not found["matched"]:
        out.note(f"none of {found['total']:,} offers match; crucible offers --group-by gpu shows what there is")
        return exits.NO_OFFER
    if not out.is_for_programs:
        out.note(offer_note(found))
    return exits.OK
