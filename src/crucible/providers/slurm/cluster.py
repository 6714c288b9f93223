"""One Slurm cluster as a seller. It translates: orders into jobs, jobs into machines, Slurm's words into our errors. It
does not retry, choose or know what is trained.

An order is one job by the order's name. Whoever asks again finds it; if two asked at once, the older job is meant, and
the younger is cancelled by whoever submitted it."""

import asyncio
import hashlib
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from crucible.model.errors import NoCapacity, OrderRejected, ProviderError
from crucible.model.ids import MachineId
from crucible.model.lease import Boot, Machine, Order, SellerFacts
from crucible.model.offer import Offer
from crucible.providers.slurm import health, listing, program
from crucible.providers.slurm.door import Door, Job
from crucible.providers.slurm.errors import PROVIDER
from crucible.providers.slurm.listing import Purchase
from crucible.providers.slurm.recall import Recall
from crucible.providers.slurm.request import MACHINE_ID, NAME, batch_request, machine_id
from crucible.providers.slurm.settings import ClusterSettings
from crucible.providers.slurm.stock import offers_of

# A job that is to start at once has been looked at by the scheduler by then, unless the controller is overloaded.
START_WITHIN_S = 15.0
LOOK_S = 0.2
# Slurm gives these reasons to a job for which it found no room, and for a moment to one that comes next.
LOOKED_AT_S = 3.0
NO_ROOM = ("Resources", "Priority", "ReqNodeNotAvail", "QOS", "Assoc", "Nodes")
LAST_WORDS = 2048
BOOT_TIME = timedelta(minutes=10)


class SlurmCluster:
    name = PROVIDER

    def __init__(self, settings: ClusterSettings, door: Door, *, deployment: str, agent: Path | None = None) -> None:
        """Nothing is asked yet. `agent` is pushed to the cluster, where files can be."""
        self.region = settings.name
        self._settings = settings
        self._door = door
        self._deployment = deployment
        self._agent = agent
        self._recall = Recall(settings.name, door, deployment)
        self._folder: str | None = None
        self._pushed: set[str] = set()  # digests of agents that are there
        self._asked: set[MachineId] = set()  # whose end was asked for
        self._devices: dict[str, Mapping[str, tuple[str, ...]]] = {}  # by job: they do not change
        self.facts = SellerFacts(
            idempotent_create=True,
            visibility=timedelta(seconds=10),
            boot_time=BOOT_TIME + settings.queue_limit,
            counts_stock=True,
            powers_off=False,
            poll_every=timedelta(seconds=2),
            fence=program.FENCE,
        )

    async def offers(self) -> Sequence[Offer]:
        nodes, partitions = await asyncio.gather(self._door.nodes(), self._door.partitions())
        return offers_of(self._settings, partitions, nodes)

    # --- buying ---------------------------------------------------------------------------------------

    async def prepare(self, order: Order) -> Mapping[str, Any]:
        offer = next((one for one in await self.offers() if one.id == order.offer), None)
        if offer is None:
            raise self._rejected(f"{order.offer} is not offered (any more)")
        return batch_request(order, offer, self._settings, self._deployment, await self._place())

    async def create(self, order: Order, boot: Boot) -> Sequence[Machine]:
        request = order.body.get("request")
        if request is None:
            raise self._rejected(f"order {order.id} was never prepared")
        found = await self._find(order)
        if found is None:
            await self._check_room(order)
            text = program.script(
                order, boot, request, self._deployment, self._settings.python, has_files=self._door.reads_files
            )
            await self._furnish(order, boot, request)
            found = await self._submit(order, request, text)
        if not self._settings.queues:
            found = await self._started(order, found)
        return await self._machines([found])

    async def _check_room(self, order: Order) -> None:
        """Where nobody queues, what has no room now is not even submitted. Raises NoCapacity."""
        if self._settings.queues:
            return
        offer = next((one for one in await self.offers() if one.id == order.offer), None)
        free = (offer.free_machines if offer else None) or 0
        if free < order.count:
            raise self._full(order, f"{free} can be had")

    async def _find(self, order: Order) -> Purchase | None:
        return next((one for one in await self._purchases() if one.order_id == order.id), None)

    async def _submit(self, order: Order, request: Mapping[str, Any], text: str) -> Purchase:
        number = await self._door.submit(request, text)
        found = await self._find(order)
        if found is None:
            raise ProviderError(
                f"Slurm {self.region}: job {number} of {order.id} ended at once", provider=PROVIDER, region=self.region
            )
        if found.jobs[0].id != number:
            await self._door.cancel(str(number))
        return found

    async def _furnish(self, order: Order, boot: Boot, request: Mapping[str, Any]) -> None:
        """The secret in a file of its own, and the agent, where the nodes find them."""
        if not self._door.reads_files:
            return
        await self._door.put(f"{request['folder']}/orders/{order.id}/boot.json", program.boot_file(boot))
        digest = boot.agent_sha256
        if digest in self._pushed or self._agent is None:
            return
        path = f"{await self._root()}/agents/{digest}.pyz"
        if not await self._door.has(path, digest):
            data = await asyncio.to_thread(self._agent.read_bytes)
            if hashlib.sha256(data).hexdigest() != digest:
                return  # an older order: its machines fetch their agent from the server that has it
            await self._door.put(path, data)
        self._pushed.add(digest)

    async def _started(self, order: Order, found: Purchase) -> Purchase:
        """Where nobody queues: all of it runs, or nothing is left of it. Raises NoCapacity."""
        began = time.monotonic()
        while any(job.state in listing.WAITING for job in found.jobs) or len(found.jobs) < jobs_of(found):
            waits = [job for job in found.jobs if job.state in listing.WAITING]
            has_room = not any(job.reason.startswith(NO_ROOM) for job in waits)
            if time.monotonic() - began > (START_WITHIN_S if has_room else LOOKED_AT_S):
                return await self._withdraw(order, found, waits)
            await asyncio.sleep(LOOK_S)
            found = await self._find(order) or found
        return found

    async def _withdraw(self, order: Order, found: Purchase, waits: Sequence[Job]) -> Purchase:
        reason = waits[0].reason if waits else "no reason is given"
        await self._door.cancel(str(found.jobs[0].id))
        raise self._full(order, reason)

    # --- giving back ------------------------------------------------------------------------------------

    async def delete(self, machine: MachineId) -> None:
        if not MACHINE_ID.fullmatch(machine):
            return
        place = listing.place_of(await self._purchases(), machine)
        if place is None:
            return
        bought, index = place
        job = bought.job_of(index)
        if job is None or listing.is_over(job):
            return
        self._asked.add(machine)
        if bought.token.is_array or self._is_last(bought):
            await self._door.cancel(job.handle)
        elif self._door.knows_steps and job.state in listing.LIVE:
            await self._door.cancel_step(job.handle, machine)

    def _is_last(self, bought: Purchase) -> bool:
        """Everybody else has ended, or was asked to."""
        token = bought.token
        return all(machine_id(token.deployment, token.order_id, index) in self._asked for index in token.living)

    # --- looking ------------------------------------------------------------------------------------------

    async def machines(self) -> Sequence[Machine]:
        bought = await self._purchases()
        known = {job.handle for one in bought for job in one.jobs}
        self._devices = {handle: found for handle, found in self._devices.items() if handle in known}
        listed = await self._machines(bought)
        self._asked &= {machine.id for machine in listed}
        return listed

    async def _machines(self, bought: Sequence[Purchase]) -> list[Machine]:
        await self._learn_devices(bought)
        return [machine for one in bought for machine in listing.machines(one, self._devices)]

    async def _learn_devices(self, bought: Sequence[Purchase]) -> None:
        live = [job for one in bought for job in one.jobs if job.nodes and not listing.is_over(job)]
        for job in live:
            if job.handle not in self._devices:
                self._devices[job.handle] = await self._door.devices(job)

    async def last_words(self, machine: MachineId) -> str | None:
        if not self._door.reads_files or not MACHINE_ID.fullmatch(machine):
            return None
        place = await self._place()
        paths = [f"{place}/machines/{machine}/agent.out"]
        found = listing.place_of(await self._purchases(), machine)
        if found is not None:
            paths.insert(0, f"{place}/orders/{found[0].order_id}/job.out")
        text = (await self._door.tail(paths, LAST_WORDS)).strip()
        return text[-LAST_WORDS:] or None

    async def health(self) -> Mapping[str, Any]:
        return await health.examined(self._settings, self._door)

    async def close(self) -> None:
        await self._door.close()

    async def _purchases(self) -> list[Purchase]:
        jobs = [job for job in await self._door.jobs() if job.name.startswith(NAME)]
        jobs += await self._recall.forgotten(jobs)
        return listing.purchases(jobs, self._deployment, queues=self._settings.queues)

    async def _root(self) -> str:
        if self._folder is None:
            self._folder = await self._door.folder(self._settings.workdir)
        return self._folder

    async def _place(self) -> str:
        return f"{await self._root()}/{self._deployment}"

    def _full(self, order: Order, said: str) -> NoCapacity:
        message = f"Slurm {self.region} cannot start {order.count} × {order.instance_type} now ({said})"
        return NoCapacity(message, provider=PROVIDER, region=self.region)

    def _rejected(self, said: str) -> OrderRejected:
        return OrderRejected(f"Slurm {self.region}: {said}", provider=PROVIDER, region=self.region)


def jobs_of(bought: Purchase) -> int:
    return bought.token.count if bought.token.is_array else 1
