"""What `crucible validate` says about a file."""

from dataclasses import asdict
from typing import Any, NamedTuple

from crucible import spec as specs
from crucible.cli import jobfile
from crucible.model.errors import InvalidSpec


class Verdict(NamedTuple):
    file: str
    valid: bool
    problems: list[dict[str, Any]]
    warnings: list[dict[str, Any]]

    def lines(self, *, is_quiet: bool) -> list[str]:
        warned = [{**warning, "message": f"warning: {warning['message']}"} for warning in self.warnings]
        listed = [specs.format_problems([problem], self.file) for problem in (*self.problems, *warned)]
        return listed if is_quiet or not self.valid else [*listed, f"{self.file}: ok"]


def offline(job: jobfile.JobFile) -> jobfile.JobFile:
    """With its template, if that comes with Crucible; another one only the server has."""
    from crucible import templates
    from crucible.cli.templating import filled_in, shipped

    name = job.spec.template
    return filled_in(job, shipped(name)) if name in templates.names() else job


def check(file: str) -> Verdict:
    """Never raises: the next file must be looked at too."""
    try:
        found = offline(jobfile.read(file))
    except InvalidSpec as error:
        return Verdict(file, False, list(error.details["problems"]), [])
    except OSError as error:
        unreadable = specs.Problem(0, 0, "file", error.strerror or str(error), "is the path right?")
        return Verdict(file, False, [asdict(unreadable)], [])
    return Verdict(file, True, [], [asdict(warning) for warning in (*found.warnings, *unchecked(found))])


def unchecked(job: jobfile.JobFile) -> list[specs.Problem]:
    """What of a job only its server can judge."""
    from crucible import templates
    from crucible.spec.kinds import nearest

    name = job.spec.template
    if name is None or name in templates.names():
        return []
    near = nearest(name, tuple(templates.names()))
    hint = f"did you mean '{near}'?" if near else "crucible template ls lists those of the server"
    return [specs.Problem(0, 0, "job.template", f"{name} does not come with Crucible, and no server is asked", hint)]
