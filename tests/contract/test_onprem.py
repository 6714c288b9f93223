"""Own hosts as a seller (E1): real sshds, the real agent, and a fake nvidia-smi at the process boundary."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from crucible.agent import bundle
from crucible.model.errors import (
    Conflict,
    HostKeyRefused,
    InvalidRequest,
    LoginRefused,
    NoCapacity,
    PlatformError,
    ProviderError,
    Unreachable,
)
from crucible.model.host import HostState, HostUse
from crucible.model.ids import MachineId, OfferId, UserId
from crucible.model.lease import MachineState, Order
from crucible.model.offer import Offer
from crucible.model.units import NOTHING
from crucible.providers.onprem.stock import TARGET
from crucible.testing.seller_abilities import ExaminesContract, PreparesContract, RemembersContract
from crucible.testing.seller_contract import (
    BOOT,
    SellerContract,
    all_become,
    listed_of,
    order_of,
    prepared,
    small_offer,
)
from hosts_world import HostsWorld, make_key
from onprem_world import Elsewhere, Gpu, OnpremWorld, fake_smi, gpus_of, until

OFFER = Offer(
    id=OfferId("onprem/default/cpu/0"),
    target=TARGET,
    instance_type="cpu",
    gpu=None,
    gpus=0,
    gpu_memory_gib=0,
    cpus=1,
    memory_gib=1,
    price_per_hour=NOTHING,
)


@pytest.fixture(scope="session")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("agent") / "crucible-agent.pyz"
    bundle.build(path)
    return path


@pytest.fixture
def bare(hosts: HostsWorld, agent: Path) -> Iterator[OnpremWorld]:
    """Nothing is registered yet."""
    made = OnpremWorld(hosts, agent)
    yield made
    made.close()


class TestOnprem(SellerContract, PreparesContract, ExaminesContract, RemembersContract):
    @pytest.fixture
    def world(self, bare: OnpremWorld) -> OnpremWorld:
        for host in bare.hosts.names:
            fake_smi(bare.hosts, host, gpus_of(host, 1))
        bare.register(*bare.hosts.names)
        return bare


# --- what a host has ------------------------------------------------------------------------------------


def test_gpus_are_found_and_offered_by_size(bare: OnpremWorld) -> None:
    fake_smi(bare.hosts, "h1", gpus_of("h1", 8))
    (host,) = bare.register("h1", zone="rack-1")
    assert [gpu["uuid"] for gpu in host.facts["gpus"]] == [f"GPU-h1-{index}" for index in range(8)]
    offers = {offer.id: offer for offer in bare.run(bare.open().inner.offers())}
    sizes = {f"onprem/rack-1/A100-80/{size}" for size in range(1, 9)}
    assert set(offers) == {"onprem/rack-1/cpu/0", *sizes}
    whole = offers[OfferId("onprem/rack-1/A100-80/8")]
    assert (whole.gpu, whole.gpus, whole.gpu_memory_gib, whole.zone) == ("A100", 8, 80, "rack-1")
    assert (whole.free_machines, whole.all_machines, whole.price_per_hour, whole.stock) == (1, 1, 0, None)


def test_a_gpu_that_is_cut_into_parts_is_given_out_by_its_parts(bare: OnpremWorld) -> None:
    parts = [("3g.40gb", "MIG-a"), ("3g.40gb", "MIG-b")]
    fake_smi(bare.hosts, "h1", [*gpus_of("h1", 1, mig=parts), Gpu(1, "GPU-h1-1")])
    bare.register("h1", use=HostUse.SHARED)
    ids = {offer.id for offer in bare.run(bare.open().inner.offers())}
    assert ids == {
        "onprem/default/cpu/0",
        "onprem/default/A100-80/1",
        "onprem/default/A100-MIG-3g.40gb-40/1",
        "onprem/default/A100-MIG-3g.40gb-40/2",
    }


@pytest.mark.parametrize(
    ("habit", "reason"),
    [
        ({}, "lists no GPU"),
        ({"hangs_s": 60}, "the driver may hang"),
        ({"fails": "couldn't communicate with the NVIDIA driver"}, "ended with code 9: couldn't communicate"),
    ],
)
def test_a_driver_in_trouble_is_a_fact_and_the_host_still_takes_other_work(
    bare: OnpremWorld, habit: dict[str, Any], reason: str
) -> None:
    fake_smi(bare.hosts, "h1", **habit)
    (host,) = bare.register("h1")
    assert host.facts["gpus"] == [] and reason in host.facts["gpus_reason"]
    assert [offer.id for offer in bare.run(bare.open().inner.offers())] == ["onprem/default/cpu/0"]


def test_without_a_driver_the_rest_is_found(bare: OnpremWorld) -> None:
    (host,) = bare.register("h1")
    facts = host.facts
    assert facts["gpus"] == [] and facts["gpus_reason"] == "nvidia-smi is not installed"
    assert facts["hostname"] == "h1" and facts["address"] == bare.hosts.address("h1") and facts["user"] == "root"
    assert facts["cpus"] >= 1 and facts["memory_bytes"] > 0 and facts["disk_free_bytes"] > 0
    assert facts["python"].startswith("3.") and isinstance(facts["runtimes"], dict)


# --- bad input: clear errors, nothing half registered ---------------------------------------------------


def refused(bare: OnpremWorld, kind: type[PlatformError], **changes: Any) -> PlatformError:
    with pytest.raises(kind) as caught:
        bare.run(bare.desk().add([bare.new("h2"), bare.new("h1", **changes)], UserId("u1")))  # type: ignore[arg-type]
    assert bare.run(bare.book.hosts()) == ()  # type: ignore[arg-type]
    assert "h1" in caught.value.message
    return caught.value


def test_a_wrong_key_registers_nothing(bare: OnpremWorld, tmp_path: Path) -> None:
    make_key(tmp_path / "wrong")
    assert "authorized_keys" in refused(bare, LoginRefused, identity_file=str(tmp_path / "wrong")).message


def test_a_host_that_shows_another_key_than_was_said_registers_nothing(bare: OnpremWorld) -> None:
    error = refused(bare, HostKeyRefused, fingerprint="SHA256:" + "A" * 43)
    assert error.details["fingerprint"].startswith("SHA256:") and error.details["expected"] == "SHA256:" + "A" * 43


def test_a_host_without_python_registers_nothing(bare: OnpremWorld) -> None:
    assert "install Python" in refused(bare, InvalidRequest, python="/opt/no/python3").message


def test_a_host_with_a_full_disk_registers_nothing(bare: OnpremWorld) -> None:
    bare.hosts.run("h1", ["mkdir", "-p", "/root/.crucible"])
    bare.hosts.run("h1", ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/root/.crucible"])
    try:
        assert "No space left" in refused(bare, InvalidRequest).message
    finally:
        bare.hosts.run("h1", ["umount", "/root/.crucible"])


def test_a_host_that_nobody_answers_for_registers_nothing(bare: OnpremWorld) -> None:
    refused(bare, Unreachable, port=23)


def test_one_computer_under_two_names_is_refused(bare: OnpremWorld) -> None:
    bare.register("h1")
    twin = replace(bare.new("h1"), name="twin")
    with pytest.raises(Conflict, match="twin is the same computer as h1"):
        bare.run(bare.desk().add([twin], UserId("u1")))  # type: ignore[arg-type]


def test_a_host_whose_key_changed_is_not_used_and_says_so(bare: OnpremWorld, tmp_path: Path) -> None:
    (host,) = bare.register("h1")
    make_key(tmp_path / "other")
    other = " ".join((tmp_path / "other.pub").read_text().split()[:2])
    bare.run(bare.book.save_host(replace(host, host_key=other)))  # type: ignore[arg-type]
    (view,) = bare.run(bare.desk().views())  # type: ignore[arg-type]
    assert "is expected" in (view.problem or "")
    assert [offer.free_machines for offer in bare.run(bare.open().inner.offers())] == [0]


# --- hosts that fail ----------------------------------------------------------------------------------------


def test_a_dead_host_delays_nobody_and_its_machines_are_still_listed(bare: OnpremWorld) -> None:
    bare.register("h1", "h2")
    seller = bare.open()

    async def bought() -> Order:
        order = await prepared(seller, order_of(await small_offer(seller), count=2))
        await seller.create(order, BOOT)
        await all_become(seller, order, MachineState.RUNNING)
        return order

    order = asyncio.run(bought())
    bare.hosts.cut("h2")
    first = asyncio.run(listed_of(seller, order))
    began = time.monotonic()
    again = asyncio.run(listed_of(seller, order))
    assert time.monotonic() - began < 2, "only the first look waits"
    anew = asyncio.run(listed_of(bare.open(), order))
    for seen in (first, again, anew):
        assert [machine.state for machine in seen] == [MachineState.RUNNING] * 2
    asyncio.run(seller.delete(first[0].id))
    until(lambda: asyncio.run(small_offer(seller)).free_machines == 1)
    bare.hosts.heal("h2")
    until(lambda: asyncio.run(deleted(seller, first[1].id)))
    until(lambda: asyncio.run(small_offer(seller)).free_machines == 2)


@pytest.mark.parametrize("count", [1, 2])
def test_a_host_that_dies_before_anything_was_started_there_has_no_room(bare: OnpremWorld, count: int) -> None:
    """The order is refused at once, so that the next place is tried; nobody waits until its time is up."""
    bare.register(*["h2", "h1"][:count])
    seller = bare.open()
    order = asyncio.run(prepared(seller, order_of(asyncio.run(small_offer(seller)), count=count)))
    bare.hosts.kill("h2")
    with pytest.raises(NoCapacity, match="host h2"):
        asyncio.run(seller.create(order, BOOT))
    bare.hosts.start("h2")
    until(lambda: asyncio.run(small_offer(seller)).free_machines == count)
    assert asyncio.run(listed_of(seller, order)) == []


async def deleted(seller: Elsewhere, machine: MachineId) -> bool:
    try:
        await seller.delete(machine)
    except ProviderError:
        return False
    return True


def test_three_failed_starts_in_a_row_are_a_quarantine_that_a_check_ends(bare: OnpremWorld) -> None:
    (host,) = bare.register("h1")
    seller = bare.open()
    broken = bare.run(bare.book.save_host(replace(host, python="/opt/no/python3")))  # type: ignore[arg-type]

    async def fail() -> None:
        body = {"request": {"machines": [{"index": 0, "host": "h1", "devices": []}]}}
        with pytest.raises(ProviderError):
            await seller.create(replace(order_of(OFFER), body=body), BOOT)

    for _ in range(3):
        asyncio.run(fail())
    (now,) = bare.run(bare.book.hosts())  # type: ignore[arg-type]
    assert now.state is HostState.QUARANTINED and "3 starts in a row failed" in (now.reason or "")
    assert broken.version < now.version
    bare.run(bare.book.save_host(replace(now, python=None)))  # type: ignore[arg-type]
    assert [offer.free_machines for offer in asyncio.run(seller.offers())] == [0]
    view = bare.run(bare.desk().check("h1"))
    assert view.host.state is HostState.READY and view.host.failures == 0
    assert [offer.free_machines for offer in asyncio.run(seller.offers())] == [1]


# --- sharing ------------------------------------------------------------------------------------------------


def test_a_shared_host_takes_as_many_machines_as_it_has_gpus(bare: OnpremWorld) -> None:
    fake_smi(bare.hosts, "h1", gpus_of("h1", 2))
    bare.register("h1", use=HostUse.SHARED)
    seller = bare.open()

    async def scenario() -> None:
        offer = next(one for one in await seller.offers() if one.gpus == 1)
        assert offer.free_machines == 1
        devices = []
        for _ in range(2):
            (machine,) = await seller.create(await prepared(seller, order_of(offer)), BOOT)
            devices += machine.devices
        assert sorted(devices) == ["GPU-h1-0", "GPU-h1-1"]
        with pytest.raises(NoCapacity):
            await seller.create(await prepared(seller, order_of(offer)), BOOT)

    asyncio.run(scenario())


def test_an_exclusive_host_takes_one_machine_however_small(bare: OnpremWorld) -> None:
    fake_smi(bare.hosts, "h1", gpus_of("h1", 2))
    bare.register("h1")
    seller = bare.open()

    async def scenario() -> None:
        await seller.create(await prepared(seller, order_of(await small_offer(seller))), BOOT)
        assert all(offer.free_machines == 0 for offer in await seller.offers())

    asyncio.run(scenario())


def test_a_gang_stands_on_different_hosts_of_one_zone(bare: OnpremWorld) -> None:
    bare.register("h1", "h2", zone="left")
    bare.register("h3", zone="right")
    seller = bare.open()

    async def scenario() -> None:
        offers = {offer.zone: offer for offer in await seller.offers()}
        assert (offers["left"].free_machines, offers["right"].free_machines) == (2, 1)
        request = (await seller.prepare(order_of(offers["left"], count=2)))["machines"]
        assert [one["host"] for one in request] == ["h1", "h2"]
        assert (await seller.prepare(order_of(offers["right"], count=2)))["machines"] == []

    asyncio.run(scenario())


# --- the way back -------------------------------------------------------------------------------------------


class Healthy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/healthz" else 404)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""


def route(world: OnpremWorld) -> str:
    (host,) = world.register("h1")
    fleet = world.fleet()

    async def asked() -> str:
        return await fleet.kept(host).route()

    return world.run(asked())


def test_a_server_that_a_host_can_reach_is_asked_directly(bare: OnpremWorld) -> None:
    with ThreadingHTTPServer((bare.hosts.gateway, 0), Healthy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        bare.url = f"http://{bare.hosts.gateway}:{server.server_port}"
        assert route(bare) == bare.url
        told = bare.hosts.run("h1", ["cat", f"{bare.home('h1')}/server.json"])
        assert json.loads(told)["url"] == bare.url
        server.shutdown()


def test_a_server_that_a_host_cannot_reach_comes_through_the_connection(bare: OnpremWorld) -> None:
    bare.url = f"http://{bare.hosts.gateway}:1"
    assert route(bare).startswith("http://127.0.0.1:")
