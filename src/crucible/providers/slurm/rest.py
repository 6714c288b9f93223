"""A cluster by slurmrestd with a JWT. The version of the API is the server's own; which of them are spoken here is said
if none is. There are no files and no steps by this door: the script holds the enrolment token, and a machine of an
allocation ends with the others."""

import asyncio
import http.client
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from crucible.model.errors import CredentialsRejected, OutcomeUnknown, ProviderError
from crucible.providers.slurm.cli import gpus_of, indices
from crucible.providers.slurm.door import ClusterNode, Job, Partition, Record, Request, StepRecord
from crucible.providers.slurm.errors import PROVIDER, meant, worded
from crucible.providers.slurm.hostlist import expand
from crucible.providers.slurm.request import NAME

# Newer ones write numbers, states and environments differently.
SPOKEN = ("v0.0.38",)
TIMEOUT_S = 30.0
MAX_ANSWER_BYTES = 256 << 20  # tens of thousands of jobs
MAX_TOKEN_BYTES = 16 << 10
MAX_RECORDS = 10_000
MAX_MASK = 1 << 16  # hexadecimal digits
NOTHING_FOUND = "Nothing found"
_PATH = re.compile(r"/slurm/(v\d+\.\d+\.\d+)/jobs/?")
# What a job is given besides Slurm's own variables.
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin", "LANG": "C.UTF-8"}


class RestDoor:
    reads_files = False
    knows_steps = False

    def __init__(
        self, cluster: str, url: str, token_file: Path, user: str, environment: Mapping[str, str] | None = None
    ) -> None:
        """`environment` is of every job, beside the little that it needs."""
        self.place = url
        self._cluster = cluster
        self._url = url
        self._token_file = token_file
        self._user = user
        self._environment = {**ENVIRONMENT, **(environment or {})}
        self._version: str | None = None
        self._has_accounts = False

    # --- what there is ------------------------------------------------------------------------------------

    async def nodes(self) -> Sequence[ClusterNode]:
        return [node_of(one) for one in (await self._get("nodes")).get("nodes", ())]

    async def partitions(self) -> Sequence[Partition]:
        return [partition_of(one) for one in (await self._get("partitions")).get("partitions", ())]

    async def jobs(self) -> Sequence[Job]:
        return [job_of(one) for one in await self._own_jobs()]

    async def records(self, within_s: int) -> Sequence[Record] | None:
        await self._path("ping")  # which version, and whether it knows of accounts
        if not self._has_accounts:
            return None
        path = f"/slurmdb/{self._version}/jobs?start_time=now-{within_s}seconds"
        try:
            told = (await self._call("GET", path)).get("jobs") or ()
        except ProviderError as error:
            if NOTHING_FOUND in error.message:
                return []
            raise
        ours = [one for one in told if one.get("user") == self._user and str(one.get("name")).startswith(NAME)]
        return [record_of(one) for one in ours[-MAX_RECORDS:]]

    async def devices(self, job: Job) -> Mapping[str, tuple[str, ...]]:
        for one in await self._own_jobs():
            if job_of(one).handle == job.handle:
                given = [indices(text) for text in one.get("gres_detail") or ()]
                return dict(zip(expand(str(one.get("nodes") or "")), given, strict=False))
        return {}

    async def version(self) -> str:
        pings = (await self._get("ping")).get("pings", ())
        if not any(ping.get("ping") == "UP" for ping in pings):
            raise ProviderError(worded("no controller is up", self._cluster), provider=PROVIDER, region=self._cluster)
        return f"slurmrestd {self._version}"

    async def _own_jobs(self) -> list[Mapping[str, Any]]:
        """Anybody could give a job our name."""
        jobs = (await self._get("jobs")).get("jobs", ())
        return [one for one in jobs if one.get("user_name") == self._user and str(one.get("name")).startswith(NAME)]

    # --- jobs -----------------------------------------------------------------------------------------------

    async def submit(self, request: Request, script: str) -> int:
        body = {"script": script, "job": {**job_properties(request), "environment": self._environment}}
        answer = await self._call("POST", await self._path("job/submit"), body, is_purchase=True)
        number = answer.get("job_id")
        if not isinstance(number, int):
            said = worded("slurmrestd did not say which job it is", self._cluster)
            raise OutcomeUnknown(said, provider=PROVIDER, region=self._cluster)
        return number

    async def cancel(self, handle: str) -> None:
        try:
            await self._call("DELETE", await self._path(f"job/{quote(handle, safe='')}"))
        except ProviderError as error:
            low = error.message.lower()
            if "invalid job id" not in low and "already completing or completed" not in low:
                raise

    async def cancel_step(self, handle: str, name: str) -> None:
        """There are no steps by this door."""

    # --- files: none ----------------------------------------------------------------------------------------

    async def folder(self, workdir: str) -> str:
        return workdir.rstrip("/")

    async def put(self, path: str, data: bytes) -> None:
        raise ProviderError(worded("slurmrestd writes no files", self._cluster), provider=PROVIDER)

    async def has(self, path: str, sha256: str) -> bool:
        return False

    async def tail(self, paths: Sequence[str], most: int) -> str:
        return ""

    async def close(self) -> None:
        pass

    # --- asking ---------------------------------------------------------------------------------------------

    async def _get(self, what: str) -> Mapping[str, Any]:
        return await self._call("GET", await self._path(what))

    async def _path(self, what: str) -> str:
        if self._version is None:
            described = await self._call("GET", "/openapi/v3")
            served = sorted({found[1] for path in described.get("paths", ()) if (found := _PATH.fullmatch(path))})
            known = [version for version in served if version in SPOKEN]
            if not known:
                said = f"it serves {', '.join(served) or 'no API'}, and {', '.join(SPOKEN)} is spoken here: use `login`"
                raise ProviderError(worded(said, self._cluster), provider=PROVIDER, region=self._cluster)
            self._version = known[-1]
            self._has_accounts = f"/slurmdb/{self._version}/jobs" in described.get("paths", ())
        return f"/slurm/{self._version}/{what}"

    async def _call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, is_purchase: bool = False
    ) -> Mapping[str, Any]:
        return await asyncio.to_thread(self._exchange, method, path, body, is_purchase)

    def _exchange(self, method: str, path: str, body: Mapping[str, Any] | None, is_purchase: bool) -> Mapping[str, Any]:
        headers = {"X-SLURM-USER-NAME": self._user, "X-SLURM-USER-TOKEN": self._token(), "Accept": "application/json"}
        sent = None
        if body is not None:
            sent, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        parts = urlsplit(self._url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
        try:
            connection.connect()
        except OSError as error:
            said = worded(f"{self._url} does not answer: {error}", self._cluster)
            raise ProviderError(said, provider=PROVIDER, region=self._cluster) from error
        try:
            connection.request(method, parts.path.rstrip("/") + path, body=sent, headers=headers)
            answer = connection.getresponse()
            return self._read(answer.status, answer.read(MAX_ANSWER_BYTES), is_purchase)
        except (OSError, http.client.HTTPException) as error:
            said = worded(f"the answer of {self._url} was lost: {error or type(error).__name__}", self._cluster)
            lost = OutcomeUnknown if is_purchase else ProviderError
            raise lost(said, provider=PROVIDER, region=self._cluster) from error
        finally:
            connection.close()

    def _read(self, status: int, raw: bytes, is_purchase: bool) -> Mapping[str, Any]:
        try:
            data = json.loads(raw) if raw.strip() else {}
        except ValueError:
            data = {"errors": [{"error": raw[:200].decode("utf-8", "replace")}]}
        errors = (
            data.get("errors") or () if isinstance(data, dict) else ({"error": "an answer that is not understood"},)
        )
        if status < 400 and not errors and isinstance(data, dict):
            return data
        said = "; ".join(str(one.get("description") or one.get("error")) for one in errors) or f"HTTP {status}"
        if is_refused_token(status, said):
            fix = f"{said}: is the token in {self._token_file} still good, and of user {self._user}?"
            raise CredentialsRejected(worded(fix, self._cluster), provider=PROVIDER, region=self._cluster)
        raise meant(said, self._cluster, is_purchase=is_purchase)

    def _token(self) -> str:
        """Read each time: tokens are short-lived, and somebody renews the file."""
        try:
            with self._token_file.open("rb") as file:
                token = file.read(MAX_TOKEN_BYTES).decode("ascii").strip().removeprefix("SLURM_JWT=")
        except (OSError, UnicodeDecodeError) as error:
            said = f"the token of slurmrestd cannot be read from {self._token_file}: {error}"
            raise CredentialsRejected(worded(said, self._cluster), provider=PROVIDER, region=self._cluster) from error
        if not token or any(character.isspace() for character in token):
            said = f"{self._token_file} holds no token"
            raise CredentialsRejected(worded(said, self._cluster), provider=PROVIDER, region=self._cluster)
        return token


def is_refused_token(status: int, said: str) -> bool:
    """slurmrestd says 500 to a bad token: the controller tells it nothing."""
    return status in (401, 403) or "config is unable to load" in said or "Authentication failure" in said


def job_properties(request: Request) -> dict[str, Any]:
    """v0.0.38 takes `nodes` as a range in words, and neither --no-kill nor --no-requeue: our program sees to it that
    nothing runs twice."""
    job: dict[str, Any] = {
        "name": request["name"],
        "comment": request["comment"],
        "partition": request["partition"],
        "tasks_per_node": 1,
        "cpus_per_task": request["cpus"],
        "memory_per_node": request["memory_mib"],
        "current_working_directory": "/",
        "standard_output": request["output"],
    }
    if request["is_array"]:
        job |= {"nodes": "1-1", "array": f"0-{request['count'] - 1}"}
    else:
        job |= {"nodes": f"{request['count']}-{request['count']}", "dependency": "singleton"}
    for option in ("gres", "account", "qos"):
        if request[option]:
            job[option] = request[option]
    if request["time_limit_s"]:
        job["time_limit"] = -(-request["time_limit_s"] // 60)
    return job


# --- reading ----------------------------------------------------------------------------------------------------


def node_of(said: Mapping[str, Any]) -> ClusterNode:
    gpus, used = gpus_of(str(said.get("gres") or "")), gpus_of(str(said.get("gres_used") or ""))
    flags = [str(said.get("state", "unknown")), *map(str, said.get("state_flags") or ())]
    return ClusterNode(
        name=str(said["name"]),
        partitions=tuple(said.get("partitions") or ()),
        state="+".join(flags).upper(),
        cpus=int(said.get("cpus", 0)),
        free_cpus=int(said.get("cpus", 0)) - int(said.get("alloc_cpus", 0)),
        memory_mib=int(said.get("real_memory", 0)),
        free_memory_mib=int(said.get("real_memory", 0)) - int(said.get("alloc_memory", 0)),
        gpus=gpus,
        free_gpus={kind: count - used.get(kind, 0) for kind, count in gpus.items()},
    )


def partition_of(said: Mapping[str, Any]) -> Partition:
    limit = said.get("max_time_limit")
    return Partition(
        name=str(said["name"]),
        is_up=said.get("state") == "UP",
        max_time_s=60 * limit if isinstance(limit, int) and 0 < limit < 0xFFFFFFFE else None,
    )


def job_of(said: Mapping[str, Any]) -> Job:
    element = said.get("array_task_id") if said.get("array_job_id") else None
    return Job(
        id=int(said.get("array_job_id") or said["job_id"]),
        element=element if isinstance(element, int) else None,
        name=str(said.get("name", "")),
        comment=str(said.get("comment") or ""),
        state=str(said.get("job_state", "")),
        reason=str(said.get("state_reason") or ""),
        nodes=str(said.get("nodes") or ""),
        started_at=int(said.get("start_time") or 0) or None,
        ended_at=int(said.get("end_time") or 0) or None,
        exit_status=int(said.get("exit_code") or 0),
        restarts=int(said.get("restart_cnt") or 0),
    )


def record_of(said: Mapping[str, Any]) -> Record:
    """v0.0.38 shows 0 for every exit code: that a job failed is all that is known of it."""
    array, times = said.get("array") or {}, said.get("time") or {}
    nodes = str(said.get("nodes") or "")
    return Record(
        id=int(array.get("job_id") or said["job_id"]),
        elements=elements_of(array),
        name=str(said.get("name", "")),
        comment=str((said.get("comment") or {}).get("job") or ""),
        state=str((said.get("state") or {}).get("current", "")),
        node_count=int(said.get("allocation_nodes") or 0),
        nodes="" if nodes == "None assigned" else nodes,
        started_at=int(times.get("start") or 0) or None,
        ended_at=int(times.get("end") or 0) or None,
        exit_status=-1,
        steps=tuple(step_of(step) for step in said.get("steps") or ()),
    )


def elements_of(array: Mapping[str, Any]) -> tuple[int, ...]:
    """One that ran, or those that never did, as the bits of a number."""
    if isinstance(array.get("task_id"), int):
        return (int(array["task_id"]),)
    mask = str(array.get("task") or "")
    if not mask.startswith("0x") or len(mask) > MAX_MASK:
        return ()
    bits = int(mask, 16)
    return tuple(index for index in range(bits.bit_length()) if bits >> index & 1)


def step_of(said: Mapping[str, Any]) -> StepRecord:
    times, exit_code = said.get("time") or {}, said.get("exit_code") or {}
    signal = (exit_code.get("signal") or {}).get("signal_id") if exit_code.get("status") == "SIGNALED" else None
    return StepRecord(
        name=str((said.get("step") or {}).get("name") or ""),
        started_at=int(times.get("start") or 0) or None,
        ended_at=int(times.get("end") or 0) or None,
        exit_code=-int(signal or 0),
    )
