"""Secrets as people set them and as jobs use them. A value comes in once and goes out only to the nodes of an attempt
that lives; nothing else here returns one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from crucible.agent.redact import Redactor
from crucible.core import secrets as rules
from crucible.core.rights import is_admin, role_in
from crucible.core.scrubbing import scrubbed
from crucible.engine.asking import asker
from crucible.engine.context import Context
from crucible.model.account import Principal
from crucible.model.audit import AuditEntry
from crucible.model.errors import InvalidRequest, NotFound, PlatformError, StaleVersion, UnknownSecret
from crucible.model.ids import JobId, NodeId, UserId
from crucible.model.job import Job
from crucible.model.secret import MOST_BYTES, OwnerKind, Secret, SecretFacts, SecretLabel, SecretOwner, StoredSecret
from crucible.model.spec import JobSpec

TRIES = 10
# The last use is told so exactly, not more: very many tasks may use one secret.
USED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Whose:
    """As somebody says it: a team's, a project's, or their own."""

    team: str | None = None
    project: str | None = None


class Secrets:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._sealer = context.sealer

    # --- people -------------------------------------------------------------------------------------------------

    async def set(self, who: Principal, whose: Whose, name: str, value: Secret) -> StoredSecret:
        """A new one, or a new value. Raises Forbidden, NotFound, InvalidRequest, Conflict."""
        if not 0 < len(value) <= MOST_BYTES:
            said = "is empty" if not len(value) else f"has {len(value)} bytes, at most {MOST_BYTES} may be"
            raise InvalidRequest(f"the value {said}", field="value")
        owner, team = await self._changed_by(who, whose)
        entry = self._entry(who, "secret.set", f"secret:{owner}/{name}", team)

        def make(version: int, key_id: str | None) -> StoredSecret:
            return self._sealed(who, SecretLabel(owner, name, version), key_id or self._sealer.newest(), value)

        for _ in range(TRIES):
            try:
                return await self._context.store.save_secret(owner, name, make, entry)
            except StaleVersion:
                continue
        raise StaleVersion(f"the secret {name} is changing too quickly; ask again")

    def _sealed(self, who: Principal, label: SecretLabel, key_id: str, value: Secret) -> StoredSecret:
        made = self._sealer.seal(key_id, label, value)
        return StoredSecret(
            owner_kind=label.owner.kind,
            owner=label.owner.name,
            name=label.name,
            version=label.version,
            key_id=made.key_id,
            wrapped=made.wrapped,
            sealed=made.sealed,
            set_by=who.user_id,
            set_at=self._context.clock.now(),
        )

    async def remove(self, who: Principal, whose: Whose, name: str) -> None:
        owner, team = await self._changed_by(who, whose)
        entry = self._entry(who, "secret.remove", f"secret:{owner}/{name}", team)
        if not await self._context.store.remove_secret(owner, name, entry):
            raise NotFound(f"{owner} has no secret {name}; `crucible secret ls` lists them")

    async def listed(self, who: Principal, whose: Whose) -> Sequence[SecretFacts]:
        """What somebody may know of: their own, their teams' and those of their teams' projects. An admin sees all."""
        if whose != Whose():
            return await self._context.store.secrets([(await self._seen_by(who, whose))[0]])
        found = await self._context.store.secrets(None)
        seen = {owner for owner in {one.whose for one in found} if await self._sees(who, owner)}
        return [one for one in found if one.whose in seen]

    async def _changed_by(self, who: Principal, whose: Whose) -> tuple[SecretOwner, str | None]:
        """The owner, and whose managers it concerns."""
        owner, team = await self._seen_by(who, whose)
        rules.check_may_set(who, owner, team)
        return owner, team

    async def _seen_by(self, who: Principal, whose: Whose) -> tuple[SecretOwner, str | None]:
        """A team or project of others does not exist."""
        if whose.team is not None and whose.project is not None:
            raise InvalidRequest("a secret is a team's or a project's, not both: name one of them")
        if whose.project is not None:
            team = await self._context.store.team_of_project(whose.project)
            if team is None or role_in(who, team) is None:
                raise NotFound(f"there is no project {whose.project}")
            return SecretOwner(OwnerKind.PROJECT, whose.project), team
        if whose.team is not None:
            if role_in(who, whose.team) is None:
                raise NotFound(f"there is no team {whose.team}")
            return SecretOwner(OwnerKind.TEAM, whose.team), whose.team
        return SecretOwner(OwnerKind.USER, who.user_id), None

    async def _sees(self, who: Principal, owner: SecretOwner) -> bool:
        if owner.kind is OwnerKind.USER:
            return is_admin(who) or owner.name == who.user_id
        team = owner.name if owner.kind is OwnerKind.TEAM else await self._context.store.team_of_project(owner.name)
        return role_in(who, team) is not None

    def _entry(self, who: Principal, action: str, subject: str, team: str | None) -> AuditEntry:
        now = self._context.clock.now()
        return AuditEntry(at=now, user_id=who.user_id, token_id=who.token_id, action=action, subject=subject, team=team)

    # --- jobs ---------------------------------------------------------------------------------------------------

    async def check(self, user_id: UserId, spec: JobSpec) -> None:
        """Raises UnknownSecret for the first that the job of this user could not have now."""
        for field, message in await self.missing(user_id, spec):
            raise UnknownSecret(message, field=field)

    async def missing(self, user_id: UserId, spec: JobSpec) -> list[tuple[str, str]]:
        """Each with its field, in words."""
        found, uses = [], list(rules.wanted(spec))
        owners = await self._owners(user_id, spec.project, spec.team) if uses else []
        for field, use in uses:
            if await self._find(owners, use.name) is None:
                where = ", ".join(map(str, owners)) or "nobody"
                hint = f"crucible secret set {use.name}"
                found.append((field, f"there is no secret {use.name} that the job may use ({where}): {hint}"))
        return found

    async def deliver(self, node_id: NodeId, attempt_id: str) -> dict[str, Secret]:
        """The newest values of what an attempt wants, to a node that runs it. Raises Forbidden, UnknownSecret,
        InvalidRequest, SecretsKeyMissing, SecretDamaged."""
        job = (await asker(self._context, node_id, attempt_id)).job
        found = await self._values(job)
        await self._note_use(list(found.values()))
        values = {name: self._sealer.open(one.label, one.value) for name, one in found.items()}
        rules.check_holds(self._context.spec_of(job).secrets, values.__getitem__)
        return values

    async def _values(self, job: Job) -> dict[str, StoredSecret]:
        uses = self._context.spec_of(job).secrets
        owners = await self._owners(job.user_id, job.project, job.team) if uses else []
        found: dict[str, StoredSecret] = {}
        for number, use in enumerate(uses):
            one = await self._find(owners, use.name)
            if one is None:
                said = (
                    f"the secret {use.name} is not there any more, or not for this job: crucible secret set {use.name}"
                )
                raise UnknownSecret(said, field=f"job.secrets[{number}]")
            found[use.name] = one
        return found

    async def _note_use(self, found: Sequence[StoredSecret]) -> None:
        now = self._context.clock.now()
        late = [one for one in found if one.used_at is None or now - one.used_at >= USED_EVERY]
        if late:
            await self._context.store.secrets_used([(one.whose, one.name) for one in late], now)

    async def hidden(self, job_id: JobId, words: Sequence[str]) -> Sequence[str]:
        """What an agent says about an end, without tokens of ours and without the job's secrets."""
        words = [scrubbed(text) for text in words]
        if not any(words):
            return words
        job = await self._context.store.job(job_id)
        if not self._context.spec_of(job).secrets:
            return words
        try:
            found = await self._values(job)
            redactor = Redactor(self._sealer.open(one.label, one.value).reveal() for one in found.values())
        except PlatformError:
            return words  # removed since: its agent has hidden it already
        return [redactor.text(text) for text in words]

    async def _owners(self, user_id: UserId, project: str | None, team: str | None) -> list[SecretOwner]:
        standing = await self._context.store.standing(user_id)
        if standing is None:
            return []
        whose = None if project is None else await self._context.store.team_of_project(project)
        named = None if project is None or whose is None else (project, whose)
        return rules.owners(user_id, standing, named, team)

    async def _find(self, owners: Sequence[SecretOwner], name: str) -> StoredSecret | None:
        for owner in owners:
            found = await self._context.store.secret(owner, name)
            if found is not None:
                return found
        return None
