"""Which lease an agent's machine belongs to."""

from dataclasses import replace

import pytest

from crucible.engine.gateway import lease_for
from crucible.model.errors import Busy, NotFound
from crucible.model.ids import MachineId
from crucible.model.lease import LeasePhase
from making import a_lease

KNOWN = a_lease(0, active=True)
ASKED = a_lease(1)


def test_a_machine_that_its_seller_named_has_its_lease() -> None:
    assert lease_for([ASKED, KNOWN], MachineId("m0")) == KNOWN


def test_an_agent_that_is_faster_than_its_seller_asks_again_and_never_gets_the_lease_of_a_sibling() -> None:
    with pytest.raises(Busy):
        lease_for([KNOWN, ASKED], MachineId("m1"))


def test_a_machine_nobody_waits_for_is_told_so() -> None:
    for held in ([], [KNOWN], [replace(ASKED, phase=LeasePhase.CLOSED)]):
        with pytest.raises(NotFound):
            lease_for(held, MachineId("m1"))
