"""One form for the status of every job: tests of every backend ask whether theirs has it."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from crucible.wire import status as wire

PARTS: dict[str, type[BaseModel]] = {
    "progress": wire.Progress,
    "cost": wire.Cost,
    "health": wire.Health,
    "utilisation": wire.Utilisation,
}
FIGURES = ("cpu", "memory", "gpu", "gpu_memory", "disk")


def assert_status(said: Mapping[str, Any]) -> Mapping[str, Any]:
    """Every field is there and none more; shares are shares; what is null has its reason."""
    wire.JobStatus.model_validate(said)
    assert said.keys() == wire.JobStatus.model_fields.keys()
    for name, kind in PARTS.items():
        assert said[name].keys() == kind.model_fields.keys(), name
    fraction = said["progress"]["fraction"]
    assert fraction is None or 0 <= fraction <= 1
    for name in FIGURES:
        figure = said["utilisation"][name]
        if figure is not None:
            assert figure.keys() == wire.Figure.model_fields.keys()
            assert 0 <= figure["low"] <= figure["mean"] <= figure["high"] <= 1.001, (name, figure)
    assert (said["eta"] is None) == ("eta" in said["unknown"])
    assert (said["health"]["status"] == "unknown") == ("health" in said["unknown"])
    assert (said["utilisation"]["heard"] == 0) == ("utilisation" in said["unknown"])
    return said
