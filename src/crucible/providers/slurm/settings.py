"""The clusters that an operator names, from a YAML file. Nothing secret is kept there: a token of slurmrestd is in a
file of its own."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import yaml

from crucible.model.errors import InvalidRequest

VARIABLE = "CRUCIBLE_SLURM_CLUSTERS"
MAX_BYTES = 1 << 20
MAX_CLUSTERS = 100
HERE = "here"

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}", re.IGNORECASE)
_LOGIN = re.compile(r"here|([A-Za-z0-9._-]+@)?[A-Za-z0-9.-]+(:\d{1,5})?")
_DURATION = re.compile(r"(\d{1,9})\s*([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
# Options that would take a job out of our hands: what it is called, where it writes, how often it runs.
OURS = frozenset(
    {"job-name", "comment", "array", "nodes", "ntasks-per-node", "gres", "mem", "cpus-per-task", "output", "wrap"}
    | {"requeue", "no-requeue", "dependency", "partition", "parsable", "wait", "kill-on-invalid-dep", "time"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    name: str
    login: str | None = None  # "here" or [user@]host[:port]: the command line
    url: str | None = None  # of slurmrestd
    token_file: str | None = None  # of slurmrestd: a JWT
    user: str | None = None  # of slurmrestd: whom the token names
    environment: Mapping[str, str] = field(default_factory=dict)  # of slurmrestd: of every job
    partitions: tuple[str, ...] = ()  # empty: all that are up
    account: str | None = None
    qos: str | None = None
    time_limit: timedelta | None = None  # None: the partition's own
    queue_limit: timedelta = timedelta(hours=24)  # nothing: what does not start at once is withdrawn
    workdir: str = "~/.crucible"  # a folder that all nodes share
    python: str = "python3"  # 3.8 or newer, on the nodes and where one logs in
    options: tuple[str, ...] = ()  # of sbatch, for the command line
    cost_per_gpu_hour: float = 0.0  # dollars
    cpus: int = 4  # of a machine without GPUs
    cpus_per_gpu: int | None = None  # None: its share of the node
    gpu_names: Mapping[str, str] = field(default_factory=dict)  # GRES type -> "A100-80GB"
    gpu_memory_gib: Mapping[str, float] = field(default_factory=dict)  # by GRES type
    independent: bool = False  # machines of one order are an array of jobs, not one allocation

    @property
    def queues(self) -> bool:
        return bool(self.queue_limit)


def read_clusters(environ: Mapping[str, str]) -> list[ClusterSettings]:
    """Raises InvalidRequest, naming the cluster and the field."""
    place = environ.get(VARIABLE, "").strip()
    if not place:
        raise InvalidRequest(f"no Slurm cluster is named: set {VARIABLE} to a YAML file with a list `clusters`")
    path = Path(place).expanduser()
    try:
        with path.open("rb") as file:
            data = yaml.safe_load(file.read(MAX_BYTES))
    except OSError as error:
        raise InvalidRequest(f"{VARIABLE}: {path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(f"{path} is not YAML: {' '.join(str(error).split())[:300]}") from error
    listed = data.get("clusters") if isinstance(data, dict) else None
    if not isinstance(listed, list) or not 0 < len(listed) <= MAX_CLUSTERS:
        raise InvalidRequest(f"{path}: `clusters` must be a list of 1 to {MAX_CLUSTERS} clusters")
    clusters = [read_cluster(one, f"{path}: cluster {number}") for number, one in enumerate(listed, 1)]
    names = [cluster.name for cluster in clusters]
    if len(set(names)) != len(names):
        raise InvalidRequest(f"{path}: two clusters have one name")
    return clusters


def read_cluster(data: Any, where: str) -> ClusterSettings:
    if not isinstance(data, dict) or not isinstance(data.get("name"), str) or not _NAME.fullmatch(data["name"]):
        raise InvalidRequest(f"{where} needs a `name` of letters, digits, dots and dashes")
    given = Given(data, f"{where} ({data['name']})")
    known = {one.name for one in fields(ClusterSettings)}
    strange = sorted(str(key) for key in data.keys() - known)
    if strange:
        given.refuse(strange[0], f"is not known; there are {', '.join(sorted(known))}")
    settings = ClusterSettings(
        name=data["name"],
        login=given.text("login", _LOGIN),
        url=given.text("url", re.compile(r"https?://[^\s/]+(/\S*)?")),
        token_file=given.text("token_file"),
        user=given.text("user"),
        environment={str(key): str(value) for key, value in given.table("environment").items()},
        partitions=given.words("partitions"),
        account=given.text("account"),
        qos=given.text("qos"),
        time_limit=given.duration("time_limit"),
        queue_limit=given.duration("queue_limit", timedelta(hours=24)) or timedelta(0),
        workdir=given.text("workdir", re.compile(r"[/~][^\n\0%\\]*")) or "~/.crucible",
        python=given.text("python") or "python3",
        options=given.words("options"),
        cost_per_gpu_hour=given.number("cost_per_gpu_hour", 0.0, 10_000.0),
        cpus=int(given.number("cpus", 4, 1024, least=1)),
        cpus_per_gpu=int(given.number("cpus_per_gpu", 0, 1024)) or None,
        gpu_names={str(key): str(value) for key, value in given.table("gpu_names").items()},
        gpu_memory_gib=given.numbers("gpu_memory_gib"),
        independent=given.answer("independent"),
    )
    return checked(settings, given)


def checked(settings: ClusterSettings, given: "Given") -> ClusterSettings:
    if (settings.login is None) == (settings.url is None):
        given.refuse("login", "or `url` must say how it is reached: one of them")
    if settings.url is not None:
        if settings.token_file is None:
            given.refuse("token_file", "must name the file with the JWT for slurmrestd")
        if not settings.workdir.startswith("/"):
            given.refuse("workdir", "must be an absolute path where slurmrestd is used: it does not know your home")
        if settings.options:
            given.refuse("options", "are of sbatch: slurmrestd knows none")
    for option in settings.options:
        name = option.partition("=")[0].lstrip("-")
        if not option.startswith("--") or name in OURS:
            given.refuse("options", f"{option!r} is not a long option of sbatch that may be set here")
    return settings


class Given:
    """One cluster as the file has it."""

    def __init__(self, data: Mapping[str, Any], where: str) -> None:
        self._data, self._where = data, where

    def refuse(self, name: str, said: str) -> NoReturn:
        raise InvalidRequest(f"{self._where}: `{name}` {said}")

    def text(self, name: str, form: re.Pattern[str] = re.compile(r"[^\s\0-\x1f-][^\0-\x1f]*")) -> str | None:
        value = self._data.get(name)
        if value is None:
            return None
        if not isinstance(value, str) or not form.fullmatch(value):
            self.refuse(name, f"{value!r} cannot be meant")
        return value

    def words(self, name: str) -> tuple[str, ...]:
        value = self._data.get(name) or []
        if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(one, str) for one in value):
            self.refuse(name, "must be a list of words")
        return tuple(value)

    def duration(self, name: str, default: timedelta | None = None) -> timedelta | None:
        value = self._data.get(name)
        if value is None:
            return default
        found = _DURATION.fullmatch(str(value).strip()) if str(value).strip() != "0" else None
        if str(value).strip() == "0":
            return timedelta(0)
        if found is None:
            self.refuse(name, f"{value!r} is not a time like 30m, 24h or 2d")
        return timedelta(seconds=int(found[1]) * _UNITS[found[2]])

    def number(self, name: str, default: float, most: float, least: float = 0.0) -> float:
        value = self._data.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            self.refuse(name, f"{value!r} is not a number from {least:g} to {most:g}")
        return float(value)

    def table(self, name: str) -> Mapping[Any, Any]:
        value = self._data.get(name) or {}
        if not isinstance(value, Mapping):
            self.refuse(name, "must be a table of names and values")
        return value

    def numbers(self, name: str) -> dict[str, float]:
        for key, value in self.table(name).items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 10_000:
                self.refuse(name, f"of {key} is not a number of GiB")
        return {str(key): float(value) for key, value in self.table(name).items()}

    def answer(self, name: str) -> bool:
        value = self._data.get(name, False)
        if not isinstance(value, bool):
            self.refuse(name, "must be true or false")
        return value
