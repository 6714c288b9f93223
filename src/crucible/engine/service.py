"""What people ask for. Every wish is durable before it is answered; carrying it out is the reconcilers' work."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from crucible import spec as specs
from crucible.core import admission, reuse, rights
from crucible.core import job as jobs
from crucible.core import task as tasks
from crucible.core.attribution import Account
from crucible.core.auditing import by
from crucible.core.datasets import with_pin
from crucible.core.outputs import with_inputs
from crucible.core.unfold import given, kind_of
from crucible.core.workflow import Part
from crucible.engine.affording import check_funds, funds_view
from crucible.engine.answers import Planned
from crucible.engine.attribution import account_of
from crucible.engine.checkpoint_place import check_place
from crucible.engine.context import Context
from crucible.engine.datasets import Datasets
from crucible.engine.inputs import Inputs
from crucible.engine.launch_scripts import launch_script
from crucible.engine.placer import Placer
from crucible.engine.plan_view import PlanView, plan_view
from crucible.engine.planner import Planner
from crucible.engine.secrets import Secrets
from crucible.engine.shards import ShardDesk, left
from crucible.engine.sweeps import check_search, has_results, made_tasks
from crucible.engine.templates import Templates
from crucible.engine.waking import wake_job
from crucible.engine.workflow_parts import parts_of
from crucible.engine.workflow_plans import WorkflowPlans
from crucible.model.account import Principal, Role
from crucible.model.audit import AuditEntry
from crucible.model.budget import Payer
from crucible.model.change import Change, born, changed
from crucible.model.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    PlatformError,
    StaleVersion,
)
from crucible.model.ids import Digest, JobId, TaskId, TokenId
from crucible.model.job import Desired, Job, JobSubmitted
from crucible.model.record import Prediction
from crucible.model.span import parse_traceparent
from crucible.model.spec import JobSpec, Strategy
from crucible.model.sweep import Params
from crucible.model.task import Task, TaskEvent, TaskKind, TaskPhase
from crucible.ports.blobs import Blobs
from crucible.ports.trials import TaskQuery

TRIES = 10
MAX_NAME = 200
# Of the tasks that a job waits for, so many are told.
TASKS_TOLD = 20
LIVE_PHASES = frozenset(phase for phase in TaskPhase if not phase.is_terminal)


class Service:
    def __init__(
        self,
        context: Context,
        placer: Placer,
        planner: Planner,
        blobs: Blobs,
        datasets: Datasets,
        inputs: Inputs,
        shards: ShardDesk,
        templates: Templates,
        secrets: Secrets,
    ) -> None:
        self._context = context
        self._secrets = secrets
        self._templates = templates
        self._datasets = datasets
        self._inputs = inputs
        self._shards = shards
        self._placer = placer
        self._planner = planner
        self._blobs = blobs
        self._workflows = WorkflowPlans(context, planner, datasets)

    # --- jobs -------------------------------------------------------------------------------------

    async def submit(
        self,
        who: Principal,
        *,
        name: str | None,
        spec_yaml: str,
        code_digest: Digest | None = None,
        idempotency_key: str | None = None,
        traceparent: str | None = None,
    ) -> Job:
        job, planned = await self._admit(who, name, spec_yaml, code_digest)
        await check_funds(self._context, job, planned.way)
        return await self._enter(job, planned, who, idempotency_key, action="job.submit", traceparent=traceparent)

    async def _admit(
        self,
        who: Principal,
        name: str | None,
        spec_yaml: str,
        code_digest: Digest | None,
        origin: Job | None = None,
        parent: Job | None = None,
    ) -> tuple[Job, Planned]:
        """The job, and the plan it is submitted with. `origin` is the job that runs again, `parent` the workflow that
        it is a step of."""
        now = self._context.clock.now()
        spec_yaml, code_digest = await self._templates.with_code(spec_yaml, code_digest)
        spec = specs.load(spec_yaml, now=now).spec
        admission.admit(spec, now)
        spec = await self._attributed(who, spec, origin, parent)
        pin = None if spec.steps else await self._datasets.pin(spec, None if origin is None else origin.dataset_uri)
        given = await self._inputs.pin(who, spec)
        await self._secrets.check(who.user_id, spec)
        spec = with_inputs(with_pin(spec, None if pin is None else pin.uri), given)
        await check_place(self._context, spec)
        check_search(self._context, spec)
        planned = await (self._workflows.admit(spec) if spec.steps else self._planner.admit(spec))
        if needs_code(spec) and code_digest is None:
            raise InvalidRequest(
                "the spec names local code, and none was shipped: submit it with `crucible submit`", field="code_digest"
            )
        if code_digest is not None and not await self._blobs.has(code_digest):
            raise InvalidRequest(
                f"the code {code_digest} is not here; upload it to /v1/packages first", field="code_digest"
            )
        job = new_job(JobId(self._context.ids.new("job")), who, name, spec, spec_yaml, code_digest, now)
        self._context.remember_spec(job.id, spec)
        return replace(job, inputs=given, dataset_uri=job.dataset_uri if pin is None else pin.uri), planned

    async def _attributed(self, who: Principal, spec: JobSpec, origin: Job | None, parent: Job | None) -> JobSpec:
        """With the team and project that it is counted under: a job that runs again keeps its own, a step has its
        workflow's. Raises UnknownTeam, UnknownProject, Forbidden."""
        if parent is not None:
            return replace(spec, team=parent.team, project=parent.project)
        asked = Account(spec.team, spec.project) if origin is None else Account(origin.team, origin.project)
        account = await account_of(self._context, who, asked)
        return replace(spec, team=account.team, project=account.project)

    async def _enter(
        self,
        job: Job,
        planned: Planned,
        who: Principal,
        idempotency_key: str | None,
        *,
        action: str | None = None,
        params: Sequence[Params | None] | None = None,
        also: Sequence[Change] = (),
        traceparent: str | None = None,
    ) -> Job:
        """`action` is what the log of changes says; None: nobody asked for it. `params` are for its tasks, if not what
        its spec says; `also` is committed with it. A `traceparent` that is none is as if there were none."""
        now, store, expected = job.created_at, self._context.store, expectation(job, planned)
        job = replace(job, cost_estimated_microusd=expected[0].estimated_cost if expected else planned.cost)
        cut = await self._shards.cut(job)
        new = self._tasks_of(job, params, left(cut))
        entered = JobSubmitted(now, self._context.clock.now(), traceparent if parse_traceparent(traceparent) else None)
        try:
            job_id = await store.submit(
                [born(job, entered), *await made_tasks(self._context, job, new), *also],
                idempotency_key=idempotency_key,
                user_id=who.user_id,
                plan=planned.text,
                records=[*expected, *cut, *noted(who, now, action, job, origin=job.origin)],
            )
        except PlatformError:
            await self._shards.forget(job)
            raise
        self._placer.want()
        if any(task.kind is TaskKind.STEP for task in new):
            self._context.wakes.wake("workflow", job_id)
        if job_id == job.id:
            return job
        await self._shards.forget(job)
        return await store.job(job_id)

    def _tasks_of(self, job: Job, params: Sequence[Params | None] | None, shards: int) -> list[Task]:
        """Steps that need no other begin at once: somebody must look."""
        spec = self._context.spec_of(job)
        kind, first = kind_of(spec), {index for index, step in enumerate(spec.steps) if not step.needs}
        return [
            Task(
                id=TaskId(self._context.ids.new("task")),
                job_id=job.id,
                index=index,
                created_at=job.created_at,
                kind=kind,
                params=one,
                deadline_at=job.created_at if index in first else None,
            )
            for index, one in enumerate(given(spec, shards) if params is None else params)
        ]

    # --- steps of workflows -------------------------------------------------------------------------

    async def submit_step(self, parent: Job, task: Task, events: Sequence[TaskEvent], spec_yaml: str) -> Job:
        """The job of a step, together with what that means for the step's task: both or neither. Raises StaleVersion if
        somebody was faster, InvalidRequest and its kinds."""
        who = owner(parent)
        job, planned = await self._admit(who, None, spec_yaml, parent.code_digest, parent=parent)
        job = replace(job, parent=parent.id, step=task.index)
        return await self._enter(job, planned, who, None, also=changed(task, events, tasks.evolve)[1])

    async def wish_of_workflow(self, child: Job, desired: Desired, reason: str) -> Job:
        return await self._wish(owner(child), child.id, desired, reason, action=None)

    async def find(self, who: Principal, job_id: JobId) -> Job:
        """A foreign job does not exist."""
        job = await self._context.store.job(job_id)
        if not rights.sees_job(who, job):
            raise NotFound(f"there is no job {job_id}")
        return job

    async def find_to_change(self, who: Principal, job_id: JobId) -> Job:
        """Raises NotFound, or Forbidden for a job that they may only look at."""
        job = await self.find(who, job_id)
        if not rights.changes_job(who, job):
            raise Forbidden(f"job {job_id} is {job.user_id}'s: only they and those who manage their team may change it")
        return job

    async def cancel(self, who: Principal, job_id: JobId) -> Job:
        return await self._wish(who, job_id, Desired.CANCEL, f"cancelled by {who.user_id}", action="job.cancel")

    async def hold(self, who: Principal, job_id: JobId, reason: str | None) -> Job:
        said = reason or f"held by {who.user_id}"
        return await self._wish(who, job_id, Desired.HOLD, said, action="job.hold")

    async def release(self, who: Principal, job_id: JobId) -> Job:
        job = await self.find_to_change(who, job_id)
        if job.desired is Desired.RUN:
            return job
        return await self._wish(who, job_id, Desired.RUN, f"released by {who.user_id}", action="job.release")

    async def _wish(self, who: Principal, job_id: JobId, desired: Desired, reason: str, *, action: str | None) -> Job:
        """Durable before it is answered; a restart finds it and carries it out."""
        context = self._context
        for _ in range(TRIES):
            job = await self.find_to_change(who, job_id)
            now = context.clock.now()
            events = jobs.wish(job, desired, who.user_id, reason, now)
            if not events:
                return job
            after, changes = changed(job, events, jobs.evolve)
            try:
                await context.store.commit(changes, noted(who, now, action, job, reason=reason), label="desired")
            except StaleVersion:
                continue
            await wake_job(context, job_id)
            if desired is Desired.RUN:
                self._placer.want()
            return after
        raise StaleVersion(f"job {job_id} is changing too quickly; ask again")

    async def retry(
        self, who: Principal, job_id: JobId, idempotency_key: str | None = None, *, from_step: str | None = None
    ) -> Job:
        """A new job that runs the same from the beginning; a workflow, from a step: the others' results are taken
        over."""
        origin = await self._finished(who, job_id)
        params = None if from_step is None else self._from_step(origin, from_step)
        return await self._again(who, origin, idempotency_key, action="job.retry", params=params)

    def _from_step(self, origin: Job, first: str) -> Sequence[Params]:
        steps = self._context.spec_of(origin).steps
        if not steps:
            raise Conflict(f"job {origin.id} has no steps; `crucible retry` without --from runs it again")
        again = reuse.run_again(steps, first)
        return [
            {"step": step.name, **({"again": True} if step.name in again else {"from": origin.id})} for step in steps
        ]

    async def resume(self, who: Principal, job_id: JobId, idempotency_key: str | None = None) -> Job:
        """A new job that goes on from the lineage's newest valid checkpoint."""
        origin = await self._finished(who, job_id)
        has_saved = await self._context.store.checkpoints(origin.lineage)
        if not has_saved and not await has_results(self._context, origin):
            raise Conflict(
                f"job {job_id} has no checkpoint to go on from; `crucible retry` starts it from the beginning"
            )
        return await self._again(who, origin, idempotency_key, action="job.resume")

    async def _finished(self, who: Principal, job_id: JobId) -> Job:
        job = await self.find_to_change(who, job_id)
        if not job.status.is_terminal:
            raise Conflict(f"job {job_id} is {job.status}; cancel it or wait for its end first")
        return job

    async def _again(
        self,
        who: Principal,
        origin: Job,
        idempotency_key: str | None,
        *,
        action: str,
        params: Sequence[Params] | None = None,
    ) -> Job:
        job, planned = await self._admit(who, origin.name, origin.spec_yaml, origin.code_digest, origin)
        await check_funds(self._context, job, planned.way)
        lineage = origin.lineage if action == "job.resume" else job.id
        job = replace(job, origin=origin.id, lineage=lineage)
        return await self._enter(job, planned, who, idempotency_key, action=action, params=params)

    async def workflow(self, who: Principal, job_id: JobId) -> tuple[Job, Sequence[Part]]:
        """Its steps as they stand. Raises Conflict for a job that has none."""
        job = await self.find(who, job_id)
        parts = await parts_of(self._context, job)
        if not parts:
            raise Conflict(f"job {job_id} has no steps: it is no workflow")
        return job, parts

    # --- explaining -------------------------------------------------------------------------------

    async def plan(
        self,
        who: Principal,
        spec_yaml: str,
        *,
        strategy: Strategy | None = None,
        why_not: str | None = None,
        of: Job | None = None,
    ) -> PlanView:
        """What could run it, what that costs, and what submit would do now. `why_not` asks about certain offers; `of`
        is the job whose spec it is, if there is one."""
        now = self._context.clock.now()
        loaded = specs.load(await self._templates.resolved(spec_yaml), now=now)
        asked = await self._attributed(who, loaded.spec, None, of)
        warnings = [str(problem.message) for problem in loaded.warnings]
        warnings += [message for _, message in await self._secrets.missing(who.user_id, asked)]
        if asked.steps:
            return {**await self._workflows.view(asked, strategy), "warnings": warnings}
        pin, given = await self._datasets.pin(asked), await self._inputs.pin(who, asked)
        spec = with_inputs(with_pin(asked, None if pin is None else pin.uri), given)
        made, cpu_ms = await self._planner.propose(spec, strategy)
        view = plan_view(made, now, cpu_ms, self._planner.dead_man(made))
        view["warnings"] = warnings
        view |= await funds_view(self._context, Payer(who.user_id, spec.team, spec.project), view)
        if why_not is not None:
            view["why_not"] = await self._planner.why_not(spec, strategy, why_not)
        return view

    async def plan_of(self, who: Principal, job_id: JobId) -> PlanView:
        """The plan a job was submitted with, as it was then."""
        job = await self.find(who, job_id)
        stored = await self._context.store.plan(job.id)
        return dict(stored) if stored is not None else await self.plan(who, job.spec_yaml, of=job)

    async def launch_script(
        self, who: Principal, job_id: JobId, rank: int | None, task_index: int = 0
    ) -> tuple[str, bool]:
        """How it is started, and whether that names real machines."""
        job = await self.find(who, job_id)
        if self._context.spec_of(job).steps:
            raise Conflict(f"job {job_id} is a workflow and starts nothing itself: ask for the job of a step")
        return await launch_script(self._context, job, rank, task_index)

    async def why(self, who: Principal, job_id: JobId) -> dict[str, Any]:
        """What a job waits for, in words."""
        job = await self.find(who, job_id)
        query = TaskQuery(job_id=job_id, phases=LIVE_PHASES, limit=TASKS_TOLD)
        waiting = [row.task for row in (await self._context.store.task_page(query)).items]
        return {
            "id": job.id,
            "status": job.status,
            "desired": job.desired,
            "reason": job.reason,
            "tasks": [
                {
                    "task": t.id,
                    "phase": t.phase,
                    "reason": t.reason or waits_for(t),
                    "not_before": t.not_before.isoformat() if t.not_before else None,
                    "failures": t.failures,
                    "losses": t.losses,
                }
                for t in waiting
            ],
        }


def new_job(
    job_id: JobId,
    who: Principal,
    name: str | None,
    spec: JobSpec,
    spec_yaml: str,
    code_digest: Digest | None,
    now: datetime,
) -> Job:
    """Indexed fields derive from the text; the text is the truth."""
    need, limits = spec.resources, spec.constraints
    return Job(
        id=job_id,
        user_id=who.user_id,
        team=spec.team,
        project=spec.project,
        name=name or spec.name or default_name(spec),
        job_type=spec.type,
        framework=spec.framework,
        entrypoint_uri=spec.entrypoint,
        dataset_uri=None if spec.steps else spec.data.dataset,  # what steps share, each of their jobs pins
        execution_mode=spec.execution.mode,
        gpus=need.gpus,
        max_gpus_per_node=need.max_gpus_per_node,
        requires_multi_node=need.requires_multi_node,
        gpu_memory_gb=need.gpu_memory_gib,
        cpu_memory_gb=need.cpu_memory_gib,
        storage_gb=need.storage_gib,
        estimated_hours=need.estimated_hours,
        locality=spec.data.locality,
        replication=spec.data.replication_policy,
        budget_microusd=limits.budget,
        when_spent=limits.when_spent,
        deadline_at=limits.deadline,
        allow_spot=limits.allow_spot,
        min_reliability=limits.min_reliability,
        performance_weight=limits.performance_weight,
        priority=spec.priority,
        spec_yaml=spec_yaml,
        code_digest=code_digest,
        origin=None,
        lineage=job_id,
        created_at=now,
        updated_at=now,
    )


def expectation(job: Job, planned: Planned) -> tuple[Prediction, ...]:
    """Of a job that goes on from a checkpoint nobody knows how much is left."""
    if planned.expected is None or job.lineage != job.id:
        return ()
    return (replace(planned.expected, job_id=job.id),)


def default_name(spec: JobSpec) -> str:
    """What runs, in a word."""
    if spec.steps:
        return "workflow"
    if spec.model:
        return spec.model.plugin
    is_shell_text = spec.command[:2] == ("/bin/sh", "-c")
    program = spec.entrypoint or (spec.command[2] if is_shell_text else spec.command[0])
    words = program.split()
    return words[0].rsplit("/", 1)[-1].removesuffix(".py")[:MAX_NAME] if words else spec.type


def needs_code(spec: JobSpec) -> bool:
    is_local_file = spec.entrypoint is not None and not admission.is_remote(spec.entrypoint)
    return spec.code is not None or is_local_file


def owner(job: Job) -> Principal:
    """Who acts for a workflow."""
    return Principal(job.user_id, Role.MEMBER, TokenId(""), {} if job.team is None else {job.team: Role.MEMBER})


def noted(who: Principal, now: datetime, action: str | None, job: Job, **details: Any) -> tuple[AuditEntry, ...]:
    """Of what somebody did to a job."""
    if action is None:
        return ()
    return (by(who, now, action, f"job:{job.id}", team=job.team, name=job.name, **details),)


def waits_for(task: Task) -> str:
    if task.kind is TaskKind.STEP and task.phase is TaskPhase.WAITING:
        return f"{(task.params or {}).get('step')}: waits for the steps that it needs"
    return "waits for a place" if task.phase is TaskPhase.WAITING else f"is {task.phase}"
