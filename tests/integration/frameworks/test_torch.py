"""PyTorch for real, on CPUs: a script that knows nothing of Crucible, over processes and over machines."""

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from frameworks import EXAMPLES, Shop, python_of, told

TORCH = python_of("torch")
DDP: dict[str, Any] = {"framework": "pytorch_ddp", "python": TORCH}
TWO_NODES = {"resources": {"nodes": 2}}
TWO_PROCESSES = {"execution": {"processes_per_node": 2}}
# Rank 1 breaks; rank 0 would go on for ever.
BREAKS = """
import os, sys, time
if os.environ["RANK"] == "1":
    sys.exit("the disk of rank 1 is broken")
time.sleep(600)
"""


@pytest.fixture(scope="module")
def undisturbed(market: Shop) -> str:
    """The weights that one node with two processes ends with."""
    lines = market.submit(name="calm", entrypoint="ddp.py", **DDP, **TWO_PROCESSES).finish()
    assert sorted(line for line in lines if "begins" in line) == [
        "rank 0 of 2 begins after step 0",
        "rank 1 of 2 begins after step 0",
    ]
    return told(lines, "final weights")


def test_two_machines_end_with_the_weights_of_two_processes_and_so_does_the_launch_script_by_hand(
    market: Shop, undisturbed: str, tmp_path: Path
) -> None:
    running = market.submit(name="two-nodes", entrypoint="ddp.py", **DDP, **TWO_NODES)
    assert told(running.finish(), "final weights") == undisturbed
    script = tmp_path / "start.sh"
    script.write_text(market.run("launch-script", "two-nodes"))
    assert told(by_hand(market, script, tmp_path / "keep"), "final weights") == undisturbed


def by_hand(market: Shop, script: Path, keep: Path) -> list[str]:
    """What rank 0 says."""
    ranks = [
        subprocess.Popen(
            ["bash", str(script), str(rank)],
            cwd=EXAMPLES,
            env={**market.env, "CRUCIBLE_KEEP": str(keep)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in (1, 0)
    ]
    outputs = [rank.communicate(timeout=120)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], outputs
    return outputs[1].splitlines()


@pytest.mark.parametrize(("name", "where"), [("bare-one", TWO_PROCESSES), ("bare-two", TWO_NODES)])
def test_a_bare_torchrun_is_distributed_by_itself(market: Shop, undisturbed: str, name: str, where: Any) -> None:
    lines = market.submit(name=name, command="torchrun ddp.py --steps 60", **DDP, **where).finish()
    assert told(lines, "final weights") == undisturbed


def test_flags_of_the_user_win(market: Shop) -> None:
    command = "torchrun --standalone --nproc-per-node 1 ddp.py --steps 2"
    lines = market.submit(name="own-flags", command=command, **DDP, **TWO_PROCESSES).finish()
    assert [line for line in lines if "begins" in line] == ["rank 0 of 1 begins after step 0"]


def test_when_one_rank_breaks_all_stop_and_its_words_are_the_reason(market: Shop, tmp_path: Path) -> None:
    (tmp_path / "breaks.py").write_text(BREAKS)
    began = time.monotonic()
    running = market.submit(name="breaks", entrypoint="breaks.py", **DDP, **TWO_NODES, code=str(tmp_path))
    with pytest.raises(AssertionError, match="the disk of rank 1 is broken"):
        running.finish()
    assert time.monotonic() - began < 60
    view, (attempt,) = running.view(), running.attempts()
    assert view["reason"].startswith("rank 1 exited with code 1; last lines: the disk of rank 1 is broken")
    ends = [rank["ended_at"] for rank in attempt["ranks"]]
    assert len(ends) == 2 and seconds_between(*ends) < 10


def seconds_between(first: str, second: str) -> float:
    from datetime import datetime

    return abs((datetime.fromisoformat(first) - datetime.fromisoformat(second)).total_seconds())
