"""An identity provider that hangs: whoever wants to sign in hears so, and nobody else notices."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from crucible.identity import fetching
from crucible.identity.fetching import check_address
from crucible.identity.oidc import FACTS_REST, OidcProvider, OidcSettings
from crucible.model.errors import InvalidRequest, Unreachable


class Hands:
    """Of a clock."""

    now = datetime(2026, 11, 18, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@contextmanager
def deaf() -> Iterator[tuple[str, list[socket.socket]]]:
    """Takes every connection and says nothing."""
    calls: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    calls.append(listener.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", calls
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        for call in calls:
            call.close()


def test_it_is_asked_once_for_all_who_wait_and_holds_up_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "TIMEOUT_S", 2.0)
    clock = Hands()

    async def scenario(issuer: str, calls: list[socket.socket]) -> None:
        provider = OidcProvider(OidcSettings(issuer=issuer, client_id="c"), clock)

        async def begin() -> str:
            return await provider.address(callback="cb", state="s", nonce="n", verifier="v")

        waiting = [asyncio.create_task(begin()) for _ in range(50)]
        await asyncio.sleep(0)
        began = time.monotonic()
        others = await asyncio.gather(*(asyncio.to_thread(int) for _ in range(50)))
        assert others == [0] * 50 and not any(task.done() for task in waiting)
        assert time.monotonic() - began < 2.0
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(error, Unreachable) for error in found) and len(calls) == 1
        clock.now += FACTS_REST + timedelta(seconds=1)
        with pytest.raises(Unreachable, match="does not answer"):
            await begin()
        assert len(calls) == 2

    with deaf() as (issuer, calls):
        asyncio.run(scenario(issuer, calls))


@pytest.mark.parametrize(
    "url",
    ["", "id.example", "ftp://id.example", "https://", "https://[::1", "https://id.example:x", "https://u@id.example"],
)
def test_what_is_no_address_is_refused_with_how_to_write_one(url: str) -> None:
    with pytest.raises(InvalidRequest, match="write https://host/path"):
        check_address(url)
