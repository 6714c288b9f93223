"""Money and sizes. Money is an integer of micro-dollars everywhere; floats appear only where a person reads."""

from decimal import ROUND_HALF_EVEN, Decimal
from typing import NewType

MicroUsd = NewType("MicroUsd", int)

MICRO = 1_000_000
NOTHING = MicroUsd(0)
GIB = 1024**3


def usd(amount: MicroUsd) -> float:
    """Dollars for display and JSON; never computed with."""
    return amount / MICRO


def micro_usd(dollars: str | int | float | Decimal) -> MicroUsd:
    """The nearest micro-dollar; half goes to even, so that sums of rounded parts do not drift."""
    exact = Decimal(str(dollars)) * MICRO
    return MicroUsd(int(exact.to_integral_value(rounding=ROUND_HALF_EVEN)))
