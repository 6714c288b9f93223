"""Purchases without an answer are repeated ever more slowly, and not all at the same moment."""

from itertools import pairwise

from crucible.engine.patience import FIRST_S, LONGEST_S, Patience
from crucible.model.ids import OrderId


def waits(order: str, tries: int, least_s: float = 0.0) -> list[float]:
    """From each try in vain to the next that is allowed."""
    patience, now, found = Patience(), 0.0, []
    for _ in range(tries):
        patience.grow(OrderId(order), now, least_s)
        began = now
        while not patience.is_over(OrderId(order), now):
            now += 0.01
        found.append(now - began)
    return found


def test_the_first_call_is_made_at_once() -> None:
    assert Patience().is_over(OrderId("o"), 0.0)


def test_each_wait_is_longer_up_to_a_limit() -> None:
    found = waits("o", 12)
    assert FIRST_S / 2 <= found[0] <= FIRST_S + 0.02
    assert all(later > earlier / 2 for earlier, later in pairwise(found))
    assert LONGEST_S / 2 <= found[-1] <= LONGEST_S + 0.02


def test_orders_that_failed_together_do_not_come_back_together() -> None:
    assert len({round(waits(f"order-{n}", 1)[0], 2) for n in range(50)}) > 10


def test_a_seller_that_names_a_time_is_given_it() -> None:
    assert waits("o", 1, least_s=5.0)[0] >= 5.0


def test_an_answer_ends_the_waiting() -> None:
    patience = Patience()
    patience.grow(OrderId("o"), 0.0)
    patience.forget(OrderId("o"))
    assert patience.is_over(OrderId("o"), 0.0)
