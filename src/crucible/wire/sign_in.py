"""Signing in elsewhere, as requests and answers."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from crucible.wire.rest import Request

Challenge = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{43}$", description="S256 of a secret that the program keeps")]
Short = Annotated[str, Field(min_length=1, max_length=4096, pattern=r"^[\x21-\x7e]+$")]


class SignInWays(BaseModel):
    ways: list[Literal["token", "oidc"]]
    oidc_name: str | None  # what people call it
    label: str | None  # what the operator calls this server: Demo, Staging


class Begin(BaseModel):
    """The query of a sign-in's first address."""

    redirect: Annotated[str, Field(min_length=1, max_length=2000, pattern=r"^[\x21-\x7e]+$")]
    challenge: Challenge
    state: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]


class Callback(BaseModel):
    """The query of the address to which the identity provider sends the browser back; it adds what it likes."""

    state: Short
    code: Short | None = None
    error: Annotated[str, Field(max_length=1000)] | None = None


class TicketRequest(Request):
    challenge: Challenge


class Ticket(BaseModel):
    code: str  # good for one token, to who knows what the challenge was made of
    expires_at: datetime


class Exchange(Request):
    code: Short  # from the address to which the browser was sent back
    verifier: Annotated[str, Field(pattern=r"^[A-Za-z0-9._~-]{43,128}$", description="what the challenge was made of")]
