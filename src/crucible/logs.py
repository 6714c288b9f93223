"""The server's own log. What opens doors is taken out of every line, tracebacks included, whoever wrote it."""

import logging

from crucible.core.scrubbing import scrubbed

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class ScrubbingFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return scrubbed(super().format(record))


def to_stderr(form: logging.Formatter | None = None) -> None:
    """`form` takes out the same; None: lines of text."""
    handler = logging.StreamHandler()
    handler.setFormatter(form or ScrubbingFormatter(FORMAT))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
