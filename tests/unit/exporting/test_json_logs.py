"""The log as JSON: one object for each line, with what it is about."""

import json
import logging
from contextvars import copy_context
from typing import Any

from crucible.core.trace import trace_id
from crucible.exporting.json_logs import JsonFormatter
from crucible.model.ids import JobId
from crucible.ports import log_scope


def line(message: str, *arguments: object, error: bool = False) -> dict[str, Any]:
    trouble = (ValueError, ValueError("broken"), None) if error else None
    record = logging.LogRecord("crucible.engine", logging.WARNING, "f", 1, message, arguments, trouble)
    text = JsonFormatter().format(record)
    assert "\n" not in text
    return dict(json.loads(text))


def test_a_line_says_when_who_how_bad_and_what() -> None:
    said = line("order %s waits\nfor an answer", "o-1")
    assert said["message"] == "order o-1 waits\nfor an answer"
    assert (said["level"], said["logger"]) == ("warning", "crucible.engine")
    assert said["time"].endswith("+00:00") and not {"request_id", "job_id", "trace_id", "row", "error"} & said.keys()


def test_a_failure_comes_with_its_traceback() -> None:
    assert "ValueError: broken" in line("failed", error=True)["error"]


def test_what_a_request_is_about_is_beside_the_message() -> None:
    def answered() -> dict[str, Any]:
        log_scope.request_id.set("ab-1")
        log_scope.for_job("j" * 100)
        return line("hello")

    said = copy_context().run(answered)
    assert (said["request_id"], said["job_id"]) == ("ab-1", "j" * 64)
    assert said["trace_id"] == trace_id(JobId("j" * 64))


def test_a_worker_says_which_row_it_looks_at_and_forgets_it_after() -> None:
    with log_scope.looking_at("job", "j-1"):
        said = line("x")
        assert (said["row"], said["job_id"]) == ("job j-1", "j-1")
    with log_scope.looking_at("task", "t-1"):
        assert line("x").keys() & {"row", "job_id"} == {"row"}
    assert "row" not in line("x")


def test_what_opens_doors_is_taken_out() -> None:
    token = "cru_" + "a1B2" * 8
    assert token not in json.dumps(line("token %s came", token))
