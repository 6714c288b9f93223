"""The Lab in the REST API: its machines, its bill, what happened there, and what shall go wrong."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from crucible.wire.rest import Request

MOST_MACHINES = 100  # named at once
MOST_SHOWN = 1000  # machines, lines of a bill, events in one answer
LONGEST_S = 1e9

Word = Annotated[str, Field(min_length=1, max_length=256)]
Seconds = Annotated[float, Field(ge=-LONGEST_S, le=LONGEST_S, allow_inf_nan=False)]
Lasting = Annotated[str, Field(min_length=1, max_length=40, description="90s, 5m, 1h30m, by the Lab's clock")]


class Preempt(Request):
    """Machines by their names, or all spot machines, narrowed by region, type and count."""

    machines: Annotated[list[Word], Field(max_length=MOST_MACHINES)] = Field(default_factory=list)
    all: bool = False
    region: Word | None = None
    type: Word | None = None
    count: Annotated[int, Field(ge=1, le=100_000)] | None = None
    notice_s: Annotated[float, Field(ge=0, lt=LONGEST_S, allow_inf_nan=False)] | None = None  # null: as usual there

    @model_validator(mode="after")
    def _says_which(self) -> Self:
        is_narrowed = (self.region, self.type, self.count) != (None, None, None)
        if bool(self.machines) == self.all or (self.machines and is_narrowed):
            raise ValueError("name machines, or say all (with region, type or count, if not all of them)")
        return self


class NewFault(Request):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    kind: Word
    operation: Word | None = None
    probability: Annotated[float, Field(gt=0, le=1)] | None = None
    count: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    at: Lasting | None = None
    for_: Annotated[Lasting | None, Field(alias="for")] = None
    seconds: Seconds | Annotated[list[Seconds], Field(min_length=2, max_length=2)] | None = None
    status: Annotated[int, Field(ge=100, le=599)] | None = None
    machine: Word | None = None
    tag: Word | None = None
    region: Word | None = None
    type: Word | None = None


class LabMachineItem(BaseModel):
    id: str
    type: str
    market: Literal["spot", "on-demand"]
    region: str
    zone: str
    state: Literal["pending", "running", "shutting-down", "terminated"]
    launched_at: datetime
    ended_at: datetime | None
    end: Literal["owner", "seller", "guest"] | None  # who ended it
    notice_at: datetime | None  # when it was told that it will be taken
    taken_at: datetime | None
    private_address: str
    job_id: str | None  # of a job that you see
    cost_microusd: int | None  # of it and its address, so far


class LabView(BaseModel):
    url: str
    version: str
    account: str
    regions: list[str]
    seed: int
    speed: float
    boot_scale: float
    started_at: datetime  # by the Lab's clock, as all times here
    now: datetime
    enclosure: str
    prices: Literal["recorded", "made up"]
    counts: dict[str, int]
    disks: int
    cost_microusd: int
    faults: int
    machines: list[LabMachineItem]  # newest first
    is_cut: bool  # there are more machines than are shown


class LabStatus(BaseModel):
    is_running: bool
    reason: str | None  # why there is none
    hint: str | None  # what to type
    lab: LabView | None


class LabMachines(BaseModel):
    items: list[LabMachineItem]


class LabBillLine(BaseModel):
    resource: str
    kind: Literal["machine", "disk", "address", "reservation"]
    from_at: datetime
    to_at: datetime
    cost_microusd: int
    note: str


class LabBillKind(BaseModel):
    kind: str
    count: int
    cost_microusd: int


class LabBill(BaseModel):
    account: str
    until: datetime
    cost_microusd: int
    kinds: list[LabBillKind]
    items: list[LabBillLine]  # newest first
    is_cut: bool


class LabNote(BaseModel):
    number: int
    at: datetime
    what: str
    subject: str
    note: str


class LabNotes(BaseModel):
    items: list[LabNote]


class LabConsole(BaseModel):
    machine: str
    text: str
    is_cut: bool  # its beginning is left out


class LabFault(BaseModel):
    id: str
    kind: str
    operation: str | None
    probability: float
    count: int | None
    since: datetime | None
    until: datetime | None
    seconds: list[float] | None
    status: int | None
    machine: str | None
    tag: str | None
    region: str | None
    type: str | None
    asked: int
    struck: int


class LabFaultKind(BaseModel):
    kind: str
    does: str
    strikes: Literal["requests", "machines"]
    operations: list[str]
    seconds: list[float] | None
    statuses: list[int]


class LabFaults(BaseModel):
    items: list[LabFault]
    kinds: list[LabFaultKind]
