"""Job templates as the command line finds them: in a file, among those that come with Crucible, or on the server. What
they ship is packed here, like the code of any job."""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crucible import spec as specs
from crucible import templates
from crucible.cli import jobfile
from crucible.cli.jobfile import JobFile
from crucible.cli.output import Out
from crucible.cli.overrides import apply as overridden
from crucible.model.errors import InvalidRequest, InvalidSpec
from crucible.spec.filling import apply, fill, naming
from crucible.spec.template import Template, read_template

ENDINGS = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Found:
    template: Template
    text: str
    folder: Path | None  # its paths start from there; None: from where its job file is, or whoever uses it
    is_shipped: bool = False


def find(out: Out, name: str) -> Found:
    """Only what is neither a file nor comes with Crucible is asked for."""
    if name.endswith(ENDINGS) or "/" in name or name == jobfile.STDIN:
        return from_file(name)
    if name in templates.names():
        return shipped(name)
    from crucible.cli.session import connect

    with connect(out) as client:
        text = client.template(name)["body"]
    return Found(read_template(text), text, None)


def from_file(file: str) -> Found:
    """Raises InvalidSpec whose message names the file at every problem."""
    raw = jobfile.read_bytes(file)
    try:
        template = read_template(raw)
    except InvalidSpec as error:
        problems = error.details["problems"]
        listed = specs.format_problems(problems, file)
        raise InvalidSpec(f"{file} is not a valid template\n{listed}", problems=problems, file=file) from None
    return Found(template, raw.decode(), jobfile.folder_of(file))


def shipped(name: str) -> Found:
    text = templates.text(name)
    return Found(read_template(text), text, templates.folder(name), is_shipped=True)


def used(found: Found, given: Mapping[str, str]) -> JobFile:
    """The job that it gives."""
    job = jobfile.parse(jobfile.STDIN, fill(found.template, given))
    return replace(job, name=found.template.name, root=found.folder)


def resolved(out: Out, job: JobFile) -> JobFile:
    """The job itself, if `job` names a template. Raises InvalidSpec, at the lines of its file."""
    named = naming(job.text)
    return job if named is None else filled_in(job, find(out, named.name))


def filled_in(job: JobFile, found: Found) -> JobFile:
    try:
        made = jobfile.parse(job.name, apply(job.text, found.template))
    except InvalidSpec as error:
        problems = error.details["problems"]
        listed = specs.format_problems(problems, job.name)
        raise InvalidSpec(f"{job.name} is not a valid job\n{listed}", problems=problems, file=job.name) from None
    named = naming(job.text)
    has_code = named is not None and named.has_code
    return replace(made, root=None if has_code else found.folder)


def parse_given(words: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE words; raises ValueError with the word that is none, or the name that comes twice."""
    given: dict[str, str] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not name or not sign:
            raise ValueError(f"{word!r} is not NAME=VALUE")
        if name in given:
            raise ValueError(f"{name} is given twice")
        given[name] = value
    return given


def save(job: JobFile, found: Found, target: Path) -> list[Path]:
    """Writes the job, and beside it the code of a template that comes with Crucible, to be changed at will. Returns
    what was made; raises InvalidRequest before anything is overwritten."""
    code = target.parent / found.template.name
    ships = found.is_shipped and job.spec.code is not None
    for path in (target, *([code] if ships else [])):
        if path.exists():
            raise InvalidRequest(f"{path} exists already; choose another place for --save")
    if ships:
        shutil.copytree(found.folder or Path(), code, ignore=shutil.ignore_patterns(templates.FILE, "__pycache__"))
    target.write_text(_with_code(job, found, code, target.parent), encoding="utf-8")
    return [target, code] if ships else [target]


def _with_code(job: JobFile, found: Found, copied: Path, folder: Path) -> str:
    """Its text, whose code is found from `folder`."""
    if job.spec.code is None or found.folder is None:
        return job.text
    where = copied if found.is_shipped else found.folder / job.spec.code
    head = job.text.partition("\n")[0] + "\n" if job.text.startswith("#") else ""
    return head + overridden(job.text, {("job", "code"): os.path.relpath(where, folder)})
