"""Shapes of recommendations: seed 003's words for backends, ours for the rest. Requests are validated by these classes;
answers are written by hand and described here for the OpenAPI document."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from crucible.wire.rest import Request

# Five million characters of code, with room for what JSON escapes.
MAX_CODE_BYTES = 12 << 20
MAX_CHARS = 5_000_000
MAX_FILES = 500

FileName = Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")]
BackendName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
Level = Literal["high", "medium", "low"]


class CodeFile(Request):
    name: FileName
    text: Annotated[str, Field(max_length=MAX_CHARS)]


class UserPreferences(Request):
    """What is not said is not known; nothing of it is guessed."""

    optimize_for: Literal["cost", "speed"] | None = None
    allowed_backends: Annotated[list[BackendName], Field(max_length=100)] | None = None
    max_cost_usd: Annotated[float, Field(ge=0, le=1e9)] | None = None
    data_privacy: bool = False
    duration_hours: Annotated[float, Field(gt=0, le=87_600)] | None = None
    interruptible: bool | None = None
    gpus: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    gpu_memory_gb: Annotated[float, Field(gt=0, le=4096)] | None = None
    checkpoint_frequency_minutes: Annotated[int, Field(ge=1, le=43_200)] | None = None
    dataset_size_gb: Annotated[float, Field(ge=0, le=1e9)] | None = None


class RecommendationAsked(Request):
    """The code as one text or as files; `entrypoint` names the file that is started."""

    code: Annotated[str, Field(max_length=MAX_CHARS)] | None = None
    files: Annotated[list[CodeFile], Field(max_length=MAX_FILES)] | None = None
    entrypoint: FileName | None = None
    preferences: UserPreferences = UserPreferences()

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.code is None) == (self.files is None):
            raise ValueError("give either code or files")
        return self


# --- answers ----------------------------------------------------------------------------------------------


class FindingItem(BaseModel):
    what: str
    value: str | bool | int | float
    file: str
    line: int
    evidence: str
    confidence: Level
    why: str
    counts: bool  # false where a surer finding says something else


class CostEstimate(BaseModel):
    hourly: float | None
    total: float | None
    confidence: Level


class AvailabilityItem(BaseModel):
    status: Literal["available", "queued", "limited"]
    waitTime: float | None  # seconds
    basis: str


class OfferItem(BaseModel):
    provider: str
    region: str
    instance_type: str
    gpu: str | None
    gpus: int
    count: int
    market: str
    price_as_of: datetime
    price_source: str


class BackendRecommendation(BaseModel):
    backend: str
    score: Annotated[float, Field(ge=0, le=1)]
    costEstimate: CostEstimate
    availability: AvailabilityItem
    pros: list[str]
    cons: list[str]
    enabled: bool
    hours: float | None
    merits: dict[str, float]
    offer: OfferItem | None


class Excluded(BaseModel):
    backend: str
    reason: str


class Recommendations(BaseModel):
    entrypoint: str | None
    files: list[str]
    findings: list[FindingItem]
    notes: list[str]
    characteristics: dict[str, Any]
    assumptions: list[str]
    memory: list[str]
    hours_basis: str
    recommendations: list[BackendRecommendation]
    excluded: list[Excluded]
    spec_yaml: str
