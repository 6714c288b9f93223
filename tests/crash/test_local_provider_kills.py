"""kill -9 of a server in the middle of a purchase on this computer: the next one completes it, and no machine has two
agents (F1, F2, F22)."""

import asyncio
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from crucible.model.ids import OrderId
from crucible.model.lease import MachineState
from crucible.providers.local import LocalProvider, processes
from crucible.providers.local.purchase import Purchases
from crucible.testing.seller_contract import BOOT, all_become, gone, order_of, scarce_offer, until
from local_world import AGENT, GPUS, LocalWorld

KILLS = 25

BUYER = """
import asyncio, sys
from pathlib import Path
from crucible.providers.local import LocalProvider
from crucible.testing.seller_contract import BOOT, order_of, scarce_offer
from dataclasses import replace

seller = LocalProvider(Path(sys.argv[1]), agent=Path(sys.argv[2]), gpus=int(sys.argv[3]))

async def buy():
    order = replace(order_of(await scarce_offer(seller), count=3), id=sys.argv[4])
    print("ready", flush=True)
    await seller.create(order, BOOT)
    print("bought", flush=True)
    sys.stdin.read()

asyncio.run(buy())
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LocalWorld]:
    agent = tmp_path / "agent.pyz"
    agent.write_text(AGENT)
    made = LocalWorld(tmp_path / "root", agent)
    yield made
    made.close()


def test_a_buyer_killed_at_any_moment_leaves_what_the_next_one_completes(world: LocalWorld) -> None:
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    for kill in range(KILLS):
        asyncio.run(purchase(world, chance, f"order-{seed}-{kill}"))
    print(f"{KILLS} kills, seed {seed}")


def test_who_only_lists_completes_a_purchase_that_died_before_its_agents_came(
    world: LocalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine in a listing counts as bought: nobody asks for it again."""

    async def story() -> None:
        seller = world.open()
        order = order_of(await scarce_offer(seller), count=2)
        with monkeypatch.context() as death:
            death.setattr(Purchases, "start", lambda *_: (_ for _ in ()).throw(Death))
            with pytest.raises(Death):
                await seller.create(order, BOOT)
        heir = world.open()
        await until(lambda: all_run(heir))
        assert len(await heir.machines()) == order.count

    asyncio.run(story())


async def all_run(seller: LocalProvider) -> bool:
    return all(machine.state is MachineState.RUNNING for machine in await seller.machines())


class Death(BaseException):
    """As if the buyer had been killed there: nothing handles it."""


async def purchase(world: LocalWorld, chance: random.Random, order_id: str) -> None:
    seller = world.open()
    order = replace(order_of(await scarce_offer(seller), count=3), id=OrderId(order_id))
    kill_buyer(world, order_id, chance.uniform(0, 0.02))
    await seller.create(order, BOOT)
    await all_become(seller, order, MachineState.RUNNING)
    machines = await seller.create(order, BOOT)
    assert len({device for machine in machines for device in machine.devices}) == 3, order_id
    for machine in machines:
        assert len((world.folder(machine.id) / "started").read_text().split()) == 1, order_id

    async def one_agent_each() -> bool:
        """A second one that was started in the moment of death finds the lock taken, and ends."""
        found = processes.carriers([machine.id for machine in machines])
        return all(len(pids) == 1 for pids in found.values())

    await until(one_agent_each)
    for machine in machines:
        await seller.delete(machine.id)
    await gone(seller, order)


def kill_buyer(world: LocalWorld, order_id: str, after_s: float) -> None:
    argv = [sys.executable, "-c", BUYER, str(world.root), str(world.agent), str(GPUS), order_id]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as buyer:
        assert buyer.stdout is not None and buyer.stdout.readline() == b"ready\n"
        time.sleep(after_s)  # the moment of death, not a wait for something
        buyer.send_signal(signal.SIGKILL)
