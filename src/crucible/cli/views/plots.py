"""Trials drawn with characters: what they came to over one parameter, and parameter by parameter. Pure; where a
terminal has no other signs, plain ones."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from crucible.cli import wording
from crucible.cli.table import printable
from crucible.cli.views.tasks import shown
from crucible.client.trial_shapes import Sweep, Task

HEIGHT = 16
LEAST_WIDTH = 30
BAR = 24
# More different values than this are put into so many groups.
GROUPS = 8
# From here on equal steps are factors, not differences.
WIDE = 100.0


@dataclass(frozen=True, slots=True)
class Signs:
    trial: str
    stopped: str
    best: str
    bar: str
    axis: str


FINE = Signs("•", "·", "◆", "█", "│")
PLAIN = Signs("o", ".", "@", "#", "|")


@dataclass(frozen=True, slots=True)
class Scale:
    low: float
    high: float
    is_log: bool

    def at(self, value: float) -> float:
        """0 at the low end, 1 at the high one."""
        low, high, here = (self._on(each) for each in (self.low, self.high, value))
        return 0.5 if high == low else (here - low) / (high - low)

    def value(self, share: float) -> float:
        low, high = self._on(self.low), self._on(self.high)
        here = low + (high - low) * share
        return math.exp(here) if self.is_log else here

    def _on(self, value: float) -> float:
        return math.log(value) if self.is_log else value


def scale_of(values: Sequence[float]) -> Scale:
    low, high = min(values), max(values)
    return Scale(low, high, low > 0 and high / low >= WIDE)


# --- over one parameter -----------------------------------------------------------------------------------------


def scatter(sweep: Sweep, trials: Sequence[Task], name: str, width: int, signs: Signs) -> list[str]:
    """The value of each trial over the parameter `name`. `trials` have a value, the best first."""
    metric = sweep["objective"]["metric"] if sweep["objective"] else "value"
    values = [one["value"] or 0.0 for one in trials]
    places, names = _places([(one["params"] or {}).get(name) for one in trials])
    down, across = scale_of(values), scale_of(places)
    labels = [wording.number(down.value(share)) for share in (1.0, 0.5, 0.0)]
    margin = max(map(len, labels))
    columns = max(LEAST_WIDTH, width - margin - 3)
    field = [[" "] * columns for _ in range(HEIGHT)]
    for one, x, y in reversed(list(zip(trials, places, values, strict=True))):  # the best is drawn last
        row = round((1 - down.at(y)) * (HEIGHT - 1))
        field[row][round(across.at(x) * (columns - 1))] = _sign(one, one is trials[0], signs)
    lines = [f"{_titled(metric, down)} over {_titled(name, across)}"]
    for number, drawn in enumerate(field):
        label = {0: labels[0], (HEIGHT - 1) // 2: labels[1], HEIGHT - 1: labels[2]}.get(number, "")
        lines.append(f"{label:>{margin}} {signs.axis}{''.join(drawn)}".rstrip())
    left, right = (names[0], names[-1]) if names else (wording.number(across.low), wording.number(across.high))
    room = max(1, columns - len(left) - len(right))
    lines.append(" " * (margin + 2) + printable(left) + " " * room + printable(right))
    lines.append(legend(trials, signs))
    return lines


def _titled(name: str, scale: Scale) -> str:
    return f"{printable(name)} (log)" if scale.is_log else printable(name)


def legend(trials: Sequence[Task], signs: Signs) -> str:
    said = [f"{signs.best} best: trial {trials[0]['index']}", f"{signs.trial} completed"]
    if any(one["verdict"] == "pruned" for one in trials):
        said.append(f"{signs.stopped} stopped early")
    return "  ".join(said)


def _sign(trial: Task, is_best: bool, signs: Signs) -> str:
    if is_best:
        return signs.best
    return signs.stopped if trial["verdict"] == "pruned" else signs.trial


def _places(values: Sequence[Any]) -> tuple[list[float], list[str]]:
    """Numbers lie where they are; words, and whatever is mixed with them, one after another, with their names."""
    if all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in values):
        return [float(one) for one in values], []
    names = sorted({shown(one) for one in values})
    return [float(names.index(shown(one))) for one in values], names


# --- parameter by parameter ---------------------------------------------------------------------------------------


def by_parameter(sweep: Sweep, trials: Sequence[Task], signs: Signs) -> list[str]:
    """For each parameter its values, or groups of them: how many trials, the best of them and the one in the middle."""
    metric = sweep["objective"]["metric"] if sweep["objective"] else "value"
    is_less_better = sweep["objective"] is None or sweep["objective"]["goal"] == "minimize"
    lines: list[str] = []
    for name in sweep["parameters"]:
        lines += [""] if lines else []
        lines.append(f"{printable(metric)} by {printable(name)}")
        lines += _groups_of(trials, name, is_less_better, signs)
    return lines


def _groups_of(trials: Sequence[Task], name: str, is_less_better: bool, signs: Signs) -> list[str]:
    groups = grouped([((one["params"] or {}).get(name), one["value"] or 0.0) for one in trials])
    middles = [median(values) for _, values in groups]
    reach = scale_of(middles)
    pick = min if is_less_better else max
    titles = [printable(title) for title, _ in groups]
    bests = [wording.number(pick(values)) for _, values in groups]
    shares = [wording.number(middle) for middle in middles]
    wide, best_wide, middle_wide = (max(map(len, texts)) for texts in (titles, bests, shares))
    count_wide = max(len(str(len(values))) for _, values in groups)
    lines = []
    for (_, values), title, best, middle, text in zip(groups, titles, bests, middles, shares, strict=True):
        bar = signs.bar * (1 + round(reach.at(middle) * (BAR - 1)))
        many = f"{len(values):>{count_wide}}"
        lines.append(f"  {title:<{wide}}  {many} x  best {best:>{best_wide}}  middle {text:>{middle_wide}}  {bar}")
    return lines


def grouped(found: Sequence[tuple[Any, float]]) -> list[tuple[str, list[float]]]:
    """Values of trials by the value of a parameter; of many different numbers by stretches of them."""
    places, names = _places([given for given, _ in found])
    different = sorted(set(places))
    if names or len(different) <= GROUPS:
        return [
            (
                names[int(place)] if names else wording.number(place),
                [value for (_, value), here in zip(found, places, strict=True) if here == place],
            )
            for place in different
        ]
    reach = scale_of(places)
    groups: list[tuple[str, list[float]]] = []
    for number in range(GROUPS):
        low, high = reach.value(number / GROUPS), reach.value((number + 1) / GROUPS)
        mine = [
            value
            for (_, value), here in zip(found, places, strict=True)
            if min(GROUPS - 1, int(reach.at(here) * GROUPS)) == number
        ]
        if mine:
            groups.append((f"{low:.3g} to {high:.3g}", mine))
    return groups
