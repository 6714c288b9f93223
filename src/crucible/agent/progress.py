"""Progress of programs that do not import `crucible.train`: a pattern of the user's, searched in the lines they print.

The pattern is not ours and may need for ever on some line. The search of each batch has a time limit, after which the
pattern is given up; this works in the main thread only, where signals arrive."""

from __future__ import annotations

import re
import signal

from .events import progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, NoReturn, Optional

_MAX_CHARS = 2000
_LIMIT_S = 0.5
_LARGEST_DIGITS = 18


class Pattern:
    def __init__(self, text: str, total: Optional[int]) -> None:
        self._total = total
        self.found: Optional[Dict[str, Any]] = None
        self.problem: Optional[str] = None
        self._regex: Optional[re.Pattern[str]] = None
        try:
            self._regex = re.compile(text)
        except (re.error, RecursionError, OverflowError) as error:
            self.problem = "the progress pattern is not a regular expression: %s" % error

    def search(self, lines: List[str]) -> None:
        """Sets `found` to the last progress that `lines` tell of, or gives up with a `problem`."""
        if self._regex is None:
            return
        try:
            self._search_in_time(self._regex, lines)
        except _TooSlow:
            self._regex = None
            self.problem = "the progress pattern took longer than %g s and is no longer used" % _LIMIT_S

    def _search_in_time(self, regex: re.Pattern[str], lines: List[str]) -> None:
        previous = signal.signal(signal.SIGALRM, _interrupt)
        signal.setitimer(signal.ITIMER_REAL, _LIMIT_S)
        try:
            self._search(regex, lines)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)

    def _search(self, regex: re.Pattern[str], lines: List[str]) -> None:
        for line in reversed(lines):
            match = regex.search(line[:_MAX_CHARS])
            step = None if match is None else _step(match)
            if step is not None:
                self.found = progress(step, self._total, None)
                return


def _step(match: re.Match[str]) -> Optional[int]:
    """The group `step`, or the first group."""
    groups = match.groupdict()
    text = groups["step"] if "step" in groups else match.group(1) if match.re.groups else None
    if text is None or not text.isascii() or not text.isdigit() or len(text) > _LARGEST_DIGITS:
        return None
    return int(text)


class _TooSlow(Exception):
    pass


def _interrupt(*_: object) -> NoReturn:
    raise _TooSlow
