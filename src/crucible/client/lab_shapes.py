"""What the API answers about the Lab that the server buys in, as types over plain JSON."""

from typing import TypedDict


class LabMachine(TypedDict):
    id: str
    type: str
    market: str
    region: str
    zone: str
    state: str
    launched_at: str
    ended_at: str | None
    end: str | None
    notice_at: str | None
    taken_at: str | None
    private_address: str
    job_id: str | None
    cost_microusd: int | None


class LabView(TypedDict):
    url: str
    version: str
    account: str
    regions: list[str]
    seed: int
    speed: float
    boot_scale: float
    started_at: str
    now: str
    enclosure: str
    prices: str
    counts: dict[str, int]
    disks: int
    cost_microusd: int
    faults: int
    machines: list[LabMachine]
    is_cut: bool


class LabStatus(TypedDict):
    is_running: bool
    reason: str | None
    hint: str | None
    lab: LabView | None


class LabBillKind(TypedDict):
    kind: str
    count: int
    cost_microusd: int


class LabBillLine(TypedDict):
    resource: str
    kind: str
    from_at: str
    to_at: str
    cost_microusd: int
    note: str


class LabBill(TypedDict):
    account: str
    until: str
    cost_microusd: int
    kinds: list[LabBillKind]
    items: list[LabBillLine]
    is_cut: bool


class LabNote(TypedDict):
    number: int
    at: str
    what: str
    subject: str
    note: str


class LabFault(TypedDict):
    id: str
    kind: str
    operation: str | None
    probability: float
    count: int | None
    since: str | None
    until: str | None
    seconds: list[float] | None
    status: int | None
    machine: str | None
    tag: str | None
    region: str | None
    type: str | None
    asked: int
    struck: int
