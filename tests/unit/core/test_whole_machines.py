"""A cloud sells whole machines and does not name their GPUs."""

from crucible.core import lease as leases
from crucible.core.launch import share
from crucible.model.ids import MachineId, OrderId
from crucible.model.lease import Machine, MachineState
from making import FACTS, NOW, POLICY, a_lease


def started_devices(gpus: int, named: tuple[str, ...]) -> tuple[str, ...]:
    machine = Machine(id=MachineId("m"), order_id=OrderId("o"), index=0, state=MachineState.RUNNING, devices=named)
    (event,) = leases.decide(a_lease(gpus=gpus), leases.Found(machine), NOW, POLICY, FACTS)
    return leases.evolve(a_lease(gpus=gpus), event).devices


def test_every_gpu_of_a_whole_machine_is_used() -> None:
    devices = started_devices(8, ())
    assert devices == ("0", "1", "2", "3", "4", "5", "6", "7")
    assert [share(devices, rank, 2) for rank in range(2)] == [("0", "1", "2", "3"), ("4", "5", "6", "7")]


def test_gpus_that_the_seller_names_are_those_and_no_others() -> None:
    assert started_devices(2, ("5", "6")) == ("5", "6")
    assert started_devices(0, ()) == ()
