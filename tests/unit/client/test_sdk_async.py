"""The asynchronous client: the same answers, many at once, and nothing left behind by who stops waiting."""

import asyncio
import contextlib
import inspect
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from crucible import AsyncClient, Client
from crucible.client import threads
from crucible.client.errors import ClientClosed, ConnectionLost, JobNotOver
from crucible.model.errors import NotFound
from doubles.api_server import api
from doubles.api_server import job as job_view
from doubles.http_server import Double, Handler, Request, serving

ID = str(job_view()["id"])
SOON_S = 10.0  # nothing here takes a second; a busy machine may


def run(double: Double, story: Callable[[AsyncClient], Awaitable[Any]], **options: Any) -> Any:
    async def main() -> Any:
        async with AsyncClient(lambda: Client(double.transport()), **options) as client:
            return await asyncio.wait_for(story(client), SOON_S)

    return asyncio.run(main())


def ours() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("crucible-")]


@pytest.fixture(autouse=True)
def no_thread_stays() -> Iterator[None]:
    yield
    deadline = time.monotonic() + SOON_S
    while ours():
        assert time.monotonic() < deadline, ours()
        time.sleep(0.01)


class Gate:
    """Answers that wait until the test opens; counts who is inside, and notices who hangs up."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.entered = threading.Semaphore(0)
        self.hung_up = threading.Semaphore(0)
        self._lock = threading.Lock()
        self.inside = self.most = 0

    def __call__(self, request: Request, reply: Handler) -> None:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        self.entered.release()
        try:
            while not self.opened.wait(0.01):
                if is_gone(reply):
                    self.hung_up.release()
                    return
            reply.json(job_view())
        finally:
            with self._lock:
                self.inside -= 1


def is_gone(reply: Handler) -> bool:
    """Whether the client closed its end: nothing more will be read from it."""
    reply.connection.setblocking(False)
    try:
        return reply.connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        reply.connection.setblocking(True)


@contextmanager
def gated() -> Iterator[tuple[Gate, Double]]:
    gate = Gate()
    with serving(gate) as double:
        try:
            yield gate, double
        finally:
            gate.opened.set()


async def arrives(semaphore: threading.Semaphore) -> None:
    assert await asyncio.to_thread(semaphore.acquire, timeout=SOON_S)


# --- the same answers ---------------------------------------------------------------------------------------


def test_every_method_of_the_client_has_its_awaited_twin() -> None:
    public = {name for name, _ in inspect.getmembers(Client, inspect.isfunction) if not name.startswith("_")}
    twins = {name for name, _ in inspect.getmembers(AsyncClient, inspect.isfunction) if not name.startswith("_")}
    assert public - twins == {"abort", "open_channel", "open_log"}, "those are for whoever builds a client"
    for name in public & twins - {"close"}:
        ours_, theirs = inspect.signature(getattr(AsyncClient, name)), inspect.signature(getattr(Client, name))
        assert [*ours_.parameters] == [*theirs.parameters], name


def test_answers_and_errors_are_those_of_the_client() -> None:
    with api({f"GET /v1/jobs/{ID}": job_view()}) as double:

        async def story(client: AsyncClient) -> None:
            assert await client.job(ID) == job_view()
            with pytest.raises(NotFound, match="no route GET /v1/jobs/other"):
                await client.job("other")

        run(double, story)
        connections = {request.headers["authorization"] for request in double.requests}
        assert connections == {"Bearer s3cret-token"}


def test_a_hundred_questions_at_once_are_asked_a_few_at_a_time() -> None:
    with gated() as (gate, double):

        async def story(client: AsyncClient) -> list[Any]:
            questions = [asyncio.ensure_future(client.job(ID)) for _ in range(100)]
            for _ in range(4):
                await arrives(gate.entered)
            gate.opened.set()
            return await asyncio.gather(*questions)

        answers = run(double, story, most_at_once=4)
    assert len(answers) == 100 and gate.most == 4


def test_the_loop_goes_on_while_an_answer_is_awaited() -> None:
    with gated() as (gate, double):

        async def story(client: AsyncClient) -> None:
            question = asyncio.ensure_future(client.job(ID))
            await arrives(gate.entered)
            for _ in range(100):
                await asyncio.sleep(0)
            assert not question.done()
            gate.opened.set()
            assert (await question)["id"] == ID

        run(double, story)


# --- who stops waiting --------------------------------------------------------------------------------------


def test_who_is_cancelled_hangs_up_at_once() -> None:
    with gated() as (gate, double):

        async def story(client: AsyncClient) -> None:
            question = asyncio.ensure_future(client.job(ID))
            await arrives(gate.entered)
            question.cancel()
            with pytest.raises(asyncio.CancelledError):
                await question
            await arrives(gate.hung_up)
            gate.opened.set()
            assert (await client.job(ID))["id"] == ID, "the client itself goes on"

        run(double, story)


def test_who_is_cancelled_while_waiting_for_its_turn_asks_nothing() -> None:
    with gated() as (gate, double):

        async def story(client: AsyncClient) -> None:
            first, second = (asyncio.ensure_future(client.job(ID)) for _ in range(2))
            await arrives(gate.entered)
            second.cancel()
            gate.opened.set()
            await first
            with pytest.raises(asyncio.CancelledError):
                await second

        run(double, story, most_at_once=1)
        assert len(double.requests) == 1


def test_a_time_limit_is_a_cancellation() -> None:
    with gated() as (gate, double):

        async def story(client: AsyncClient) -> None:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await client.job(ID)
            await arrives(gate.hung_up)

        run(double, story)


def test_closing_ends_what_is_being_asked_and_refuses_what_comes() -> None:
    with gated() as (gate, double):

        async def story(client: AsyncClient) -> None:
            question = asyncio.ensure_future(client.job(ID))
            await arrives(gate.entered)
            await client.close()
            with pytest.raises((ClientClosed, ConnectionLost)):
                await question
            with pytest.raises(ClientClosed):
                await client.job(ID)

        run(double, story)


def test_whoever_is_cancelled_while_a_server_is_being_started_does_not_wait_for_it() -> None:
    started, may_go_on = threading.Event(), threading.Event()

    def connect() -> Client:
        started.set()
        assert may_go_on.wait(SOON_S)
        return Client(double.transport())

    async def story() -> None:
        async with AsyncClient(connect) as client:
            question = asyncio.ensure_future(client.job(ID))
            assert await asyncio.to_thread(started.wait, SOON_S)
            question.cancel()
            with pytest.raises(asyncio.CancelledError):
                await question
        may_go_on.set()

    with api({}) as double:
        asyncio.run(story())
        while ours():
            time.sleep(0.01)
        assert double.requests == []


# --- streams ------------------------------------------------------------------------------------------------


def line(n: int) -> bytes:
    return json.dumps({"attempt": 0, "rank": 0, "n": n, "t": 0, "s": "out", "x": f"line {n}"}).encode() + b"\n"


@contextmanager
def talking(lines: int) -> Iterator[tuple[Double, threading.Event]]:
    """A job that says so many lines and then nothing for ever, until its reader hangs up."""
    left = threading.Event()

    def answer(request: Request, reply: Handler) -> None:
        if not request.path.endswith("/logs"):
            reply.json(job_view(status="running" if lines else "completed"))
            return
        reply.begin_chunks()
        with contextlib.suppress(OSError):
            for n in range(lines):
                reply.chunk(line(n))
            while not is_gone(reply):
                time.sleep(0.01)
        left.set()
        reply.close_connection = True

    with serving(answer) as double:
        yield double, left


def test_lines_come_in_order_and_leaving_hangs_up() -> None:
    with talking(5000) as (double, left):

        async def story(client: AsyncClient) -> list[str]:
            seen: list[str] = []
            async with contextlib.aclosing(client.logs(ID, follow=True)) as lines:
                async for record in lines:
                    seen.append(record["x"])
                    if len(seen) == 5000:
                        break
            assert await asyncio.to_thread(left.wait, SOON_S)
            return seen

        assert run(double, story) == [f"line {n}" for n in range(5000)]


def test_a_slow_reader_holds_up_the_thread_and_not_the_memory() -> None:
    async def story() -> int:
        taken: list[int] = []

        def source(client: Client) -> Iterator[int]:
            for n in range(10 * threads.AHEAD):
                taken.append(n)
                yield n

        stream = threads.stream(threads.Line(lambda: Client(double.transport())), source)
        first = await anext(stream)
        assert first == 0
        deadline = time.monotonic() + SOON_S
        while len(taken) < threads.AHEAD and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        await stream.aclose()
        return len(taken)

    with api({}) as double:
        # What was taken by the first `anext` made room for as many again.
        assert asyncio.run(story()) <= 2 * threads.AHEAD + 1


def test_a_cancelled_reader_hangs_up() -> None:
    with talking(3) as (double, left):

        async def story(client: AsyncClient) -> None:
            read = asyncio.Event()

            async def reader() -> None:
                async for record in client.logs(ID, follow=True):
                    if record["n"] == 2:
                        read.set()

            task = asyncio.ensure_future(reader())
            await read.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(left.wait, SOON_S)

        run(double, story)


def test_an_error_in_the_middle_of_a_stream_is_raised_where_it_is_read() -> None:
    with api({}) as double:

        async def story(client: AsyncClient) -> None:
            with pytest.raises(NotFound):
                async for _ in client.logs("nothing"):
                    pass

        run(double, story)


def test_pages_of_jobs_come_as_one_stream() -> None:
    pages = {"": ([{"id": "1"}, {"id": "2"}], "next"), "next": ([{"id": "3"}], None)}

    def page(request: Request) -> dict[str, Any]:
        items, cursor = pages[request.query.get("cursor", "")]
        return {"items": items, "next_cursor": cursor}

    with api({"GET /v1/jobs": page}) as double:

        async def story(client: AsyncClient) -> list[str]:
            return [job["id"] async for job in client.all_jobs()]

        assert run(double, story) == ["1", "2", "3"]


# --- staying with a job -------------------------------------------------------------------------------------


def test_waiting_and_updates_outlast_a_server_that_hangs_up() -> None:
    statuses = iter(["running", "hang up", "running", "checkpointing", "completed"])

    def answer(request: Request, reply: Handler) -> None:
        status = next(statuses)
        if status == "hang up":
            reply.hang_up()
        else:
            reply.json(job_view(status=status))

    with serving(answer) as double:

        async def story(client: AsyncClient) -> list[str]:
            return [job["status"] async for job in client.updates(ID)]

        assert run(double, story) == ["running", "checkpointing", "completed"]


def test_a_wait_has_an_end() -> None:
    with api({f"GET /v1/jobs/{ID}": job_view()}) as double:

        async def story(client: AsyncClient) -> None:
            with pytest.raises(JobNotOver, match="still running"):
                await client.wait(ID, timeout_s=0.05)

        run(double, story)


def test_hundreds_may_wait_while_others_ask() -> None:
    over = threading.Event()

    def answer(request: Request, reply: Handler) -> None:
        reply.json(job_view(status="completed" if over.is_set() else "running"))

    with serving(answer) as double:

        async def story(client: AsyncClient) -> set[str]:
            waits = [asyncio.ensure_future(client.wait(ID)) for _ in range(200)]
            assert (await client.job(ID))["status"] == "running"
            over.set()
            return {job["status"] for job in await asyncio.gather(*waits)}

        assert run(double, story, most_at_once=8) == {"completed"}
