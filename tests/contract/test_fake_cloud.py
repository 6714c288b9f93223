"""The cloud in memory that the simulations buy from keeps the contract of the real sellers."""

import random

import pytest

from crucible.model.ids import MachineId
from crucible.system import SystemClock
from crucible.testing.fake_cloud import FakeCloud
from crucible.testing.seller_contract import SellerContract, SellerWorld


class FakeWorld(SellerWorld):
    """All memory is in the one object, so a new process would find the same."""

    def __init__(self) -> None:
        self.cloud = FakeCloud(clock=SystemClock(), random=random.Random(1), gpus=4)

    def open(self) -> FakeCloud:
        return self.cloud

    def crash(self, machine: MachineId) -> None:
        self.cloud.end(machine, "reclaimed")


class TestFakeCloud(SellerContract):
    @pytest.fixture
    def world(self) -> FakeWorld:
        return FakeWorld()
