"""What a person may say when a server is started: the options of `crucible server`, with the variables of the
environment that stand for them. What they come to is in `settings.py`."""

from collections.abc import Callable
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import click

from crucible.api.limits import RateLimits
from crucible.engine.context import CLAIM_TTL
from crucible.model.policy import Policy
from crucible.model.units import GIB
from crucible.settings import Settings

Command = TypeVar("Command", bound=Callable[..., Any])

LABEL_LENGTH = 24  # what fits beside the name on a phone


def server_options(command: Command) -> Command:
    """In the order in which `--help` shows them."""
    return reduce(lambda decorated, option: option(decorated), reversed(OPTIONS), command)


def settings_from(
    *,
    data_dir: Path,
    rate_limit: float,
    agent_rate_limit: float,
    stranger_rate_limit: float,
    claim_ttl: float,
    silence: float,
    **same: Any,
) -> Settings:
    """`same` are the options whose setting has their name and value."""
    return Settings(
        data_dir=data_dir.absolute(),
        rate_limits=RateLimits(person=rate_limit, agent=agent_rate_limit, stranger=stranger_rate_limit),
        claim_ttl=timedelta(seconds=claim_ttl),
        silence=timedelta(seconds=silence),
        **same,
    )


def named(context: click.Context, option: click.Parameter, value: str) -> tuple[str, ...]:
    names = tuple(word.strip() for word in value.split(",") if word.strip())
    if not names:
        raise click.BadParameter("name at least one provider: local, onprem, slurm, aws")
    return names


def short(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is not None and len(value) > LABEL_LENGTH:
        raise click.BadParameter(f"at most {LABEL_LENGTH} characters: it stands in the corner of a page")
    return value or None


OPTIONS = (
    click.option(
        "--data-dir",
        envvar="CRUCIBLE_HOME",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path.home() / ".crucible",
        show_default="~/.crucible",
        help="Database, logs, code, checkpoints and machines of the embedded default.",
    ),
    click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on."),
    click.option("--port", default=0, help="0 takes the port used last time, or a free one.", show_default=True),
    click.option("--database", help="postgresql://… for several servers; default: SQLite in the data folder."),
    click.option("--public-url", help="Where agents and people reach this server, if not at host:port."),
    click.option(
        "--label", metavar="WORD", callback=short, help="A word that the page shows beside its name: Demo, Staging."
    ),
    click.option("--local-gpus", type=click.IntRange(0, 64), help="Declare so many GPU slots on this machine."),
    click.option("--local-gpu-memory", type=float, default=80.0, show_default=True, help="GB of each declared slot."),
    click.option("--allowed-host", "allowed_hosts", multiple=True, help="Host names that requests may use."),
    click.option(
        "--price-file",
        "price_files",
        envvar="CRUCIBLE_PRICE_FILE",
        type=click.Path(path_type=Path),
        multiple=True,
        help="A list of your own prices (CSV); may be given again. They go before those of providers.",
    ),
    click.option(
        "--provider",
        "providers",
        envvar="CRUCIBLE_PROVIDERS",
        callback=named,
        metavar="NAMES",
        default="local",
        show_default=True,
        help="Where machines may be bought, with commas: local,onprem,slurm,aws.",
    ),
    click.option(
        "--storage",
        metavar="URI",
        help="Where checkpoints go that machines cannot keep: s3://, gs://, az://, minio://, file:///.",
        show_default="the data folder",
    ),
    click.option(
        "--storage-endpoint",
        "storage_endpoints",
        envvar="CRUCIBLE_STORAGE_ENDPOINTS",
        metavar="URL",
        multiple=True,
        help="Object storage in a private network that jobs may name, as https://host:port; may be given again.",
    ),
    click.option(
        "--region-storage",
        "region_storages",
        envvar="CRUCIBLE_REGION_STORAGE",
        metavar="PLACE=URI",
        multiple=True,
        help="Where copies of datasets go for the machines of a region: aws/us-east-1=s3://bucket; may be given again.",
    ),
    click.option(
        "--max-output",
        "max_output_gib",
        envvar="CRUCIBLE_MAX_OUTPUT",
        type=click.FloatRange(0, 1 << 20),
        default=Policy().output_bytes / GIB,
        metavar="GIB",
        show_default=True,
        help="What one task may leave in $CRUCIBLE_OUTPUT; a task that leaves more has failed.",
    ),
    click.option(
        "--rate-limit",
        type=click.FloatRange(0),
        default=RateLimits().person,
        metavar="N",
        show_default=True,
        help="Requests a second that one token may make, ten seconds' worth at once; 0: as many as it likes.",
    ),
    click.option(
        "--agent-rate-limit",
        type=click.FloatRange(0),
        default=RateLimits().agent,
        metavar="N",
        show_default=True,
        help="The same for one machine, for one attempt's own program, and for signed addresses.",
    ),
    click.option(
        "--stranger-rate-limit",
        type=click.FloatRange(0),
        default=RateLimits().stranger,
        metavar="N",
        show_default=True,
        help="The same for one address that has no token, or none that opens anything.",
    ),
    click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="json: one object for each line, with the request, job and trace that it is about.",
    ),
    click.option(
        "--smtp-url", metavar="URL", help="The mail server for alerts: smtp://user@host:587, smtps://user@host:465."
    ),
    click.option("--smtp-from", metavar="ADDRESS", help="From whom mails are.  [default: the user of --smtp-url]"),
    click.option(
        "--smtp-password-file",
        type=click.Path(path_type=Path),
        help="A file with its password; or CRUCIBLE_SMTP_PASSWORD has it.",
    ),
    click.option(
        "--smtp-ca", type=click.Path(path_type=Path), help="Certificates to trust beside the system's, as PEM."
    ),
    click.option(
        "--alert-endpoint",
        "alert_endpoints",
        envvar="CRUCIBLE_ALERT_ENDPOINTS",
        metavar="URL",
        multiple=True,
        help="A place in a private network that alerts may be sent to, as https://host:port; may be given again.",
    ),
    click.option(
        "--retention",
        metavar="WHAT=AGE,…",
        default="",
        help="How long things are kept, where no admin has set it: logs=90d,jobs=2y,audit=never.",
    ),
    click.option("--claim-ttl", type=click.FloatRange(1, 600), default=CLAIM_TTL.total_seconds(), hidden=True),
    click.option("--silence", type=click.FloatRange(1, 600), default=Policy().silence.total_seconds(), hidden=True),
    click.option("--health-hurry", type=click.FloatRange(1, 1000), default=1.0, hidden=True),
)
