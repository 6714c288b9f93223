"""The REST API as methods. Every answer is what the server sent; nothing is decided, cached or printed here."""

import base64
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
    alert_shapes,
    budget_shapes,
    cost_shapes,
    dataset_shapes,
    output_shapes,
    price_shapes,
    retention_shapes,
    secret_shapes,
    shapes,
    shard_shapes,
    status_shapes,
    template_shapes,
    trial_shapes,
    workflow_shapes,
)
from crucible.client.accounts import AccountCalls
from crucible.client.endpoint import Endpoint
from crucible.client.errors import ConnectionLost, from_reply
from crucible.client.following import LogReader, OnTrouble, Patience
from crucible.client.lab import LabCalls
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
# A year of costs is added up within a second; a busy database may take longer.
COSTS_IDLE_S = 60.0
# A test waits until the other side has taken the message.
TEST_TIMEOUT_S = 60.0
# Hosts are reached before they are registered; one may take half a minute to say what it has.
HOSTS_TIMEOUT_S = 120.0
# Every secret is sealed anew, in a transaction each.
ROTATE_TIMEOUT_S = 600.0


class Client(AccountCalls, LabCalls):
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
        if os.environ.get("TRACEPARENT"):  # whoever starts us traces: the job's trace is linked to that
            headers["traceparent"] = os.environ["TRACEPARENT"]
        said = self._http.call("POST", "/v1/jobs", body=given, headers=headers, is_repeatable=True)
        return cast(shapes.Submitted, said)

    def job(self, job_id: str) -> shapes.JobView:
        return cast(shapes.JobView, self._http.call("GET", _job(job_id)))

    def jobs(
        self,
        *,
        status: str | None = None,
        name: str | None = None,
        user: str | None = None,
        team: str | None = None,
        project: str | None = None,
        parent: str | None = None,
        steps: bool = False,
        limit: int = 50,
        cursor: str | None = None,
    ) -> shapes.JobPage:
        """Jobs of steps are there only with `steps`, or as those of the workflow `parent`."""
        query: Query = {
            "status": status,
            "name": name,
            "user": user,
            "team": team,
            "project": project,
            "parent": parent,
            "steps": steps or None,
            "limit": limit,
            "cursor": cursor,
        }
        return cast(shapes.JobPage, self._http.call("GET", "/v1/jobs", query=query))

    def overview(
        self, *, name: str | None = None, user: str | None = None, team: str | None = None, project: str | None = None
    ) -> shapes.Overview:
        """How the jobs that you see stand, in a few numbers."""
        query: Query = {"name": name, "user": user, "team": team, "project": project}
        return cast(shapes.Overview, self._http.call("GET", "/v1/overview", query=query))

    def all_jobs(
        self,
        *,
        status: str | None = None,
        name: str | None = None,
        user: str | None = None,
        team: str | None = None,
        project: str | None = None,
        parent: str | None = None,
        steps: bool = False,
        limit: int | None = None,
    ) -> Iterator[shapes.JobBrief]:
        """Newest first, page by page, at most `limit`."""
        cursor: str | None = None
        left = limit
        while left is None or left > 0:
            most = min(PAGE, left or PAGE)
            page = self.jobs(
                status=status,
                name=name,
                user=user,
                team=team,
                project=project,
                parent=parent,
                steps=steps,
                limit=most,
                cursor=cursor,
            )
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

    def chart(
        self,
        job_id: str,
        *,
        of: str = "metrics",
        max_points: int = 1000,
        resolution: str | None = None,
        begin: str | None = None,
        end: str | None = None,
        rank: int | None = None,
        task: int | None = None,
    ) -> status_shapes.Chart:
        """Metrics, or with `of="usage"` how its machines are used, in at most `max_points` for each name."""
        query: Query = {"of": of, "max_points": max_points, "resolution": resolution, "from": begin, "to": end}
        said = self._http.call("GET", f"{_job(job_id)}/metrics", query={**query, "rank": rank, "task": task})
        return cast(status_shapes.Chart, said)

    def status(self, job_id: str) -> status_shapes.JobStatus:
        """Phase, progress, end, cost, health and use: the same fields for every job."""
        return cast(status_shapes.JobStatus, self._http.call("GET", f"{_job(job_id)}/status"))

    def findings(self, job_id: str, *, limit: int = 100) -> list[status_shapes.Finding]:
        """What was wrong with it, the newest first."""
        said = self._http.call("GET", f"{_job(job_id)}/findings", query={"limit": limit})
        return cast(list[status_shapes.Finding], said["items"])

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

    def spec_schema(self) -> dict[str, Any]:
        """JSON Schema of a job file, as this server reads them."""
        return cast(dict[str, Any], self._http.call("GET", "/v1/spec/schema"))

    def spec_examples(self) -> list[shapes.SpecExample]:
        """Job files to start from."""
        return cast(list[shapes.SpecExample], self._http.call("GET", "/v1/spec/examples")["items"])

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

    # --- alerts -----------------------------------------------------------------------------------

    def alert_rules(self) -> list[alert_shapes.AlertRule]:
        """Yours and your teams'."""
        return cast(list[alert_shapes.AlertRule], self._items("/v1/alerts/rules"))

    def add_alert_rule(self, wanted: Mapping[str, Any]) -> alert_shapes.AlertRule:
        """`wanted` are the fields of POST /v1/alerts/rules; channels by their ids."""
        return cast(alert_shapes.AlertRule, self._http.call("POST", "/v1/alerts/rules", body=dict(wanted)))

    def change_alert_rule(self, rule_id: str, changes: Mapping[str, Any]) -> alert_shapes.AlertRule:
        path = f"/v1/alerts/rules/{quote(rule_id, safe='')}"
        return cast(alert_shapes.AlertRule, self._http.call("PATCH", path, body=dict(changes)))

    def remove_alert_rule(self, rule_id: str) -> None:
        self._http.call("DELETE", f"/v1/alerts/rules/{quote(rule_id, safe='')}")

    def alert_channels(self) -> list[alert_shapes.AlertChannel]:
        return cast(list[alert_shapes.AlertChannel], self._items("/v1/alerts/channels"))

    def add_alert_channel(self, wanted: Mapping[str, Any]) -> alert_shapes.AlertChannelMade:
        """`wanted`: name, kind, address; team, secret. A secret that the server makes up is in the answer only."""
        return cast(alert_shapes.AlertChannelMade, self._http.call("POST", "/v1/alerts/channels", body=dict(wanted)))

    def remove_alert_channel(self, channel_id: str) -> None:
        self._http.call("DELETE", _alert_channel(channel_id))

    def test_alert_channel(self, channel_id: str) -> str:
        """Returns when the message was taken there, with the id that it carried."""
        said = self._http.call("POST", f"{_alert_channel(channel_id)}/test", timeout_s=TEST_TIMEOUT_S)
        return str(said["delivery"])

    def rotate_alert_channel(self, channel_id: str, secret: str | None = None) -> alert_shapes.AlertChannelMade:
        """A new secret for a webhook; the last one signs too, until the next time."""
        body = {} if secret is None else {"secret": secret}
        return cast(
            alert_shapes.AlertChannelMade, self._http.call("POST", f"{_alert_channel(channel_id)}/rotate", body=body)
        )

    def notices(
        self,
        *,
        kind: str | None = None,
        least: str | None = None,
        job: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> alert_shapes.NoticePage:
        """The newest first; `next_before` of a page leads to the next."""
        query = {"kind": kind, "least": least, "job": job, "before": before, "limit": limit}
        return cast(alert_shapes.NoticePage, self._http.call("GET", "/v1/notices", query=query))

    def notice_deliveries(self, seq: int) -> list[alert_shapes.Delivery]:
        """Who was told of a notice."""
        return cast(list[alert_shapes.Delivery], self._items(f"/v1/notices/{seq}/deliveries"))

    # --- budgets ---------------------------------------------------------------------------------

    def budgets(self) -> list[budget_shapes.Budget]:
        return cast(list[budget_shapes.Budget], self._items("/v1/budgets"))

    def budget(self, budget_id: str) -> budget_shapes.Budget:
        return cast(budget_shapes.Budget, self._http.call("GET", f"/v1/budgets/{quote(budget_id, safe='')}"))

    def add_budget(
        self,
        scope: str,
        name: str,
        limit_usd: float,
        *,
        period: str = "once",
        when_spent: str | None = None,
        thresholds: Sequence[float] | None = None,
    ) -> budget_shapes.Budget:
        """Raises Conflict if there is one already."""
        body = {
            "scope": scope,
            "name": name,
            "limit_usd": limit_usd,
            "period": period,
            "when_spent": when_spent,
            "thresholds": None if thresholds is None else list(thresholds),
        }
        return cast(budget_shapes.Budget, self._http.call("POST", "/v1/budgets", body=body))

    def change_budget(
        self,
        budget_id: str,
        *,
        limit_usd: float | None = None,
        when_spent: str | None = None,
        thresholds: Sequence[float] | None = None,
        version: int | None = None,
    ) -> budget_shapes.Budget:
        """What is None stays. With the `version` that was seen, a change that somebody else made meanwhile is an
        error."""
        body = {
            "limit_usd": limit_usd,
            "when_spent": when_spent,
            "thresholds": None if thresholds is None else list(thresholds),
            "version": version,
        }
        path = f"/v1/budgets/{quote(budget_id, safe='')}"
        return cast(budget_shapes.Budget, self._http.call("PATCH", path, body=body, is_repeatable=version is None))

    def remove_budget(self, budget_id: str) -> None:
        self._http.call("DELETE", f"/v1/budgets/{quote(budget_id, safe='')}")

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

    # --- what was spent ----------------------------------------------------------------------------

    def cost_report(
        self,
        *,
        by: str = "team",
        start: str | None = None,
        end: str | None = None,
        tz: str | None = None,
        limit: int = 1000,
        forecast: bool = False,
        only: Mapping[str, str | None] | None = None,
    ) -> cost_shapes.CostReport:
        """From `start` until before `end`, whole hours such as 2026-11-01T00:00Z; without them, this month. `only`
        narrows it, such as {"team": "vision"}: team, project, user, provider, region, gpu, instance_type, market, kind,
        job."""
        query: Query = {
            "by": by,
            "from": start,
            "to": end,
            "tz": tz,
            "limit": limit,
            "forecast": forecast,
            **(only or {}),
        }
        return cast(cost_shapes.CostReport, self._http.call("GET", "/v1/costs", query=query))

    def cost_csv(
        self,
        *,
        by: str = "team",
        start: str | None = None,
        end: str | None = None,
        tz: str | None = None,
        only: Mapping[str, str | None] | None = None,
    ) -> Iterator[bytes]:
        """The same as CSV, every row of it, as it comes."""
        query: Query = {"by": by, "from": start, "to": end, "tz": tz, "format": "csv", **(only or {})}
        with self._http.stream("/v1/costs", query, idle_s=COSTS_IDLE_S) as rows:
            yield from rows.blocks()

    def savings(
        self,
        *,
        by: str = "market",
        start: str | None = None,
        end: str | None = None,
        tz: str | None = None,
        available: bool = True,
        only: Mapping[str, str | None] | None = None,
    ) -> cost_shapes.SavingsReport:
        """What was saved against prices on demand; apart from it, what could be saved on what runs or waits now."""
        query: Query = {"by": by, "from": start, "to": end, "tz": tz, "available": available, **(only or {})}
        return cast(cost_shapes.SavingsReport, self._http.call("GET", "/v1/savings", query=query))

    def accuracy(
        self,
        *,
        gpu: str | None = None,
        model_class: str | None = None,
        framework: str | None = None,
        team: str | None = None,
        provider: str | None = None,
        by: str | None = None,
        limit: int = 1000,
    ) -> shapes.AccuracyReport:
        """How far estimates were from what the newest completed jobs took; `by` is one or several of gpu, class,
        framework, team, provider, week, with commas between them."""
        query: Query = {
            "gpu": gpu,
            "model_class": model_class,
            "framework": framework,
            "team": team,
            "provider": provider,
            "by": by,
            "limit": limit,
        }
        return cast(shapes.AccuracyReport, self._http.call("GET", "/v1/predictions/accuracy", query=query))

    # --- people and machines -----------------------------------------------------------------------

    def version(self) -> Mapping[str, Any]:
        return cast(Mapping[str, Any], self._http.call("GET", "/v1/version"))

    def health(self) -> status_shapes.ServerHealth:
        """How the system is: providers, loops, queues, ledger, database, streams, prices, agents."""
        return cast(status_shapes.ServerHealth, self._http.call("GET", "/v1/health"))

    def provider_health(self, provider: str) -> Mapping[str, Any]:
        """What is missing before machines can be bought there; admins only. The provider is asked now."""
        path = f"/v1/health/{quote(provider, safe='')}"
        return cast(Mapping[str, Any], self._http.call("GET", path))

    # --- keeping and forgetting ------------------------------------------------------------------

    def retention(self) -> list[retention_shapes.KeptKind]:
        """How long each kind of thing is kept; admins only."""
        return cast(list[retention_shapes.KeptKind], self._items("/v1/retention"))

    def set_retention(self, what: str, age: str) -> retention_shapes.KeptKind:
        """`age`: 90d, 12w, 2y, never or default."""
        said = self._http.call("PUT", f"/v1/retention/{quote(what, safe='')}", body={"age": age}, is_repeatable=True)
        return cast(retention_shapes.KeptKind, said)

    def run_retention(self, *, dry_run: bool = False) -> retention_shapes.Ran:
        """Remove what is old, for some seconds: again until `is_done`. A dry run only counts."""
        said = self._http.call("POST", "/v1/retention/run", body={"dry_run": dry_run}, is_repeatable=True)
        return cast(retention_shapes.Ran, said)

    def kept_jobs(self) -> list[retention_shapes.KeptJob]:
        return cast(list[retention_shapes.KeptJob], self._items("/v1/kept"))

    def keep(self, job_id: str, *, is_kept: bool = True) -> retention_shapes.KeptChange:
        """A job that is kept is never removed for its age."""
        method = "PUT" if is_kept else "DELETE"
        return cast(retention_shapes.KeptChange, self._http.call(method, f"{_job(job_id)}/keep", is_repeatable=True))

    def export_user(self, user: str, *, logs: bool = False) -> Iterator[bytes]:
        """Everything that is stored about a person, as a tar archive. Raises ConnectionLost if it breaks off."""
        path = f"/v1/users/{quote(user, safe='')}/export"
        with self._http.stream(path, {"logs": logs or None}, idle_s=OUTPUT_IDLE_S) as stream:
            yield from stream.blocks()

    def delete_user(self, user: str, *, keep_jobs: bool = False) -> retention_shapes.Forgotten:
        """It goes on by itself; asked again, it says whether it is done."""
        query: Query = {"keep_jobs": keep_jobs or None}
        said = self._http.call("DELETE", f"/v1/users/{quote(user, safe='')}", query=query, is_repeatable=True)
        return cast(retention_shapes.Forgotten, said)

    def nodes(self) -> list[shapes.Node]:
        return cast(list[shapes.Node], self._items("/v1/nodes"))

    def capacity(self) -> list[price_shapes.CapacityPool]:
        """GPUs where somebody counts them, and how many are free."""
        return cast(list[price_shapes.CapacityPool], self._items("/v1/capacity"))

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

    # --- secrets ---------------------------------------------------------------------------------

    def secrets(self, *, team: str | None = None, project: str | None = None) -> list[secret_shapes.Secret]:
        """Names and facts; nobody can ask for a value."""
        query: Query = {"team": team, "project": project}
        return cast(list[secret_shapes.Secret], self._items("/v1/secrets", query))

    def set_secret(
        self, name: str, value: bytes, *, team: str | None = None, project: str | None = None
    ) -> secret_shapes.Secret:
        query: Query = {"team": team, "project": project}
        body = {"value_base64": base64.b64encode(value).decode()}
        return cast(secret_shapes.Secret, self._http.call("PUT", _secret(name), query=query, body=body))

    def remove_secret(self, name: str, *, team: str | None = None, project: str | None = None) -> None:
        self._http.call("DELETE", _secret(name), query={"team": team, "project": project})

    def rotate_secrets_key(self) -> secret_shapes.KeyRotated:
        """Admins only."""
        said = self._http.call("POST", "/v1/secrets-key/rotate", timeout_s=ROTATE_TIMEOUT_S)
        return cast(secret_shapes.KeyRotated, said)

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


def _secret(name: str) -> str:
    return f"/v1/secrets/{quote(name, safe='')}"


def _host(name: str) -> str:
    return f"/v1/hosts/{quote(name, safe='')}"


def _checkpoint(job_id: str, step: int) -> str:
    return f"{_job(job_id)}/checkpoints/{int(step)}"


def _alert_channel(channel_id: str) -> str:
    return f"/v1/alerts/channels/{quote(channel_id, safe='')}"


def _job(job_id: str) -> str:
    return f"/v1/jobs/{quote(job_id, safe='')}"
