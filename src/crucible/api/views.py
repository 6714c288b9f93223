"""Our values in the words of wire.rest, as plain dictionaries: writing them by hand keeps a list of fifty cheap."""

from collections.abc import Mapping, Sequence
from typing import Any

from crucible.core.checkpoint import Whole
from crucible.core.stored_manifest import NodeManifest
from crucible.core.telemetry import is_within_goal
from crucible.engine.checkpoint_desk import Row, ShardFiles
from crucible.engine.spending import Spent
from crucible.engine.stored import Place
from crucible.model.attempt import Attempt, Rank
from crucible.model.health import HeldNode
from crucible.model.ids import JobId, LeaseId, OrderId
from crucible.model.job import Job
from crucible.model.lease import Lease, Node, Order
from crucible.model.metrics import Bucket, Chart
from crucible.model.record import Artifact, Prediction
from crucible.model.units import MicroUsd, usd
from crucible.ports.store import JobPage, JobSummary, LoggedEvent
from crucible.ports.streams import LogLine, MetricPoint
from crucible.ports.trials import JobProgress, Tries
from crucible.ports.workflows import Shape


def submitted(job: Job) -> dict[str, Any]:
    return {"id": job.id, "status": job.status, "created_at": job.created_at, "origin": job.origin}


def changed(job: Job) -> dict[str, Any]:
    return {"id": job.id, "status": job.status, "desired": job.desired, "reason": job.reason}


def job_view(
    job: Job,
    tries: Tries,
    progress: JobProgress | None,
    came: Prediction | None,
    so_far: MicroUsd,
    shards: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """`so_far`: what it has cost; `shards`: how far it is, of a job that works on items."""
    return {
        "id": job.id,
        "name": job.name,
        "status": job.status,
        "job_type": job.job_type,
        "framework": job.framework,
        "execution_mode": job.execution_mode,
        "selected": selected(job),
        "cost": cost(job, so_far),
        "timestamps": timestamps(job),
        "desired": job.desired,
        "reason": job.reason,
        "gpus": job.gpus,
        "priority": job.priority,
        "progress": progress_view(progress),
        "attempts": attempt_counts(tries),
        "origin": job.origin,
        "lineage": job.lineage,
        "parent": job.parent,
        "step": job.step,
        "steps": 0,
        "deadline": job.deadline_at,
        "budget_usd": None if job.budget_microusd is None else usd(job.budget_microusd),
        "user_id": job.user_id,
        "team": job.team,
        "project": job.project,
        "code_digest": job.code_digest,
        "prediction": None if came is None else prediction(came),
        "shards": shards,
    }


def workflow_job(view: dict[str, Any], shape: Shape) -> dict[str, Any]:
    """The view of a job that is a workflow: how far it is, is told by its steps."""
    progress = {
        "step": shape.ended,
        "total_steps": shape.steps,
        "fraction": shape.ended / shape.steps,
        "at": view["timestamps"]["updated_at"],
        "metrics": {},
    }
    return {**view, "steps": shape.steps, "progress": progress}


def prediction(came: Prediction) -> dict[str, Any]:
    """What was expected beside what came of it."""
    return {
        "estimated_hours": came.estimated_hours,
        "actual_hours": came.actual_hours,
        "estimated_cost_usd": None if came.estimated_cost is None else usd(came.estimated_cost),
        "actual_cost_usd": None if came.actual_cost is None else usd(came.actual_cost),
        "estimated_hours_high": came.estimated_hours_high,
        "estimated_cost_high_usd": None if came.estimated_cost_high is None else usd(came.estimated_cost_high),
        "is_within_goal": is_within_goal(came),
    }


def selected(job: Job) -> dict[str, Any] | None:
    if job.selected_provider is None:
        return None
    return {
        "provider": job.selected_provider,
        "region": job.selected_region,
        "backend": job.selected_backend,
        "instance_type": job.selected_instance_type,
        "spot": job.selected_spot,
        "count": job.selected_count,
    }


def cost(job: Job, so_far: MicroUsd) -> dict[str, Any]:
    estimated = job.cost_estimated_microusd
    return {
        "running_usd": usd(so_far),
        "estimated_usd": None if estimated is None else usd(estimated),
    }


def timestamps(job: Job) -> dict[str, Any]:
    return {
        "created_at": job.created_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
        "updated_at": job.updated_at,
    }


def attempt_counts(tries: Tries) -> dict[str, int]:
    return {"started": tries.started, "failures": tries.failures, "losses": tries.losses}


def progress_view(progress: JobProgress | None) -> dict[str, Any] | None:
    """Of one task as it reported it; of several, the share done and the newest moment."""
    if progress is None:
        return None
    newest = progress.newest
    step, total, fraction = newest.step, newest.total_steps, newest.fraction
    if progress.tasks > 1:
        step, total, fraction = None, None, progress.done / progress.tasks
    return {"step": step, "total_steps": total, "fraction": fraction, "at": newest.at, "metrics": newest.metrics}


def page(found: JobPage, costs: Mapping[JobId, Spent], workflows: Mapping[JobId, Shape]) -> dict[str, Any]:
    items = [brief(item, costs[item.id], workflows.get(item.id)) for item in found.items]
    return {"items": items, "next_cursor": found.next_cursor}


def brief(item: JobSummary, spent: Spent, shape: Shape | None = None) -> dict[str, Any]:
    return {
        "id": item.id,
        "name": item.name,
        "status": item.status,
        "reason": item.reason,
        "user_id": item.user_id,
        "team": item.team,
        "project": item.project,
        "desired": item.desired,
        "job_type": item.job_type,
        "framework": item.framework,
        "gpus": item.gpus,
        "provider": item.selected_provider,
        "region": item.selected_region,
        "cost_usd": usd(spent.so_far),
        "per_hour_usd": usd(spent.per_hour),
        "progress": item.progress if shape is None else shape.ended / shape.steps,
        "steps": 0 if shape is None else shape.steps,
        "health": None if item.status.is_terminal else item.health,
        "created_at": item.created_at,
        "started_at": item.started_at,
        "finished_at": item.finished_at,
    }


def event(logged: LoggedEvent, *, is_full: bool) -> dict[str, Any]:
    """Seed 000's shape; in full, also what happened to which thing."""
    view: dict[str, Any] = {"seq": logged.seq, "at": logged.at}
    if logged.to_status is not None:
        view |= {"from": logged.from_status, "to": logged.to_status}
    if logged.reason is not None:
        view["reason"] = logged.reason
    if is_full:
        view |= {"kind": logged.kind, "id": logged.entity_id, "type": logged.type, "body": logged.body}
    return view


def artifact(made: Artifact) -> dict[str, Any]:
    return {"type": made.type, "uri": made.uri, "created_at": made.created_at, "meta": made.meta}


def checkpoint(row: Row, is_latest: bool) -> dict[str, Any]:
    made = row.made
    return {
        "step": made.step,
        "uri": made.uri,
        "size_bytes": made.size_bytes,
        "manifest_sha256": made.manifest_sha256,
        "created_at": made.created_at,
        "job_id": made.job_id,
        "attempt_id": made.attempt_id or None,
        "attempt": row.attempt,
        "shards": row.shards,
        "kept_in": "storage" if row.is_stored else "folder",
        "is_latest": is_latest,
        "metadata": made.metadata,
    }


def checkpoint_files(place: Place, whole: Whole, shards: Sequence[ShardFiles], lives_s: float) -> dict[str, Any]:
    """Files are numbered through all shards."""
    files: list[dict[str, Any]] = []
    objects: list[dict[str, Any]] = []
    for shard in shards:
        node, first = shard.manifest.node, len(files)
        files += [{"name": part.name, "size": part.size, "shard": node.shard} for part in node.parts]
        for one, signed in zip(shard.manifest.objects, shard.signed, strict=True):
            holds = [held_piece(node, first, *held) for held in one.holds]
            objects.append({"url": signed.url, "headers": dict(signed.headers), "size": one.size, "holds": holds})
    return {
        "step": whole.step,
        "uri": place.objects.address.below(whole.first.key).uri,
        "size_bytes": whole.size_bytes,
        "shards": len(whole.shards),
        "files": files,
        "objects": objects,
        "lives_s": lives_s,
    }


def held_piece(node: NodeManifest, first: int, part: int, piece: int) -> dict[str, Any]:
    return {
        "file": first + part,
        "offset": piece * node.piece_bytes,
        "size": node.piece_size(part, piece),
        "sha256": node.parts[part].pieces[piece],
    }


def attempt(tried: Attempt, leases: Mapping[LeaseId, Lease], orders: Mapping[OrderId, Order]) -> dict[str, Any]:
    held = [leases[lease_id] for lease_id in tried.leases if lease_id in leases]
    return {
        "id": tried.id,
        "task_id": tried.task_id,
        "number": tried.number,
        "phase": tried.phase,
        "outcome": tried.outcome,
        "reason": tried.reason,
        "resume_step": tried.resume_step,
        "created_at": tried.created_at,
        "started_at": tried.started_at,
        "ended_at": tried.ended_at,
        "machines": [held_machine(lease, orders[lease.order_id]) for lease in held if lease.order_id in orders],
        "ranks": [rank(member) for member in tried.ranks],
    }


def held_machine(lease: Lease, order: Order) -> dict[str, Any]:
    return {
        "machine_id": lease.machine_id,
        "provider": order.target.provider,
        "region": order.target.region,
        "zone": order.zone,
        "instance_type": order.instance_type,
        "is_spot": order.is_spot,
    }


def rank(member: Rank) -> dict[str, Any]:
    return {
        "rank": member.rank,
        "node_id": member.node_id,
        "node_rank": member.node_rank,
        "local_rank": member.local_rank,
        "devices": member.devices,
        "state": member.state,
        "exit_code": member.exit_code,
        "signal": member.signal,
        "reason": member.reason,
        "started_at": member.started_at,
        "ended_at": member.ended_at,
    }


def log_line(line: LogLine) -> dict[str, Any]:
    """The agents' words for it, and the source it is numbered within."""
    view = {"attempt": line.attempt, "rank": line.rank, "n": line.n, "t": line.at_ms, "s": line.stream, "x": line.text}
    return view | {"p": True} if line.is_partial else view


def metric(point: MetricPoint, values: dict[str, float]) -> dict[str, Any]:
    return {
        "attempt": point.attempt,
        "rank": point.rank,
        "n": point.n,
        "t": point.at_ms,
        "step": point.step,
        "values": values,
    }


def chart(drawn: Chart, offset: int) -> dict[str, Any]:
    return {
        "items": [],
        "next_offset": offset,
        "resolution_s": drawn.resolution_ms / 1000,
        "series": [{"name": name, "points": [point(one) for one in drawn.series[name]]} for name in drawn.series],
        "left_out": drawn.left_out,
    }


def point(one: Bucket) -> dict[str, Any]:
    return {
        "t": one.start_ms,
        "count": one.count,
        "invalid": one.invalid,
        "min": one.low if one.count else None,
        "max": one.high if one.count else None,
        "mean": one.mean,
        "last": one.last,
        "last_t": one.last_ms,
        "step": one.step,
    }


def node(machine: Node, lease: Lease, order: Order, held: HeldNode | None) -> dict[str, Any]:
    return {
        "id": machine.id,
        "provider": lease.target.provider,
        "region": lease.target.region,
        "state": lease.phase,
        "job_id": lease.job_id,
        "task_id": lease.task_id,
        "machine_id": machine.machine_id,
        "address": machine.address,
        "devices": lease.devices,
        "enrolled_at": machine.enrolled_at,
        "facts": machine.facts,
        "instance_type": order.instance_type,
        "is_spot": order.is_spot,
        "gpu": order.gpu,
        "gpus": lease.gpus,
        "price_per_hour_usd": usd(lease.price_per_hour),
        "rank": held.rank if held else None,
        "heard_at": held.heard_at if held else None,
        "usage": held.usage if held else {},
    }
