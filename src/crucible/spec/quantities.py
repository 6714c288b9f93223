"""Values with a unit: sizes, magnitudes, durations, money, points in time. Exact where it counts: money goes through
Decimal, a time without a zone is refused instead of guessed."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from crucible.model.units import MICRO, MicroUsd, micro_usd
from crucible.spec.kinds import Bad, ScalarKind, Schema, number_hint, whole
from crucible.spec.problems import shown
from crucible.spec.yaml_nodes import Scalar

_AMOUNT = r"(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,9})?"
_SIZE = rf"({_AMOUNT}) ?(?:([KkMmGgTtPp])[Ii]?[Bb]?)?"
_MAGNITUDE = rf"({_AMOUNT})(?:[eE]\+?([0-9]{{1,2}})|([KkMmBbTt]))?"
_DURATION = rf"(?=.)(?:({_AMOUNT}) ?d ?)?(?:({_AMOUNT}) ?h ?)?(?:({_AMOUNT}) ?m ?)?(?:({_AMOUNT}) ?s)?"
_MONEY = r"(?:\$ ?)?((?:0|[1-9][0-9]{0,14})(?:\.[0-9]+)?)(?: ?USD)?"
_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?"
_ZONE = r"([Zz]|[-+][0-9]{2}:?[0-9]{2})"
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"

# GB and GiB alike are the figure that vendors print: an "80 GB" GPU has what both spellings ask for.
_GIB = {"K": Decimal(1) / 1024**2, "M": Decimal(1) / 1024, "G": Decimal(1), "T": Decimal(1024), "P": Decimal(1024**2)}
_TIMES = {"": Decimal(1), "K": Decimal(10) ** 3, "M": Decimal(10) ** 6, "B": Decimal(10) ** 9, "T": Decimal(10) ** 12}
_SECONDS = (86_400, 3_600, 60, 1)
_DECIMALS = 6  # a micro-dollar


@dataclass(frozen=True, slots=True)
class Size(ScalarKind):
    """Gives GiB."""

    most_gib: float

    @property
    def words(self) -> str:
        return "a size such as 80GB"

    def parse(self, scalar: Scalar) -> float:
        found = re.fullmatch(_SIZE, scalar.text)
        if found is None:
            raise Bad(f"expected {self.words}, found {shown(scalar.text)}", self._hint(scalar.text))
        gib = float(Decimal(found[1]) * _GIB[(found[2] or "G").upper()])
        if gib > self.most_gib:
            raise Bad(f"{shown(scalar.text)} is more than {self.most_gib:.0f} GB", "is the unit right?")
        return gib

    def schema(self) -> Schema:
        return {"type": ["string", "number"], "pattern": whole(_SIZE), "minimum": 0, "maximum": self.most_gib}

    def _hint(self, text: str) -> str:
        return number_hint(text) or "units are MB, GB, TB, PB; a bare number is GB"


@dataclass(frozen=True, slots=True)
class Magnitude(ScalarKind):
    """A number of things too many to count: 7B parameters, 2T tokens."""

    most: float

    @property
    def words(self) -> str:
        return "a number above 0 such as 350M, 7B or 70e9"

    def parse(self, scalar: Scalar) -> float:
        found = re.fullmatch(_MAGNITUDE, scalar.text)
        if found is None:
            raise Bad(f"expected {self.words}, found {shown(scalar.text)}", self._hint(scalar.text))
        value = float(Decimal(found[1]) * Decimal(10) ** int(found[2] or 0) * _TIMES[(found[3] or "").upper()])
        if not 0 < value <= self.most:
            raise Bad(f"{shown(scalar.text)} is not above 0 and up to {self.most:g}", "is the unit right?")
        return value

    def schema(self) -> Schema:
        return {
            "type": ["string", "number"],
            "pattern": whole(_MAGNITUDE),
            "exclusiveMinimum": 0,
            "maximum": self.most,
        }

    def _hint(self, text: str) -> str:
        return number_hint(text) or "units are K, M, B for 10^9, T for 10^12"


@dataclass(frozen=True, slots=True)
class Duration(ScalarKind):
    least: timedelta
    most: timedelta

    @property
    def words(self) -> str:
        return "a duration such as 90m or 1h30m"

    def parse(self, scalar: Scalar) -> timedelta:
        seconds = _seconds(scalar.text)
        if seconds is None:
            raise Bad(f"expected {self.words}, found {shown(scalar.text)}", self._hint(scalar.text))
        if not self.least.total_seconds() <= seconds <= self.most.total_seconds():
            raise Bad(f"{shown(scalar.text)} is not between {spell(self.least)} and {spell(self.most)}")
        return timedelta(microseconds=int(seconds * MICRO))

    def schema(self) -> Schema:
        return {
            "type": ["string", "number"],
            "pattern": whole(f"{_DURATION}|{_AMOUNT}"),
            "minimum": self.least.total_seconds(),
            "maximum": self.most.total_seconds(),
        }

    def _hint(self, text: str) -> str:
        if re.fullmatch(r"[0-9]+:[0-9:]+", text):
            return "is that hours or minutes? write 1h30m, or 90s"
        return number_hint(text) or "units are d, h, m, s, in that order; a bare number is seconds"


@dataclass(frozen=True, slots=True)
class Minutes(ScalarKind):
    """A duration as a bare number of minutes."""

    most: timedelta

    @property
    def words(self) -> str:
        return "a number of minutes"

    def parse(self, scalar: Scalar) -> timedelta:
        if not re.fullmatch(_AMOUNT, scalar.text) or not scalar.is_plain:
            raise Bad(f"expected {self.words}, found {shown(scalar.text)}", "for a duration with a unit, use timeout")
        seconds = Decimal(scalar.text) * 60
        if not 0 < seconds <= int(self.most.total_seconds()):
            raise Bad(f"{shown(scalar.text)} is not above 0 and up to {spell(self.most)}")
        return timedelta(microseconds=int(seconds * MICRO))

    def schema(self) -> Schema:
        return {"type": "number", "exclusiveMinimum": 0, "maximum": self.most.total_seconds() / 60}


@dataclass(frozen=True, slots=True)
class Money(ScalarKind):
    most_usd: int

    @property
    def words(self) -> str:
        return "an amount in US dollars such as 100 or $99.50"

    def parse(self, scalar: Scalar) -> MicroUsd:
        found = re.fullmatch(_MONEY, scalar.text)
        if found is None:
            raise Bad(f"expected {self.words}, found {shown(scalar.text)}", self._hint(scalar.text))
        if len(found[1].partition(".")[2]) > _DECIMALS:
            raise Bad(f"{shown(scalar.text)} has more than {_DECIMALS} decimals", "round it to a micro-dollar")
        if Decimal(found[1]) > self.most_usd:
            raise Bad(f"{shown(scalar.text)} is more than {self.most_usd} USD")
        return micro_usd(found[1])

    def schema(self) -> Schema:
        return {"type": ["number", "string"], "pattern": whole(_MONEY), "minimum": 0, "maximum": self.most_usd}

    def _hint(self, text: str) -> str:
        if re.search(r"[A-Za-z€£¥]", text) and re.search("[0-9]", text):
            return "only US dollars, as a plain number"
        return number_hint(text.lstrip("$ ").removesuffix("USD").strip())


@dataclass(frozen=True, slots=True)
class Instant(ScalarKind):
    """Gives UTC."""

    @property
    def words(self) -> str:
        return "a date and time with zone such as 2027-01-15T10:00:00Z"

    def parse(self, scalar: Scalar) -> datetime:
        text = scalar.text
        if re.fullmatch(_TIME, text):
            raise Bad(f"{shown(text)} has no time zone", f"for UTC write {text}Z")
        if re.fullmatch(_DATE, text):
            raise Bad(f"{shown(text)} has no time of day", f"write {text}T00:00:00Z for its start in UTC")
        if not re.fullmatch(_TIME + _ZONE, text):
            raise Bad(f"expected {self.words}, found {shown(text)}")
        try:
            return datetime.fromisoformat(text.upper()).astimezone(UTC)
        except (ValueError, OverflowError):
            raise Bad(f"{shown(text)} is not a date and time that exists") from None

    def schema(self) -> Schema:
        return {"type": "string", "pattern": whole(_TIME + _ZONE)}


def spell(duration: timedelta) -> str:
    """As a user would write it."""
    rest = int(duration.total_seconds())
    parts = []
    for unit, seconds in zip("dhms", _SECONDS, strict=True):
        count, rest = divmod(rest, seconds)
        parts.append(f"{count}{unit}" if count else "")
    return "".join(parts) or "0s"


def _seconds(text: str) -> Decimal | None:
    if re.fullmatch(_AMOUNT, text):
        return Decimal(text)
    found = re.fullmatch(_DURATION, text)
    if found is None:
        return None
    return sum((Decimal(part or 0) * unit for part, unit in zip(found.groups(), _SECONDS, strict=True)), Decimal(0))
