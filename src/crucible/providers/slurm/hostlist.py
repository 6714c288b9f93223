"""Slurm's short writing of many names: gpu[1-2,07],login."""

import re

# More nodes than any cluster has.
MOST = 100_000
_PART = re.compile(r"[^,\[\]]*(?:\[[^\]]*\][^,\[\]]*)*")


def expand(text: str) -> tuple[str, ...]:
    """In the order that Slurm gives out nodes."""
    found: list[str] = []
    for part in (match[0] for match in _PART.finditer(text)):
        if part:
            found += spelled(part)
    return tuple(found[:MOST])


def spelled(part: str) -> list[str]:
    head, bracket, rest = part.partition("[")
    if not bracket:
        return [part]
    inside, _, tail = rest.partition("]")
    tails = spelled(tail) if tail else [""]
    return [f"{head}{number}{end}" for number in numbers(inside) for end in tails][:MOST]


def numbers(inside: str) -> list[str]:
    """ "1-2,07" with the width of each first number."""
    found: list[str] = []
    for word in inside.split(","):
        first, _, last = word.strip().partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()):
            continue
        top = min(int(last or first), int(first) + MOST)
        found += [str(number).zfill(len(first)) for number in range(int(first), top + 1)]
    return found
