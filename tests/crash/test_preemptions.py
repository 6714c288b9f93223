"""Spot machines are taken at random moments: jobs go on from what was committed, once, and the books are exact."""

import random
from pathlib import Path

from crash.preemptions import run

TAKEN = 12  # `make preempt N=…` for more


def test_machines_taken_at_any_moment_cost_no_committed_step_and_leave_one_copy(tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)
    print(f"again: make preempt N={TAKEN} SEED={seed}")
    done, verdict = run(tmp_path / "world", TAKEN, seed, None)
    print(done, verdict.json())
    assert done.too_early == [] and done.corrupt == []
    verdict.assert_good()
    assert done.taken == TAKEN and done.resumed > 0
