"""Files to and from the folder of a rank."""

import re
from typing import NamedTuple

import click

from crucible.cli.options import example, with_output
from crucible.cli.output import Out

# JOB:path or JOB/RANK:path. A file of this computer with such a name is written ./name.
_REMOTE = re.compile(r"(?P<job>[^/:]+)(?:/(?P<rank>[0-9]{1,6}))?:(?P<path>.*)", re.DOTALL)


class Remote(NamedTuple):
    job: str
    rank: int
    path: str


def remote(text: str) -> Remote | None:
    """None if it is a file of this computer. Without a path, the rank's folder is meant."""
    match = _REMOTE.fullmatch(text)
    return None if match is None else Remote(match["job"], int(match["rank"] or 0), match["path"] or ".")


@click.command(
    epilog=example(
        "crucible cp resnet50:outputs/loss.csv .",
        "crucible cp resnet50/3:/tmp/core .",
        "crucible cp fix.py resnet50:",
        "crucible cp configs/ resnet50:configs-new",
    )
)
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST")
@with_output
def cp(out: Out, source: str, target: str) -> None:
    """Copy a file or folder to or from a running job.

    The side of the job is written JOB:PATH or JOB/RANK:PATH; a path that does not begin with / is relative to the
    rank's folder. Into a folder, or with a / at the end, the copy keeps its name. Links and devices are left out, and
    named.
    """
    from crucible.cli.session import connect, find_job

    here, there = remote(source), remote(target)
    if (here is None) == (there is None):
        raise click.UsageError(
            "one side is JOB:PATH, the other a file of this computer (write ./a:b for one called a:b)"
        )
    with connect(out) as client:
        if here is not None:
            job_id = find_job(client, here.job)
            copied = client.copy_from(job_id, here.path, target, rank=here.rank)
        elif there is not None:
            job_id = find_job(client, there.job)
            copied = client.copy_to(job_id, source, there.path, rank=there.rank)
    value = {"files": copied.files, "size_bytes": copied.size_bytes, "left_out": list(copied.left_out)}
    if out.is_for_programs:
        out.show(value, list)
        return
    for words in copied.left_out:
        out.note(words)
    out.note(f"copied {copied.files} file{'' if copied.files == 1 else 's'}, {copied.size_bytes:,} bytes")
