"""The command tree. A table says where each command lives; a command's module is imported when it is called or asked
for help, never to list it."""

import importlib
from typing import NamedTuple

import click

from crucible import __version__

# Server-side programs offer their commands here, so that the thin client need not know them.
ENTRY_POINTS = "crucible.commands"


class Entry(NamedTuple):
    where: str  # "module:attribute" below crucible.cli.commands, or of all of crucible
    summary: str
    section: str


SUBMIT, LOOK, REACH, CHANGE, SETUP = "Run", "Look", "Reach", "Change", "Set up"

COMMANDS: dict[str, Entry] = {
    "submit": Entry("submit:submit", "Run a job: show the plan, ask, send it, follow its log", SUBMIT),
    "plan": Entry("plan:plan", "Show where a job would run, what it would cost, and why", SUBMIT),
    "offers": Entry("offers:offers", "What could be bought now, the cheapest GPU first", SUBMIT),
    "compare": Entry("compare:compare", "Providers side by side: the cheapest way to hold so many GPUs", SUBMIT),
    "prices": Entry("prices:prices", "Prices: what they are and how old, whence, and how they went", SUBMIT),
    "recommend": Entry("recommend:recommend", "Say what a script needs and where it should run", SUBMIT),
    "validate": Entry("validate:validate", "Check job files without a server", SUBMIT),
    "template": Entry("templates:template", "Jobs to fill in", SUBMIT),
    "spec": Entry("spec:spec", "Print an example job file, or the schema for an editor", SUBMIT),
    "ps": Entry("ps:ps", "List jobs", LOOK),
    "top": Entry("top:top", "Everything that runs, live: progress, use, cost, what is wrong", LOOK),
    "dashboard": Entry("dashboard:dashboard", "Open the page in a browser, signed in", LOOK),
    "describe": Entry("describe:describe", "Everything about one job", LOOK),
    "why": Entry("why:why", "Why a job is in the state it is in", LOOK),
    "logs": Entry("logs:logs", "Print or follow what a job wrote", LOOK),
    "events": Entry("events:events", "What happened to a job, and when", LOOK),
    "metrics": Entry("metrics:metrics", "What a job measured: loss, accuracy, speed", LOOK),
    "tasks": Entry("tasks:tasks", "The tasks of a job: what each was given, how far it is, where it runs", LOOK),
    "sweep": Entry("sweep:sweep", "How a hyper-parameter search stands, its best trial, its trials drawn", LOOK),
    "eval": Entry("evaluation:evaluation", "The table of an evaluation: models, datasets, a baseline", LOOK),
    "wait": Entry("wait:wait", "Wait for a job; the exit code says how it ended", LOOK),
    "accuracy": Entry("accuracy:accuracy", "How far estimates were from what jobs took", LOOK),
    "costs": Entry("costs:costs", "What was spent, by whatever you ask for; with a job: what it costs", LOOK),
    "savings": Entry("savings:savings", "What was saved against prices on demand; below it, what could be", LOOK),
    "budget": Entry("budget:budget", "What may be spent on a team, project, user, job or the server", LOOK),
    "checkpoints": Entry("checkpoints:checkpoints", "List, fetch, check and remove checkpoints", LOOK),
    "outputs": Entry("outputs:outputs", "List and fetch what the tasks of a job have left", LOOK),
    "launch-script": Entry(
        "launch_script:launch_script", "Print the script that starts a job, to run it by hand", LOOK
    ),
    "dataset": Entry("datasets:dataset", "Add, list, show and remove datasets", LOOK),
    "results": Entry("shards:results", "What came of a job's items, in their order; or what failed", LOOK),
    "shards": Entry("shards:shards", "How far a job is with its items, shard by shard", LOOK),
    "workflow": Entry("workflow:workflow", "Draw the steps of a workflow, and what became of each", LOOK),
    "artifacts": Entry("records:artifacts", "Files a job has left behind", LOOK),
    "nodes": Entry("nodes:nodes", "Machines that work or could work", LOOK),
    "ssh": Entry("visit:ssh", "Open a shell where a rank runs", REACH),
    "exec": Entry("visit:exec_command", "Run a command where a rank runs", REACH),
    "cp": Entry("cp:cp", "Copy a file or folder to or from a running job", REACH),
    "port-forward": Entry("forward:port_forward", "Reach a port of a rank's machine at a port of this computer", REACH),
    "cancel": Entry("control:cancel", "Stop jobs for good", CHANGE),
    "hold": Entry("control:hold", "Stop jobs until they are released", CHANGE),
    "keep": Entry("keep:keep", "Keep jobs however old they get; without a JOB, list them", CHANGE),
    "unkeep": Entry("keep:unkeep", "Let kept jobs go when they are old", CHANGE),
    "release": Entry("control:release", "Let held jobs go on", CHANGE),
    "retry": Entry("control:retry", "Run a finished job again from the start, as a new job", CHANGE),
    "resume": Entry("control:resume", "Run a finished job on from its newest checkpoint, as a new job", CHANGE),
    "server": Entry("server:server", "Run, start, stop or look at the local server", SETUP),
    "alert": Entry("alerts:alert", "Who is told of failures, budgets, prices and more", SETUP),
    "login": Entry("account:login", "Use a server that runs elsewhere", SETUP),
    "logout": Entry("account:logout", "Forget that server and use the local one again", SETUP),
    "hosts": Entry("hosts:hosts", "Your own computers, reached over SSH: add, list, check, drain, remove", SETUP),
    "team": Entry("team:team", "Who works together, and pays together", SETUP),
    "project": Entry("project:project", "What costs are counted under", SETUP),
    "user": Entry("user:user", "Make, list and disable users", SETUP),
    "secret": Entry("secrets:secret", "Set, list and remove secrets that jobs use", SETUP),
    "token": Entry("token:token", "Make, list and revoke access tokens", SETUP),
    "audit": Entry("audit:audit", "Who changed what, newest first", SETUP),
    "retention": Entry("retention:retention", "How long things are kept, and what is removed (admins)", SETUP),
    "lab": Entry("crucible.lab.commands:lab_command", "A cloud on this computer that costs nothing", SETUP),
    "health": Entry("health:health", "How the system is: providers, loops, queues, ledger, database", SETUP),
    "doctor": Entry("doctor:doctor", "Check this installation, or what a PROVIDER needs", SETUP),
    "completion": Entry("completion:completion", "Print the completion script of a shell", SETUP),
    "version": Entry("version:version", "Versions of this client and its server", SETUP),
}

# What people type who come from SkyPilot, kubectl, dstack or Slurm.
ALIASES = {"launch": "submit", "apply": "submit", "run": "submit", "status": "ps", "check": "doctor"}


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *ALIASES]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(ALIASES.get(cmd_name, cmd_name))
        return _load(entry.where) if entry is not None else from_entry_points(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            ctx.fail(f"there is no command {name!r}{_nearest(name)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, COMMANDS))
        for section in (SUBMIT, LOOK, REACH, CHANGE, SETUP):
            listed = [(name, entry) for name, entry in COMMANDS.items() if entry.section == section]
            with formatter.section(section):
                formatter.write_dl([(name.ljust(widest), entry.summary + _also(name)) for name, entry in listed])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="crucible", message="%(prog)s %(version)s")
def root() -> None:
    """Run machine-learning jobs on whatever GPUs are the best buy right now.

    \b
    crucible spec example > job.yaml    a job file to start from
    crucible submit job.yaml            plan, run, follow
    crucible ps                         what runs
    """


def _also(name: str) -> str:
    aliases = [alias for alias, target in ALIASES.items() if target == name]
    return f" (also: {', '.join(aliases)})" if aliases else ""


def _load(where: str) -> click.Command:
    module, attribute = where.split(":")
    path = module if "." in module else f"crucible.cli.commands.{module}"
    command = getattr(importlib.import_module(path), attribute)
    assert isinstance(command, click.Command)
    return command


def from_entry_points(name: str) -> click.Command | None:
    from importlib.metadata import entry_points  # costs as much as click itself: only for names we do not know

    for point in entry_points(group=ENTRY_POINTS, name=name):
        found = point.load()
        return found if isinstance(found, click.Command) else None
    return None


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, [*COMMANDS, *ALIASES], n=1)
    return f"; did you mean {close[0]}?" if close else ""
