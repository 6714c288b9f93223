"""Channels: how people run programs, copy files and reach ports beside a rank. Nothing connects to a node, so both ends
come to the server, and it passes on what they say:

    WS /v1/jobs/{job_id}/channel?rank=0&task=0   a user's token
        The first message is a Request, as text. All that follows is binary, and passes as it is.
    WS /agent/v1/channels/{channel_id}           a node key
        The agent comes for a Wish that it found in its work (`wire.agent.WorkReply.channels`).

A binary message is one byte, its kind, and what follows; at most 64 KiB.

    0 IN      data to the node            5 SIZE    of the person's terminal: rows, columns (2 bytes each)
    1 OUT     data from the node          6 EXIT    JSON: {"exit_code": 0} or {"signal": 9}
    2 ERR     the same, from stderr       7 ERROR   JSON: {"error": code, "message": words}
    3 END     no more data from this side
    4 ROOM    so many more bytes of data may be sent (4 bytes)

Numbers begin with their highest byte. Nobody may send data before the other end has granted room for it. So a slow
reader makes the other end wait, pings are answered all the same, and the server keeps next to nothing. EXIT and ERROR
are the last message of the node. Both ends are in `crucible.agent.relay`; tests tie these numbers to those there."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

MAX_ARGUMENTS = 4096
# A message of a WebSocket may have 64 KiB.
MAX_TEXT = 32 << 10
ERROR = 7

Text = Annotated[str, Field(max_length=MAX_TEXT, pattern=r"^[^\x00]*$")]
Path = Annotated[str, Field(min_length=1, max_length=4096, pattern=r"^[^\x00]+$")]
Cells = Annotated[int, Field(ge=0, le=0xFFFF)]


class Asked(BaseModel):
    """An unknown field is an error: a wish that is not understood must not be dropped silently."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Terminal(Asked):
    rows: Cells
    columns: Cells
    term: Annotated[str, Field(pattern=r"^[A-Za-z0-9._+-]{1,64}$")] = "xterm"


class Exec(Asked):
    """Run a program in the rank's environment and folder; without `argv`, a shell."""

    kind: Literal["exec"]
    argv: Annotated[list[Text], Field(max_length=MAX_ARGUMENTS)] = []
    stdin: bool = False
    tty: Terminal | None = None


class Copy(Asked):
    """A tar stream to or from `path`, which is relative to the rank's folder: IN for copy_in, OUT for copy_out."""

    kind: Literal["copy_in", "copy_out"]
    path: Path


class Forward(Asked):
    """One connection to a port of the node's loopback."""

    kind: Literal["forward"]
    port: Annotated[int, Field(ge=1, le=65535)]


Request = Annotated[Exec | Copy | Forward, Field(discriminator="kind")]
REQUEST: TypeAdapter[Exec | Copy | Forward] = TypeAdapter(Request)


class Wish(BaseModel):
    """In the work of a node. `request` is a Request with the attempt and the rank that it is for."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str
    url: str  # of the server that the person is at
    request: dict[str, Any]
