"""How the page writes figures, said a second time and apart from it: dollars, shares, sizes and times."""

from collections.abc import Mapping
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

DASH = "–"
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")
_PER = {1: "second", 60: "minute", 3600: "hour", 2_628_000: "month"}


def written(figure: str, value: Any, beside: Mapping[str, Any]) -> str:
    """What stands on the page for `value`, which is at `figure` of an answer, in an object with what is `beside` it."""
    name = figure.rpartition(".")[2]
    if value is None or value == "":
        return DASH
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if ".." in figure:
        return duration(value)
    if "/" in figure:
        return percent(value, 1)
    if ".metadata." in figure:
        return significant(value)
    if name == "rate_usd":
        per_s = int(beside["per_s"])
        return f"${significant(value, 12)} per {_PER.get(per_s) or f'{per_s} s'}"
    if name.endswith("_microusd"):
        return exact(value)
    if name.endswith("per_hour_usd"):
        return f"{usd(value)}/h"
    if name.endswith("_usd"):
        return usd(value)
    if name == "fraction":
        return percent(value, 1)
    if name in ("median_error", "p90_error", "within", "within_range", "goal"):
        return percent(value, 0)
    if name.endswith("_bytes"):
        return size(value)
    if name.startswith("seconds"):
        return duration(value)
    if "hours" in name and name != "gpu_hours":
        return duration(value * 3600)
    if name in ("rank", "exit_code", "signal"):
        return str(value)
    return count(value)


def usd(amount: float) -> str:
    whole = abs(amount)
    digits = 2 if whole == 0 or whole >= 1 else 4 if whole >= 0.01 else 6
    text = f"{rounded(whole, digits):,.{digits}f}"
    if digits == 6:
        text = text.rstrip("0")
        text += "0" * max(0, 2 - len(text.partition(".")[2]))
    return f"{'-' if amount < 0 else ''}${text}"


def exact(microusd: int) -> str:
    """To the last digit."""
    return f"{'−' if microusd < 0 else ''}${abs(microusd) // 10**6:,}.{abs(microusd) % 10**6:06}"


def percent(share: float, digits: int) -> str:
    return f"{trimmed(rounded(share, digits + 2) * 100, digits)}%"


def count(value: float) -> str:
    return trimmed(rounded(value, 3), 3)


def significant(value: float, digits: int = 5) -> str:
    """As a browser writes a number that has been rounded to so many digits."""
    exact_value = Decimal(value)
    place = exact_value.adjusted() - digits + 1
    near = float(exact_value.quantize(Decimal(1).scaleb(place), ROUND_HALF_UP)) if value else 0.0
    return str(int(near)) if near == int(near) and abs(near) < 1e21 else plain(near)


def plain(value: float) -> str:
    text = repr(value)
    mantissa, _, exponent = text.partition("e")
    if not exponent:
        return text
    if int(exponent) >= -6:
        return f"{Decimal(text):f}"
    return f"{mantissa.removesuffix('.0')}e{int(exponent)}"


def size(value: float) -> str:
    unit = 0
    while value >= 1024 and unit < len(_SIZES) - 1:
        value, unit = value / 1024, unit + 1
    digits = 0 if value >= 100 or unit == 0 else 1
    return f"{rounded(value, digits):.{digits}f} {_SIZES[unit]}"


def duration(seconds: float) -> str:
    whole = max(0, int(rounded(seconds, 0)))
    if whole < 60:
        return f"{whole} s"
    if whole < 600:
        return pair(*divmod(whole, 60), "min", "s")
    minutes = int(rounded(whole / 60, 0))
    if whole < 3600:
        return f"{minutes} min"
    if whole < 86_400:
        return pair(*divmod(minutes, 60), "h", "min")
    return pair(*divmod(int(rounded(whole / 3600, 0)), 24), "d", "h")


def pair(large: int, small: int, one: str, other: str) -> str:
    return f"{large} {one}" if small == 0 else f"{large} {one} {small} {other}"


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def rounded(value: float, digits: int) -> Decimal:
    return Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


def trimmed(value: Decimal, digits: int) -> str:
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
