"""One measured figure and how it is told."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    name: str
    value: float
    unit: str
    cpu_s: float  # of the process in question, over the whole measurement
    wall_s: float
    bound: float | None = None  # the most it may be; None is only written down
    context: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_ok(self) -> bool:
        return self.bound is None or self.value <= self.bound

    def line(self, **more: object) -> str:
        said = {
            "name": self.name,
            "value": _rounded(self.value),
            "unit": self.unit,
            "bound": self.bound,
            "ok": self.is_ok,
            "cpu_s": round(self.cpu_s, 3),
            "wall_s": round(self.wall_s, 3),
            **{name: _rounded(value) for name, value in {**self.context, **more}.items()},
        }
        return json.dumps(said)


def _rounded(value: object) -> object:
    return float(f"{value:.4g}") if isinstance(value, float) else value
