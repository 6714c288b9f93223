"""Drive one purchase: the intent is stored before the seller is called, and a lost reply is not a failure."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from crucible.core import lease as leases
from crucible.core.cooling import cooldown
from crucible.engine.context import Context, log
from crucible.engine.patience import Patience
from crucible.model.change import Change, changed
from crucible.model.errors import (
    CredentialsRejected,
    NoCapacity,
    OrderRejected,
    PlatformError,
    ProviderError,
    QuotaReached,
    RateLimited,
    StaleClaim,
    StaleVersion,
)
from crucible.model.ids import OrderId
from crucible.model.lease import Boot, Lease, Machine, Order, OrderCalled, OrderPrepared
from crucible.model.ledger import Cooldown
from crucible.ports.seller import Prepares, Seller
from crucible.ports.store import Claim

# A seller that has not answered by then may still have acted: the outcome is unknown.
CREATE_TIMEOUT_S = 120.0
PREPARE_TIMEOUT_S = 60.0
DELETE_TIMEOUT_S = 60.0


class OrderReconciler:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._patience = Patience()

    async def step(self, order_id: OrderId) -> None:
        context = self._context
        claim = await context.store.claim(f"order:{order_id}", context.server_id, context.claim_ttl)
        if claim is None:
            return
        try:
            order, held = await context.store.order(order_id)
            seller = context.seller(order.target)
            if not leases.owes_create(order, held, seller.facts):
                self._patience.forget(order_id)
                await self._conclude(order, held, seller, claim)
            elif self._patience.is_over(order_id, context.clock.monotonic()):
                await self._buy(order, held, seller, claim)
            for lease in held:
                if leases.owes_delete(lease, context.clock.now(), context.policy):
                    await self._delete(lease, seller, claim)
        except StaleVersion:
            context.wakes.wake("order", order_id)
        except StaleClaim:
            pass
        finally:
            await context.store.release(claim)

    # --- buying -----------------------------------------------------------------------------------

    async def _buy(self, order: Order, held: tuple[Lease, ...], seller: Seller, claim: Claim) -> None:
        try:
            order = await self._prepared(order, seller, claim)
        except (NoCapacity, OrderRejected, CredentialsRejected) as error:
            return await self._record(
                order, held, Answer(leases.Denied(error.message, error.code), error), seller, claim
            )
        except (ProviderError, TimeoutError, OSError) as error:
            # Nothing was asked for yet: the order stays as it is, and is looked at again.
            log.warning("order %s cannot be prepared yet: %s", order.id, error)
            return self._wait(order, error)
        if not seller.facts.idempotent_create:
            order, called = changed(order, [OrderCalled(self._context.clock.now())], leases.evolve_order)
            await self._context.store.commit(called, label="order.called", claim=claim)
        async with kept(self._context, claim):
            answer = await self._call(order, seller)
        if isinstance(answer.said, leases.Unanswered):
            self._wait(order, answer.error)
        return await self._record(order, held, answer, seller, claim)

    def _wait(self, order: Order, error: Exception | None) -> None:
        least = error.retry_after_s if isinstance(error, RateLimited) else 0.0
        self._patience.grow(order.id, self._context.clock.monotonic(), least)

    async def _prepared(self, order: Order, seller: Seller, claim: Claim) -> Order:
        """The order with its exact request. It is stored before the first call: a repeated call must be the same, or
        the seller refuses its token."""
        context = self._context
        if order.body or not isinstance(seller, Prepares):
            return order
        context.failpoint("prepare.before")
        async with kept(context, claim):
            request = await context.clock.wait_for(seller.prepare(order), PREPARE_TIMEOUT_S)
        context.failpoint("prepare.after")
        body = {"servers": [context.url], "agent_sha256": context.agent_sha256, "request": dict(request)}
        order, prepared = changed(order, [OrderPrepared(context.clock.now(), body)], leases.evolve_order)
        await context.store.commit(prepared, label="order.prepared", claim=claim)
        return order

    async def _call(self, order: Order, seller: Seller) -> "Answer":
        context = self._context
        context.failpoint("create.before")
        try:
            machines = await context.clock.wait_for(seller.create(order, self._boot(order)), CREATE_TIMEOUT_S)
            return Answer(leases.Answered(), machines=machines)
        except (NoCapacity, OrderRejected, CredentialsRejected) as error:
            return Answer(leases.Denied(error.message, error.code), error)
        except TimeoutError:
            return Answer(leases.Unanswered(f"no answer within {CREATE_TIMEOUT_S:g} s"))
        except ProviderError as error:
            return Answer(leases.Unanswered(str(error)), error)
        except OSError as error:
            return Answer(leases.Unanswered(str(error)))
        finally:
            context.failpoint("create.after")

    def _boot(self, order: Order) -> Boot:
        """As it was when the order was prepared; a seller that prepares nothing is told how it is now."""
        context = self._context
        servers = tuple(order.body.get("servers", (context.url,)))
        digest = order.body.get("agent_sha256", context.agent_sha256)
        return Boot(servers, context.keys.enrolment(order.id), digest)

    async def _record(
        self, order: Order, held: tuple[Lease, ...], answer: "Answer", seller: Seller, claim: Claim
    ) -> None:
        context = self._context
        now = context.clock.now()
        events = leases.decide_order(order, answer.said, now, context.policy, seller.facts)
        changes = list(changed(order, events, leases.evolve_order)[1])
        by_index = {machine.index: machine for machine in answer.machines}
        for lease in held:
            seen: leases.Observation | None = None
            if lease.index in by_index:
                seen = leases.Found(by_index[lease.index])
            elif isinstance(answer.said, leases.Denied):
                seen = leases.Refused(answer.said.reason)
            if seen is not None:
                news = leases.decide(lease, seen, now, context.policy, seller.facts)
                changes += changed(lease, news, leases.evolve)[1]
        if answer.error is not None:
            context.vitals.refused(f"{seller.name}/{seller.region}", answer.error.code)
        if changes:
            records = self._cooldowns(order, answer, seller)
            await context.store.commit(changes, records, label="order.answer", claim=claim)
            context.tell(order.job_id, order.task_id, changes)

    def _cooldowns(self, order: Order, answer: "Answer", seller: Seller) -> Sequence[Cooldown]:
        """A seller that counts its own stock says by itself what is free again; not what it will never accept."""
        if answer.error is None or not isinstance(answer.said, leases.Denied):
            return ()
        is_full = isinstance(answer.error, NoCapacity) and not isinstance(answer.error, QuotaReached)
        if seller.facts.counts_stock and is_full:
            return ()
        if isinstance(answer.error, CredentialsRejected):
            log.error("%s does not accept our credentials: %s", seller.name, answer.error)
        return (cooldown(order, answer.error, self._context.clock.now(), self._context.policy),)

    async def _conclude(self, order: Order, held: tuple[Lease, ...], seller: Seller, claim: Claim) -> None:
        """No call is owed: a listing has shown the machines, or nobody wants them any more. What an unanswered call may
        still bring then is the sweep's to remove."""
        seen = leases.conclusion(held)
        if order.is_settled or seen is None:
            return
        context = self._context
        now = context.clock.now()
        events = leases.decide_order(order, seen, now, context.policy, seller.facts)
        changes: list[Change] = list(changed(order, events, leases.evolve_order)[1])
        if not changes:
            return
        for lease in held:
            news = leases.decide(lease, leases.Refused("no longer wanted"), now, context.policy, seller.facts)
            changes += changed(lease, news, leases.evolve)[1]
        await context.store.commit(changes, label="order.answer", claim=claim)
        context.tell(order.job_id, order.task_id, changes)

    # --- giving back ------------------------------------------------------------------------------

    async def _delete(self, lease: Lease, seller: Seller, claim: Claim) -> None:
        context = self._context
        assert lease.machine_id is not None
        problem: str | None = None
        context.failpoint("delete.before")
        try:
            async with kept(context, claim):
                await context.clock.wait_for(seller.delete(lease.machine_id), DELETE_TIMEOUT_S)
        except RateLimited as error:
            problem = str(error)
        except (ProviderError, TimeoutError, OSError) as error:
            problem = str(error) or "no answer"
            log.warning("machine %s of %s is not deleted yet: %s", lease.machine_id, lease.target.provider, problem)
        finally:
            context.failpoint("delete.after")
        now = context.clock.now()
        events = leases.decide(lease, leases.DeleteCalled(problem), now, context.policy, seller.facts)
        await context.store.commit(changed(lease, events, leases.evolve)[1], label="lease.delete", claim=claim)
        context.look_at(lease.target.provider, lease.target.region)


@dataclass(frozen=True, slots=True)
class Answer:
    said: leases.OrderObservation
    error: ProviderError | None = None  # what the seller said instead
    machines: Sequence[Machine] = ()


@asynccontextmanager
async def kept(context: Context, claim: Claim) -> AsyncIterator[None]:
    """A call to the outside may take longer than a claim lasts; while we live, nobody else makes it meanwhile."""
    renewing = asyncio.create_task(renew(context, claim))
    try:
        yield
    finally:
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)


async def renew(context: Context, claim: Claim) -> None:
    is_ours = True
    while is_ours:
        await context.clock.sleep(context.claim_ttl.total_seconds() / 3)
        try:
            is_ours = await context.store.renew(claim, context.claim_ttl)
        except PlatformError as error:
            log.warning("the claim of %s could not be renewed: %s", claim.name, error)
