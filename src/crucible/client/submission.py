"""From code and requirements to a job: the spec is written, checked here before anything is sent or started, the code
packed and shipped. If a GPU is wished for and none is to be had, the job is sent without one, and a note says so."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypedDict, Unpack

from crucible import spec as specs
from crucible.client.api import Client
from crucible.client.package import Package, pack
from crucible.client.requirements import Requirements, merged, preferred
from crucible.client.shapes import Plan, Submitted
from crucible.model.errors import InfeasibleJob, InvalidRequest

Code = str | Path  # the text of a script, or where a file or folder is
# What a script that came as text is called where it runs.
SCRIPT = "train.py"
# A refusal about anything else would not be mended by doing without a GPU; it might just be dodged.
_ABOUT_GPUS = ("resources", "execution", "constraints.providers")
_ON_CPUS = "no GPU is to be had, so it runs on CPUs ({}); gpus=1 insists"


class Details(TypedDict, total=False):
    """What else may be said of a job."""

    name: str | None
    entrypoint: str | None  # the file to run, in a folder of code
    args: Sequence[str]
    env: Mapping[str, str]
    spec: Mapping[str, Any]  # fields of the job spec; they go before whatever follows from the rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    name: str | None
    code: Code
    entrypoint: str
    texts: tuple[str, ...]  # the spec, with the GPUs that are wanted first
    notes: tuple[str, ...]

    @classmethod
    def make(
        cls,
        code: Code,
        requirements: Requirements | None = None,
        preferences: Mapping[str, Any] | None = None,
        **details: Unpack[Details],
    ) -> Self:
        if unknown := details.keys() - Details.__annotations__.keys():
            raise TypeError(f"there is no argument {min(unknown)!r}; there are {', '.join(Details.__annotations__)}")
        needs = requirements or Requirements()
        wishes = preferred(preferences, interruptible=needs.interruptible)
        start = _entrypoint(code, details.get("entrypoint"))
        given = {"entrypoint": start, "args": list(details.get("args") or ()), "env": dict(details.get("env") or {})}
        first = {name: value for name, value in given.items() if value}
        counts = (1, 0) if needs.gpus is None else (needs.gpus,)
        last = details.get("spec") or {}
        texts = tuple(_text(merged(first, needs.fields(count), wishes.fields, last)) for count in counts)
        return cls(
            name=details.get("name"),
            code=code,
            entrypoint=start,
            texts=tuple(dict.fromkeys(texts)),
            notes=wishes.notes,
        )

    def send(self, client: Client) -> tuple[Submitted, tuple[str, ...]]:
        """The job, and what its owner should know."""
        digest = self._ship(client)
        first, *others = self.texts
        try:
            return client.submit(self.name, first, code_digest=digest), self.notes
        except InfeasibleJob as refusal:
            if not others or not _is_about_gpus(refusal):
                raise
            try:
                made = client.submit(self.name, others[0], code_digest=digest)
            except InfeasibleJob:
                raise refusal from None
            return made, (*self.notes, _ON_CPUS.format(refusal.message))

    def plan(self, client: Client) -> tuple[Plan, tuple[str, ...]]:
        """What could run it, and what would, without sending it."""
        made = client.plan(self.texts[0])
        if len(self.texts) == 1 or not _is_hopeless(made):
            return made, self.notes
        other = client.plan(self.texts[1])
        if _is_hopeless(other):
            return made, self.notes
        why = made.get("reason") or "what could run it is not enabled"
        return other, (*self.notes, _ON_CPUS.format(why))

    def _ship(self, client: Client) -> str:
        """The digest of the code, once the server has it."""
        with self._package() as package:
            if not client.has_package(package.digest):
                with package.path.open("rb") as file:
                    client.upload_package(package.digest, file, package.size)
            return package.digest

    @contextmanager
    def _package(self) -> Iterator[Package]:
        with tempfile.TemporaryDirectory(prefix="crucible-") as folder:
            root = self.code if isinstance(self.code, Path) else _written(Path(folder, SCRIPT), self.code)
            with pack(root, self.entrypoint) as package:
                yield package


def filling(template: str, parameters: Mapping[str, Any] | None = None, spec: Mapping[str, Any] | None = None) -> str:
    """The text of a job that names a template."""
    given = {"with": dict(parameters)} if parameters else {}
    return _text({**(spec or {}), "template": template, **given})


def _entrypoint(code: Code, entrypoint: str | None) -> str:
    if isinstance(code, Path):
        if code.is_dir() and entrypoint is None:
            raise InvalidRequest(f"{code} is a folder: give entrypoint, the file in it to run", field="entrypoint")
        if not code.exists():
            raise InvalidRequest(f"{code} does not exist", field="code")
        return entrypoint or code.name
    if entrypoint is not None:
        raise InvalidRequest("entrypoint goes with a folder; code that is text is a script itself", field="entrypoint")
    if not code.strip():
        raise InvalidRequest("code is empty: give the text of a script, or a pathlib.Path", field="code")
    if "\n" not in code and code.endswith((".py", ".sh")):
        raise InvalidRequest(f"code is the text of a script; for a file give pathlib.Path({code!r})", field="code")
    return SCRIPT


def _is_about_gpus(refusal: InfeasibleJob) -> bool:
    return str(refusal.details.get("field", "")).removeprefix("job.").startswith(_ABOUT_GPUS)


def _is_hopeless(plan: Plan) -> bool:
    """A plan also names what is not enabled; only what is can run a job, now or when it is free again."""
    can_wait = any(refused.get("rule") == "sold_out" for refused in plan["rejections"])
    return plan.get("runnable", plan["chosen"]) is None and not can_wait


def _text(job: Mapping[str, Any]) -> str:
    """The spec as YAML. Raises InvalidSpec: a mistake is told here, before a server is asked or started."""
    import yaml

    text = yaml.safe_dump({"job": job}, sort_keys=False, allow_unicode=True)
    specs.load(text)
    return text


def _written(path: Path, text: str) -> Path:
    try:
        path.write_text(text, encoding="utf-8")
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"code is not text that UTF-8 can hold: {error}", field="code") from error
    return path
