"""What people ask for. Every wish is durable before it is answered; carrying it out is the reconcilers' work."""

import hashlib
from dataclasses import replace
from datetime import datetime
from typing import Any

from crucible import spec as specs
from crucible.core import admission
from crucible.core import job as jobs
from crucible.engine.answers import Planned
from crucible.engine.checkpoint_place import check_place
from crucible.engine.context import Context
from crucible.engine.placer import Placer
from crucible.engine.plan_view import PlanView, plan_view
from crucible.engine.planner import Planner
from crucible.model.change import born, changed
from crucible.model.errors import Conflict, Forbidden, InvalidRequest, NotFound, StaleVersion, Unauthenticated
from crucible.model.ids import Digest, JobId, TaskId, TokenId, UserId
from crucible.model.job import Desired, Job, JobSubmitted
from crucible.model.record import Prediction, Principal, Role, Token, User
from crucible.model.spec import JobSpec, Strategy
from crucible.model.task import Task, TaskCreated, TaskPhase
from crucible.ports.blobs import Blobs

TRIES = 10
# Long enough to spare a query per request, short enough that a revoked token dies at once for a person.
TOKEN_CACHE_S = 5.0
TOKENS_REMEMBERED = 10_000
MAX_NAME = 200


class Service:
    def __init__(self, context: Context, placer: Placer, planner: Planner, blobs: Blobs) -> None:
        self._context = context
        self._placer = placer
        self._planner = planner
        self._blobs = blobs
        self._principals: dict[str, tuple[Principal, float]] = {}

    # --- jobs -------------------------------------------------------------------------------------

    async def submit(
        self,
        who: Principal,
        *,
        name: str | None,
        spec_yaml: str,
        code_digest: Digest | None = None,
        idempotency_key: str | None = None,
    ) -> Job:
        job, planned = await self._admit(who, name, spec_yaml, code_digest)
        return await self._enter(job, planned, who, idempotency_key)

    async def _admit(
        self, who: Principal, name: str | None, spec_yaml: str, code_digest: Digest | None
    ) -> tuple[Job, Planned]:
        """The job, and the plan it is submitted with."""
        now = self._context.clock.now()
        spec = specs.load(spec_yaml, now=now).spec
        admission.admit(spec, now)
        await check_place(self._context, spec)
        planned = await self._planner.admit(spec)
        if needs_code(spec) and code_digest is None:
            raise InvalidRequest("the spec names local code, and none was shipped: submit it with `crucible submit`")
        if code_digest is not None and not await self._blobs.has(code_digest):
            raise InvalidRequest(f"the code {code_digest} is not here; upload it to /v1/packages first")
        job = new_job(JobId(self._context.ids.new("job")), who, name, spec, spec_yaml, code_digest, now)
        self._context.remember_spec(job.id, spec)
        return job, planned

    async def _enter(self, job: Job, planned: Planned, who: Principal, idempotency_key: str | None) -> Job:
        now, store, expected = job.created_at, self._context.store, expectation(job, planned)
        job = replace(job, cost_estimated_microusd=expected[0].estimated_cost if expected else None)
        task = Task(id=TaskId(self._context.ids.new("task")), job_id=job.id, index=0, created_at=now)
        changes = [born(job, JobSubmitted(now)), born(task, TaskCreated(now))]
        job_id = await store.submit(
            changes,
            idempotency_key=idempotency_key,
            user_id=who.user_id,
            plan=planned.text,
            records=expected,
        )
        self._placer.want()
        return job if job_id == job.id else await store.job(job_id)

    async def find(self, who: Principal, job_id: JobId) -> Job:
        """A foreign job does not exist."""
        job = await self._context.store.job(job_id)
        if who.role is not Role.ADMIN and job.user_id != who.user_id:
            raise NotFound(f"there is no job {job_id}")
        return job

    async def cancel(self, who: Principal, job_id: JobId) -> Job:
        return await self._wish(who, job_id, Desired.CANCEL, f"cancelled by {who.user_id}")

    async def hold(self, who: Principal, job_id: JobId, reason: str | None) -> Job:
        return await self._wish(who, job_id, Desired.HOLD, reason or f"held by {who.user_id}")

    async def release(self, who: Principal, job_id: JobId) -> Job:
        job = await self.find(who, job_id)
        if job.desired is Desired.RUN:
            return job
        return await self._wish(who, job_id, Desired.RUN, f"released by {who.user_id}")

    async def _wish(self, who: Principal, job_id: JobId, desired: Desired, reason: str) -> Job:
        """Durable before it is answered; a restart finds it and carries it out."""
        context = self._context
        for _ in range(TRIES):
            job = await self.find(who, job_id)
            now = context.clock.now()
            events = jobs.wish(job, desired, who.user_id, reason, now)
            if not events:
                return job
            after, changes = changed(job, events, jobs.evolve)
            try:
                await context.store.commit(changes, label="desired")
            except StaleVersion:
                continue
            await self._wake(job_id)
            if desired is Desired.RUN:
                self._placer.want()
            return after
        raise StaleVersion(f"job {job_id} is changing too quickly; ask again")

    async def _wake(self, job_id: JobId) -> None:
        for task_id in await self._context.store.unfinished_tasks(job_id):
            self._context.wakes.wake("task", task_id)
        self._context.wakes.wake("job", job_id)
        self._context.hub.notify(job_id)

    async def retry(self, who: Principal, job_id: JobId, idempotency_key: str | None = None) -> Job:
        """A new job that runs the same from the beginning."""
        return await self._again(who, await self._finished(who, job_id), idempotency_key, keep_lineage=False)

    async def resume(self, who: Principal, job_id: JobId, idempotency_key: str | None = None) -> Job:
        """A new job that goes on from the lineage's newest valid checkpoint."""
        origin = await self._finished(who, job_id)
        if not await self._context.store.checkpoints(origin.lineage):
            raise Conflict(
                f"job {job_id} has no checkpoint to go on from; `crucible retry` starts it from the beginning"
            )
        return await self._again(who, origin, idempotency_key, keep_lineage=True)

    async def _finished(self, who: Principal, job_id: JobId) -> Job:
        job = await self.find(who, job_id)
        if not job.status.is_terminal:
            raise Conflict(f"job {job_id} is {job.status}; cancel it or wait for its end first")
        return job

    async def _again(self, who: Principal, origin: Job, idempotency_key: str | None, *, keep_lineage: bool) -> Job:
        job, planned = await self._admit(who, origin.name, origin.spec_yaml, origin.code_digest)
        lineage = origin.lineage if keep_lineage else job.id
        return await self._enter(replace(job, origin=origin.id, lineage=lineage), planned, who, idempotency_key)

    # --- explaining -------------------------------------------------------------------------------

    async def plan(
        self, who: Principal, spec_yaml: str, *, strategy: Strategy | None = None, why_not: str | None = None
    ) -> PlanView:
        """What could run it, what that costs, and what submit would do now. `why_not` asks about certain offers."""
        now = self._context.clock.now()
        loaded = specs.load(spec_yaml, now=now)
        made, cpu_ms = await self._planner.propose(loaded.spec, strategy)
        view = plan_view(made, now, cpu_ms, self._planner.dead_man(made))
        view["warnings"] = [str(problem.message) for problem in loaded.warnings]
        if why_not is not None:
            view["why_not"] = await self._planner.why_not(loaded.spec, strategy, why_not)
        return view

    async def plan_of(self, who: Principal, job_id: JobId) -> PlanView:
        """The plan a job was submitted with, as it was then."""
        job = await self.find(who, job_id)
        stored = await self._context.store.plan(job.id)
        return dict(stored) if stored is not None else await self.plan(who, job.spec_yaml)

    async def why(self, who: Principal, job_id: JobId) -> dict[str, Any]:
        """What a job waits for, in words."""
        job = await self.find(who, job_id)
        waiting = [t for t in await self._context.store.job_tasks(job_id) if not t.phase.is_terminal]
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
                for t in waiting[:20]
            ],
        }

    # --- people -----------------------------------------------------------------------------------

    async def authenticate(self, secret: str) -> Principal:
        clock = self._context.clock
        digest = digest_of(secret)
        known = self._principals.get(digest)
        if known is not None and known[1] > clock.monotonic():
            return known[0]
        principal = await self._context.store.principal(digest, clock.now())
        if principal is None:
            self._principals.pop(digest, None)
            raise Unauthenticated("the token is unknown, expired or revoked; `crucible login` saves a new one")
        if len(self._principals) >= TOKENS_REMEMBERED:
            self._principals.clear()
        self._principals[digest] = (principal, clock.monotonic() + TOKEN_CACHE_S)
        return principal

    async def create_user(self, who: Principal, *, name: str, role: Role) -> User:
        require_admin(who)
        user = User(id=UserId(name), name=name, role=role, created_at=self._context.clock.now())
        await self._context.store.add_user(user)
        return user

    async def create_token(
        self,
        who: Principal,
        *,
        name: str,
        user: UserId | None = None,
        expires_at: datetime | None = None,
    ) -> tuple[Token, str]:
        """The secret is shown once; only its digest is kept."""
        if user is not None and user != who.user_id:
            require_admin(who)
        secret = f"cru_{self._context.random.token()}"
        token = Token(
            id=TokenId(self._context.ids.new("token")),
            user_id=user or who.user_id,
            name=name,
            digest=digest_of(secret),
            created_at=self._context.clock.now(),
            expires_at=expires_at,
        )
        await self._context.store.add_token(token)
        return token, secret

    async def revoke_token(self, who: Principal, token_id: TokenId) -> None:
        mine = {token.id for token in await self._context.store.tokens(who.user_id)}
        if who.role is not Role.ADMIN and token_id not in mine:
            raise NotFound(f"no token {token_id}")
        await self._context.store.revoke_token(token_id, self._context.clock.now())
        self._principals.clear()


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
        dataset_uri=spec.data.dataset,
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
    if spec.model:
        return spec.model.plugin
    is_shell_text = spec.command[:2] == ("/bin/sh", "-c")
    program = spec.entrypoint or (spec.command[2] if is_shell_text else spec.command[0])
    words = program.split()
    return words[0].rsplit("/", 1)[-1].removesuffix(".py")[:MAX_NAME] if words else spec.type


def needs_code(spec: JobSpec) -> bool:
    is_local_file = spec.entrypoint is not None and not admission.is_remote(spec.entrypoint)
    return spec.code is not None or is_local_file


def waits_for(task: Task) -> str:
    return "waits for a place" if task.phase is TaskPhase.WAITING else f"is {task.phase}"


def digest_of(secret: str) -> Digest:
    return Digest(hashlib.sha256(secret.encode()).hexdigest())


def require_admin(who: Principal) -> None:
    if who.role is not Role.ADMIN:
        raise Forbidden("only an admin may do that")
