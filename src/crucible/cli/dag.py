"""Boxes with lines between them: who comes after whom, from top to bottom, in the cells of a terminal. Pure; knows
nothing of workflows. A drawing that would not fit is not made."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from crucible.model.steps import Needs, layers

GAP = 2  # between boxes
SWEEPS = 4  # over all layers, to put what belongs together near each other


class Line(NamedTuple):
    text: str
    paint: Callable[[str], str] = str


class Node(NamedTuple):
    """A box, or where nothing but a line passes through a layer, the box that the line comes from."""

    name: str
    layer: int


@dataclass(frozen=True, slots=True)
class Glyphs:
    """What leads up, down, left and right from a cell, as a character."""

    joints: Mapping[str, str]
    arrow: str

    def joint(self, ways: Iterable[str]) -> str:
        return self.joints["".join(way for way in "udlr" if way in ways)]


FINE = Glyphs(
    {
        "u": "│", "d": "│", "ud": "│", "l": "─", "r": "─", "lr": "─", "dr": "┌", "dl": "┐", "ur": "└", "ul": "┘",
        "udr": "├", "udl": "┤", "dlr": "┬", "ulr": "┴", "udlr": "┼",
    },
    "▼",
)  # fmt: skip
PLAIN = Glyphs(
    {ways: "|" if set(ways) <= set("ud") else "-" if set(ways) <= set("lr") else "+" for ways in FINE.joints}, "v"
)


def draw(boxes: Mapping[str, Sequence[Line]], needs: Needs, width: int | None, glyphs: Glyphs) -> list[str] | None:
    """The lines of the drawing; None if it takes more than `width` cells."""
    chart = Chart.of(boxes, needs)
    if width is not None and chart.width > width:
        return None
    rows: list[str] = []
    for number, layer in enumerate(chart.layers):
        rows += box_rows(chart, layer, glyphs)
        if number + 1 < len(chart.layers):
            rows += channel_rows(chart, number, glyphs)
    return rows


# --- where everything is ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class Chart:
    boxes: Mapping[str, Sequence[Line]]
    layers: list[list[Node]]
    edges: list[dict[Node, list[Node]]]  # from each layer to the next
    homes: Mapping[str, int]  # the layer of each box
    left: dict[Node, int] = field(default_factory=dict)

    @classmethod
    def of(cls, boxes: Mapping[str, Sequence[Line]], needs: Needs) -> "Chart":
        found, edges = _nodes(needs)
        chart = cls(boxes, found, edges, _homes(found))
        chart.arrange()
        return chart

    @property
    def width(self) -> int:
        return max(self.left[node] + self.size(node) for layer in self.layers for node in layer)

    def size(self, node: Node) -> int:
        return max(len(line.text) for line in self.boxes[node.name]) + 4 if self.is_box(node) else 1

    def is_box(self, node: Node) -> bool:
        return self.homes[node.name] == node.layer

    def port(self, node: Node) -> int:
        """The column at which lines reach it."""
        return self.left[node] + self.size(node) // 2

    def arrange(self) -> None:
        for sweep in range(SWEEPS):
            numbers = range(1, len(self.layers)) if sweep % 2 == 0 else range(len(self.layers) - 2, -1, -1)
            for number in numbers:
                self._sort(number, self._neighbours(number, -1 if sweep % 2 == 0 else 1))
        for sweep in (1, -1, 1):
            for number in range(len(self.layers))[::sweep]:
                self._place(number, self._neighbours(number, -sweep))
        least = min(self.left.values())
        self.left = {node: at - least for node, at in self.left.items()}

    def _neighbours(self, number: int, side: int) -> Mapping[Node, list[Node]]:
        """Of each node, those that it is joined to in the layer above (-1) or below (1)."""
        if side == 1:
            return self.edges[number] if number < len(self.edges) else {}
        found: dict[Node, list[Node]] = {}
        for upper, lowers in self.edges[number - 1].items() if number else ():
            for lower in lowers:
                found.setdefault(lower, []).append(upper)
        return found

    def _sort(self, number: int, near: Mapping[Node, list[Node]]) -> None:
        at = {node: i for layer in self.layers for i, node in enumerate(layer)}
        layer = self.layers[number]
        wish = {node: _mean([at[one] for one in near.get(node, [node])]) for node in layer}
        layer.sort(key=lambda node: (wish[node], at[node]))

    def _place(self, number: int, near: Mapping[Node, list[Node]]) -> None:
        """Each below, or above, the middle of what it is joined to, as far as the others leave room."""
        layer, end = self.layers[number], -(10**9)
        moved: dict[Node, int] = {}
        for node in layer:
            ports = [self.port(one) for one in near.get(node, ()) if one in self.left]
            wish = round(_mean(ports)) - self.size(node) // 2 if ports else self.left.get(node, max(end, 0))
            moved[node] = max(wish, end)
            end = moved[node] + self.size(node) + GAP
        self.left |= moved


def _nodes(needs: Needs) -> tuple[list[list[Node]], list[dict[Node, list[Node]]]]:
    """Boxes by their layers, and the lines that pass through layers on their way to a later one."""
    found = [[Node(name, number) for name in names] for number, names in enumerate(layers(needs))]
    at = _homes(found)
    edges: list[dict[Node, list[Node]]] = [{} for _ in found]
    for name, before in needs.items():
        for need in before:
            for number in range(at[need], at[name]):
                upper = Node(need, number)
                lower = Node(name, number + 1) if number + 1 == at[name] else Node(need, number + 1)
                if lower not in found[number + 1]:
                    found[number + 1].append(lower)
                if lower not in edges[number].setdefault(upper, []):
                    edges[number][upper].append(lower)
    return found, edges


def _homes(found: Sequence[Sequence[Node]]) -> dict[str, int]:
    """A box comes before the lines that leave it."""
    at: dict[str, int] = {}
    for layer in found:
        for node in layer:
            at.setdefault(node.name, node.layer)
    return at


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values)


# --- boxes --------------------------------------------------------------------------------------------------------


def box_rows(chart: Chart, layer: Sequence[Node], glyphs: Glyphs) -> list[str]:
    height = max(len(chart.boxes[node.name]) for node in layer if chart.is_box(node))
    rows = []
    for row in range(height + 2):
        text, at = "", 0
        for node in sorted(layer, key=lambda one: chart.left[one]):
            shown, size = _box_row(chart, node, row, height, glyphs)
            text += " " * (chart.left[node] - at) + shown
            at = chart.left[node] + size
        rows.append(text.rstrip())
    return rows


def _box_row(chart: Chart, node: Node, row: int, height: int, glyphs: Glyphs) -> tuple[str, int]:
    """A row of a box and the cells that it takes: colours take none."""
    size, port = chart.size(node), chart.size(node) // 2
    if not chart.is_box(node):
        return glyphs.joint("ud"), 1
    if 0 < row <= height:
        lines = chart.boxes[node.name]
        line = lines[row - 1] if row <= len(lines) else Line("")
        wall, room = glyphs.joint("ud"), " " * (size - 4 - len(line.text))
        return f"{wall} {line.paint(line.text) if line.text else ''}{room} {wall}", size
    is_top = row == 0
    edge = list(glyphs.joint("lr") * size)
    edge[0], edge[-1] = glyphs.joint("dr" if is_top else "ur"), glyphs.joint("dl" if is_top else "ul")
    if is_top and any(node in lowers for edges in chart.edges for lowers in edges.values()):
        edge[port] = glyphs.arrow
    if not is_top and any(node in edges for edges in chart.edges):
        edge[port] = glyphs.joint("dlr")
    return "".join(edge), size


# --- the lines between two layers -----------------------------------------------------------------------------------


def channel_rows(chart: Chart, number: int, glyphs: Glyphs) -> list[str]:
    nets = {
        chart.port(upper): sorted(chart.port(lower) for lower in lowers)
        for upper, lowers in chart.edges[number].items()
    }
    tracks = {source: row for row, source in enumerate(_tracks(nets))}
    height = max(len(tracks), 1)
    cells: dict[tuple[int, int], dict[int, set[str]]] = {}
    for source, targets in nets.items():
        for row, column, way in _ways(source, targets, tracks.get(source), height):
            cells.setdefault((row, column), {}).setdefault(source, set()).add(way)
    last = max(column for _, column in cells)
    return [
        "".join(_cell(cells.get((row, column)), glyphs) for column in range(last + 1)).rstrip() for row in range(height)
    ]


def _tracks(nets: Mapping[int, Sequence[int]]) -> list[int]:
    """Sources that need a row to go sideways, from the top. One that stands above another's target goes first: its
    line must have left the column before the other's comes down there."""
    left = [source for source in sorted(nets) if list(nets[source]) != [source]]
    found: list[int] = []
    while left:
        free = [one for one in left if not any(_is_above(other, one, nets) for other in left if other != one)]
        chosen = (free or left)[0]
        found.append(chosen)
        left.remove(chosen)
    return found


def _is_above(source: int, other: int, nets: Mapping[int, Sequence[int]]) -> bool:
    return source in nets[other] and source not in nets[source]


def _ways(source: int, targets: Sequence[int], track: int | None, height: int) -> Iterable[tuple[int, int, str]]:
    """Row, column and direction of every piece of a line from one source to its targets."""
    if track is None:
        for row in range(height):
            yield from ((row, source, "u"), (row, source, "d"))
        return
    for row in range(track + 1):
        yield row, source, "u"
        if row < track:
            yield row, source, "d"
    low, high = min(source, *targets), max(source, *targets)
    for column in range(low, high + 1):
        if column > low:
            yield track, column, "l"
        if column < high:
            yield track, column, "r"
    for target in targets:
        for row in range(track, height):
            yield row, target, "d"
            if row > track:
                yield row, target, "u"


def _cell(nets: Mapping[int, set[str]] | None, glyphs: Glyphs) -> str:
    """A line that only crosses another passes below it, so that nobody takes it for a branch."""
    if not nets:
        return " "
    ways = set().union(*nets.values())
    if len(nets) > 1 and {"u", "d"} <= ways:
        upright = [one for one in nets.values() if one != {"l", "r"}]
        ways = set().union(*upright) if upright else ways
    return glyphs.joint(ways)
