"""The key that seals secrets, changed. The new key is on disk before a row names it; from one transaction on it counts;
then every secret is wrapped anew, each in a transaction of its own; and a key goes from the file only when no row names
it. Killed anywhere, the next start or the next rotation goes on from what the rows say."""

from dataclasses import dataclass

from crucible.core.rights import is_admin
from crucible.engine.context import Context, log
from crucible.model.account import Principal
from crucible.model.audit import AuditEntry
from crucible.model.errors import Busy, Forbidden, SecretDamaged, SecretsKeyMissing, StaleClaim, StorageFailed
from crucible.ports.store import Claim

NAME = "secrets-key"
BATCH = 20


@dataclass(frozen=True, slots=True)
class Rotated:
    key_id: str
    secrets: int  # wrapped anew
    forgotten: tuple[str, ...]  # ids of keys that nothing is sealed with any more
    damaged: tuple[str, ...]  # secrets that do not open: their key stays


class SecretKeys:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._sealer = context.sealer

    async def rotate(self, who: Principal) -> Rotated:
        """Raises Forbidden, Busy while another server does it, StorageFailed."""
        if not is_admin(who):
            raise Forbidden("only an admin may change the key of the secrets")
        claim = await self._claimed()
        try:
            self._context.failpoint("secrets_key.before")
            key_id = self._sealer.add_key()
            self._context.failpoint("secrets_key.after")
            now = self._context.clock.now()
            entry = AuditEntry(
                at=now, user_id=who.user_id, token_id=who.token_id, action="secrets.rotate", subject=f"key:{key_id}"
            )
            await self._context.store.seal_with(key_id, entry, claim=claim)
            return await self._wrap_all(key_id, claim)
        finally:
            await self._context.store.release(claim)

    async def settle(self) -> None:
        """What a rotation left half done, at the start of a server."""
        current = await self._context.store.secrets_key()
        if current is None:
            return
        try:
            claim = await self._claimed()
        except Busy:
            return
        try:
            done = await self._wrap_all(current, claim)
            if done.secrets or done.forgotten:
                log.info("secrets: %d wrapped anew, %d keys forgotten", done.secrets, len(done.forgotten))
        except (StaleClaim, SecretsKeyMissing, StorageFailed) as error:
            log.warning("secrets: %s", error)
        finally:
            await self._context.store.release(claim)

    async def _claimed(self) -> Claim:
        context = self._context
        claim = await context.store.claim(NAME, context.server_id, context.claim_ttl)
        if claim is None:
            raise Busy("another server changes the key of the secrets now; ask again when it is done")
        return claim

    async def _wrap_all(self, key_id: str, claim: Claim) -> Rotated:
        store, wrapped, damaged = self._context.store, 0, dict[str, None]()
        while left := [
            one
            for one in await store.sealed_otherwise(key_id, BATCH + len(damaged))
            if f"{one.whose}/{one.name}" not in damaged
        ]:
            for one in left:
                try:
                    after = self._sealer.rewrap(key_id, one.label, one.value)
                except SecretDamaged:
                    damaged[f"{one.whose}/{one.name}"] = None
                    continue
                wrapped += await store.rewrap_secret(one, after)
            if not await store.renew(claim, self._context.claim_ttl):
                raise StaleClaim("another server changes the key of the secrets now")
        forgotten = self._sealer.forget_keys(await store.secret_keys())
        return Rotated(key_id, wrapped, tuple(forgotten), tuple(damaged))
