"""Where things are: entrypoints, datasets, code, images, paths. Checks the form only; nothing here looks at a disk
or a network. What starts with '-' is refused, since it would reach a program as an option."""

import re
from dataclasses import dataclass

from crucible.spec.kinds import TEXT_LENGTH, Bad, ScalarKind, Schema, Text, whole
from crucible.spec.problems import shown
from crucible.spec.yaml_nodes import Scalar

_KEY = r"[^\x00-\x1f\x7f]+"
_BUCKET = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_HOST = r"[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?"
_NO_DOTS = r"(?!(?:.*/)?\.\.(?:/|$))"  # no part of the path that starts here is `..`
_STORE = rf"(?:(?:s3|gs|az)://{_BUCKET}|minio://{_HOST}/{_BUCKET})"
_OBJECT = rf"{_NO_DOTS}{_STORE}/{_KEY}"
_PREFIX = rf"{_NO_DOTS}{_STORE}(?:/{_KEY})?/?"
_DATASET = r"dataset://[A-Za-z0-9][A-Za-z0-9._-]{0,127}(?:@[0-9a-f]{64})?"
_FILE = rf"(?:file:///|/|\./){_KEY}|/|\./?"
_REPOSITORY = rf"git\+(?:https://|ssh://(?:[A-Za-z0-9._-]+@)?){_HOST}/[^\s@#]+"
_GIT = rf"{_REPOSITORY}@[0-9a-f]{{40}}#{_NO_DOTS}[^-/\s#][^\s#]*"
_RELATIVE = rf"(?![-/~]|.*://){_NO_DOTS}[^\x00-\x1f\x7f\\]+"

STORES = "s3://, gs://, az:// or minio://"


@dataclass(frozen=True, slots=True)
class Entrypoint(ScalarKind):
    @property
    def words(self) -> str:
        return "a file of the code, an object such as s3://bucket/train.py, or a git repository at a commit"

    def parse(self, scalar: Scalar) -> str:
        text = scalar.text
        if len(text) > TEXT_LENGTH:
            raise Bad(f"is longer than {TEXT_LENGTH} characters", "make it shorter")
        if text.startswith("git+"):
            return _git(text)
        if "://" in text:
            return self._object(text)
        return self._local(text)

    def schema(self) -> Schema:
        return {
            "type": "string",
            "minLength": 1,
            "maxLength": TEXT_LENGTH,
            "pattern": whole(f"{_RELATIVE}|{_OBJECT}|{_GIT}"),
        }

    def _object(self, text: str) -> str:
        if re.fullmatch(_OBJECT, text):
            return text
        if text.startswith(("https://", "ssh://", "http://")):
            hint = "for a git repository write git+https://host/repo@<40-digit commit>#path/to/file.py"
        else:
            hint = f"objects are {STORES} with a bucket and a key"
        raise Bad(f"expected {self.words}, found {shown(text)}", hint)

    def _local(self, text: str) -> str:
        if re.fullmatch(_RELATIVE, text):
            return text
        if text.startswith(("/", "~")):
            raise Bad(f"{shown(text)} is not inside the shipped code", "set code to its folder and give the path in it")
        if ".." in text.split("/"):
            raise Bad(f"{shown(text)} leaves the shipped code", "set code to the folder that holds all of it")
        if text.startswith("-"):
            raise Bad(f"{shown(text)} would be read as an option", f"write {shown('./' + text)}")
        if "\\" in text:
            raise Bad(f"{shown(text)} has a backslash", "separate folders with /")
        raise Bad(f"expected {self.words}, found {shown(text)}")


def _git(text: str) -> str:
    if re.fullmatch(_GIT, text):
        return text
    repository, _, path = text.partition("#")
    if re.search(r"//[^/@]*:[^/@]*@", repository):
        raise Bad("the address holds a password", "leave it out: credentials come from the machine's settings")
    _, at, commit = repository.rpartition("@")
    if not at or "/" in commit:
        raise Bad(f"{shown(text)} names no commit", f"write {repository}@<40-digit commit>#{path or 'path/to/file.py'}")
    if not re.fullmatch("[0-9a-f]{40}", commit):
        hint = "branches and tags can move: write the full commit, as `git rev-parse` prints it"
        raise Bad(f"{shown(commit)} is not a commit of 40 hexadecimal digits", hint)
    if not path:
        raise Bad(f"{shown(text)} names no file", "add #path/to/file.py at its end")
    raise Bad(
        f"{shown(text)} is not a git address", "the form is git+https://host/repo@<40-digit commit>#path/to/file.py"
    )


@dataclass(frozen=True, slots=True)
class Location(ScalarKind):
    """Object storage or a folder."""

    @property
    def words(self) -> str:
        return f"a folder that starts with / or ./, or {STORES} with a bucket"

    @property
    def pattern(self) -> str:
        return f"{_PREFIX}|{_FILE}"

    def parse(self, scalar: Scalar) -> str:
        text = scalar.text
        if len(text) <= TEXT_LENGTH and re.fullmatch(self.pattern, text):
            return text
        raise Bad(f"expected {self.words}, found {shown(text)}", self._hint(text))

    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1, "maxLength": TEXT_LENGTH, "pattern": whole(self.pattern)}

    def _hint(self, text: str) -> str:
        if "://" not in text and text and text[0] not in "~.-" and len(text) < TEXT_LENGTH:
            return f"for a folder beside the spec write {shown('./' + text)}"
        return ""


@dataclass(frozen=True, slots=True)
class DatasetLocation(Location):
    """The same, or a dataset that is registered."""

    @property
    def words(self) -> str:
        return f"a dataset such as dataset://imagenet, a folder that starts with / or ./, or {STORES} with a bucket"

    @property
    def pattern(self) -> str:
        return f"{_DATASET}|{_PREFIX}|{_FILE}"


CODE = Text(
    "a local folder or file",
    pattern=r"(?!-|.*://)[^\x00-\x1f\x7f]+",
    hint="code is packed on your machine; for code that is elsewhere, use entrypoint",
)
IMAGE = Text(
    "a container image such as pytorch/pytorch:2.6.0",
    pattern=r"[A-Za-z0-9][A-Za-z0-9._/:@-]*",
    hint="the form is registry/name:tag or registry/name@digest",
    max_length=512,
)
PYTHON = Text(
    "an absolute path such as /opt/venv/bin/python",
    pattern=rf"{_NO_DOTS}/[^\x00-\x1f\x7f]+",
    hint="a Python that is installed on the machine; to make one, use setup",
    max_length=4096,
)
MOUNT_POINT = Text(
    "an absolute path",
    pattern=rf"{_NO_DOTS}/[^\x00-\x1f\x7f]+",
    hint="write the path inside the job, then the folder of the host: /data: /host/data",
    max_length=4096,
)
INPUT_NAME = Text(
    "a name",
    pattern=r"[A-Za-z0-9][A-Za-z0-9._-]*",
    hint="letters, digits, . _ and -: it names a folder below $CRUCIBLE_INPUTS",
    max_length=64,
)
INPUT = Text(
    "what a job left, such as output://JOB or tree://DIGEST",
    pattern=r"tree://[0-9a-f]{64}|output://[0-9A-Za-z-]{1,64}(?:/[0-9]{1,6})?",
    hint="`crucible outputs ls JOB` says what a job left; a dataset goes into data.dataset",
)
MOUNTED = Text(
    "a folder of the host, a volume's name, or object storage",
    pattern=rf"{_NO_DOTS}(?:/[^\x00-\x1f\x7f]*|[A-Za-z0-9][A-Za-z0-9._-]*)|{_PREFIX}",
    max_length=4096,
)
