"""The way to Amazon: one boto3 session for all regions, its clients, and a few threads for each kind of call. Who waits
for a purchase never keeps a listing or a delete waiting. No call is repeated here."""

import asyncio
import importlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from crucible import __version__
from crucible.model.errors import CredentialsRejected, ProviderError, RateLimited
from crucible.providers.aws.errors import PROVIDER, translated
from crucible.providers.aws.pace import ENDS, LOOKS, PURCHASES_BURST, Allowance, Pace

T = TypeVar("T")

CONNECT_TIMEOUT_S = 5.0
# A look is repeated anyway; a purchase of many machines takes its time, and a lost answer costs a second look.
LOOK_TIMEOUT_S = 20.0
PURCHASE_TIMEOUT_S = 60.0
THREADS = 4  # of one kind of call
PURCHASES_PER_S = 2  # what Amazon grants every account; more is a matter of asking
# Rejected credentials are read anew, but not at every call that fails.
READ_AGAIN_S = 15.0

# The Pricing service answers in a few regions only.
PRICING_REGION = "us-east-1"


def check_installed() -> Any:
    """boto3. Raises ProviderError where the extra is missing; a boto3 that cannot be imported is loud."""
    try:
        return importlib.import_module("boto3")
    except ModuleNotFoundError as error:
        if error.name != "boto3":
            raise
        raise ProviderError(
            "AWS needs boto3, which is not installed: pip install 'crucible[aws]'", provider=PROVIDER
        ) from error


class Account:
    """Credentials come from where every AWS tool looks for them. They are looked for again when they were rejected."""

    def __init__(
        self,
        *,
        session: Callable[[], Any] | None = None,
        endpoint_url: str | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._new_session = session or default_session
        self._endpoint_url = endpoint_url
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._session: Any = None
        self._clients: dict[tuple[str, str, float], Any] = {}
        self._read_at = 0.0

    def client(self, service: str, region: str, timeout_s: float = LOOK_TIMEOUT_S) -> Any:
        """Made once and used by all threads. boto3 builds clients for one thread at a time only."""
        key = service, region, timeout_s
        with self._lock:
            found = self._clients.get(key)
            if found is None:
                if self._session is None:
                    self._session, self._read_at = self._new_session(), self._monotonic()
                found = self._clients[key] = self._session.client(
                    service, region_name=region, endpoint_url=self._endpoint_url, config=configuration(timeout_s)
                )
            return found

    def rejected(self) -> None:
        """An operator may have renewed the credentials: the next call reads them anew."""
        with self._lock:
            if self._monotonic() - self._read_at >= READ_AGAIN_S:
                self._session = None
                self._clients.clear()


class Calls:
    """The calls of one region. Each lane is a bulkhead: so many threads, so many calls a second, and whoever finds them
    busy waits. An end never waits for a purchase."""

    def __init__(self, account: Account, region: str, purchases_per_s: int = PURCHASES_PER_S) -> None:
        self._account = account
        self.region = region
        self.preparing = Lane(f"aws-{region}-prepare", LOOKS)
        self.buying = Lane(f"aws-{region}-buy", Allowance(purchases_per_s, max(PURCHASES_BURST, purchases_per_s)))
        self.looking = Lane(f"aws-{region}-look", LOOKS)
        self.ending = Lane(f"aws-{region}-end", ENDS)

    def client(self, service: str = "ec2", *, region: str | None = None, timeout_s: float = LOOK_TIMEOUT_S) -> Any:
        return self._account.client(service, region or self.region, timeout_s)

    async def buy(self, work: Callable[[], T]) -> T:
        """A call that may buy something: without an answer it raises OutcomeUnknown."""
        return await self.buying.run(lambda: self._told(work, is_purchase=True))

    async def prepare(self, work: Callable[[], T]) -> T:
        return await self.preparing.run(lambda: self._told(work))

    async def look(self, work: Callable[[], T]) -> T:
        return await self.looking.run(lambda: self._told(work))

    async def end(self, work: Callable[[], T]) -> T:
        return await self.ending.run(lambda: self._told(work))

    def close(self) -> None:
        for lane in (self.preparing, self.buying, self.looking, self.ending):
            lane.close()

    def _told(self, work: Callable[[], T], *, is_purchase: bool = False) -> T:
        check_installed()
        try:
            with translated(self.region, is_purchase=is_purchase):
                return work()
        except CredentialsRejected:
            self._account.rejected()
            raise


class Lane:
    """Threads are started when they are needed."""

    def __init__(self, name: str, allowance: Allowance, threads: int = THREADS) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._pace = Pace(allowance)

    async def run(self, work: Callable[[], T]) -> T:
        await self._pace.turn()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, work)
        except RateLimited as error:
            self._pace.throttled(error.retry_after_s)
            raise

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)


def default_session() -> Any:
    return check_installed().session.Session()


def configuration(timeout_s: float) -> Any:
    """Whoever asks decides whether to ask again: only they know what it costs."""
    from botocore.config import Config

    return Config(
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=timeout_s,
        max_pool_connections=4 * THREADS,
        retries={"mode": "standard", "total_max_attempts": 1},
        user_agent_extra=f"crucible/{__version__}",
    )
