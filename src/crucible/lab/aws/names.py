"""Names of things that Amazon makes and the world does not: the same for the same thing in every run."""

import hashlib
import re
from functools import lru_cache

_TAIL = r"-(?:[0-9a-f]{8}|[0-9a-f]{17})"


@lru_cache(maxsize=8192)  # listings name the same things again and again
def derived(prefix: str, *of: object) -> str:
    """sg-0123456789abcdef0"""
    digest = hashlib.sha256("/".join(map(str, of)).encode()).hexdigest()
    return f"{prefix}-0{digest[:16]}"


def is_id(prefix: str, text: str) -> bool:
    """Whether it has the form of an id, so that what is wrong with it is only that nothing has it."""
    return re.fullmatch(re.escape(prefix) + _TAIL, text) is not None
