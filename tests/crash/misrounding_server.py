"""A server whose books are wrong by less than anybody would see: what a stretch costs is rounded down. The verdict must
find it."""

import sys

from crucible import main
from crucible.core import ledger
from crucible.model.ledger import Rate
from crucible.model.units import MicroUsd


def rounded_down(rate: Rate, seconds: int) -> MicroUsd:
    return MicroUsd(rate.amount * seconds // rate.per_s)


if __name__ == "__main__":
    ledger.amount = rounded_down
    sys.exit(main.main())
