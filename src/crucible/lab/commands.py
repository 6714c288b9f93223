"""`crucible lab`: start a cloud that costs nothing, look at it, break it, stop it. Everything but starting is asked
through the Lab's own door."""

import os
import shlex
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crucible.cli import exits
from crucible.cli.options import example, with_output
from crucible.cli.output import Out
from crucible.lab import options
from crucible.lab.fault_kinds import KINDS, FaultKind
from crucible.lab.options import home_option, lab_options
from crucible.model.errors import InvalidRequest, PlatformError

if TYPE_CHECKING:
    from crucible.lab.running import Control, LocalLab

FOLLOW_EVERY_S = 0.5


def _kinds() -> str:
    """All of them, so that nobody needs another page to try one."""
    indent = " " * 23
    lines = [f"  {kind:<20} {textwrap.fill(KINDS[kind].does, 55, subsequent_indent=indent)}" for kind in FaultKind]
    return "\b\nKinds:\n" + "\n".join(lines)


@click.group(
    "lab",
    epilog=example(
        "crucible lab up",
        'eval "$(crucible lab env aws)"',
        "aws ec2 describe-instances",
        "crucible lab bill",
        "crucible lab down",
    ),
)
def lab_command() -> None:
    """A cloud on this computer that costs nothing.

    It speaks Amazon's own protocol, so that unmodified clients and Crucible's server buy from it: machines are real
    processes that run their user-data, spot machines are taken away, and a bill is kept to the millionth of a dollar.
    """


@lab_command.command(
    epilog=example("crucible lab up", "crucible lab up --speed 60 --hazard 20", "crucible lab up -o json")
)
@lab_options
@with_output
def up(out: Out, data_dir: Path | None, **given: Any) -> None:
    """Start it in the background and say what to do next. A second one changes nothing."""
    from crucible.lab import views

    lab = _local(data_dir)
    running, is_new = lab.start(options.words(given))
    value = {"started": is_new, "url": running.url, "pid": running.pid, "account": running.account}
    value |= {"regions": list(running.regions), "data_dir": str(lab.home), "version": running.version}
    out.show(value, lambda: views.up(running, is_new))
    if not is_new:
        out.note("it goes on as it was started; crucible lab down first, to start it otherwise")


@lab_command.command(epilog=example("crucible lab down"))
@home_option
@with_output
def down(out: Out, data_dir: Path | None) -> None:
    """Stop it and every machine in it. What they had is gone, and so is the bill."""
    stopped = _local(data_dir).stop()
    if stopped is None:
        out.note("no Lab is running")
        if out.is_for_programs:
            out.show({"stopped": None}, list)
    else:
        out.show({"stopped": stopped.pid}, lambda: [f"stopped (pid {stopped.pid})"])


@lab_command.command("run", epilog=example("crucible lab run --port 4566"))
@lab_options
def run_command(data_dir: Path | None, **given: Any) -> None:
    """Run it in the foreground until Ctrl-C."""
    import logging

    from crucible.lab import daemon

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        daemon.run(options.settings_of(_local(data_dir).home, **given))
    except (PlatformError, ValueError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(exits.USAGE if isinstance(error, InvalidRequest | ValueError) else exits.ERROR)


@lab_command.command(
    short_help="Exports that make clients of a cloud talk to the Lab.",
    epilog=example('eval "$(crucible lab env aws)"', 'eval "$(crucible lab env gcs)"', "crucible lab env aws -o json"),
)
@click.argument("cloud", type=click.Choice(["aws", "gcs"]))
@home_option
@with_output
def env(out: Out, cloud: str, data_dir: Path | None) -> None:
    """Print what makes clients of CLOUD talk to the Lab, as exports for a shell."""
    given = _local(data_dir).needed().environment() if cloud == "aws" else _control(data_dir).storage()
    out.show(given, lambda: [f"export {name}={shlex.quote(value)}" for name, value in given.items()])


@lab_command.command(epilog=example("crucible lab status", "crucible lab status --all -o json"))
@click.option("-a", "--all", "is_everything", is_flag=True, help="Ended machines too.")
@home_option
@with_output
def status(out: Out, data_dir: Path | None, is_everything: bool) -> int:
    """Say whether it runs, and which machines it has. The exit code is 1 if it does not run."""
    from crucible.lab import views

    lab = _local(data_dir)
    if lab.running() is None:
        out.show({"running": False, "data_dir": str(lab.home)}, lambda: [f"not running ({lab.home})"])
        return exits.ERROR
    value = {"running": True, "data_dir": str(lab.home), **_control(data_dir).status(is_everything=is_everything)}
    out.show(value, lambda: views.status(value, out.width))
    return exits.OK


@lab_command.command(
    short_help="What happened, to everything or to one machine.",
    epilog=example("crucible lab events", "crucible lab events -f", "crucible lab events i-0abc"),
)
@click.argument("subject", required=False, metavar="[MACHINE]")
@click.option("-f", "--follow", is_flag=True, help="Go on until Ctrl-C.")
@click.option("--after", type=click.IntRange(0), default=0, metavar="N", help="Only those with a higher number.")
@home_option
@with_output
def events(out: Out, data_dir: Path | None, subject: str | None, follow: bool, after: int) -> None:
    """What happened: launches, refusals, notices, ends, faults, and how user-data ended."""
    from crucible.lab import views

    control = _control(data_dir)
    items = control.events(after, subject)
    if not follow:
        out.show({"items": items}, lambda: views.events(items, out.width))
        return
    while True:
        for item in items:
            after = item["number"]
            out.record(item) if out.is_for_programs else out.live(views.event_line(item) + "\n")
        time.sleep(FOLLOW_EVERY_S)
        items = control.events(after, subject)


@lab_command.command(epilog=example("crucible lab bill", "crucible lab bill -o json"))
@home_option
@with_output
def bill(out: Out, data_dir: Path | None) -> None:
    """What everything came to until now, by the seller's own rules."""
    from crucible.lab import views

    value = _control(data_dir).bill()
    out.show(value, lambda: views.bill(value, out.width))


@lab_command.command(epilog=example("crucible lab console i-0abc"))
@click.argument("machine")
@home_option
@with_output
def console(out: Out, data_dir: Path | None, machine: str) -> None:
    """Print what a machine's user-data wrote, the last 64 KiB of it."""
    from crucible.lab import views

    text = _control(data_dir).console(machine)
    out.show({"machine": machine, "text": text}, lambda: views.console(text))


@lab_command.command(
    epilog=example(
        "crucible lab preempt i-0abc",
        "crucible lab preempt i-0abc --notice 0s",
        "crucible lab preempt --type 'g5.*' --count 3",
    )
)
@click.argument("machines", nargs=-1, metavar="[MACHINE]...")
@click.option("--all", "is_everything", is_flag=True, help="Every spot machine.")
@click.option("--type", metavar="PATTERN", help="Spot machines of these types.")
@click.option("--region", metavar="PATTERN", help="Spot machines in these regions.")
@click.option("--tag", metavar="NAME[=VALUE]", help="Spot machines with this tag.")
@click.option("--count", type=click.IntRange(1), help="At most so many, the oldest first.")
@click.option("--notice", metavar="TIME", help="Told so long before; 0s: not at all.  [default: 2m]")
@home_option
@with_output
def preempt(
    out: Out, data_dir: Path | None, machines: tuple[str, ...], is_everything: bool, notice: str | None, **fitting: Any
) -> None:
    """Take spot machines away, as the seller does when others pay more."""
    from crucible.lab import views

    has_pattern = any(value is not None for value in fitting.values())
    if bool(machines) == (has_pattern or is_everything):
        raise click.UsageError("name machines, or say which: --all, --type, --region, --tag, --count")
    notice_s = None if notice is None else _duration("--notice", notice)
    control = _control(data_dir)
    taken = control.preempt(*machines, notice_s=notice_s, **fitting)
    out.show({"items": taken}, lambda: views.taken(taken))
    if not taken:
        out.note("no spot machine fits")


@lab_command.command(
    epilog=_kinds()
    + "\n\n"
    + example(
        "crucible lab fail --kind lost-reply --operation RunInstances --count 1",
        "crucible lab fail --kind throttle --probability 0.2 --for 5m",
        "crucible lab fail --list",
        "crucible lab fail --clear",
    )
)
@click.option("--kind", metavar="KIND", help="What goes wrong; see below.")
@click.option("--operation", metavar="PATTERN", help="In which requests, such as RunInstances or Describe*.")
@click.option("--probability", type=float, metavar="P", help="Of each time.  [default: 1]")
@click.option("--count", type=int, metavar="N", help="So often, then no more.")
@click.option("--for", "for_", metavar="TIME", help="So long: 90s, 5m, 1h.")
@click.option("--at", metavar="TIME", help="Beginning so much later.")
@click.option("--seconds", metavar="S", help="How late, how long, how wrong: 30, or 0..60.")
@click.option("--status", type=int, metavar="CODE", help="The answer of a server error: 500 or 503.")
@click.option("--machine", metavar="ID", help="Only this machine.")
@click.option("--tag", metavar="NAME[=VALUE]", help="Only machines with this tag.")
@click.option("--region", metavar="PATTERN", help="Only there.")
@click.option("--type", metavar="PATTERN", help="Only machines of these types.")
@click.option("--list", "is_list", is_flag=True, help="Show the rules and how often each struck.")
@click.option("--clear", is_flag=False, flag_value="", metavar="[RULE]", help="Remove a rule, or all.")
@home_option
@with_output
def fail(out: Out, data_dir: Path | None, is_list: bool, clear: str | None, for_: str | None, **fields: Any) -> None:
    """Make something go wrong, from now on or for a while."""
    from crucible.lab import views

    said = {name: value for name, value in {**fields, "for": for_}.items() if value is not None}
    if (clear is not None) + is_list + bool(said) != 1:
        raise click.UsageError("say what goes wrong with --kind, or use --list or --clear alone")
    control = _control(data_dir)
    if clear is not None:
        count = control.clear_faults(clear or None)
        out.show({"cleared": count}, lambda: [f"cleared {count} rule{'' if count == 1 else 's'}"])
    elif is_list:
        rules = control.faults()
        out.show({"items": rules}, lambda: views.rules(rules, out.width))
    else:
        if "kind" not in said:
            raise click.UsageError("--kind is missing")
        rule = control.fail(**said)
        out.show(rule, lambda: [f"{rule['id']}: {views.rule_words(rule)}"])


# --- the Lab that is meant ------------------------------------------------------------------------------------


def _local(data_dir: Path | None) -> "LocalLab":
    from crucible.lab.running import LocalLab

    return LocalLab(data_dir.absolute()) if data_dir is not None else LocalLab.of(os.environ)


def _control(data_dir: Path | None) -> "Control":
    """Closed when the command ends."""
    from crucible.lab.running import Control

    control = Control(_local(data_dir).needed())
    click.get_current_context().call_on_close(control.close)
    return control


def _duration(option: str, text: str) -> float:
    from crucible.lab.fault_rules import BadRule, read_duration

    try:
        seconds = read_duration(option, text)
    except BadRule as bad:
        raise click.BadParameter(f"{bad.message}: {bad.hint}", param_hint=option) from None
    if seconds < 0:
        raise click.BadParameter("cannot be negative", param_hint=option)
    return seconds
