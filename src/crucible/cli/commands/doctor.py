"""Checks an installation from this side: what works, what does not, how to mend it. Starts and changes nothing."""

import click

from crucible.cli import exits
from crucible.cli.options import example, with_output
from crucible.cli.output import Out


@click.command(epilog=example("crucible doctor", "crucible doctor aws", "crucible doctor -o json"))
@click.argument("provider", required=False)
@with_output
def doctor(out: Out, provider: str | None) -> int:
    """Check this installation, or what a PROVIDER needs, and say how to mend it.

    With a provider, such as aws, the server asks it now in every region that is enabled: credentials, rights, networks,
    images, quotas. The exit code is 1 if something that is needed is broken.
    """
    from crucible.cli.checkup import BAD, Check, checkup
    from crucible.cli.provider_checks import provider_checkup

    checks = list(provider_checkup(provider) if provider else checkup())
    signs = {"ok": ("✓", "ok", "green"), "warning": ("!", "!", "yellow"), BAD: ("✗", "x", "red")}

    def line(check: Check) -> str:
        sign, plain, colour = signs[check.state]
        fix = f"\n    {check.fix}" if check.fix else ""
        return f"{out.paint(colour, out.symbol(sign, plain))} {check.name}: {check.said}{fix}"

    out.show([check._asdict() for check in checks], lambda: [line(check) for check in checks])
    return exits.ERROR if any(check.state == BAD for check in checks) else exits.OK
