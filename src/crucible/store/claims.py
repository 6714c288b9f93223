"""Claims: a worker's right to a name. A claim that has expired is still good until somebody else takes it, because
until then nobody else can have acted under it; the fence and the owner tell whether that happened."""

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import count
from typing import Protocol

from sqlalchemy import BigInteger, ColumnElement, bindparam, cast, delete, extract, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from crucible.model.errors import StaleClaim
from crucible.ports.store import Claim
from crucible.store.record_tables import claims as claim_table
from crucible.store.record_tables import servers as server_table
from crucible.store.runner import Runner
from crucible.store.sql import Sql, Transaction

MICRO = 1_000_000
# Nobody remembers a claim for so long, stopped or not.
FORGET_AFTER = timedelta(days=1)


class Claims(Protocol):
    async def claim(self, name: str, owner: str, ttl: timedelta) -> Claim | None: ...
    async def renew(self, claim: Claim, ttl: timedelta) -> bool: ...
    async def release(self, claim: Claim) -> None: ...
    def check(self, tx: Transaction, claim: Claim | None) -> None:
        """Raises StaleClaim; otherwise nobody can take the claim before the transaction ends."""
        ...

    async def announce(self, server_id: str, url: str, ttl: timedelta) -> None: ...
    async def servers(self) -> Sequence[str]: ...


def lost(claim: Claim) -> StaleClaim:
    return StaleClaim(f"{claim.owner} no longer holds {claim.name}: another worker has taken over")


class MemoryClaims:
    """For a database that one process writes: whoever could hold an older claim is dead."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._fences = count(1)
        self._held: dict[str, tuple[Claim, float]] = {}
        self._servers: dict[str, tuple[str, float]] = {}
        self._lock = threading.Lock()  # commits check in the writer's thread

    async def claim(self, name: str, owner: str, ttl: timedelta) -> Claim | None:
        now = self._monotonic()
        with self._lock:
            if name in self._held and self._held[name][1] > now:
                return None
            claim = Claim(name, owner, next(self._fences))
            self._held[name] = claim, now + ttl.total_seconds()
            return claim

    async def renew(self, claim: Claim, ttl: timedelta) -> bool:
        with self._lock:
            if not self._is_held(claim):
                return False
            self._held[claim.name] = claim, self._monotonic() + ttl.total_seconds()
            return True

    async def release(self, claim: Claim) -> None:
        with self._lock:
            if self._is_held(claim):
                del self._held[claim.name]

    def check(self, tx: Transaction, claim: Claim | None) -> None:
        with self._lock:
            if claim is not None and not self._is_held(claim):
                raise lost(claim)

    def _is_held(self, claim: Claim) -> bool:
        held = self._held.get(claim.name)
        return held is not None and held[0] == claim

    async def announce(self, server_id: str, url: str, ttl: timedelta) -> None:
        now = self._monotonic()
        self._servers[server_id] = url, now + ttl.total_seconds()
        with self._lock:
            forgotten = now - FORGET_AFTER.total_seconds()
            self._held = {name: held for name, held in self._held.items() if held[1] > forgotten}

    async def servers(self) -> Sequence[str]:
        now = self._monotonic()
        self._servers = {key: server for key, server in self._servers.items() if server[1] > now}
        return [url for _, (url, _) in sorted(self._servers.items())]


# --- in a shared database, by its clock ------------------------------------------------------------------------------

_C, _S = claim_table.c, server_table.c
_NOW: ColumnElement[int] = cast(extract("epoch", func.clock_timestamp()) * MICRO, BigInteger)
_UNTIL = _NOW + cast(bindparam("ttl"), BigInteger)
# A name that was forgotten starts at the time of day, so that its fence has grown all the same.
_NEW = upsert(claim_table).values(name=bindparam("name"), owner=bindparam("owner"), fence=_NOW, expires_at=_UNTIL)
_CLAIM = Sql(
    _NEW.on_conflict_do_update(
        index_elements=["name"],
        set_={"owner": _NEW.excluded.owner, "fence": _C.fence + 1, "expires_at": _NEW.excluded.expires_at},
        where=_C.expires_at <= _NOW,
    ).returning(_C.fence)
)
_MINE = (_C.name == bindparam("of_name")) & (_C.owner == bindparam("of_owner")) & (_C.fence == bindparam("of_fence"))
_RENEW = Sql(update(claim_table).where(_MINE).values(expires_at=_UNTIL))
_RELEASE = Sql(update(claim_table).where(_MINE).values(owner="", expires_at=_NOW))
_CHECK = Sql(select(_C.name).where(_MINE).with_for_update(read=True))
_FORGET_CLAIMS = Sql(delete(claim_table).where(_C.expires_at < _NOW - bindparam("age")))
_FORGET_SERVERS = Sql(delete(server_table).where(_S.expires_at < _NOW - bindparam("age")))
_HELLO = upsert(server_table).values(id=bindparam("id"), url=bindparam("url"), expires_at=_UNTIL)
_ANNOUNCE = Sql(
    _HELLO.on_conflict_do_update(
        index_elements=["id"], set_={"url": _HELLO.excluded.url, "expires_at": _HELLO.excluded.expires_at}
    )
)
_SERVERS = Sql(select(_S.url).where(_S.expires_at > _NOW).order_by(_S.id))


class SharedClaims:
    """For a database that several servers share. Nothing here needs to survive a crash of the database: a claim that
    was lost in one belongs to nobody, and commits check for the row."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    async def claim(self, name: str, owner: str, ttl: timedelta) -> Claim | None:
        rows = await self._runner.write(
            lambda tx: tx.rows(_CLAIM, name=name, owner=owner, ttl=_micros(ttl)), label="claim", durable=False
        )
        return Claim(name, owner, rows[0][0]) if rows else None

    async def renew(self, claim: Claim, ttl: timedelta) -> bool:
        values = {**_mine(claim), "ttl": _micros(ttl)}
        return await self._runner.write(lambda tx: tx.run(_RENEW, values), label="renew", durable=False) == 1

    async def release(self, claim: Claim) -> None:
        await self._runner.write(lambda tx: tx.run(_RELEASE, _mine(claim)), label="release", durable=False)

    def check(self, tx: Transaction, claim: Claim | None) -> None:
        if claim is not None and tx.row(_CHECK, **_mine(claim)) is None:
            raise lost(claim)

    async def announce(self, server_id: str, url: str, ttl: timedelta) -> None:
        def work(tx: Transaction) -> None:
            tx.run(_ANNOUNCE, {"id": server_id, "url": url, "ttl": _micros(ttl)})
            tx.run(_FORGET_CLAIMS, {"age": _micros(FORGET_AFTER)})
            tx.run(_FORGET_SERVERS, {"age": _micros(FORGET_AFTER)})

        await self._runner.write(work, label="announce", durable=False)

    async def servers(self) -> Sequence[str]:
        return [row[0] for row in await self._runner.read(lambda tx: tx.rows(_SERVERS))]


def _mine(claim: Claim) -> dict[str, object]:
    return {"of_name": claim.name, "of_owner": claim.owner, "of_fence": claim.fence}


def _micros(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
