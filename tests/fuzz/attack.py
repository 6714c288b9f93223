"""Sends spoiled inputs to a real server and judges every answer (F43, T11): no failure of the server, none that takes
longer than a second, and whoever is refused hears which field is wrong."""

import http.client
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

from fuzz.spoiling import made_up, spoiled_json, spoiled_yaml

LONGEST_S = 1.0
# A machine that is busy with something else makes anything slow: what was slow is asked again, alone.
PATIENCE = 3
TREE = Path(__file__).parents[2]
MAX_SPEC_BYTES = 20_000
YAML_ROUTES = ("/v1/validate", "/v1/validate", "/v1/plan", "/v1/jobs")
JOB_ROUTES = ("/v1/jobs", "/api/v1/training")
# Long answers, and what a sane client asks for only once.
LEFT_OUT = ("/v1/prices/refresh",)


@dataclass(frozen=True, slots=True)
class Input:
    method: str
    path: str
    body: bytes


@dataclass
class Report:
    inputs: int = 0
    longest_s: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        seen = ", ".join(f"{status}: {count}" for status, count in sorted(self.statuses.items()))
        return f"{self.inputs} inputs, {len(self.problems)} problems, longest {self.longest_s:.3f} s, answers {seen}"


class Attacker:
    def __init__(self, port: int, token: str, openapi: Any, seed: int) -> None:
        self._port = port
        self._token = token
        self._openapi = openapi
        self._seed = seed
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> "Attacker":
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()

    def run(self, inputs: int) -> Report:
        report = Report()
        for number, one in zip(range(inputs), self.inputs(), strict=False):
            status, body, took_s = self._asked(one)
            report.inputs += 1
            report.statuses[status] += 1
            report.longest_s = max(report.longest_s, took_s)
            self._call_off(one, status, body)
            wrong = judged(status, body, took_s)
            if wrong is not None:
                report.problems.append(f"seed {self._seed}, input {number}: {wrong}: {one} -> {body[:500]!r}")
        return report

    def inputs(self) -> Iterator[Input]:
        """For ever: as many specs as bodies of all other routes."""
        chance = Random(self._seed)
        good, routes = good_specs(), json_routes(self._openapi)
        parts = self._openapi["components"]["schemas"]
        while True:
            text = spoiled_yaml(chance, good).decode("utf-8", "surrogateescape")
            yield Input("POST", chance.choice(YAML_ROUTES), json.dumps({"spec_yaml": text}).encode())
            method, path, schema = chance.choice(routes)
            body = spoiled_json(chance, made_up(chance, schema, parts))
            yield Input(method, filled(chance, path), body)

    def _call_off(self, one: Input, status: int, body: bytes) -> None:
        """What is taken is a good spec, and may be a sweep of a thousand trials. The question here is how inputs are
        answered, not how many machines one server can look after."""
        if status == 201 and one.path in JOB_ROUTES:
            self._ask(Input("POST", f"/v1/jobs/{json.loads(body)['id']}/cancel", b""))

    def _asked(self, one: Input) -> tuple[int, bytes, float]:
        for _ in range(PATIENCE):
            began = time.perf_counter()
            status, body = self._ask(one)
            took_s = time.perf_counter() - began
            if took_s < LONGEST_S:
                break
        return status, body, took_s

    def _ask(self, one: Input) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        for _ in range(2):  # a connection that was closed meanwhile is opened again
            connection = self._connection or http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
            try:
                connection.request(one.method, one.path, one.body, headers)
                answer = connection.getresponse()
                body = answer.read()
            except (http.client.HTTPException, ConnectionError):
                connection.close()
                self._connection = None
                continue
            self._connection = None if answer.will_close else connection
            return answer.status, body
        return 599, b"the server hung up"


def judged(status: int, body: bytes, took_s: float) -> str | None:
    """What is wrong with an answer; None: nothing."""
    if status >= 500 or status == 429:  # who is put off was not looked at
        return f"answered {status}"
    if took_s >= LONGEST_S:
        return f"took {took_s:.2f} s"
    if status in (400, 422):
        told = json.loads(body)
        if told["error"] == "budget_exhausted":  # the body is fine, the money is not there: a budget that was made up
            return None if told["details"].get("budget") else "names no budget"
        problems = told["details"].get("problems") or [told["details"]]
        if not all(isinstance(problem.get("field"), str) and problem["field"] for problem in problems):
            return "names no field"
        if not told["message"] or not told["error"]:
            return "says nothing"
    return None


def good_specs() -> Sequence[str]:
    """Those that run, and for every kind of mistake one that makes it."""
    paths = [*sorted(TREE.glob("examples/*/*.yaml")) * 4, *sorted(TREE.glob("tests/golden/spec/*.yaml"))]
    return [path.read_bytes().decode("utf-8", "replace") for path in paths if path.stat().st_size < MAX_SPEC_BYTES]


def json_routes(openapi: Any) -> Sequence[tuple[str, str, Any]]:
    """Every operation that takes JSON, but those for agents' own keys."""
    found = []
    for path, operations in sorted(openapi["paths"].items()):
        for method, operation in sorted(operations.items()):
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if content and not path.startswith(("/agent/", "/worker/")) and path not in LEFT_OUT:
                found.append((method.upper(), path, content["schema"]))
    return found


def filled(chance: Random, path: str) -> str:
    """A path whose parameters are names that may or may not exist."""
    while "{" in path:
        start, end = path.index("{"), path.index("}")
        name = chance.choice(("alice", "vision", "a", "../x", "é", "0" * 64, "x" * 300, "%00", "1"))
        path = f"{path[:start]}{quote(name, safe='')}{path[end + 1 :]}"
    return path
