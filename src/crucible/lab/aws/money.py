"""Micro-dollars as Amazon writes money."""


def dollars(microusd: int, places: int = 6) -> str:
    """Exact: 98320000 is 98.320000."""
    return f"{microusd // 1_000_000}.{microusd % 1_000_000:06d}{'0' * (places - 6)}"
