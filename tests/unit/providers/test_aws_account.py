"""The way to Amazon: clients are made once, credentials are read again when they were rejected, a lane that is full
keeps nobody else waiting."""

import asyncio
import threading
from typing import Any

import pytest
from botocore.exceptions import ClientError

from crucible.model.errors import CredentialsRejected
from crucible.providers.aws.account import READ_AGAIN_S, THREADS, Account, Calls, configuration


class Session:
    made = 0

    def __init__(self) -> None:
        Session.made += 1

    def client(self, service: str, **options: Any) -> Any:
        return object()


@pytest.fixture(autouse=True)
def none_made() -> None:
    Session.made = 0


def refused() -> None:
    raise ClientError({"Error": {"Code": "ExpiredToken"}, "ResponseMetadata": {"HTTPStatusCode": 403}}, "Describe")


def test_a_client_is_made_once_for_all_threads() -> None:
    account, found = Account(session=Session), []
    threads = [threading.Thread(target=lambda: found.append(account.client("ec2", "us-east-1"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1 and Session.made == 1
    assert account.client("ec2", "us-west-2") is not found[0]


def test_rejected_credentials_are_read_again_but_not_at_every_call() -> None:
    now = 1000.0
    account = Account(session=Session, monotonic=lambda: now)
    calls = Calls(account, "us-east-1")

    async def fail() -> None:
        with pytest.raises(CredentialsRejected):
            await calls.look(refused)

    first = calls.client()
    asyncio.run(fail())
    assert calls.client() is first, "they were read a moment ago"
    now += READ_AGAIN_S
    asyncio.run(fail())
    assert calls.client() is not first and Session.made == 2
    calls.close()


def test_a_full_lane_keeps_the_others_free() -> None:
    calls, released = Calls(Account(session=Session), "us-east-1"), threading.Event()

    async def scenario() -> None:
        buying = [asyncio.create_task(calls.buy(lambda: released.wait(30))) for _ in range(2 * THREADS)]
        await asyncio.sleep(0)
        assert await asyncio.wait_for(calls.look(lambda: "seen"), 10) == "seen"
        assert await asyncio.wait_for(calls.end(lambda: "ended"), 10) == "ended"
        assert not any(task.done() for task in buying)
        released.set()
        assert await asyncio.gather(*buying) == [True] * len(buying)

    asyncio.run(scenario())
    calls.close()


def test_nothing_is_retried_behind_our_back_and_nothing_waits_for_ever() -> None:
    chosen = configuration(20.0)
    assert chosen.retries == {"mode": "standard", "total_max_attempts": 1}
    assert 0 < chosen.connect_timeout <= 10 and chosen.read_timeout == 20.0
    assert "crucible/" in chosen.user_agent_extra
