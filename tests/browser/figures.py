"""Figures of the page and of the API, side by side. Each figure says on the page in which answer it stands and where
(`data-answer`, `data-figure`, `data-value`: web/src/parts/Told.tsx); what it said there is what the page was told, and
what anybody is told who asks again."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from urllib.request import Request, urlopen

from playwright.sync_api import Page, Response

from .writing import moment, written

READ = """
() => [...document.querySelectorAll('#content [data-figure]')].map(one => ({
  figure: one.dataset.figure,
  value: one.dataset.value,
  text: one.textContent,
  answer: one.closest('[data-answer]')?.dataset.answer ?? '',
}))
"""
# Text with a digit in it that is no figure: moments, ids, commands, pictures (each with a table behind it), the tables
# of charts, which are looked at for themselves, and what stands in fields and menus.
STRAY = """
() => {
  const other = 'h1, [data-figure], time, code, .mono, [role=img], svg, .uplot, input, select, [role=option], style,'
    + ' figure table:not(:has([data-figure]))';
  const found = [];
  const walker = document.createTreeWalker(document.querySelector('#content'), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (/\\d/.test(node.data) && !node.parentElement.closest(other)) found.push(node.data);
  }
  return found;
}
"""
# Browsers count time in milliseconds: two moments are off by one at most.
MS = 0.0011
# What an answer says of the moment at which it was asked.
MOVING = ("at", "forecast", "available", "now")


@dataclass(frozen=True, slots=True)
class Shown:
    figure: str
    value: str
    text: str
    answer: str


class Ear:
    """Hears what the page is told."""

    def __init__(self, page: Page, url: str, token: str) -> None:
        self._url = url
        self._token = token
        self._heard: dict[tuple[Any, ...], list[Response]] = defaultdict(list)
        self._told: dict[Response, Any] = {}
        page.on("response", self._hear)

    def told(self, answer: str) -> Iterator[Any]:
        """Every answer to this question, the newest first."""
        for response in reversed(self._heard[question(answer)]):
            if response not in self._told:
                self._told[response] = response.json()
            yield self._told[response]

    def ask(self, answer: str) -> Any:
        """The same, by somebody else."""
        request = Request(f"{self._url}{answer}", headers={"Authorization": f"Bearer {self._token}"})
        with urlopen(request, timeout=60) as reply:
            return json.load(reply)

    def _hear(self, response: Response) -> None:
        if response.ok and "/v1/" in response.url and response.request.method == "GET":
            self._heard[question(response.url)].append(response)


def question(address: str) -> tuple[Any, ...]:
    parts = urlsplit(address)
    return (parts.path, *sorted(parse_qsl(parts.query)))


def shown(page: Page) -> list[Shown]:
    return [Shown(**one) for one in page.evaluate(READ)]


def compare(page: Page, ear: Ear) -> set[str]:
    """Every figure of the page with the API's. Returns the names of what was compared, without numbers of rows."""
    stray = page.evaluate(STRAY)
    assert not stray, f"these figures do not say where they are from: {stray}"
    by_answer: dict[str, list[Shown]] = defaultdict(list)
    for one in shown(page):
        by_answer[one.answer].append(one)
    for answer, figures in by_answer.items():
        said, wrong = closest(ear, answer, figures)
        assert not wrong, f"the page does not show what {answer} says: {wrong}"
        assert still(said) == still(ear.ask(answer)), f"{answer} says something else now"
    return {re.sub(r"\.\d+(?=\.|$)", "", one.figure) for one in shown(page)}


def closest(ear: Ear, answer: str, figures: list[Shown]) -> tuple[Any, list[str]]:
    """The answer that they are from, and what is wrong with them nevertheless: it may have been asked again since."""
    best: tuple[Any, list[str]] = (None, [f"nobody asked {answer}"])
    for said in ear.told(answer):
        wrong = [words for one in figures if (words := difference(one, said))]
        if best[0] is None or len(wrong) < len(best[1]):
            best = said, wrong
        if not wrong:
            break
    return best


def difference(one: Shown, said: Any) -> str | None:
    value = found(said, one.figure)
    around, _, name = one.figure.rpartition(".")
    should = written(one.figure, value, found(said, around) if name == "rate_usd" else {})
    if not is_same(one.value, value, MS if ".." in one.figure else 0.0):
        return f"{one.figure} is {value!r}, and {one.value!r} beside {one.text!r}"
    return None if one.text == should else f"{one.figure} is {value!r}, in words {should!r} and not {one.text!r}"


def is_same(kept: str, value: Any, within: float) -> bool:
    if value is None:
        return kept == ""
    if isinstance(value, bool | str):
        return kept == str(value)
    if isinstance(value, list):
        return kept == ", ".join(map(str, value))
    return kept != "" and abs(float(kept) - float(value)) <= max(within, 1e-9 * abs(float(value)))


def found(said: Any, path: str) -> Any:
    """`a.0.b` of an answer; `a..b` between two moments, `a/b` a share, `rows[kind=x]` a row, `*` the sum of all."""
    if ".." in path:
        start, end = (found(said, one) for one in path.split(".."))
        return None if start is None or end is None else (moment(end) - moment(start)).total_seconds()
    if "/" in path:
        part, whole = (found(said, one) for one in path.split("/"))
        return part / whole
    for name in path.split("."):
        said = step(said, name)
        if said is None:
            return None
    return said


def step(said: Any, name: str) -> Any:
    chosen = re.fullmatch(r"(\w+)\[(\w+)=(\w+)\]", name)
    if chosen:
        rows, key, value = chosen.groups()
        return next((row for row in said[rows] if row["key"][key] == value), {"cost_usd": 0})
    if isinstance(said, list):
        return len(said) if name == "length" else said[int(name)]
    return said if name == "*" else said[name]


def still(said: Any) -> Any:
    """What does not change while nothing happens."""
    if isinstance(said, Mapping):
        return {name: still(value) for name, value in said.items() if name not in MOVING}
    return said
