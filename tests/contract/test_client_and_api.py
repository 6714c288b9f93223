"""The client's words and the server's are the same: every route it calls exists, every field it reads is written."""

import inspect
import io
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from pydantic import BaseModel

from crucible.api.access import SOCKET, TABLE
from crucible.client import (
    account_shapes,
    alert_shapes,
    budget_shapes,
    cost_shapes,
    dataset_shapes,
    price_shapes,
    secret_shapes,
    shapes,
    shard_shapes,
    status_shapes,
    template_shapes,
    trial_shapes,
    workflow_shapes,
)
from crucible.client.api import Client
from crucible.client.errors import ServerError
from crucible.wire import (
    accounts,
    alerts,
    budgets,
    cost_reports,
    costs,
    datasets,
    predictions,
    prices,
    recommendations,
    rest,
    secrets,
    shards,
    sign_in,
    status,
    tasks,
    templates,
    workflows,
)
from doubles.http_server import Handler, Request, serving

ID = "019a8c3f-2b41-7000-8000-000000000001"

PAIRS: list[tuple[Any, type[BaseModel]]] = [
    (shapes.Submitted, rest.Submitted),
    (shapes.Changed, rest.Changed),
    (shapes.Selected, rest.Selected),
    (shapes.Cost, rest.Cost),
    (shapes.Timestamps, rest.Timestamps),
    (shapes.Progress, rest.Progress),
    (shapes.Prediction, rest.Prediction),
    (shapes.JobView, rest.JobView),
    (shapes.JobBrief, rest.JobBrief),
    (shapes.JobPage, rest.JobPage),
    (shapes.Artifact, rest.Artifact),
    (status_shapes.JobStatus, status.JobStatus),
    (status_shapes.Progress, status.Progress),
    (status_shapes.Eta, status.Eta),
    (status_shapes.Cost, status.Cost),
    (status_shapes.Health, status.Health),
    (status_shapes.Finding, status.Finding),
    (status_shapes.Findings, status.Findings),
    (status_shapes.Figure, status.Figure),
    (status_shapes.Utilisation, status.Utilisation),
    (status_shapes.Place, status.Place),
    (status_shapes.ServerHealth, rest.ServerHealth),
    (status_shapes.SystemHealth, rest.SystemHealth),
    (status_shapes.SystemCheck, rest.SystemCheck),
    (status_shapes.Chart, rest.Metrics),
    (status_shapes.Series, rest.Series),
    (status_shapes.SeriesPoint, rest.SeriesPoint),
    (shapes.MetricPoint, rest.MetricItem),
    (shapes.MetricPage, rest.Metrics),
    (shapes.Checkpoint, rest.CheckpointItem),
    (shapes.Rank, rest.RankItem),
    (shapes.Attempt, rest.AttemptItem),
    (shapes.Node, rest.NodeItem),
    (account_shapes.Token, accounts.TokenItem),
    (account_shapes.NewToken, accounts.NewToken),
    (account_shapes.SignInWays, sign_in.SignInWays),
    (account_shapes.Ticket, sign_in.Ticket),
    (account_shapes.User, accounts.UserItem),
    (account_shapes.Me, accounts.Me),
    (account_shapes.Team, accounts.TeamItem),
    (account_shapes.Member, accounts.Member),
    (account_shapes.Project, accounts.ProjectItem),
    (account_shapes.AuditLine, accounts.AuditItem),
    (account_shapes.AuditPage, accounts.AuditPage),
    (account_shapes.AuditSeal, accounts.AuditSeal),
    (trial_shapes.Where, tasks.Where),
    (trial_shapes.Task, tasks.TaskView),
    (trial_shapes.TaskPage, tasks.TaskPage),
    (trial_shapes.Objective, tasks.Objective),
    (trial_shapes.TrialCounts, tasks.TrialCounts),
    (trial_shapes.SavedAt, tasks.SavedAt),
    (trial_shapes.BestTrial, tasks.BestTrial),
    (trial_shapes.Sweep, tasks.SweepView),
    (trial_shapes.Figure, tasks.Figure),
    (trial_shapes.EvaluationCell, tasks.EvaluationCell),
    (trial_shapes.EvaluationRow, tasks.EvaluationRow),
    (trial_shapes.Evaluation, tasks.EvaluationView),
    (cost_shapes.JobCosts, costs.JobCosts),
    (cost_shapes.KindCost, costs.KindCost),
    (cost_shapes.MachineCost, costs.MachineCost),
    (cost_shapes.Interval, costs.Interval),
    (cost_shapes.Posting, costs.Posting),
    (cost_shapes.Entry, costs.Entry),
    (cost_shapes.Remaining, costs.Remaining),
    (cost_shapes.Sums, cost_reports.Sums),
    (cost_shapes.CostRow, cost_reports.Row),
    (cost_shapes.Forecast, cost_reports.Forecast),
    (cost_shapes.CostReport, cost_reports.CostReport),
    (cost_shapes.Idea, cost_reports.Idea),
    (cost_shapes.Available, cost_reports.Available),
    (cost_shapes.SavingsReport, cost_reports.SavingsReport),
    (shapes.CostEstimate, recommendations.CostEstimate),
    (shapes.AvailabilityStatus, recommendations.AvailabilityItem),
    (shapes.BackendRecommendation, recommendations.BackendRecommendation),
    (shapes.Recommendations, recommendations.Recommendations),
    (shapes.Accuracy, predictions.Accuracy),
    (shapes.AccuracyGroup, predictions.AccuracyGroup),
    (shapes.AccuracyReport, predictions.AccuracyReport),
    (price_shapes.Price, prices.PriceItem),
    (price_shapes.PriceSummary, prices.PriceSummary),
    (price_shapes.PricePage, prices.PricePage),
    (price_shapes.PriceChange, prices.PriceChange),
    (secret_shapes.Secret, secrets.SecretItem),
    (secret_shapes.KeyRotated, secrets.KeyRotated),
    (alert_shapes.Scope, alerts.Scope),
    (alert_shapes.PriceWish, alerts.PriceWish),
    (alert_shapes.QuietHours, alerts.QuietHours),
    (alert_shapes.AlertRule, alerts.RuleItem),
    (alert_shapes.AlertChannel, alerts.ChannelItem),
    (alert_shapes.AlertChannelMade, alerts.ChannelMade),
    (alert_shapes.Notice, alerts.NoticeItem),
    (alert_shapes.NoticePage, alerts.Notices),
    (alert_shapes.Delivery, alerts.DeliveryItem),
    (budget_shapes.Budget, budgets.Budget),
    (template_shapes.TemplateParameter, templates.TemplateParameter),
    (template_shapes.Template, templates.TemplateItem),
    (template_shapes.TemplateView, templates.TemplateView),
    (dataset_shapes.Dataset, datasets.DatasetItem),
    (dataset_shapes.DatasetCopy, datasets.DatasetCopyItem),
    (dataset_shapes.DatasetView, datasets.DatasetView),
    (dataset_shapes.SignedPut, datasets.SignedPut),
    (dataset_shapes.Upload, datasets.Upload),
    (shapes.CheckpointFile, rest.CheckpointFile),
    (shapes.HeldPiece, rest.HeldPiece),
    (shapes.CheckpointObject, rest.CheckpointObject),
    (shapes.CheckpointFiles, rest.CheckpointFiles),
    (workflow_shapes.Workflow, workflows.Workflow),
    (workflow_shapes.Step, workflows.Step),
    (shard_shapes.ShardCounts, shards.ShardCounts),
    (shard_shapes.ShardItem, shards.ShardItem),
    (shard_shapes.ShardPage, shards.ShardPage),
    (price_shapes.PriceSource, prices.PriceSource),
    (price_shapes.PriceSources, prices.PriceSources),
    (price_shapes.SourceRefreshed, prices.SourceRefreshed),
    (price_shapes.Offer, prices.OfferItem),
    (price_shapes.OfferGroup, prices.OfferGroup),
    (price_shapes.Offers, prices.Offers),
    (price_shapes.Quote, prices.Quote),
    (price_shapes.ComparedProvider, prices.ComparedProvider),
    (price_shapes.Comparison, prices.Comparison),
]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=lambda kind: kind.__name__)
def test_every_field_the_client_reads_is_one_the_server_writes(ours: Any, theirs: type[BaseModel]) -> None:
    assert set(get_type_hints(ours)) <= set(theirs.model_fields)


CALLS: dict[str, Callable[[Client], object]] = {
    "submit": lambda client: client.submit("n", "job: {}"),
    "job": lambda client: client.job(ID),
    "jobs": lambda client: client.jobs(),
    "all_jobs": lambda client: list(client.all_jobs()),
    "is_over": lambda client: client.is_over(ID),
    "wait": lambda client: client.wait(ID),
    "updates": lambda client: list(client.updates(ID)),
    "cancel": lambda client: client.cancel(ID),
    "hold": lambda client: client.hold(ID, "why"),
    "release": lambda client: client.release(ID),
    "retry": lambda client: client.retry(ID),
    "resume": lambda client: client.resume(ID),
    "events": lambda client: client.events(ID),
    "logs": lambda client: list(client.logs(ID)),
    "open_log": lambda client: _opened(client),
    "metrics": lambda client: client.metrics(ID),
    "checkpoints": lambda client: client.checkpoints(ID),
    "checkpoint_files": lambda client: client.checkpoint_files(ID, 1),
    "verify_checkpoint": lambda client: client.verify_checkpoint(ID, 1),
    "get_checkpoint": lambda client: _fetched(client),
    "remove_checkpoint": lambda client: client.remove_checkpoint(ID, 1),
    "outputs": lambda client: client.outputs(ID),
    "output_tree": lambda client: client.output_tree(ID, 1, first=2),
    "get_output": lambda client: _asked_for(client),
    "shards": lambda client: client.shards(ID),
    "results": lambda client: list(client.results(ID)),
    "item_errors": lambda client: list(client.item_errors(ID)),
    "artifacts": lambda client: client.artifacts(ID),
    "attempts": lambda client: client.attempts(ID),
    "costs": lambda client: client.costs(ID),
    "cost_report": lambda client: client.cost_report(by="team,day", start="2026-11-01T00:00Z", only={"user": "ann"}),
    "cost_csv": lambda client: list(client.cost_csv(by="job")),
    "savings": lambda client: client.savings(),
    "tasks": lambda client: client.tasks(ID),
    "all_tasks": lambda client: list(client.all_tasks(ID)),
    "sweep": lambda client: client.sweep(ID),
    "evaluation": lambda client: client.evaluation(ID),
    "why": lambda client: client.why(ID),
    "workflow": lambda client: client.workflow(ID),
    "launch_script": lambda client: client.launch_script(ID, 0),
    "spec": lambda client: client.spec(ID),
    "plan": lambda client: client.plan("job: {}"),
    "recommend": lambda client: client.recommend([]),
    "validate": lambda client: client.validate("job: {}"),
    "has_package": lambda client: client.has_package("0" * 64),
    "upload_package": lambda client: client.upload_package("0" * 64, io.BytesIO(b"x"), 1),
    "add_dataset": lambda client: _added(client),
    "datasets": lambda client: client.datasets(),
    "dataset": lambda client: client.dataset("images"),
    "remove_dataset": lambda client: client.remove_dataset("images"),
    "budgets": lambda client: client.budgets(),
    "budget": lambda client: client.budget("team:t:month"),
    "add_budget": lambda client: client.add_budget("team", "t", 5.0, thresholds=[0.5]),
    "change_budget": lambda client: client.change_budget("team:t:once", limit_usd=6.0, version=0),
    "retention": lambda client: client.retention(),
    "set_retention": lambda client: client.set_retention("logs", "90d"),
    "run_retention": lambda client: client.run_retention(dry_run=True),
    "kept_jobs": lambda client: client.kept_jobs(),
    "keep": lambda client: client.keep(ID, is_kept=False),
    "export_user": lambda client: list(client.export_user("n")),
    "delete_user": lambda client: client.delete_user("n"),
    "remove_budget": lambda client: client.remove_budget("team:t:once"),
    "templates": lambda client: client.templates(),
    "template": lambda client: client.template("mine"),
    "add_template": lambda client: client.add_template("template: {}"),
    "remove_template": lambda client: client.remove_template("mine"),
    "fill_template": lambda client: client.fill_template("mine", {"lr": 0.1}),
    "secrets": lambda client: client.secrets(team="t"),
    "set_secret": lambda client: client.set_secret("A", b"x"),
    "remove_secret": lambda client: client.remove_secret("A", project="p"),
    "rotate_secrets_key": lambda client: client.rotate_secrets_key(),
    "alert_rules": lambda client: client.alert_rules(),
    "add_alert_rule": lambda client: client.add_alert_rule({"name": "r"}),
    "change_alert_rule": lambda client: client.change_alert_rule("r", {"enabled": False}),
    "remove_alert_rule": lambda client: client.remove_alert_rule("r"),
    "alert_channels": lambda client: client.alert_channels(),
    "add_alert_channel": lambda client: client.add_alert_channel({"name": "c"}),
    "remove_alert_channel": lambda client: client.remove_alert_channel("c"),
    "test_alert_channel": lambda client: client.test_alert_channel("c"),
    "rotate_alert_channel": lambda client: client.rotate_alert_channel("c"),
    "notices": lambda client: client.notices(kind="failure"),
    "notice_deliveries": lambda client: client.notice_deliveries(7),
    "prices": lambda client: client.prices(),
    "price_history": lambda client: client.price_history(),
    "price_sources": lambda client: client.price_sources(),
    "refresh_prices": lambda client: client.refresh_prices(),
    "offers": lambda client: client.offers(),
    "compare": lambda client: client.compare("H100"),
    "accuracy": lambda client: client.accuracy(),
    "me": lambda client: client.me(),
    "version": lambda client: client.version(),
    "provider_health": lambda client: client.provider_health("aws"),
    "health": lambda client: client.health(),
    "status": lambda client: client.status(ID),
    "findings": lambda client: client.findings(ID),
    "chart": lambda client: client.chart(ID, rank=1),
    "overview": lambda client: client.overview(),
    "spec_schema": lambda client: client.spec_schema(),
    "spec_examples": lambda client: client.spec_examples(),
    "nodes": lambda client: client.nodes(),
    "capacity": lambda client: client.capacity(),
    "hosts": lambda client: client.hosts(),
    "host": lambda client: client.host("h"),
    "add_hosts": lambda client: client.add_hosts([{"name": "h", "address": "h"}]),
    "check_host": lambda client: client.check_host("h"),
    "drain_host": lambda client: client.drain_host("h", "a reason"),
    "resume_host": lambda client: client.resume_host("h"),
    "remove_host": lambda client: client.remove_host("h"),
    "lab": lambda client: client.lab(),
    "lab_bill": lambda client: client.lab_bill(),
    "lab_events": lambda client: client.lab_events(7, machine="i"),
    "lab_console": lambda client: client.lab_console("i"),
    "lab_preempt": lambda client: client.lab_preempt(["i"], notice_s=30),
    "lab_faults": lambda client: client.lab_faults(),
    "lab_fail": lambda client: client.lab_fail({"kind": "throttle"}),
    "lab_mend": lambda client: client.lab_mend("f-1"),
    "tokens": lambda client: client.tokens(),
    "create_token": lambda client: client.create_token("n"),
    "revoke_token": lambda client: client.revoke_token("t"),
    "sign_in_ways": lambda client: client.sign_in_ways(),
    "sign_in_ticket": lambda client: client.sign_in_ticket("c" * 43),
    "exchange_sign_in": lambda client: client.exchange_sign_in("c", "v"),
    "users": lambda client: client.users(),
    "user": lambda client: client.user("n"),
    "create_user": lambda client: client.create_user("n"),
    "change_user": lambda client: client.change_user("n", disabled=True),
    "teams": lambda client: client.teams(),
    "team": lambda client: client.team("t"),
    "create_team": lambda client: client.create_team("t"),
    "remove_team": lambda client: client.remove_team("t"),
    "members": lambda client: client.members("t"),
    "set_member": lambda client: client.set_member("t", "n", role="viewer"),
    "remove_member": lambda client: client.remove_member("t", "n"),
    "projects": lambda client: client.projects(team="t"),
    "create_project": lambda client: client.create_project("p", team="t"),
    "remove_project": lambda client: client.remove_project("p"),
    "audit": lambda client: client.audit(),
    "audit_seal": lambda client: client.audit_seal(),
    "open_channel": lambda client: _refused(lambda: client.open_channel(ID, rank=1)),
    "exec": lambda client: _refused(lambda: client.exec(ID, ["true"])),
    "copy_to": lambda client: _refused(lambda: client.copy_to(ID, "here", "there")),
    "copy_from": lambda client: _refused(lambda: client.copy_from(ID, "there", "here")),
}


def test_every_method_of_the_client_is_called_here() -> None:
    public = {name for name, _ in inspect.getmembers(Client, inspect.isfunction) if not name.startswith("_")}
    assert public - {"close", "abort"} == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_every_route_the_client_calls_is_one_the_server_has(name: str) -> None:
    body = {"items": [], "next_cursor": None, "status": "completed", "spec_yaml": "", "is_valid": True}
    body |= {"missing": [], "manifest": None, "removed": [], "delivery": "test-1"}
    body |= {"step": 1, "shards": 1, "files": [], "objects": [], "lives_s": 1.0, "text": ""}

    def answer(request: Request, reply: Handler) -> None:
        if request.path.endswith("/logs"):
            reply.begin_chunks()
            reply.end_chunks()
        else:
            reply.json(body)

    with serving(answer) as server, Client(server.transport()) as client:
        CALLS[name](client)
    for request in server.requests:
        method = SOCKET if request.path.endswith("/channel") else request.method
        assert any(method == each and _fits(path, request.path) for each, path in TABLE), request


def _refused(ask: Callable[[], object]) -> None:
    """This server opens no WebSocket."""
    with pytest.raises(ServerError, match="HTTP 200"):
        ask()


def _added(client: Client) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a").write_bytes(b"x")
        client.add_dataset("images", folder)


def _fetched(client: Client) -> None:
    with tempfile.TemporaryDirectory() as folder:
        client.get_checkpoint(ID, 1, folder)


def _asked_for(client: Client) -> None:
    """This server describes no tree: only the question is looked at."""
    with tempfile.TemporaryDirectory() as folder, pytest.raises(KeyError):
        client.get_output(ID, 1, folder)


def _opened(client: Client) -> None:
    with client.open_log(ID, {}, 1.0) as stream:
        list(stream.lines())


def _fits(template: str, path: str) -> bool:
    return re.fullmatch(re.sub(r"\{[a-z_]+\}", "[^/]+", template), path) is not None
