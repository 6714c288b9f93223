"""What a failed program said last, without what its launcher said after it: a person wants the program's own words.
Pure."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List

# torchrun ends with a traceback of itself and a summary, some 40 lines in all.
LOOK_BACK_LINES = 120
_TRACEBACK = "Traceback (most recent call last):"
_SUMMARY = "ChildFailedError:"
_TORCH_LOG = re.compile(r"[IWE][0-9]{4} .* torch/distributed/")


def telling(lines: List[str]) -> List[str]:
    """Those before torchrun's account of the failure; all, if there are none."""
    at = next((number for number in reversed(range(len(lines))) if _SUMMARY in lines[number]), None)
    starts = [number for number, line in enumerate(lines[:at]) if line == _TRACEBACK] if at is not None else []
    kept = [line for line in (lines[: starts[-1]] if starts else lines) if not _TORCH_LOG.match(line)]
    return kept or lines
