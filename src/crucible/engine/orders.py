"""Drive one purchase: the intent is stored before the seller is called, and a lost reply is not a failure."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from crucible.core import lease as leases
from crucible.engine.context import Context, log
from crucible.model.change import Change, changed
from crucible.model.errors import (
    CredentialsRejected,
    NoCapacity,
    OrderRejected,
    PlatformError,
    ProviderError,
    RateLimited,
    StaleClaim,
    StaleVersion,
)
from crucible.model.ids import OrderId
from crucible.model.lease import Boot, Lease, Machine, Order, OrderCalled
from crucible.ports.seller import Seller
from crucible.ports.store import Claim

# A seller that has not answered by then may still have acted: the outcome is unknown.
CREATE_TIMEOUT_S = 120.0
DELETE_TIMEOUT_S = 60.0


class OrderReconciler:
    def __init__(self, context: Context) -> None:
        self._context = context

    async def step(self, order_id: OrderId) -> None:
        context = self._context
        claim = await context.store.claim(f"order:{order_id}", context.server_id, context.claim_ttl)
        if claim is None:
            return
        try:
            order, held = await context.store.order(order_id)
            seller = context.seller(order.target.provider)
            if leases.owes_create(order, held, seller.facts):
                await self._buy(order, held, seller, claim)
            else:
                await self._conclude(order, held, seller, claim)
            for lease in held:
                if leases.owes_delete(lease, context.clock.now()):
                    await self._delete(lease, seller, claim)
        except StaleVersion:
            context.wakes.wake("order", order_id)
        except StaleClaim:
            pass
        finally:
            await context.store.release(claim)

    # --- buying -----------------------------------------------------------------------------------

    async def _buy(self, order: Order, held: tuple[Lease, ...], seller: Seller, claim: Claim) -> None:
        if not seller.facts.idempotent_create:
            order, called = changed(order, [OrderCalled(self._context.clock.now())], leases.evolve_order)
            await self._context.store.commit(called, label="order.called", claim=claim)
        async with kept(self._context, claim):
            machines, answer = await self._call(order, seller)
        await self._record(order, held, machines, answer, seller, claim)

    async def _call(self, order: Order, seller: Seller) -> tuple[Sequence[Machine], leases.OrderObservation]:
        context = self._context
        boot = Boot((context.url,), context.keys.enrolment(order.id))
        context.failpoint("create.before")
        try:
            machines = await context.clock.wait_for(seller.create(order, boot), CREATE_TIMEOUT_S)
            return machines, leases.Answered()
        except (NoCapacity, OrderRejected, CredentialsRejected) as error:
            return (), leases.Denied(error.message, error.code)
        except TimeoutError:
            return (), leases.Unanswered(f"no answer within {CREATE_TIMEOUT_S:g} s")
        except (ProviderError, OSError) as error:
            return (), leases.Unanswered(str(error))
        finally:
            context.failpoint("create.after")

    async def _record(
        self,
        order: Order,
        held: tuple[Lease, ...],
        machines: Sequence[Machine],
        answer: leases.OrderObservation,
        seller: Seller,
        claim: Claim,
    ) -> None:
        context = self._context
        now = context.clock.now()
        events = leases.decide_order(order, answer, now, context.policy, seller.facts)
        changes = list(changed(order, events, leases.evolve_order)[1])
        by_index = {machine.index: machine for machine in machines}
        for lease in held:
            seen: leases.Observation | None = None
            if lease.index in by_index:
                seen = leases.Found(by_index[lease.index])
            elif isinstance(answer, leases.Denied):
                seen = leases.Refused(answer.reason)
            if seen is not None:
                news = leases.decide(lease, seen, now, context.policy, seller.facts)
                changes += changed(lease, news, leases.evolve)[1]
        if changes:
            await context.store.commit(changes, label="order.answer", claim=claim)
            context.tell(order.job_id, order.task_id, changes)

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
        context.hub.notify(f"seller:{lease.target.provider}")


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
