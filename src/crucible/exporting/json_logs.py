"""The log as one JSON object for each line: for whatever collects logs. A message never breaks a line, what it is about
is beside it and not in it, and what opens doors is taken out as everywhere."""

import json
import logging
from datetime import UTC, datetime
from typing import Any

from crucible.core.scrubbing import scrubbed
from crucible.core.trace import trace_id
from crucible.model.ids import JobId
from crucible.ports import log_scope


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        job_id = log_scope.job_id.get()
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": scrubbed(record.getMessage()),
            "request_id": log_scope.request_id.get(),
            "job_id": job_id,
            "trace_id": None if job_id is None else trace_id(JobId(job_id)),
            "row": log_scope.row.get(),
            "error": scrubbed(self.formatException(record.exc_info)) if record.exc_info else None,
        }
        return json.dumps({key: value for key, value in line.items() if value is not None}, ensure_ascii=False)
