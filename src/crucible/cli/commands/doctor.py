"""Checks an installation from this side: what works, what does not, how to mend it. Starts and changes nothing."""

import click

from crucible.cli import exits
from crucible.cli.options import example, with_output
from crucible.cli.output import Out


@click.command(epilog=example("crucible doctor", "crucible doctor -o json"))
@with_output
def doctor(out: Out) -> int:
    """Check this installation and say how to mend it.

    The exit code is 1 if something that is needed is broken.
    """
    from crucible.cli.checkup import BAD, Check, checkup

    checks = list(checkup())
    signs = {"ok": ("✓", "ok", "green"), "warning": ("!", "!", "yellow"), BAD: ("✗", "x", "red")}

    def line(check: Check) -> str:
        sign, plain, colour = signs[check.state]
        fix = f"\n    {check.fix}" if check.fix else ""
        return f"{out.paint(colour, out.symbol(sign, plain))} {check.name}: {check.said}{fix}"

    out.show([check._asdict() for check in checks], lambda: [line(check) for check in checks])
    return exits.ERROR if any(check.state == BAD for check in checks) else exits.OK
