"""The same client for asyncio: every method of `Client` by its name, awaited; streams as async iterators. Cancelling
hangs up. One event loop at a time; any number of tasks."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import aclosing
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from crucible.client import shapes, threads
from crucible.client.api import Client
from crucible.client.errors import ClientClosed
from crucible.client.following import TROUBLE, OnTrouble, Patience
from crucible.client.shapes import TERMINAL
from crucible.client.watching import Pace

P = ParamSpec("P")
T = TypeVar("T")

# Requests under way at once; the others wait their turn. Streams are not counted: each lasts as long as its job.
MOST_AT_ONCE = 16


def awaited(
    method: Callable[Concatenate[Client, P], T],
) -> Callable[Concatenate["AsyncClient", P], Coroutine[Any, Any, T]]:
    """A method of `Client` as one of `AsyncClient`."""

    @wraps(method)
    async def asked(self: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.call(lambda client: method(client, *args, **kwargs))

    return asked


def streamed(
    method: Callable[Concatenate[Client, P], Iterator[T]],
) -> Callable[Concatenate["AsyncClient", P], AsyncGenerator[T, None]]:
    """The same for a method that yields. Leaving the loop hangs up: soon by itself, at once with `aclosing`."""

    @wraps(method)
    def opened(self: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, None]:
        return self.stream(lambda client: method(client, *args, **kwargs))

    return opened


class AsyncClient:
    def __init__(self, connect: Callable[[], Client], *, most_at_once: int = MOST_AT_ONCE) -> None:
        """`connect` is called by threads, when a connection is first needed and for each that is used at once."""
        self._connect = connect
        self._turn = asyncio.Semaphore(most_at_once)
        self._idle: list[Client] = []
        self._lines: set[threads.Line] = set()
        self._is_closed = False

    @classmethod
    def open(cls, endpoint: str | None = None, token: str | None = None) -> Self:
        """The configured server, or the embedded one; it is looked for at the first request."""
        return cls(partial(Client.open, endpoint, token))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends whatever is still being asked, with ClientClosed."""
        self._is_closed = True
        for line in tuple(self._lines):
            line.hang_up()
        while self._idle:
            self._idle.pop().close()

    async def call(self, do: Callable[[Client], T]) -> T:
        """Whatever a `Client` can do, in a thread. Cancelled, it may or may not have been done."""
        async with self._turn:
            line = self._line(self._idle.pop() if self._idle else None)
            try:
                return await threads.call(line, do)
            finally:
                self._lines.discard(line)
                self._keep(line.release())

    async def stream(self, start: Callable[[Client], Iterator[T]]) -> AsyncGenerator[T, None]:
        """Whatever a `Client` yields, read ahead a little by a thread."""
        line = self._line(None)
        try:
            async with aclosing(threads.stream(line, start)) as items:
                async for item in items:
                    yield item
        finally:
            self._lines.discard(line)

    async def insist(self, patience: Patience, do: Callable[[Client], T]) -> T:
        """The result of a repeatable call, however often it takes."""
        while True:
            try:
                result = await self.call(do)
            except TROUBLE as error:
                await asyncio.sleep(patience.pause_after(error))
            else:
                patience.succeeded()
                return result

    # --- what waits ------------------------------------------------------------------------------

    async def wait(
        self, job_id: str, *, timeout_s: float | None = None, on_trouble: OnTrouble | None = None
    ) -> shapes.JobView:
        """The job once it is over. Raises JobNotOver after `timeout_s`."""
        pace, patience = Pace(timeout_s), Patience(on_trouble=on_trouble)
        while True:
            job = await self.insist(patience, lambda client: client.job(job_id))
            if job["status"] in TERMINAL:
                return job
            await asyncio.sleep(pace.pause(job))

    async def updates(
        self, job_id: str, *, on_trouble: OnTrouble | None = None
    ) -> AsyncGenerator[shapes.JobView, None]:
        """The job now, then each time that something about it has changed, until it is over."""
        pace, patience = Pace(), Patience(on_trouble=on_trouble)
        last: shapes.JobView | None = None
        while True:
            job = await self.insist(patience, lambda client: client.job(job_id))
            if job != last:
                yield job
                last = job
            if job["status"] in TERMINAL:
                return
            await asyncio.sleep(pace.pause(job))

    # --- the routes ------------------------------------------------------------------------------

    logs = streamed(Client.logs)
    all_jobs = streamed(Client.all_jobs)
    all_tasks = streamed(Client.all_tasks)
    submit = awaited(Client.submit)
    job = awaited(Client.job)
    jobs = awaited(Client.jobs)
    overview = awaited(Client.overview)
    is_over = awaited(Client.is_over)
    cancel = awaited(Client.cancel)
    hold = awaited(Client.hold)
    release = awaited(Client.release)
    retry = awaited(Client.retry)
    resume = awaited(Client.resume)
    events = awaited(Client.events)
    metrics = awaited(Client.metrics)
    chart = awaited(Client.chart)
    status = awaited(Client.status)
    findings = awaited(Client.findings)
    checkpoints = awaited(Client.checkpoints)
    checkpoint_files = awaited(Client.checkpoint_files)
    verify_checkpoint = awaited(Client.verify_checkpoint)
    get_checkpoint = awaited(Client.get_checkpoint)
    remove_checkpoint = awaited(Client.remove_checkpoint)
    outputs = awaited(Client.outputs)
    output_tree = awaited(Client.output_tree)
    get_output = awaited(Client.get_output)
    shards = awaited(Client.shards)
    results = streamed(Client.results)
    item_errors = streamed(Client.item_errors)
    artifacts = awaited(Client.artifacts)
    attempts = awaited(Client.attempts)
    costs = awaited(Client.costs)
    tasks = awaited(Client.tasks)
    sweep = awaited(Client.sweep)
    evaluation = awaited(Client.evaluation)
    workflow = awaited(Client.workflow)
    why = awaited(Client.why)
    launch_script = awaited(Client.launch_script)
    spec = awaited(Client.spec)
    plan = awaited(Client.plan)
    validate = awaited(Client.validate)
    spec_schema = awaited(Client.spec_schema)
    spec_examples = awaited(Client.spec_examples)
    recommend = awaited(Client.recommend)
    has_package = awaited(Client.has_package)
    upload_package = awaited(Client.upload_package)
    add_dataset = awaited(Client.add_dataset)
    datasets = awaited(Client.datasets)
    dataset = awaited(Client.dataset)
    remove_dataset = awaited(Client.remove_dataset)
    templates = awaited(Client.templates)
    template = awaited(Client.template)
    add_template = awaited(Client.add_template)
    remove_template = awaited(Client.remove_template)
    fill_template = awaited(Client.fill_template)
    alert_rules = awaited(Client.alert_rules)
    add_alert_rule = awaited(Client.add_alert_rule)
    change_alert_rule = awaited(Client.change_alert_rule)
    remove_alert_rule = awaited(Client.remove_alert_rule)
    alert_channels = awaited(Client.alert_channels)
    add_alert_channel = awaited(Client.add_alert_channel)
    remove_alert_channel = awaited(Client.remove_alert_channel)
    test_alert_channel = awaited(Client.test_alert_channel)
    rotate_alert_channel = awaited(Client.rotate_alert_channel)
    notices = awaited(Client.notices)
    notice_deliveries = awaited(Client.notice_deliveries)
    prices = awaited(Client.prices)
    price_history = awaited(Client.price_history)
    price_sources = awaited(Client.price_sources)
    refresh_prices = awaited(Client.refresh_prices)
    offers = awaited(Client.offers)
    compare = awaited(Client.compare)
    cost_report = awaited(Client.cost_report)
    cost_csv = streamed(Client.cost_csv)
    savings = awaited(Client.savings)
    accuracy = awaited(Client.accuracy)
    me = awaited(Client.me)
    version = awaited(Client.version)
    health = awaited(Client.health)
    provider_health = awaited(Client.provider_health)
    retention = awaited(Client.retention)
    set_retention = awaited(Client.set_retention)
    run_retention = awaited(Client.run_retention)
    kept_jobs = awaited(Client.kept_jobs)
    keep = awaited(Client.keep)
    export_user = streamed(Client.export_user)
    delete_user = awaited(Client.delete_user)
    nodes = awaited(Client.nodes)
    capacity = awaited(Client.capacity)
    hosts = awaited(Client.hosts)
    host = awaited(Client.host)
    add_hosts = awaited(Client.add_hosts)
    check_host = awaited(Client.check_host)
    drain_host = awaited(Client.drain_host)
    resume_host = awaited(Client.resume_host)
    remove_host = awaited(Client.remove_host)
    lab = awaited(Client.lab)
    lab_bill = awaited(Client.lab_bill)
    lab_events = awaited(Client.lab_events)
    lab_console = awaited(Client.lab_console)
    lab_preempt = awaited(Client.lab_preempt)
    lab_faults = awaited(Client.lab_faults)
    lab_fail = awaited(Client.lab_fail)
    lab_mend = awaited(Client.lab_mend)
    secrets = awaited(Client.secrets)
    set_secret = awaited(Client.set_secret)
    remove_secret = awaited(Client.remove_secret)
    rotate_secrets_key = awaited(Client.rotate_secrets_key)
    tokens = awaited(Client.tokens)
    sign_in_ways = awaited(Client.sign_in_ways)
    exchange_sign_in = awaited(Client.exchange_sign_in)
    sign_in_ticket = awaited(Client.sign_in_ticket)
    create_token = awaited(Client.create_token)
    revoke_token = awaited(Client.revoke_token)
    budgets = awaited(Client.budgets)
    budget = awaited(Client.budget)
    add_budget = awaited(Client.add_budget)
    change_budget = awaited(Client.change_budget)
    remove_budget = awaited(Client.remove_budget)
    users = awaited(Client.users)
    user = awaited(Client.user)
    create_user = awaited(Client.create_user)
    change_user = awaited(Client.change_user)
    teams = awaited(Client.teams)
    team = awaited(Client.team)
    create_team = awaited(Client.create_team)
    remove_team = awaited(Client.remove_team)
    members = awaited(Client.members)
    set_member = awaited(Client.set_member)
    remove_member = awaited(Client.remove_member)
    projects = awaited(Client.projects)
    create_project = awaited(Client.create_project)
    remove_project = awaited(Client.remove_project)
    audit = awaited(Client.audit)
    audit_seal = awaited(Client.audit_seal)
    exec = awaited(Client.exec)
    copy_to = awaited(Client.copy_to)
    copy_from = awaited(Client.copy_from)

    # --- lines -----------------------------------------------------------------------------------

    def _line(self, client: Client | None) -> threads.Line:
        if self._is_closed:
            raise ClientClosed("the client was closed; open another")
        line = threads.Line(self._connect, client)
        self._lines.add(line)
        return line

    def _keep(self, client: Client | None) -> None:
        if client is None:
            return
        if self._is_closed:
            client.close()
        else:
            self._idle.append(client)
