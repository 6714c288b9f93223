"""What is known of a person, for them to have; and a person who is to be forgotten. Both go through the database a
bounded piece at a time; forgetting is written down before anything of it happens, and is gone on with by whoever comes
next."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from crucible.core import tar
from crucible.core.rights import is_admin
from crucible.engine.context import Context
from crucible.engine.retention import ASKED_S, Retention
from crucible.model.account import Principal
from crucible.model.audit import AuditEntry
from crucible.model.errors import Busy, Conflict, Forbidden, NotFound
from crucible.model.ids import TaskId, UserId
from crucible.model.retention import Erasure

LOG_BYTES = 1 << 20
PSEUDONYM = "deleted-user-"


class Privacy:
    def __init__(self, context: Context, retention: Retention) -> None:
        self._context = context
        self._retention = retention

    async def export(self, who: Principal, user_id: UserId, with_logs: bool) -> AsyncIterator[bytes]:
        """A tar archive of JSON lines, made while it is read. One's own; an admin may have anybody's. Raises NotFound
        before anything is sent."""
        if user_id != who.user_id and not is_admin(who):
            raise NotFound(f"there is no user {user_id}")
        await self._context.store.user(user_id)
        entry = self._entry(who, "user.export", user_id, {"logs": with_logs})
        await self._context.store.commit([], [entry], label="audit")
        return self._archive(user_id, with_logs)

    async def _archive(self, user_id: UserId, with_logs: bool) -> AsyncIterator[bytes]:
        numbers: Counter[str] = Counter()
        cursor: str | None = None
        while True:
            chapters, cursor = await self._context.store.about(user_id, cursor)
            for chapter in chapters:
                yield self._member(numbers, chapter.name, chapter.rows)
                if chapter.name == "tasks":
                    async for piece in self._logs(numbers, chapter.rows, with_logs):
                        yield piece
            if cursor is None:
                break
            yield b""  # others have their turn, and a reader that has gone is noticed
        yield tar.END

    async def _logs(
        self, numbers: Counter[str], tasks: Iterable[Mapping[str, Any]], with_logs: bool
    ) -> AsyncIterator[bytes]:
        streams = self._context.streams
        sizes = {TaskId(task["id"]): await streams.log_size(TaskId(task["id"])) for task in tasks}
        listed = [{"task": task, "size_bytes": size} for task, size in sizes.items() if size]
        if listed:
            yield self._member(numbers, "logs", listed)
        for task in [one for one, size in sizes.items() if size and with_logs]:
            offset, is_end = 0, False
            while not is_end:
                chunk = await streams.read_log(task, offset, LOG_BYTES)
                offset, is_end = chunk.next_offset, chunk.is_end
                if chunk.lines:
                    lines = [{"rank": one.rank, "attempt": one.attempt, "text": one.text} for one in chunk.lines]
                    yield self._member(numbers, f"log/{task}", lines)

    def _member(self, numbers: Counter[str], name: str, rows: Iterable[Mapping[str, Any]]) -> bytes:
        numbers[name] += 1
        body = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        return tar.member(f"{name}/{numbers[name]:06d}.jsonl", body.encode(), self._context.clock.now())

    # --- forgetting -----------------------------------------------------------------------------------------

    async def forget(self, who: Principal, user_id: UserId, *, keeps_jobs: bool) -> tuple[Erasure, bool]:
        """And whether nothing is left of them already; otherwise it goes on, whether or not anybody asks again."""
        if not is_admin(who):
            raise Forbidden("only an admin may do that")
        if user_id == who.user_id:
            raise Conflict("nobody deletes themselves: another admin must do it")
        now, store = self._context.clock.now(), self._context.store
        pseudonym = UserId(f"{PSEUDONYM}{self._context.random.token()[:12].lower()}")
        wish = Erasure(user_id=user_id, pseudonym=pseudonym, at=now, keeps_jobs=keeps_jobs)
        entry = self._entry(who, "user.delete", user_id, {"pseudonym": pseudonym, "keeps_jobs": keeps_jobs})
        erasure = await store.begin_erasure(wish, entry)
        try:
            await self._retention.pass_once(ASKED_S)
        except Busy:
            pass  # another server is at it
        return erasure, erasure not in await store.erasures()

    def _entry(self, who: Principal, action: str, user_id: UserId, details: Mapping[str, Any]) -> AuditEntry:
        at = self._context.clock.now()
        return AuditEntry(
            at=at,
            user_id=who.user_id,
            token_id=who.token_id,
            action=action,
            subject=f"user:{user_id}",
            details=details,
        )
