"""What the library has to say to a person who calls it from a program: through `logging`, so that the program decides
where it goes. Without a decision of the program's it is a line on stderr."""

import logging

_LOG = logging.getLogger("crucible")


def say(text: str) -> None:
    """Something the caller should know and did not ask for."""
    _LOG.warning("%s", text)
