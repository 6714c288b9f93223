"""Who may use which route. A route without a row here is not served at all: adding one fails at start-up, and a test
walks through every row as every kind of caller. Whose job it is, is asked elsewhere: a foreign job does not exist."""

from collections.abc import Mapping
from enum import StrEnum

from crucible.model.errors import InvariantBroken


class Access(StrEnum):
    PUBLIC = "public"  # anybody; says nothing but that the server lives
    MEMBER = "member"  # a user's token
    ADMIN = "admin"  # an admin's token
    ATTEMPT = "attempt"  # a user's token, or the token of an attempt that asks for its own job
    NODE = "node"  # a node's key
    WORKER = "worker"  # the token of an attempt that lives: what its own program asks
    ENROLMENT = "enrolment"  # an order's enrolment token; the gateway checks it
    SIGNED = "signed"  # the address itself carries the right; the route checks it


SOCKET = "SOCKET"  # stands for the method of a WebSocket

TABLE: Mapping[tuple[str, str], Access] = {
    ("GET", "/healthz"): Access.PUBLIC,
    ("GET", "/readyz"): Access.PUBLIC,
    ("GET", "/v1/health"): Access.MEMBER,
    ("GET", "/v1/health/{provider}"): Access.ADMIN,  # names the account, and asks the provider
    ("GET", "/v1/version"): Access.MEMBER,
    ("GET", "/v1/openapi.json"): Access.MEMBER,
    # jobs
    ("GET", "/v1/jobs/{job_id}"): Access.ATTEMPT,
    ("GET", "/v1/jobs"): Access.MEMBER,
    ("POST", "/v1/jobs"): Access.MEMBER,
    ("POST", "/v1/jobs/{job_id}/cancel"): Access.MEMBER,
    ("POST", "/v1/jobs/{job_id}/hold"): Access.MEMBER,
    ("POST", "/v1/jobs/{job_id}/release"): Access.MEMBER,
    ("POST", "/v1/jobs/{job_id}/retry"): Access.MEMBER,
    ("POST", "/v1/jobs/{job_id}/resume"): Access.MEMBER,
    ("GET", "/v1/jobs/{job_id}/events"): Access.MEMBER,
    ("GET", "/v1/jobs/{job_id}/artifacts"): Access.MEMBER,
    ("GET", "/v1/jobs/{job_id}/logs"): Access.MEMBER,
    ("GET", "/v1/jobs/{job_id}/metrics"): Access.MEMBER,
    ("GET", "/v1/jobs/{job_id}/checkpoints"): Access.MEMBER,
    ("GET", "/v1/jobs/{job_id}/checkpoints/{step}/files"): Access.MEMBER,
    ("POST", "/v1/jobs/{job_id}/checkpoints/{step}/verify"): Access.MEMBER,
    ("DELETE", "/v1/jobs/{job_id}/checkpoints/{step}"): Access.MEMBER,
    ("GET", "/v1/jobs/{job_id}/outputs"): Access.MEMBER,
    ("GET", "/v1/jobs/{job_id}/outputs/{task_index}"): Access.MEMBER,
    ("GET", "/v1/jobs/{job_id}/attempts"): Access.MEMBER,
    ("GET", "/v1/jobs/{job_id}/spec"): Access.MEMBER,
    ("GET", "/v1/jobs/{job_id}/launch-script"): Access.MEMBER,
    ("GET", "/v1/jobs/{job_id}/plan"): Access.MEMBER,
    ("GET", "/v1/jobs/{job_id}/why"): Access.MEMBER,
    ("GET", "/v1/jobs/{job_id}/costs"): Access.MEMBER,
    ("GET", "/v1/jobs/{job_id}/tasks"): Access.MEMBER,
    ("GET", "/v1/jobs/{job_id}/sweep"): Access.MEMBER,
    ("GET", "/v1/jobs/{job_id}/evaluation"): Access.MEMBER,
    ("GET", "/v1/jobs/{job_id}/shards"): Access.MEMBER,
    ("GET", "/v1/jobs/{job_id}/results"): Access.MEMBER,
    ("GET", "/v1/jobs/{job_id}/errors"): Access.MEMBER,
    ("GET", "/v1/jobs/{job_id}/workflow"): Access.MEMBER,
    (SOCKET, "/v1/jobs/{job_id}/stream"): Access.MEMBER,
    (SOCKET, "/v1/jobs/{job_id}/channel"): Access.MEMBER,  # runs programs on its machines: never for job code
    # before a job
    ("POST", "/v1/plan"): Access.MEMBER,
    ("POST", "/v1/validate"): Access.MEMBER,
    ("POST", "/v1/recommendations"): Access.MEMBER,
    ("HEAD", "/v1/packages/{digest}"): Access.MEMBER,
    ("PUT", "/v1/packages/{digest}"): Access.MEMBER,
    # datasets
    ("GET", "/v1/datasets"): Access.MEMBER,
    ("POST", "/v1/datasets"): Access.MEMBER,
    ("POST", "/v1/datasets/uploads"): Access.MEMBER,
    ("GET", "/v1/datasets/{name}"): Access.MEMBER,
    ("DELETE", "/v1/datasets/{name}"): Access.MEMBER,
    # templates
    ("GET", "/v1/templates"): Access.MEMBER,
    ("POST", "/v1/templates"): Access.MEMBER,
    ("GET", "/v1/templates/{name}"): Access.MEMBER,
    ("DELETE", "/v1/templates/{name}"): Access.MEMBER,
    ("POST", "/v1/templates/{name}/fill"): Access.MEMBER,
    # what is on sale
    ("GET", "/v1/offers"): Access.MEMBER,
    ("GET", "/v1/compare"): Access.MEMBER,
    ("GET", "/v1/prices"): Access.MEMBER,
    ("GET", "/v1/prices/history"): Access.MEMBER,
    ("GET", "/v1/prices/sources"): Access.MEMBER,
    ("POST", "/v1/prices/refresh"): Access.ADMIN,
    # what came of it
    ("GET", "/v1/predictions/accuracy"): Access.MEMBER,
    # people and machines
    ("GET", "/v1/me"): Access.MEMBER,
    ("GET", "/v1/tokens"): Access.MEMBER,
    ("POST", "/v1/tokens"): Access.MEMBER,
    ("DELETE", "/v1/tokens/{token_id}"): Access.MEMBER,
    ("GET", "/v1/users"): Access.ADMIN,
    ("POST", "/v1/users"): Access.ADMIN,
    ("GET", "/v1/nodes"): Access.MEMBER,
    ("GET", "/v1/hosts"): Access.MEMBER,
    ("POST", "/v1/hosts"): Access.ADMIN,
    ("GET", "/v1/hosts/{name}"): Access.MEMBER,
    ("DELETE", "/v1/hosts/{name}"): Access.ADMIN,
    ("POST", "/v1/hosts/{name}/check"): Access.ADMIN,
    ("POST", "/v1/hosts/{name}/drain"): Access.ADMIN,
    ("POST", "/v1/hosts/{name}/resume"): Access.ADMIN,
    # seed 002's names
    ("POST", "/api/v1/training"): Access.MEMBER,
    ("GET", "/api/v1/training/{job_id}"): Access.MEMBER,
    ("POST", "/api/v1/training/{job_id}/resume"): Access.MEMBER,
    (SOCKET, "/api/v1/training/{job_id}/stream"): Access.MEMBER,
    # objects on this server's disk
    ("GET", "/v1/objects/{token}"): Access.SIGNED,
    ("PUT", "/v1/objects/{token}"): Access.SIGNED,
    # agents
    ("GET", "/v1/agent/{sha256}"): Access.ENROLMENT,
    ("POST", "/agent/v1/enrol"): Access.ENROLMENT,
    ("GET", "/agent/v1/work"): Access.NODE,
    ("POST", "/agent/v1/report"): Access.NODE,
    ("GET", "/agent/v1/packages/{digest}"): Access.NODE,
    ("POST", "/agent/v1/storage/slot"): Access.NODE,
    ("POST", "/agent/v1/storage/candidate"): Access.NODE,
    ("POST", "/agent/v1/datasets"): Access.NODE,
    ("POST", "/agent/v1/datasets/fetched"): Access.NODE,
    ("POST", "/agent/v1/outputs"): Access.NODE,
    ("POST", "/agent/v1/outputs/whole"): Access.NODE,
    (SOCKET, "/agent/v1/channels/{channel_id}"): Access.NODE,
    # programs of jobs
    ("POST", "/worker/v1/shards/lease"): Access.WORKER,
    ("POST", "/worker/v1/shards/renew"): Access.WORKER,
    ("POST", "/worker/v1/shards/commit"): Access.WORKER,
    ("POST", "/worker/v1/shards/objects"): Access.WORKER,
}


def required(method: str, path: str) -> Access:
    access = TABLE.get((method, path))
    if access is None:
        raise InvariantBroken(f"{method} {path} has no row in crucible.api.access: say who may use it")
    return access
