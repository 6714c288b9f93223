"""Budgets: to look at them, to set one, to add to it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from crucible.cli.options import example, with_output
from crucible.cli.output import Out

if TYPE_CHECKING:
    from crucible.client.api import Client
    from crucible.client.budget_shapes import Budget

SCOPES = ("job", "project", "team", "user", "server")
# Of a top-up, while others change the same budget.
TRIES = 5


class Shares(click.ParamType[tuple[float, ...]]):
    name = "shares"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        try:
            found = tuple(float(word) for word in str(value).split(",") if word.strip())
        except ValueError:
            self.fail(f"{value} are no shares; write such as 0.5,0.8,0.95", param, ctx)
        if any(not 0 < share <= 1 for share in found):
            self.fail("a share is above 0 and at most 1: 0.8 is four fifths of the limit", param, ctx)
        return found


class Dollars(click.ParamType[float]):
    name = "amount"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            found = float(str(value).removeprefix("$").replace(",", ""))
        except ValueError:
            self.fail(f"{value} is no amount in US dollars; write such as 500 or 99.50", param, ctx)
        if not 0 <= found <= 1_000_000_000:
            self.fail("an amount is from 0 to a billion dollars", param, ctx)
        return found


@click.group(
    epilog=example(
        "crucible budget ls",
        "crucible budget set team:vision 500 --per month",
        "crucible budget set project:llama 2000 --warn 0.5,0.8 --when-spent stop",
        "crucible budget show team:vision",
        "crucible budget top-up team:vision 100",
    )
)
def budget() -> None:
    """What may be spent on a team, project, user, job or the server.

    A budget is kept, not only told of: jobs save and stop while there is still the money for it. Paused ones go on when
    there is more. Several may cover a job; the tightest counts."""


@budget.command("ls", epilog=example("crucible budget ls", "crucible budget ls -o json"))
@with_output
def list_budgets(out: Out) -> None:
    """Those that concern you, and what is left of each."""
    from crucible.cli.session import connect
    from crucible.cli.views.budgets import budget_table

    with connect(out) as client:
        found = client.budgets()
    out.show({"items": found}, lambda: budget_table(found, out.width))
    if not found:
        out.note("no budgets; `crucible budget set team:NAME AMOUNT --per month` makes one")


@budget.command(epilog=example("crucible budget show team:vision", "crucible budget show job:0192f3a4 -o json"))
@click.argument("which", metavar="BUDGET")
@with_output
def show(out: Out, which: str) -> None:
    """One of them: spent, kept back, left, and when it runs out."""
    from crucible.cli.session import connect
    from crucible.cli.views.budgets import budget_page

    with connect(out) as client:
        found = find(client, which)
    out.show(found, lambda: budget_page(found))


@budget.command(
    "set",
    epilog=example(
        "crucible budget set team:vision 500 --per month --warn 0.5,0.8 --when-spent pause",
        "crucible budget set user:ada 50",
        "crucible budget set job:0192f3a4 30",
        "crucible budget set server 20000 --per month",
    ),
)
@click.argument("whose", metavar="SCOPE:NAME")
@click.argument("limit", metavar="AMOUNT", type=Dollars())
@click.option("--per", type=click.Choice(["month", "once"]), default="once", help="Of the calendar, UTC.  [once]")
@click.option("--warn", type=Shares(), metavar="SHARES", help="Tell of these shares.  [0.5,0.8,0.95]")
@click.option("--when-spent", type=click.Choice(["pause", "stop"]), help="What becomes of the jobs.  [pause]")
@with_output
def set_budget(
    out: Out, whose: str, limit: float, per: str, warn: Sequence[float] | None, when_spent: str | None
) -> None:
    """Make a budget, or change it.

    SCOPE is team, project, user, job or server; a server has no NAME. It counts what is spent from now on; with --per
    month, from the first of each month; of a job, everything."""
    from crucible.cli.session import connect
    from crucible.cli.views.budgets import budget_line

    scope, name = parted(whose)
    with connect(out) as client:
        name = of_job(client, name) if scope == "job" else name
        made = put(client, (scope, name, per), limit, when_spent, warn)
    out.show(made, lambda: [budget_line(made)])


@budget.command(
    "top-up", epilog=example("crucible budget top-up team:vision 100", "crucible budget top-up job:0192f3a4 5")
)
@click.argument("which", metavar="BUDGET")
@click.argument("amount", type=Dollars())
@with_output
def top_up(out: Out, which: str, amount: float) -> None:
    """Add to its limit. What it has paused goes on."""
    if not amount:
        raise click.UsageError("0 adds nothing to it")
    from crucible.cli.session import connect
    from crucible.cli.views.budgets import budget_line

    with connect(out) as client:
        made = topped_up(client, which, amount)
    out.show(made, lambda: [budget_line(made)])


@budget.command(epilog=example("crucible budget rm team:vision"))
@click.argument("which", metavar="BUDGET...", nargs=-1, required=True)
@with_output
def rm(out: Out, which: tuple[str, ...]) -> None:
    """Remove budgets. Jobs that they have paused go on."""
    from crucible.cli.session import connect

    with connect(out) as client:
        ids = [find(client, one)["id"] for one in which]
        for one in ids:
            client.remove_budget(one)
    out.show({"removed": ids}, lambda: [f"removed {one}" for one in ids])


def put(
    client: "Client", key: tuple[str, str, str], limit: float, when_spent: str | None, warn: Sequence[float] | None
) -> "Budget":
    """A new one, or the one that is there as it should be."""
    from crucible.model.errors import Conflict

    scope, name, period = key
    try:
        return client.add_budget(scope, name, limit, period=period, when_spent=when_spent, thresholds=warn)
    except Conflict:
        same = (one["id"] for one in client.budgets() if (one["scope"], one["name"], one["period"]) == key)
        return client.change_budget(next(same), limit_usd=limit, when_spent=when_spent, thresholds=warn)


# --- which one ------------------------------------------------------------------------------------------------


def parted(whose: str) -> tuple[str, str]:
    scope, _, name = whose.partition(":")
    if scope not in SCOPES or (scope == "server") != (not name):
        raise click.BadParameter(f"{whose} is not one of {', '.join(f'{one}:NAME' for one in SCOPES[:-1])}, server")
    return scope, name


def of_job(client: "Client", text: str) -> str:
    from crucible.client.lookup import find_job

    return find_job(client, text)


def find(client: "Client", which: str) -> "Budget":
    """By its id, or without the period where that is enough. A job goes by its name too."""
    from crucible.model.errors import NotFound

    scope, _, name = which.partition(":")
    which = f"job:{of_job(client, name)}" if scope == "job" else which
    try:
        return client.budget(which)
    except NotFound:
        alike = [one for one in client.budgets() if one["id"].startswith(f"{which}:")]
        if len(alike) == 1:
            return alike[0]
        if alike:
            names = ", ".join(one["id"] for one in alike)
            raise click.UsageError(f"{which} has several budgets: {names}; say which") from None
        raise


def topped_up(client: "Client", which: str, amount: float) -> "Budget":
    """Once, whatever others do to it meanwhile."""
    from crucible.model.errors import StaleVersion

    for _ in range(TRIES):
        known = find(client, which)
        limit = (known["limit_microusd"] + round(amount * 1_000_000)) / 1_000_000
        try:
            return client.change_budget(known["id"], limit_usd=limit, version=known["version"])
        except StaleVersion:
            continue
    raise StaleVersion(f"the budget {which} is changing too quickly; try again")
