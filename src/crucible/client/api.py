"""The REST API as methods. Every answer is what the server sent; nothing is decided, cached or printed here."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self, cast
from urllib.parse import quote

from crucible.client import (
    cost_shapes,
    dataset_shapes,
    output_shapes,
    price_shapes,
    shapes,
    shard_shapes,
    template_shapes,
    trial_shapes,
    workflow_shapes,
)
from crucible.client.endpoint import Endpoint
from crucible.client.errors import ConnectionLost, from_reply
from crucible.client.following import LogReader, OnTrouble, Patience
from crucible.client.shapes import TERMINAL
from crucible.client.transport import Query, Stream, Transport
from crucible.client.watching import updates, wait_for_end

if TYPE_CHECKING:
    from crucible.agent.websocket import WebSocket
    from crucible.client import talking
    from crucible.client.tree_download import OnGot
    from crucible.client.upload import OnSent
    from crucible.model.dataset_tree import Stowed

__all__ = ["PAGE", "TERMINAL", "Client"]

# What the server gives in one page at most.
PAGE = 200
TASK_PAGE = 1000
# The server tells of each few objects that it has read; one may be the whole file of a folder.
VERIFY_IDLE_S = 600.0
# Storage may be slow to give the next piece.
OUTPUT_IDLE_S = 120.0
# Hosts are reached before they are registered; one may take half a minute to say what it has.
HOSTS_TIMEOUT_S = 120.0


class Client:
    def __init__(self, transport: Transport) -> None:
        self._http = transport

    @classmethod
    def open(cls, endpoint: str | None = None, token: str | None = None) -> "Client":
        """A client of the configured server, or of the embedded one, which is started if it must be."""
        from crucible.client.connecting import Told, connect
        from crucible.client.speaking import say

        return connect(os.environ, Told(started=say, differs=say), endpoint, token)

    @property
    def endpoint(self) -> Endpoint:
        return self._http.endpoint

    def close(self) -> None:
        self._http.close()

    def abort(self) -> None:
        """For another thread: ends what is being asked, and refuses whatever is asked later with ClientClosed."""
        self._http.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # --- jobs ------------------------------------------------------------------------------------

    def submit(
        self, name: str | None, spec_yaml: str, *, code_digest: str | None = None, idempotency_key: str | None = None
    ) -> shapes.Submitted:
        """Safe to repeat: the key makes the same request the same job. Without one, a fresh key is made."""
        body = {"name": name, "spec_yaml": spec_yaml, "code_digest": code_digest}
        given = {key: value for key, value in body.items() if value is not None}
        headers = {"Idempotency-Key": idempotency_key or os.urandom(16).hex()}
        said = self._http.call("POST", "/v1/jobs", body=given, headers=headers, is_repeatable=True)
        return cast(shapes.Submitted, said)

    def job(self, job_id: str) -> shapes.JobView:
        return cast(shapes.JobView, self._http.call("GET", _job(job_id)))

    def jobs(
        self,
        *,
        status: str | None = None,
        name: str | None = None,
        parent: str | None = None,
        steps: bool = False,
        limit: int = 50,
        cursor: str | None = None,
    ) -> shapes.JobPage:
        """Jobs of steps are there only with `steps`, or as those of the workflow `parent`."""
        query: Query = {
            "status": status,
            "name": name,
            "parent": parent,
            "steps": steps or None,
            "limit": limit,
            "cursor": cursor,
        }
        return cast(shapes.JobPage, self._http.call("GET", "/v1/jobs", query=query))

    def all_jobs(
        self,
        *,
        status: str | None = None,
        name: str | None = None,
        parent: str | None = None,
        steps: bool = False,
        limit: int | None = None,
    ) -> Iterator[shapes.JobBrief]:
        """Newest first, page by page, at most `limit`."""
        cursor: str | None = None
        left = limit
        while left is None or left > 0:
            most = min(PAGE, left or PAGE)
            page = self.jobs(status=status, name=name, parent=parent, steps=steps, limit=most, cursor=cursor)
            yield from page["items"][:left]
            left = None if left is None else left - len(page["items"])
            cursor = page["next_cursor"]
            if not cursor:
                return

    def is_over(self, job_id: str) -> bool:
        return self.job(job_id)["status"] in TERMINAL

    def wait(
        self, job_id: str, *, timeout_s: float | None = None, on_trouble: OnTrouble | None = None
    ) -> shapes.JobView:
        """The job once it is over. Raises JobNotOver after `timeout_s`."""
        return wait_for_end(self, job_id, timeout_s=timeout_s, on_trouble=on_trouble)

    def updates(self, job_id: str, *, on_trouble: OnTrouble | None = None) -> Iterator[shapes.JobView]:
        """The job now, then each time that something about it has changed, until it is over."""
        return updates(self, job_id, on_trouble=on_trouble)

    def cancel(self, job_id: str) -> shapes.Changed:
        return self._change(job_id, "cancel")

    def hold(self, job_id: str, reason: str | None = None) -> shapes.Changed:
        return self._change(job_id, "hold", None if reason is None else {"reason": reason})

    def release(self, job_id: str) -> shapes.Changed:
        return self._change(job_id, "release")

    def retry(self, job_id: str, *, from_step: str | None = None) -> shapes.Submitted:
        """A new job that starts anew; a workflow, with one of its steps: the results of the others are taken over."""
        return self._again(job_id, "retry", None if from_step is None else {"from_step": from_step})

    def resume(self, job_id: str) -> shapes.Submitted:
        """A new job that goes on from the newest valid checkpoint."""
        return self._again(job_id, "resume")

    def _again(self, job_id: str, verb: str, body: Any = None) -> shapes.Submitted:
        """With a key of its own, so that asking again after a lost answer makes no second job."""
        headers = {"Idempotency-Key": os.urandom(16).hex()}
        said = self._http.call("POST", f"{_job(job_id)}/{verb}", body=body, headers=headers, is_repeatable=True)
        return cast(shapes.Submitted, said)

    # --- what a job did --------------------------------------------------------------------------

    def events(self, job_id: str, *, everything: bool = False, after: int = 0) -> list[shapes.JobEvent]:
        """Changes of status; with `everything`, all that was recorded of its tasks, attempts and leases."""
        found: list[shapes.JobEvent] = []
        cursor: int | None = after
        while cursor is not None:
            page = self._http.call("GET", f"{_job(job_id)}/events", query={"all": everything, "after": cursor})
            found += page["items"]
            cursor = page.get("next_after")
        return found

    def logs(
        self,
        job_id: str,
        *,
        follow: bool = False,
        offset: int | None = None,
        tail: int | None = None,
        since: str | None = None,
        rank: int | None = None,
        attempt: int | None = None,
        task: int | None = None,
        on_trouble: OnTrouble | None = None,
    ) -> Iterator[shapes.LogRecord]:
        """Lines in order, of the first task if none is named. Survives broken connections and server restarts: no line
        is lost, none comes twice."""
        query: Query = {"offset": offset, "tail": tail, "since": since, "rank": rank, "attempt": attempt, "task": task}
        return LogReader(self, job_id, query, Patience(on_trouble=on_trouble)).lines(follow=follow)

    def open_log(self, job_id: str, query: Query, idle_s: float) -> AbstractContextManager[Stream]:
        return self._http.stream(f"{_job(job_id)}/logs", query, idle_s=idle_s)

    def metrics(self, job_id: str, *, offset: int = 0, task: int | None = None) -> shapes.MetricPage:
        query: Query = {"offset": offset, "task": task}
        return cast(shapes.MetricPage, self._http.call("GET", f"{_job(job_id)}/metrics", query=query))

    def checkpoints(self, job_id: str, *, task: int | None = None) -> list[shapes.Checkpoint]:
        """Of one task, the first if none is named."""
        said = self._http.call("GET", f"{_job(job_id)}/checkpoints", query={"task": task})
        return cast(list[shapes.Checkpoint], said["items"])

    def checkpoint_files(self, job_id: str, step: int, *, task: int | None = None) -> shapes.CheckpointFiles:
        """Its files, and addresses of the bytes that hold for an hour."""
        said = self._http.call("GET", f"{_checkpoint(job_id, step)}/files", query={"task": task})
        return cast(shapes.CheckpointFiles, said)

    def verify_checkpoint(
        self, job_id: str, step: int, on_progress: Callable[[shapes.Verified], None] | None = None
    ) -> shapes.Verified:
        """Every byte is read by the server; `on_progress` hears how far it is."""
        last: dict[str, Any] = {}
        path = f"{_checkpoint(job_id, step)}/verify"
        with self._http.stream(path, {}, idle_s=VERIFY_IDLE_S, method="POST") as stream:
            for line in stream.lines():
                last = json.loads(line)
                if "is_valid" not in last and on_progress is not None:
                    on_progress(cast(shapes.Verified, last))
        if "error" in last:
            raise from_reply(502, last)
        if "is_valid" not in last:
            raise ConnectionLost("the check broke off before its end; ask again")
        return cast(shapes.Verified, last)

    def get_checkpoint(self, job_id: str, step: int, folder: str | os.PathLike[str], *, task: int | None = None) -> str:
        """Fetches it into a new folder `step-…` below `folder`, checks every byte, and returns the path. If that fails,
        nothing is left there."""
        from crucible.client.download import Download

        return Download(lambda: self.checkpoint_files(job_id, step, task=task)).into(os.fspath(folder))

    def remove_checkpoint(self, job_id: str, step: int) -> None:
        """Refused for the newest two of a job that is not over."""
        self._http.call("DELETE", _checkpoint(job_id, step))

    def outputs(self, job_id: str) -> list[output_shapes.Output]:
        """Of every task that has left something, in their order."""
        found: list[output_shapes.Output] = []
        cursor: str | None = None
        while True:
            page = self._http.call("GET", f"{_job(job_id)}/outputs", query={"limit": PAGE, "cursor": cursor})
            found += page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return found

    def output_tree(self, job_id: str, task: int = 0, *, first: int = 0) -> output_shapes.OutputView:
        """Its manifest and its objects from number `first` on, under addresses that hold for an hour."""
        path = f"{_job(job_id)}/outputs/{int(task)}"
        return cast(output_shapes.OutputView, self._http.call("GET", path, query={"first": first}))

    def get_output(
        self, job_id: str, task: int, folder: str | os.PathLike[str], *, on_got: "OnGot | None" = None
    ) -> str:
        """Fetches it into a new folder `task-…` below `folder`, checks every byte, and returns the path. Broken off, it
        leaves no such folder, and the same call goes on."""
        from crucible.client.tree_download import TreeDownload

        def ask(first: int) -> output_shapes.OutputView:
            return self.output_tree(job_id, task, first=first)

        return str(TreeDownload(ask, on_got or (lambda got: None)).into(Path(folder)))

    def shards(
        self, job_id: str, *, after: int = -1, limit: int = 100, state: str | None = None
    ) -> shard_shapes.ShardPage:
        """How far a job is with its items, and some of its shards."""
        query: Query = {"after": after, "limit": limit, "state": state}
        return cast(shard_shapes.ShardPage, self._http.call("GET", f"{_job(job_id)}/shards", query=query))

    def results(self, job_id: str) -> Iterator[bytes]:
        """What came of a job's items, in their order, as far as it is committed. Raises ConnectionLost if it breaks
        off."""
        with self._http.stream(f"{_job(job_id)}/results", {}, idle_s=OUTPUT_IDLE_S) as stream:
            yield from stream.blocks()

    def item_errors(self, job_id: str) -> Iterator[shard_shapes.ItemError]:
        """Items that failed, in their order."""
        with self._http.stream(f"{_job(job_id)}/errors", {}, idle_s=OUTPUT_IDLE_S) as stream:
            for line in stream.lines():
                yield cast(shard_shapes.ItemError, json.loads(line))

    def artifacts(self, job_id: str) -> list[shapes.Artifact]:
        return cast(list[shapes.Artifact], self._items(f"{_job(job_id)}/artifacts"))

    def attempts(self, job_id: str) -> list[shapes.Attempt]:
        return cast(list[shapes.Attempt], self._items(f"{_job(job_id)}/attempts"))

    def costs(self, job_id: str) -> cost_shapes.JobCosts:
        """So far, per hour, still to come; by kind and machine; every interval and posting."""
        return cast(cost_shapes.JobCosts, self._http.call("GET", f"{_job(job_id)}/costs"))

    def tasks(
        self,
        job_id: str,
        *,
        by_value: bool = False,
        phase: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> trial_shapes.TaskPage:
        """In the order of their index, or of a search the best first. `phase`: only these, with commas between."""
        query: Query = {"order": "value" if by_value else "index", "phase": phase, "limit": limit, "cursor": cursor}
        return cast(trial_shapes.TaskPage, self._http.call("GET", f"{_job(job_id)}/tasks", query=query))

    def all_tasks(
        self, job_id: str, *, by_value: bool = False, phase: str | None = None, limit: int | None = None
    ) -> Iterator[trial_shapes.Task]:
        """The same page by page, at most `limit`."""
        cursor: str | None = None
        left = limit
        while left is None or left > 0:
            size = TASK_PAGE if left is None else min(TASK_PAGE, left)
            page = self.tasks(job_id, by_value=by_value, phase=phase, limit=size, cursor=cursor)
            yield from page["items"]
            left = None if left is None else left - len(page["items"])
            cursor = page["next_cursor"]
            if not cursor:
                return

    def sweep(self, job_id: str) -> trial_shapes.Sweep:
        """How a search stands, and its best trial so far."""
        return cast(trial_shapes.Sweep, self._http.call("GET", f"{_job(job_id)}/sweep"))

    def evaluation(self, job_id: str) -> trial_shapes.Evaluation:
        """The table of an evaluation, all of its models."""
        found: trial_shapes.Evaluation | None = None
        cursor: int | None = 0
        while cursor is not None:
            query: Query = {"limit": PAGE, "cursor": cursor}
            page = cast(trial_shapes.Evaluation, self._http.call("GET", f"{_job(job_id)}/evaluation", query=query))
            cursor = page["next_cursor"]
            if found is None:
                found = page
            else:
                found["rows"] += page["rows"]
                found["metrics"] += [name for name in page["metrics"] if name not in found["metrics"]]
        assert found is not None
        return {**found, "next_cursor": None}

    def workflow(self, job_id: str) -> workflow_shapes.Workflow:
        """Its steps: what each needs, what became of it, and the job that works for it."""
        return cast(workflow_shapes.Workflow, self._http.call("GET", f"{_job(job_id)}/workflow"))

    def why(self, job_id: str) -> shapes.Why:
        """What it waits for, task by task."""
        return cast(shapes.Why, self._http.call("GET", f"{_job(job_id)}/why"))

    def launch_script(self, job_id: str, rank: int | None = None) -> shapes.LaunchScript:
        """The bash script that starts it, for running it by hand."""
        said = self._http.call("GET", f"{_job(job_id)}/launch-script", query={"rank": rank})
        return cast(shapes.LaunchScript, said)

    def spec(self, job_id: str) -> str:
        """The text that was submitted, to the letter."""
        return str(self._http.call("GET", f"{_job(job_id)}/spec")["spec_yaml"])

    # --- before a job ----------------------------------------------------------------------------

    def plan(self, spec_yaml: str, *, strategy: str | None = None, why_not: str | None = None) -> shapes.Plan:
        """Where it would run, what that costs and why; `why_not` names offers to be told about."""
        wish = {"spec_yaml": spec_yaml, "strategy": strategy, "why_not": why_not}
        body = {name: value for name, value in wish.items() if value is not None}
        said = self._http.call("POST", "/v1/plan", body=body, is_repeatable=True)
        return cast(shapes.Plan, said)

    def validate(self, spec_yaml: str) -> Any:
        return self._http.call("POST", "/v1/validate", body={"spec_yaml": spec_yaml}, is_repeatable=True)

    def recommend(
        self,
        files: Sequence[Mapping[str, str]],
        *,
        entrypoint: str | None = None,
        preferences: Mapping[str, Any] | None = None,
    ) -> shapes.Recommendations:
        """What the code of `files` ({"name", "text"} each) needs, and where it should run. Nothing of it is run."""
        body = {"files": list(files), "entrypoint": entrypoint, "preferences": dict(preferences or {})}
        said = self._http.call("POST", "/v1/recommendations", body=body, is_repeatable=True)
        return cast(shapes.Recommendations, said)

    def has_package(self, digest: str) -> bool:
        return self._http.has(f"/v1/packages/{quote(digest, safe='')}")

    def upload_package(self, digest: str, file: IO[bytes], size: int) -> None:
        """Writing the same package twice is writing it once."""
        self._http.send_file(f"/v1/packages/{quote(digest, safe='')}", file, size)

    # --- datasets --------------------------------------------------------------------------------

    def add_dataset(
        self,
        name: str,
        path: str | os.PathLike[str],
        *,
        region: str | None = None,
        resend: bool = False,
        on_read: Callable[[int, int], None] | None = None,
        on_sent: "OnSent | None" = None,
    ) -> dataset_shapes.Dataset:
        """Hashes the tree, sends what storage does not have, and gives it the name. Whatever breaks it off leaves no
        dataset; the same call goes on. `resend` sends also what is there."""
        from crucible.client.tree import read_tree
        from crucible.client.upload import Asks, TreeUpload
        from crucible.model.dataset import NAME
        from crucible.model.errors import InvalidRequest

        asks = Asks(partial(self._upload_dataset, name), lambda digest: self._register_dataset(name, digest, region))
        if not re.fullmatch(NAME, name):
            raise InvalidRequest(f"{name!r} cannot name a dataset; use letters, digits, . _ and -")
        local = read_tree(Path(path), on_read)
        return TreeUpload(local, asks, on_sent or (lambda sent: None), resend=resend).run()

    def _upload_dataset(
        self, name: str, digest: str, objects: "Sequence[Stowed]", resend: bool
    ) -> dataset_shapes.Upload:
        wanted = [{"name": one.name, "size": one.size} for one in objects]
        body = {"name": name, "digest": digest, "objects": wanted, "resend": resend}
        said = self._http.call("POST", "/v1/datasets/uploads", body=body, is_repeatable=True)
        return cast(dataset_shapes.Upload, said)

    def _register_dataset(self, name: str, digest: str, region: str | None) -> dataset_shapes.Dataset:
        body = {"name": name, "digest": digest, **({} if region is None else {"region": region})}
        return cast(dataset_shapes.Dataset, self._http.call("POST", "/v1/datasets", body=body, is_repeatable=True))

    def datasets(self) -> list[dataset_shapes.Dataset]:
        return cast(list[dataset_shapes.Dataset], self._items("/v1/datasets"))

    def dataset(self, name: str) -> dataset_shapes.DatasetView:
        return cast(dataset_shapes.DatasetView, self._http.call("GET", f"/v1/datasets/{quote(name, safe='')}"))

    def remove_dataset(self, name: str) -> list[str]:
        """With what the name meant before; refused while a job that is not over needs it."""
        return list(self._http.call("DELETE", f"/v1/datasets/{quote(name, safe='')}")["removed"])

    # --- job templates ----------------------------------------------------------------------------

    def templates(self) -> list[template_shapes.Template]:
        """Those that come with Crucible, then those that people stored."""
        return cast(list[template_shapes.Template], self._items("/v1/templates"))

    def template(self, name: str) -> template_shapes.TemplateView:
        return cast(template_shapes.TemplateView, self._http.call("GET", f"/v1/templates/{quote(name, safe='')}"))

    def add_template(self, body: str) -> template_shapes.TemplateView:
        """The text of a file; a template of that name that is yours gets this text."""
        said = self._http.call("POST", "/v1/templates", body={"body": body}, is_repeatable=True)
        return cast(template_shapes.TemplateView, said)

    def remove_template(self, name: str) -> None:
        self._http.call("DELETE", f"/v1/templates/{quote(name, safe='')}")

    def fill_template(self, name: str, parameters: Mapping[str, template_shapes.Value] | None = None) -> str:
        """The text of the job that it gives, for `submit` and `plan`."""
        path, body = f"/v1/templates/{quote(name, safe='')}/fill", {"parameters": dict(parameters or {})}
        return str(self._http.call("POST", path, body=body, is_repeatable=True)["spec_yaml"])

    # --- what is on sale -------------------------------------------------------------------------

    def prices(
        self,
        *,
        provider: str | None = None,
        region: str | None = None,
        instance_type: str | None = None,
        gpu: str | None = None,
        market: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> price_shapes.PricePage:
        """`gpu` is a name, or a name and how many in one machine: H100:8."""
        query: Query = {
            "provider": provider,
            "region": region,
            "instance_type": instance_type,
            "gpu": gpu,
            "market": market,
            "limit": limit,
            "cursor": cursor,
        }
        return cast(price_shapes.PricePage, self._http.call("GET", "/v1/prices", query=query))

    def price_history(
        self,
        *,
        provider: str | None = None,
        region: str | None = None,
        instance_type: str | None = None,
        market: str | None = None,
        since: str | None = None,
        limit: int = 500,
    ) -> list[price_shapes.PriceChange]:
        """The newest so many changes, oldest first."""
        query: Query = {
            "provider": provider,
            "region": region,
            "instance_type": instance_type,
            "market": market,
            "since": since,
            "limit": limit,
        }
        return cast(list[price_shapes.PriceChange], self._items("/v1/prices/history", query))

    def price_sources(self) -> price_shapes.PriceSources:
        return cast(price_shapes.PriceSources, self._http.call("GET", "/v1/prices/sources"))

    def refresh_prices(self) -> list[price_shapes.SourceRefreshed]:
        """Every source is asked now; admins only. It may take a minute."""
        said = self._http.call("POST", "/v1/prices/refresh", is_repeatable=True)
        return cast(list[price_shapes.SourceRefreshed], said["items"])

    def offers(
        self,
        *,
        gpu: str | None = None,
        provider: str | None = None,
        region: str | None = None,
        instance_type: str | None = None,
        spot: bool | None = None,
        max_price: float | None = None,
        gpu_memory: float | None = None,
        group_by: str | None = None,
        sort: str | None = None,
        limit: int = 50,
    ) -> price_shapes.Offers:
        query: Query = {
            "gpu": gpu,
            "provider": provider,
            "region": region,
            "instance_type": instance_type,
            "spot": spot,
            "max_price": max_price,
            "gpu_memory": gpu_memory,
            "group_by": group_by,
            "sort": sort,
            "limit": limit,
        }
        return cast(price_shapes.Offers, self._http.call("GET", "/v1/offers", query=query))

    def compare(self, gpu: str, *, gpus: int = 1, hours: float | None = None) -> price_shapes.Comparison:
        """Every provider that has the GPU: the cheapest way to hold so many, on demand and spot."""
        query: Query = {"gpu": gpu, "gpus": gpus, "hours": hours}
        return cast(price_shapes.Comparison, self._http.call("GET", "/v1/compare", query=query))

    def accuracy(
        self,
        *,
        gpu: str | None = None,
        model_class: str | None = None,
        framework: str | None = None,
        team: str | None = None,
        limit: int = 1000,
    ) -> shapes.AccuracyReport:
        """How far estimates were from what the newest completed jobs took."""
        query: Query = {"gpu": gpu, "model_class": model_class, "framework": framework, "team": team, "limit": limit}
        return cast(shapes.AccuracyReport, self._http.call("GET", "/v1/predictions/accuracy", query=query))

    # --- people and machines -----------------------------------------------------------------------

    def me(self) -> shapes.Me:
        return cast(shapes.Me, self._http.call("GET", "/v1/me"))

    def version(self) -> Mapping[str, Any]:
        return cast(Mapping[str, Any], self._http.call("GET", "/v1/version"))

    def provider_health(self, provider: str) -> Mapping[str, Any]:
        """What is missing before machines can be bought there; admins only. The provider is asked now."""
        path = f"/v1/health/{quote(provider, safe='')}"
        return cast(Mapping[str, Any], self._http.call("GET", path))

    def nodes(self) -> list[shapes.Node]:
        return cast(list[shapes.Node], self._items("/v1/nodes"))

    # --- own hosts -------------------------------------------------------------------------------

    def hosts(self) -> list[shapes.Host]:
        return cast(list[shapes.Host], self._items("/v1/hosts"))

    def host(self, name: str) -> shapes.Host:
        return cast(shapes.Host, self._http.call("GET", _host(name)))

    def add_hosts(self, hosts: Sequence[Mapping[str, Any]]) -> list[shapes.Host]:
        """All or none; each is reached and looked at first."""
        said = self._http.call("POST", "/v1/hosts", body={"items": list(hosts)}, timeout_s=HOSTS_TIMEOUT_S)
        return cast(list[shapes.Host], said["items"])

    def check_host(self, name: str) -> shapes.Host:
        return cast(shapes.Host, self._http.call("POST", f"{_host(name)}/check", timeout_s=HOSTS_TIMEOUT_S))

    def drain_host(self, name: str, reason: str | None = None) -> shapes.Host:
        body = {} if reason is None else {"reason": reason}
        return cast(shapes.Host, self._http.call("POST", f"{_host(name)}/drain", body=body))

    def resume_host(self, name: str) -> shapes.Host:
        return cast(shapes.Host, self._http.call("POST", f"{_host(name)}/resume"))

    def remove_host(self, name: str, *, force: bool = False) -> None:
        self._http.call("DELETE", _host(name), query={"force": force})

    # --- people ----------------------------------------------------------------------------------

    def tokens(self) -> list[shapes.Token]:
        return cast(list[shapes.Token], self._items("/v1/tokens"))

    def create_token(self, name: str, *, user: str | None = None, expires_at: str | None = None) -> shapes.NewToken:
        """The secret is in this answer and nowhere else, ever. For another user than oneself: admins only."""
        body = {"name": name, "user": user, "expires_at": expires_at}
        said = self._http.call("POST", "/v1/tokens", body={k: v for k, v in body.items() if v is not None})
        return cast(shapes.NewToken, said)

    def revoke_token(self, token_id: str) -> None:
        self._http.call("DELETE", f"/v1/tokens/{quote(token_id, safe='')}")

    def users(self) -> list[shapes.User]:
        return cast(list[shapes.User], self._items("/v1/users"))

    def create_user(self, name: str, *, role: str = "member") -> shapes.User:
        return cast(shapes.User, self._http.call("POST", "/v1/users", body={"name": name, "role": role}))

    # --- beside a rank ------------------------------------------------------------------------------

    def exec(
        self,
        job_id: str,
        argv: Sequence[str],
        *,
        rank: int = 0,
        task: int = 0,
        stdin: bytes = b"",
        timeout_s: float | None = None,
    ) -> "talking.Executed":
        """Run a program where a rank runs, in its environment and folder. Raises ServerTimeout after `timeout_s`, and
        ends the program. The job knows nothing of it."""
        from crucible.client import talking

        return talking.execute(self.open_channel(job_id, rank=rank, task=task), argv, stdin, timeout_s)

    def copy_to(self, job_id: str, source: str, target: str, *, rank: int = 0, task: int = 0) -> "talking.Copied":
        """A file or folder of this computer to `target`, which is relative to the rank's folder; below it, if that is a
        folder or ends with "/". Links are left out."""
        from crucible.client import talking

        return talking.copy_in(self.open_channel(job_id, rank=rank, task=task), source, target)

    def copy_from(self, job_id: str, source: str, target: str, *, rank: int = 0, task: int = 0) -> "talking.Copied":
        """The other way round."""
        from crucible.client import talking

        return talking.copy_out(self.open_channel(job_id, rank=rank, task=task), source, target)

    def open_channel(self, job_id: str, *, rank: int = 0, task: int = 0) -> "WebSocket":
        """To the node of a rank, for whoever knows what to say there (client.talking)."""
        return self._http.open_socket(f"{_job(job_id)}/channel", {"rank": rank, "task": task})

    # --- ways of asking ----------------------------------------------------------------------------

    def _change(self, job_id: str, verb: str, body: Any = None) -> shapes.Changed:
        """What is wanted of a job: wanting it twice is wanting it once."""
        return cast(shapes.Changed, self._http.call("POST", f"{_job(job_id)}/{verb}", body=body, is_repeatable=True))

    def _items(self, path: str, query: Query | None = None) -> list[Any]:
        return cast(list[Any], self._http.call("GET", path, query=query)["items"])


def _host(name: str) -> str:
    return f"/v1/hosts/{quote(name, safe='')}"


def _checkpoint(job_id: str, step: int) -> str:
    return f"{_job(job_id)}/checkpoints/{int(step)}"


def _job(job_id: str) -> str:
    return f"/v1/jobs/{quote(job_id, safe='')}"
