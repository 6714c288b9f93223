"""A workflow as a drawing, or where that would be too wide, as a table. Pure: what is shown is a function of what the
server, or a file, said and of `now`."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from crucible.cli import dag, wording
from crucible.cli.dag import Glyphs, Line
from crucible.cli.table import Column, cut, draw, printable
from crucible.cli.views.jobs import Paint
from crucible.client.workflow_shapes import Step, Workflow
from crucible.model.spec import JobSpec
from crucible.model.spec import Step as Planned

# A name is cut to this before a drawing is given up.
SHORT_NAME = 16
_SIGNS = {
    "succeeded": ("✓", "+"),
    "reused": ("↺", "="),
    "failed": ("✗", "x"),
    "skipped": ("–", "-"),
    "cancelled": ("–", "-"),
    "waiting": ("·", "."),
}
_AT_WORK = ("●", "*")
# The words of jobs have the colours.
_COLOURED = {"succeeded": "completed", "reused": "completed", "skipped": "cancelled", "waiting": "pending"}


def workflow_page(
    workflow: Workflow, now: datetime, *, width: int | None, is_fine: bool, paint: Paint = str
) -> list[str]:
    """`is_fine`: the terminal can show more than ASCII."""
    ended = sum(step["phase"] in ("succeeded", "failed", "cancelled") for step in workflow["steps"])
    head = [
        printable(f"{workflow['name']} ({workflow['id']})"),
        f"{paint(workflow['status'])}, {ended} of {wording.plural(len(workflow['steps']), 'step')} done, "
        f"{_ran(workflow, now)}, {wording.money(workflow['cost_usd'])}",
    ]
    reason = workflow.get("reason")
    boxes = {step["name"]: _box(step, now, is_fine, paint) for step in workflow["steps"]}
    needs = {step["name"]: step["needs"] for step in workflow["steps"]}
    drawn = drawing(boxes, needs, width, is_fine) or step_table(workflow["steps"], now, width=width, paint=paint)
    return [*head, *([printable(reason)] if reason else []), "", *drawn]


def planned_page(spec: JobSpec, *, width: int | None, is_fine: bool) -> list[str]:
    """The same of a file that nobody has submitted."""
    boxes = {step.name: [Line(step.name), *(Line(text) for text in _asked(step))] for step in spec.steps}
    needs = {step.name: step.needs for step in spec.steps}
    return drawing(boxes, needs, width, is_fine) or _planned_table(spec.steps, width)


def drawing(
    boxes: Mapping[str, Sequence[Line]], needs: Mapping[str, Sequence[str]], width: int | None, is_fine: bool
) -> list[str] | None:
    glyphs: Glyphs = dag.FINE if is_fine else dag.PLAIN
    short = {name: [line._replace(text=cut(line.text, SHORT_NAME)) for line in lines] for name, lines in boxes.items()}
    return dag.draw(boxes, needs, width, glyphs) or dag.draw(short, needs, width, glyphs)


def step_table(steps: Sequence[Step], now: datetime, *, width: int | None, paint: Paint = str) -> list[str]:
    columns = [
        Column("STEP", shrinks=True),
        Column("STATE", paint=lambda text: _painted(text, paint)),
        Column("NEEDS", shrinks=True),
        Column("RAN", is_right=True),
        Column("COST", is_right=True),
        Column("WHERE"),
        Column("WHY", shrinks=True),
    ]
    rows = [
        [
            step["name"],
            state(step),
            ", ".join(step["needs"]) or wording.NONE,
            wording.span(step["started_at"], step["finished_at"], now),
            wording.money(step["cost_usd"]),
            _where(step) or wording.NONE,
            step.get("reason") or "",
        ]
        for step in steps
    ]
    return draw(columns, rows, width)


def state(step: Step) -> str:
    """Its verdict says more than its phase."""
    return step.get("verdict") or step["phase"]


# --- boxes --------------------------------------------------------------------------------------------------------


def _box(step: Step, now: datetime, is_fine: bool, paint: Paint) -> list[Line]:
    word = state(step)
    sign = _SIGNS.get(word, _AT_WORK)[0 if is_fine else 1]
    figures = [wording.span(step["started_at"], step["finished_at"], now), wording.money(step["cost_usd"])]
    told = [_condition(step["when"]), " ".join(figures) if step["started_at"] else "", _where(step)]
    lines = [Line(f"{sign} {step['name']}"), Line(word, _painter(paint))]
    return [*lines, *(Line(text) for text in told if text)]


def _painter(paint: Paint) -> Callable[[str], str]:
    return lambda text: _painted(text, paint)


def _painted(text: str, paint: Paint) -> str:
    """A state in the colour of the status that it is like."""
    word = text.strip()
    like = _COLOURED.get(word, word)
    return paint(like).replace(like, text, 1)


def _condition(when: str) -> str:
    return "" if when == "succeeded" else f"when {when}"


def _where(step: Step) -> str:
    return "/".join(part for part in dict.fromkeys((step.get("provider"), step.get("region"))) if part)


def _ran(workflow: Workflow, now: datetime) -> str:
    return wording.span(workflow["started_at"], workflow["finished_at"], now)


# --- a file ---------------------------------------------------------------------------------------------------------


def _asked(step: Planned) -> list[str]:
    need, limits = step.job.resources, step.job.constraints
    gpus = wording.plural(need.gpus, "GPU") if need.gpus else "CPUs"
    kind = " ".join(part for part in (gpus, "/".join(need.gpu_types) if need.gpus else "") if part)
    where = "/".join(limits.providers) or step.job.execution.executor or ""
    each = f"for each {step.for_each}" if step.for_each else ""
    return [text for text in (kind, where, each, _condition(step.when)) if text]


def _planned_table(steps: Sequence[Planned], width: int | None) -> list[str]:
    columns = [Column("STEP", shrinks=True), Column("NEEDS", shrinks=True), Column("ASKS FOR", shrinks=True)]
    rows = [[step.name, ", ".join(step.needs) or wording.NONE, ", ".join(_asked(step))] for step in steps]
    return draw(columns, rows, width)
