"""Who may use which route. A route without a row here is not served at all: adding one fails at start-up, and a test
walks through every row as every kind of caller. Whose job or team it is, is asked elsewhere (core/rights.py): what is
foreign does not exist."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from crucible.core.rights import is_admin, manages
from crucible.model.account import Grant, Principal, Role
from crucible.model.errors import Forbidden, InvariantBroken


class Access(StrEnum):
    PUBLIC = "public"  # anybody; says nothing but that the server lives
    VIEWER = "viewer"  # anybody's token
    MEMBER = "member"  # the token of somebody who may change things
    MANAGER = "manager"  # of somebody who manages a team, or of an admin; which team, the engine asks
    ADMIN = "admin"  # an admin's token
    METRICS = "metrics"  # a token that an admin gave to whoever collects them, or an admin's
    ATTEMPT = "attempt"  # anybody's token, or the token of an attempt that asks for its own job
    NODE = "node"  # a node's key
    WORKER = "worker"  # the token of an attempt that lives: what its own program asks
    ENROLMENT = "enrolment"  # an order's enrolment token; the gateway checks it
    SIGNED = "signed"  # the address itself carries the right; the route checks it


class Need(NamedTuple):
    """What a route asks of whoever comes: who they are, and what a token for certain uses must be for."""

    access: Access
    grant: Grant | None = None  # None: no person's token is looked at


PUBLIC = Need(Access.PUBLIC)
LOOK = Need(Access.VIEWER, Grant.READ)
CHANGE = Need(Access.MEMBER, Grant.JOBS)
MANAGE = Need(Access.MANAGER, Grant.MANAGE)
ADMINISTER = Need(Access.ADMIN, Grant.ADMIN)
OWN_TOKENS = Need(Access.VIEWER, Grant.MANAGE)  # everybody has tokens
OWN_SECRETS = Need(Access.MEMBER, Grant.MANAGE)  # a team's or project's: the engine asks who manages it
ALERTS = Need(Access.MEMBER, Grant.MANAGE)  # everybody who changes things has alerts of their own
BUDGETS = Need(Access.MEMBER, Grant.MANAGE)  # members may set those of their own jobs; the engine asks which
TEAMS = Need(Access.ADMIN, Grant.MANAGE)
SCRAPE = Need(Access.METRICS, Grant.METRICS)
ATTEMPT = Need(Access.ATTEMPT, Grant.READ)
NODE = Need(Access.NODE)
WORKER = Need(Access.WORKER)
ENROLMENT = Need(Access.ENROLMENT)
SIGNED = Need(Access.SIGNED)

SOCKET = "SOCKET"  # stands for the method of a WebSocket

TABLE: Mapping[tuple[str, str], Need] = {
    # the page: its files say nothing, and ask the API as whoever signs in
    ("GET", "/"): PUBLIC,
    ("HEAD", "/"): PUBLIC,
    ("GET", "/ui"): PUBLIC,
    ("HEAD", "/ui"): PUBLIC,
    ("GET", "/ui/{path:path}"): PUBLIC,
    ("HEAD", "/ui/{path:path}"): PUBLIC,
    ("GET", "/healthz"): PUBLIC,
    ("GET", "/readyz"): PUBLIC,
    ("GET", "/v1/health"): LOOK,
    ("GET", "/v1/health/{provider}"): ADMINISTER,  # names the account, and asks the provider
    ("GET", "/metrics"): SCRAPE,
    ("GET", "/v1/version"): LOOK,
    # signing in elsewhere: what is carried there is signed
    ("GET", "/v1/login"): PUBLIC,
    ("GET", "/v1/login/oidc"): PUBLIC,
    ("GET", "/v1/login/oidc/callback"): SIGNED,
    ("POST", "/v1/login/token"): SIGNED,
    ("POST", "/v1/login/ticket"): OWN_TOKENS,
    ("GET", "/v1/openapi.json"): LOOK,
    # jobs
    ("GET", "/v1/jobs/{job_id}"): ATTEMPT,
    ("GET", "/v1/jobs"): LOOK,
    ("GET", "/v1/overview"): LOOK,
    ("POST", "/v1/jobs"): CHANGE,
    ("POST", "/v1/jobs/{job_id}/cancel"): CHANGE,
    ("POST", "/v1/jobs/{job_id}/hold"): CHANGE,
    ("POST", "/v1/jobs/{job_id}/release"): CHANGE,
    ("POST", "/v1/jobs/{job_id}/retry"): CHANGE,
    ("POST", "/v1/jobs/{job_id}/resume"): CHANGE,
    ("GET", "/v1/jobs/{job_id}/events"): LOOK,
    ("GET", "/v1/jobs/{job_id}/artifacts"): LOOK,
    ("GET", "/v1/jobs/{job_id}/logs"): LOOK,
    ("GET", "/v1/jobs/{job_id}/metrics"): LOOK,
    ("GET", "/v1/jobs/{job_id}/status"): LOOK,
    ("GET", "/v1/jobs/{job_id}/findings"): LOOK,
    ("GET", "/v1/jobs/{job_id}/checkpoints"): LOOK,
    ("GET", "/v1/jobs/{job_id}/checkpoints/{step}/files"): LOOK,
    ("POST", "/v1/jobs/{job_id}/checkpoints/{step}/verify"): LOOK,
    ("DELETE", "/v1/jobs/{job_id}/checkpoints/{step}"): CHANGE,
    ("GET", "/v1/jobs/{job_id}/outputs"): LOOK,
    ("GET", "/v1/jobs/{job_id}/outputs/{task_index}"): LOOK,
    ("GET", "/v1/jobs/{job_id}/attempts"): LOOK,
    ("GET", "/v1/jobs/{job_id}/spec"): LOOK,
    ("GET", "/v1/jobs/{job_id}/launch-script"): LOOK,
    ("GET", "/v1/jobs/{job_id}/plan"): LOOK,
    ("GET", "/v1/jobs/{job_id}/why"): LOOK,
    ("GET", "/v1/jobs/{job_id}/costs"): LOOK,
    ("GET", "/v1/jobs/{job_id}/tasks"): LOOK,
    ("GET", "/v1/jobs/{job_id}/sweep"): LOOK,
    ("GET", "/v1/jobs/{job_id}/evaluation"): LOOK,
    ("GET", "/v1/jobs/{job_id}/shards"): LOOK,
    ("GET", "/v1/jobs/{job_id}/results"): LOOK,
    ("GET", "/v1/jobs/{job_id}/errors"): LOOK,
    ("GET", "/v1/jobs/{job_id}/workflow"): LOOK,
    (SOCKET, "/v1/jobs/{job_id}/stream"): LOOK,
    (SOCKET, "/v1/jobs/{job_id}/channel"): CHANGE,  # runs programs on its machines: never for job code
    # before a job
    ("POST", "/v1/plan"): LOOK,
    ("POST", "/v1/validate"): LOOK,
    ("GET", "/v1/spec/schema"): LOOK,
    ("GET", "/v1/spec/examples"): LOOK,
    ("POST", "/v1/recommendations"): LOOK,
    ("HEAD", "/v1/packages/{digest}"): LOOK,
    ("PUT", "/v1/packages/{digest}"): CHANGE,
    # datasets
    ("GET", "/v1/datasets"): LOOK,
    ("POST", "/v1/datasets"): CHANGE,
    ("POST", "/v1/datasets/uploads"): CHANGE,
    ("GET", "/v1/datasets/{name}"): LOOK,
    ("DELETE", "/v1/datasets/{name}"): CHANGE,
    # templates
    ("GET", "/v1/templates"): LOOK,
    ("POST", "/v1/templates"): CHANGE,
    ("GET", "/v1/templates/{name}"): LOOK,
    ("DELETE", "/v1/templates/{name}"): CHANGE,
    ("POST", "/v1/templates/{name}/fill"): LOOK,
    # secrets
    ("GET", "/v1/secrets"): LOOK,
    ("PUT", "/v1/secrets/{name}"): OWN_SECRETS,
    ("DELETE", "/v1/secrets/{name}"): OWN_SECRETS,
    ("POST", "/v1/secrets-key/rotate"): ADMINISTER,
    # what is on sale
    ("GET", "/v1/offers"): LOOK,
    ("GET", "/v1/compare"): LOOK,
    ("GET", "/v1/capacity"): LOOK,
    ("GET", "/v1/prices"): LOOK,
    ("GET", "/v1/prices/history"): LOOK,
    ("GET", "/v1/prices/sources"): LOOK,
    ("POST", "/v1/prices/refresh"): ADMINISTER,
    # what was spent, and what came of it
    ("GET", "/v1/costs"): LOOK,
    ("GET", "/v1/savings"): LOOK,
    ("GET", "/v1/predictions/accuracy"): LOOK,
    # budgets
    ("GET", "/v1/budgets"): LOOK,
    ("POST", "/v1/budgets"): BUDGETS,
    ("GET", "/v1/budgets/{budget_id}"): LOOK,
    ("PATCH", "/v1/budgets/{budget_id}"): BUDGETS,
    ("DELETE", "/v1/budgets/{budget_id}"): BUDGETS,
    # people and machines
    ("GET", "/v1/me"): LOOK,
    ("GET", "/v1/tokens"): LOOK,
    ("POST", "/v1/tokens"): OWN_TOKENS,
    ("DELETE", "/v1/tokens/{token_id}"): OWN_TOKENS,
    ("GET", "/v1/users"): MANAGE,
    ("POST", "/v1/users"): MANAGE,
    ("GET", "/v1/users/{user}"): MANAGE,
    ("PATCH", "/v1/users/{user}"): ADMINISTER,
    ("GET", "/v1/teams"): LOOK,
    ("POST", "/v1/teams"): TEAMS,
    ("GET", "/v1/teams/{team}"): LOOK,
    ("DELETE", "/v1/teams/{team}"): TEAMS,
    ("GET", "/v1/teams/{team}/members"): LOOK,
    ("PUT", "/v1/teams/{team}/members/{user}"): MANAGE,
    ("DELETE", "/v1/teams/{team}/members/{user}"): MANAGE,
    ("GET", "/v1/projects"): LOOK,
    ("POST", "/v1/projects"): MANAGE,
    ("GET", "/v1/projects/{project}"): LOOK,
    ("DELETE", "/v1/projects/{project}"): MANAGE,
    ("GET", "/v1/audit"): MANAGE,
    ("GET", "/v1/audit/seal"): ADMINISTER,
    ("GET", "/v1/users/{user}/export"): LOOK,  # one's own; an admin has anybody's
    ("DELETE", "/v1/users/{user}"): ADMINISTER,
    # what is kept
    ("GET", "/v1/retention"): ADMINISTER,
    ("PUT", "/v1/retention/{what}"): ADMINISTER,
    ("POST", "/v1/retention/run"): ADMINISTER,
    ("GET", "/v1/kept"): LOOK,
    ("PUT", "/v1/jobs/{job_id}/keep"): CHANGE,
    ("DELETE", "/v1/jobs/{job_id}/keep"): CHANGE,
    ("GET", "/v1/nodes"): LOOK,
    ("GET", "/v1/hosts"): LOOK,
    ("POST", "/v1/hosts"): ADMINISTER,
    ("GET", "/v1/hosts/{name}"): LOOK,
    ("DELETE", "/v1/hosts/{name}"): ADMINISTER,
    ("POST", "/v1/hosts/{name}/check"): ADMINISTER,
    ("POST", "/v1/hosts/{name}/drain"): ADMINISTER,
    ("POST", "/v1/hosts/{name}/resume"): ADMINISTER,
    # the Lab: its machines are everybody's, what one printed may be somebody's
    ("GET", "/v1/lab"): LOOK,
    ("GET", "/v1/lab/bill"): LOOK,
    ("GET", "/v1/lab/events"): LOOK,
    ("GET", "/v1/lab/machines/{machine}/console"): ADMINISTER,
    ("POST", "/v1/lab/preempt"): ADMINISTER,
    ("GET", "/v1/lab/faults"): LOOK,
    ("POST", "/v1/lab/faults"): ADMINISTER,
    ("DELETE", "/v1/lab/faults/{name}"): ADMINISTER,
    # alerts: whose rule or channel it is, the engine asks
    ("GET", "/v1/alerts/rules"): LOOK,
    ("POST", "/v1/alerts/rules"): ALERTS,
    ("GET", "/v1/alerts/rules/{rule_id}"): LOOK,
    ("PATCH", "/v1/alerts/rules/{rule_id}"): ALERTS,
    ("DELETE", "/v1/alerts/rules/{rule_id}"): ALERTS,
    ("GET", "/v1/alerts/channels"): LOOK,
    ("POST", "/v1/alerts/channels"): ALERTS,
    ("DELETE", "/v1/alerts/channels/{alert_channel_id}"): ALERTS,
    ("POST", "/v1/alerts/channels/{alert_channel_id}/test"): ALERTS,
    ("POST", "/v1/alerts/channels/{alert_channel_id}/rotate"): ALERTS,
    ("GET", "/v1/notices"): LOOK,
    ("GET", "/v1/notices/{seq}/deliveries"): LOOK,
    # seed 002's names
    ("POST", "/api/v1/training"): CHANGE,
    ("GET", "/api/v1/training/{job_id}"): LOOK,
    ("POST", "/api/v1/training/{job_id}/resume"): CHANGE,
    (SOCKET, "/api/v1/training/{job_id}/stream"): LOOK,
    # objects on this server's disk
    ("GET", "/v1/objects/{token}"): SIGNED,
    ("PUT", "/v1/objects/{token}"): SIGNED,
    # agents
    ("GET", "/v1/agent/{sha256}"): ENROLMENT,
    ("POST", "/agent/v1/enrol"): ENROLMENT,
    ("GET", "/agent/v1/work"): NODE,
    ("POST", "/agent/v1/report"): NODE,
    ("GET", "/agent/v1/packages/{digest}"): NODE,
    ("POST", "/agent/v1/storage/slot"): NODE,
    ("POST", "/agent/v1/storage/candidate"): NODE,
    ("POST", "/agent/v1/datasets"): NODE,
    ("POST", "/agent/v1/datasets/fetched"): NODE,
    ("POST", "/agent/v1/outputs"): NODE,
    ("POST", "/agent/v1/outputs/whole"): NODE,
    ("POST", "/agent/v1/secrets"): NODE,
    (SOCKET, "/agent/v1/channels/{channel_id}"): NODE,
    # programs of jobs
    ("POST", "/worker/v1/shards/lease"): WORKER,
    ("POST", "/worker/v1/shards/renew"): WORKER,
    ("POST", "/worker/v1/shards/commit"): WORKER,
    ("POST", "/worker/v1/shards/objects"): WORKER,
}


def required(method: str, path: str) -> Need:
    need = TABLE.get((method, path))
    if need is None:
        raise InvariantBroken(f"{method} {path} has no row in crucible.api.access: say who may use it")
    return need


def check(need: Need, who: Principal) -> None:
    """Whether this person may use the route at all. Raises Forbidden, which says what is missing."""
    if need.access is Access.METRICS and not is_admin(who) and Grant.METRICS not in who.grants:
        raise Forbidden(
            "this needs a token that was made for it; an admin makes one: crucible token create --grant metrics"
        )
    if need.grant is not None and not who.is_granted(need.grant):
        raise Forbidden(f"this token was not made for that: it lacks the grant {need.grant}", grant=need.grant)
    if need.access is Access.ADMIN and not is_admin(who):
        raise Forbidden("only an admin may do that; ask one")
    if need.access is Access.MANAGER and not any(manages(who, team) for team in (None, *who.teams)):
        raise Forbidden("only an admin, or somebody who manages a team, may do that; ask one")
    if need.access is Access.MEMBER and not who.role.covers(Role.MEMBER):
        raise Forbidden("you may look, but not change anything; an admin can make you a member")
