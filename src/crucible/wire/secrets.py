"""Secrets in the REST API. A value comes in; no answer has a place for one."""

import base64
import binascii
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field, SecretStr, model_validator

from crucible.model.secret import MOST_BYTES, Secret
from crucible.wire.rest import Request

_LONGEST = 2 * MOST_BYTES  # of base64, with room to say how much too long it is


class SecretNew(Request):
    """Text, or bytes as base64; one of the two."""

    value: Annotated[SecretStr | None, Field(max_length=_LONGEST)] = None
    value_base64: Annotated[SecretStr | None, Field(max_length=_LONGEST)] = None

    @model_validator(mode="after")
    def one_of_two(self) -> "SecretNew":
        if (self.value is None) == (self.value_base64 is None):
            raise ValueError("give value or value_base64")
        return self

    def secret(self) -> Secret:
        """Raises ValueError."""
        if self.value is not None:
            return Secret(self.value.get_secret_value().encode())
        assert self.value_base64 is not None
        try:
            return Secret(base64.b64decode(self.value_base64.get_secret_value(), validate=True))
        except binascii.Error:
            raise ValueError("value_base64 is not base64") from None


class SecretItem(BaseModel):
    name: str
    owner_kind: Literal["user", "project", "team"]
    owner: str
    version: int  # how many values the name has had
    set_by: str
    set_at: datetime
    used_at: datetime | None  # by an attempt


class SecretList(BaseModel):
    items: list[SecretItem]


class KeyRotated(BaseModel):
    key_id: str
    secrets: int  # sealed with the new key
    forgotten: list[str]  # ids of keys that nothing is sealed with any more
    damaged: list[str]  # secrets that do not open, and must be set anew
