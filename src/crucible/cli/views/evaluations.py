"""An evaluation for people: a table for each metric, models down, datasets across, each beside the baseline."""

from collections.abc import Callable, Iterable, Sequence

from crucible.cli import wording
from crucible.cli.csv_lines import csv_line
from crucible.cli.table import Column, draw, printable
from crucible.client.trial_shapes import Evaluation, EvaluationRow, Figure

Paint = Callable[[str, str], str]  # colour, text

# Of a cell without a figure; whatever else it is doing, it is to come.
_WORDS = {"succeeded": "none", "failed": "failed", "cancelled": "cancelled"}


def evaluation_page(said: Evaluation, width: int | None, paint: Paint = lambda colour, text: text) -> list[str]:
    lines: list[str] = []
    if not said["metrics"]:
        return ["no metric was reported yet", *failures(said)]
    for metric in said["metrics"]:
        lines += ["", *metric_table(said, metric, width, paint)] if lines else metric_table(said, metric, width, paint)
    trouble = failures(said)
    return [*lines, "", *trouble] if trouble else lines


def metric_table(said: Evaluation, metric: str, width: int | None, paint: Paint) -> list[str]:
    better = "more" if said["goal"] == "maximize" else "less"
    beside = f", beside {printable(said['baseline'])}" if said["baseline"] else ""
    has_mean = len(said["datasets"]) > 1
    columns = [
        Column("MODEL", shrinks=True),
        *(Column(printable(name), paint=_painter(paint)) for name in said["datasets"]),
        *([Column("MEAN", paint=_painter(paint))] if has_mean else []),
    ]
    rows = [
        [
            row["model"],
            *cells(row, said["datasets"], metric),
            *([figure(row["means"].get(metric))] if has_mean else []),
        ]
        for row in said["rows"]
    ]
    return [f"{printable(metric)} ({better} is better{beside})", *draw(columns, rows, width)]


def cells(row: EvaluationRow, datasets: Sequence[str], metric: str) -> list[str]:
    by_dataset = {cell["dataset"]: cell for cell in row["cells"]}
    found = []
    for name in datasets:
        cell = by_dataset.get(name)
        known = cell["metrics"].get(metric) if cell is not None else None
        if cell is None or known is not None:
            found.append(figure(known))
        else:
            found.append(_WORDS.get(cell["phase"], "..."))
    return found


def figure(known: Figure | None) -> str:
    """The value, and how far it is from the baseline; `+` and `-` say the direction, `!` that it is worse."""
    if known is None:
        return wording.NONE
    value = wording.number(known["value"])
    if known["delta"] is None:
        return value
    worse = "!" if known["is_better"] is False else ""
    return f"{value} ({known['delta']:+.4g}{worse})"


def _painter(paint: Paint) -> Callable[[str], str]:
    def painted(text: str) -> str:
        if text in ("failed", "cancelled", "none"):
            return paint("red", text)
        if "(" not in text:
            return text
        return paint("red", text) if text.endswith("!)") else text if "(+0)" in text else paint("green", text)

    return painted


def failures(said: Evaluation) -> list[str]:
    """Why a cell has no figure."""
    return [
        printable(f"{row['model']} on {cell['dataset']} {cell['phase']}: {cell['reason'] or 'no reason given'}")
        for row in said["rows"]
        for cell in row["cells"]
        if cell["phase"] in ("failed", "cancelled")
    ]


def as_csv(said: Evaluation) -> Iterable[str]:
    """One line for each figure."""
    yield csv_line(["model", "dataset", "metric", "value", "delta", "is_better", "state"])
    for row in said["rows"]:
        for cell in row["cells"]:
            for metric in said["metrics"]:
                known = cell["metrics"].get(metric)
                figures = [None, None, None] if known is None else [known["value"], known["delta"], known["is_better"]]
                yield csv_line([row["model"], cell["dataset"], metric, *figures, cell["phase"]])
